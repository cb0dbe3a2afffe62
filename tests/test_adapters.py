"""A model directory of an adapter: it is trained, resumed, loaded with its base, and refused."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.core.training.adapters import adapted_layers, weights_fingerprint
from keras_transformer.core.training.checkpoint_weights import read_variables
from keras_transformer.core.training.checkpoints import CheckpointStore
from keras_transformer.core.training.model_directory import read_description
from keras_transformer.core.training.run_config import LoopConfig
from keras_transformer.kit.exchange import saved_model
from keras_transformer.kit.exchange.importing import import_model
from keras_transformer.support.files.json_files import read_json, write_json
from pipelines.prepare.preparation import PreparationConfig, prepare
from pipelines.sources.files import FileSource
from pipelines.training import train_on
from tests.kit.exchange import marian_files
from tests.refusals import check_line, refused
from tests.restoring import restore

pytestmark = pytest.mark.usefixtures("steps_traced_once")
SETTINGS = {"lora_rank": 2, "lora_alpha": 3.0, "tokens_per_batch": 256, "warmup_steps": 2}


def train_adapter(data_dir, model_dir, base, steps=4, **settings):
    loop = LoopConfig(train_steps=steps, checkpoint_steps=2)
    return train_on(data_dir, model_dir, None, {**SETTINGS, **settings}, base, loop)


def matrices_of(model_dir, step):
    """The matrices A, B, A, B, ... of a checkpoint."""
    variables = read_variables(f"{model_dir}/checkpoints/step-{step:08d}")
    return [variable for variable in variables if variable.dtype == np.float32]


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def base(untrained, tmp_path_factory):
    """A model directory with two checkpoints, which a test must leave as it is."""
    return shutil.copytree(untrained, tmp_path_factory.mktemp("base") / "model")


@pytest.fixture(scope="module")
def adapter(prepared, base, steps_traced_once, tmp_path_factory):
    """The directory of an adapter, with checkpoints after two and after four steps."""
    before, model_dir = contents(base), tmp_path_factory.mktemp("adapter") / "model"
    result = train_adapter(prepared, model_dir, base)
    assert contents(base) == before
    # r = 2; 12 matrices [16, 16] of attention, and 4 of feed-forward networks.
    assert result["trained_parameters"] == 16 * 2 * (16 + 16)
    assert result["parameters"] == restore(base).model.count_params() + 1024
    return model_dir


@pytest.fixture
def copied(adapter, base, tmp_path):
    """The adapter beside its base, both of which a test may change."""
    model_dir = shutil.copytree(adapter, tmp_path / "adapter")
    other = shutil.copytree(base, tmp_path / "base")
    config = json.loads((model_dir / "config.json").read_text())
    config["base"]["path"] = str(other / "checkpoints" / "step-00000020")
    (model_dir / "config.json").write_text(json.dumps(config))
    return model_dir, other


def test_the_directory_is_small_and_names_its_base(adapter, base):
    description = read_description(adapter)
    training = description.training
    assert (training.lora_rank, training.lora_alpha) == (2, 3.0)
    assert description.base.path == f"{base}/checkpoints/step-00000020"
    assert description.preset == "tiny"
    whole = restore(base).model.count_params()
    (data,) = adapter.glob("checkpoints/step-00000004.data-*")
    variables = 4 * 3 * 1024  # bytes of the matrices and their moments
    # The rest is the position in the data.
    assert variables < data.stat().st_size < variables + 20_000 < 4 * 3 * whole


def test_the_weights_are_those_of_the_paper(adapter, base):
    frozen, merged = restore(base).model, restore(adapter).model
    matrices = matrices_of(adapter, 4)
    assert all(np.any(matrix) for matrix in matrices)
    changes = {
        layer.kernel.path: 3 / 2 * a @ b
        for layer, a, b in zip(adapted_layers(frozen), matrices[::2], matrices[1::2], strict=True)
    }
    for weight, other in zip(merged.weights, frozen.weights, strict=True):
        if weight.path in changes:
            np.testing.assert_allclose(weight, other + changes[weight.path], rtol=1e-5, atol=1e-7)
        else:
            np.testing.assert_array_equal(weight, other)


def test_an_average_is_that_of_the_weights(adapter, base):
    layers = adapted_layers(restore(adapter, "average:2").model)
    frozen = adapted_layers(restore(base).model)
    pairs = [matrices_of(adapter, step) for step in (2, 4)]
    for number, (layer, other) in enumerate(zip(layers, frozen, strict=True)):
        changes = [matrices[2 * number] @ matrices[2 * number + 1] for matrices in pairs]
        expected = other.kernel + 3 / 2 * np.mean(changes, axis=0)
        np.testing.assert_allclose(layer.kernel, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.slow  # trains twice
def test_an_interrupted_run_equals_an_uninterrupted_one(prepared, adapter, base, copied):
    model_dir, _ = copied
    for path in model_dir.glob("checkpoints/step-00000004.*"):
        path.unlink()
    train_adapter(prepared, model_dir, base)
    for name in ("model", "optimizer"):
        one, same = (
            read_variables(f"{folder}/checkpoints/step-00000004", name)
            for folder in (adapter, model_dir)
        )
        for values, others in zip(one, same, strict=True):
            np.testing.assert_array_equal(values, others)
    # The base may be named by its checkpoint, too.
    result = train_adapter(prepared, model_dir, f"{base}/checkpoints/step-00000020")
    assert (result["step"], result["stopped"]) == (4, "train_steps")


def test_the_base_may_be_a_mean_that_is_written(prepared, base, tmp_path):
    from keras_transformer.core.training.checkpoint_files import choose_checkpoint
    from keras_transformer.core.training.checkpoint_weights import average_checkpoints

    averaged = shutil.copytree(base, tmp_path / "base")
    choose_checkpoint(averaged, "average:2")
    name = "checkpoints/average-2-step-00000020"
    with refused("init_from", averaged / name):
        train_adapter(prepared, tmp_path / "adapter", averaged)
    average_checkpoints(averaged, 2)
    train_adapter(prepared, tmp_path / "adapter", averaged, steps=1)
    assert read_description(tmp_path / "adapter").base.path == f"{averaged}/{name}"


def test_the_base_may_be_elsewhere(adapter, untrained):
    translator = kt.load(untrained, adapter=adapter)
    assert translator.checkpoint == {"checkpoint": "step-00000004", "step": 4, "epochs": 2.0}
    expected = restore(adapter).model
    for one, same in zip(translator.model.weights, expected.weights, strict=True):
        np.testing.assert_array_equal(one, same)
    checkpoint = adapter / "checkpoints" / "step-00000002"
    earlier = restore(adapter, "step-00000002").model
    found = restore(untrained, adapter=checkpoint).model
    for one, same in zip(found.weights, earlier.weights, strict=True):
        np.testing.assert_array_equal(one, same)
    assert weights_fingerprint(earlier) != weights_fingerprint(expected)


def test_an_adapter_is_scaled(adapter, untrained):
    frozen, whole = restore(untrained).model, restore(adapter).model
    for found in (restore(adapter, adapter_scale=0.25), restore(untrained, None, adapter, 0.25)):
        assert found.card.which_weights["adapter_scale"] == 0.25
        weights = zip(found.model.weights, frozen.weights, whole.weights, strict=True)
        for weight, before, after in weights:
            expected = 0.75 * np.array(before) + 0.25 * np.array(after)
            np.testing.assert_allclose(weight, expected, rtol=1e-5, atol=1e-7)
    assert "adapter_scale" not in restore(adapter, adapter_scale=1).card.which_weights
    for scale in (-1, float("nan")):
        with refused("adapter_scale", "NaN" if scale != scale else scale, about="finite"):
            restore(adapter, adapter_scale=scale)
    with refused("adapter_scale", 0.5, about=str(untrained)):
        kt.load(untrained, adapter_scale=0.5)
    with refused("adapter_scale", 0.5, about="ensemble"):
        kt.load([untrained, untrained], adapter_scale=0.5)


@pytest.mark.slow  # runs several programs, one of which trains
def test_programs_take_an_adapter(prepared, copied, call_program, tmp_path, monkeypatch):
    model_dir, base = copied
    both = [f"--model_dir={base}", f"--adapter={model_dir}"]
    done = call_program("evaluate", *both, f"--data_dir={prepared}", "--beam_size=1")
    assert (done.code, done.result["checkpoint"]) == (0, "step-00000004"), done.errors
    assert (model_dir / "evaluation-test.json").exists()
    assert not (base / "evaluation-test.json").exists()
    assert restore(model_dir).card.evaluation is not None
    assert restore(model_dir, adapter_scale=0.5).card.evaluation is None

    scaled = [*both, "--adapter_scale=0.5"]
    done = call_program("evaluate", *scaled, f"--data_dir={prepared}", "--beam_size=1")
    assert done.result["adapter_scale"] == 0.5, done.errors
    assert restore(model_dir).card.evaluation is None

    monkeypatch.setattr(saved_model, "_graphs_named", lambda *_: {})  # none of them is run
    done = call_program("export", *both, f"--export_dir={tmp_path / 'export'}")
    assert (done.code, done.result["checkpoint"]) == (0, "step-00000004"), done.errors
    exported, merged = restore(tmp_path / "export").model, restore(model_dir).model
    for one, same in zip(exported.weights, merged.weights, strict=True):
        np.testing.assert_array_equal(one, same)
    assert exported.count_params() == restore(base).model.count_params()


def test_a_base_that_is_not_there_or_is_another(copied, untrained):
    model_dir, base = copied
    with refused("path", base, about=str(base)):
        restore(base, "step-00000010", model_dir)
    store = CheckpointStore(base)
    checkpoints = base / "checkpoints"
    for path in checkpoints.glob("step-00000010.*"):  # as if the base had been trained anew
        shutil.copy(path, checkpoints / path.name.replace("10", "20"))
    record = read_json(checkpoints / "step-00000020.json")
    write_json(checkpoints / "step-00000020.json", {**record, "step": 20})
    assert len(store.records) == 2
    with refused("base", base, model_dir / "config.json"):
        restore(model_dir)
    shutil.rmtree(base)
    there = f"{base}/checkpoints/step-00000020"
    with refused("base", "nothing there", model_dir / "config.json", there) as caught:
        kt.load(model_dir)
    assert f"adapter={model_dir}" in caught.value.rule
    restore(untrained, adapter=model_dir)  # the same weights, elsewhere


def test_what_is_no_adapter(adapter, base, tmp_path, call_program):
    with refused("adapter", base, about="adapter"):
        kt.load(base, adapter=base)
    with refused("adapter", tmp_path, about="directory"):
        kt.load(base, adapter=tmp_path)
    with refused("adapter", adapter, about="ensemble"):
        kt.load([base, base], adapter=adapter)
    done = call_program("average_checkpoints", f"--model_dir={adapter}")
    check_line(done.errors, "--model_dir", adapter, "average:K")
    done = call_program("export", f"--model_dir={base}", f"--adapter={base}", "--export_dir=x")
    check_line(done.errors, "--adapter", base)
    done = call_program("translate", f"--saved_model={base}", f"--adapter={adapter}")
    check_line(done.errors, "--adapter", adapter, "export")


def test_a_description_whose_parts_do_not_go_together(copied):
    model_dir, _ = copied
    config = json.loads((model_dir / "config.json").read_text())
    del config["base"]
    (model_dir / "config.json").write_text(json.dumps(config))
    with refused("base", "null", model_dir / "config.json", "training.lora_rank"):
        restore(model_dir)
    config["base"] = {"path": str(model_dir), "fingerprint": "0"}
    (model_dir / "config.json").write_text(json.dumps(config))
    with refused("base", "an adapter", model_dir / "config.json"):
        restore(model_dir)


def test_a_checkpoint_of_another_rank(copied):
    model_dir, _ = copied
    config = json.loads((model_dir / "config.json").read_text())
    config["training"]["lora_rank"] = 3
    (model_dir / "config.json").write_text(json.dumps(config))
    with refused(None, place=model_dir / "checkpoints", about="rank 3"):
        restore(model_dir)


@pytest.mark.parametrize(
    ("settings", "argument", "received"),
    [
        ({"lora_rank": 0}, "lora_rank", 0),
        ({"lora_alpha": -1.0}, "lora_alpha", -1.0),
        ({"lora_rank": None}, "lora_alpha", 3.0),
        ({"lora_rank": 16}, "lora_rank", 16),
        ({"norm": "pre"}, "init_from", "norm: post, not pre"),
    ],
)
def test_wrong_settings(prepared, base, tmp_path, settings, argument, received):
    with refused(argument, received):
        train_adapter(prepared, tmp_path / "new", base, **settings)
    assert not (tmp_path / "new" / "config.json").exists()


def test_an_adapter_needs_a_whole_model_and_goes_on_with_it(prepared, copied, call_program):
    model_dir, base = copied
    flags = [f"--data_dir={prepared}", f"--model_dir={model_dir / 'new'}", "--lora_rank=2"]
    done = call_program("train", *flags)
    check_line(done.errors, "--lora_rank", "no init_from")
    done = call_program("train", *flags, f"--init_from={base}", "--preset=tiny")
    check_line(done.errors, "--preset", "tiny")
    with refused("init_from", f"{model_dir}, an adapter"):
        train_adapter(prepared, model_dir / "new", model_dir)
    with refused("model_dir", "lora_rank: 2, not 3"):
        train_adapter(prepared, model_dir, base, lora_rank=3)
    other = f"{base}/checkpoints/step-00000010"
    with refused("init_from", other):
        train_adapter(prepared, model_dir, other)


def test_another_vocabulary(prepared, base, tmp_path):
    files = tuple([str(prepared.parent / f"train.{language}")] for language in ("de", "en"))
    options = PreparationConfig(vocab_size=300, max_length=32, seed=1)
    prepare(FileSource({"train": files}), tmp_path / "data", options)
    with refused("data_dir", "vocabulary_fingerprint", about="init_from"):
        train_adapter(tmp_path / "data", tmp_path / "new", base)


@pytest.mark.slow
def test_a_base_of_marian(tmp_path):
    folder = tmp_path / "marian"
    folder.mkdir()
    marian_files.write_vocabulary(folder)
    pieces = marian_files.pieces_of(folder)
    marian_files.save(folder, *marian_files.draw("post", "swish", (1, 1), [len(pieces)], True))
    base = tmp_path / "base"
    import_model(folder, base)
    files = tuple(tmp_path / name for name in ("text.en", "text.de"))
    for path, lines in zip(files, (marian_files.SOURCES, marian_files.TARGETS), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines))
    description = read_description(base)
    vocabularies = [str(base / name) for name in reversed(description.vocabulary_files)]
    options = PreparationConfig(
        tokenizer="pieces", vocabulary=vocabularies, shared_vocabulary=False, max_length=40
    )
    prepare(FileSource({"train": tuple([str(path)] for path in files)}), tmp_path / "data", options)
    train_adapter(tmp_path / "data", tmp_path / "new", base, 2)
    frozen, merged = restore(base).model, restore(tmp_path / "new").model
    same = [
        weight.path
        for weight, other in zip(merged.weights, frozen.weights, strict=True)
        if np.array_equal(weight, other)
    ]
    assert len(frozen.weights) - len(same) == len(adapted_layers(frozen)) == 16
    assert not any(path.endswith("kernel") for path in same)
    found = dataclasses.asdict(read_description(tmp_path / "new").base)
    assert found["path"] == f"{base}/checkpoints/step-00000000"
