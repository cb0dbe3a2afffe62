"""An adapter learns corrections: its directory, what it refuses, and what it does when it ends."""

import dataclasses
import json
import shutil
import signal

import numpy as np
import pytest
import tensorflow as tf

import keras_transformer as kt
from keras_transformer.core.training.adapters import adapter_matrices, random_states
from keras_transformer.core.training.checkpoint_weights import read_variables
from keras_transformer.use.adapt.correction_learner import CorrectionLearner
from keras_transformer.use.adapt.learning_config import LearningConfig
from keras_transformer.use.store.model_path import ModelPath
from keras_transformer.use.store.opening import open_model
from pipelines.adaptation import adapt, config_of, opened_adaptation
from pipelines.prepare.preparation import PreparationConfig, prepare
from pipelines.sources.files import FileSource
from tests.program_fixtures import PAIRS
from tests.refusals import refused
from tests.restoring import restore

pytestmark = pytest.mark.usefixtures("steps_traced_once")
CONFIG = LearningConfig(steps=2, earlier=2, replay_tokens=40, lora_rank=2)
CORRECTIONS = dict(PAIRS[:2])
LATER = {**CORRECTIONS, PAIRS[2][0]: PAIRS[2][1]}


@pytest.fixture(scope="module")
def learn(prepared, steps_traced_once):
    """Returns a function that learns corrections."""

    def call(base, adapter_dir, corrections=CORRECTIONS, data_dir=prepared, config=CONFIG):
        stored = open_model(ModelPath(base, argument="model_dir"))
        return adapt(stored, corrections, adapter_dir, data_dir, config)

    return call


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def adapter(untrained, learn, tmp_path_factory):
    """An adapter that has learned CORRECTIONS."""
    before, adapter_dir = contents(untrained), tmp_path_factory.mktemp("adapter") / "adapter"
    result = learn(untrained, adapter_dir)
    assert contents(untrained) == before
    assert (result["learned"], result["new"], result["too_long"]) == (2, 2, 0)
    assert result["stopped"] is None and result["seconds_per_correction"] > 0
    return adapter_dir


@pytest.fixture
def copied(adapter, tmp_path):
    """The same, which a test may change."""
    return shutil.copytree(adapter, tmp_path / "adapter")


def test_it_is_used_like_any_adapter(adapter, untrained):
    lines = (adapter / "learned.tsv").read_text("utf-8").splitlines()
    assert dict(line.split("\t") for line in lines) == CORRECTIONS
    translator = kt.load(untrained, adapter=adapter)
    assert translator.checkpoint == {"checkpoint": "step-00000004", "step": 4}
    sources, targets = zip(*CORRECTIONS.items(), strict=True)
    after = translator.score(sources, targets)
    before = kt.load(untrained).score(sources, targets)
    assert all(one.log_prob > other.log_prob for one, other in zip(after, before, strict=True))


def test_only_what_is_new_is_learned(learn, copied, untrained, monkeypatch):
    asked = []
    learn_one = CorrectionLearner.learn
    monkeypatch.setattr(
        CorrectionLearner, "learn", lambda self, new: asked.append(new) or learn_one(self, new)
    )
    before = contents(copied)
    result = learn(untrained, copied)
    assert (result["learned"], result["new"], result["seconds_per_correction"]) == (2, 0, None)
    assert {**contents(copied), copied / "lock": b""} == {**before, copied / "lock": b""}

    source = PAIRS[0][0]
    changed = {**LATER, source: "die katze"}
    result = learn(untrained, copied, changed)
    assert (result["learned"], result["new"]) == (3, 2)
    assert asked == [{source: "die katze"}, dict(PAIRS[2:])]
    assert result["checkpoint"] == str(copied / "checkpoints" / "step-00000008")
    assert len(list((copied / "checkpoints").glob("*.index"))) == 1
    assert learn(untrained, copied, changed)["new"] == 0


def test_it_goes_on_as_it_was(copied, untrained, prepared):
    path = f"{copied}/checkpoints/step-00000004"
    written = {name: read_variables(path, name) for name in ("model", "learner", "optimizer")}
    with opened_adaptation(
        open_model(ModelPath(untrained)), copied, prepared, CONFIG
    ) as adaptation:
        step, mean = adaptation.learner.step, adaptation.mean
        matrices = adapter_matrices(step.model)
        restored = {
            "model": [*mean.means, *random_states(step.model)],
            "learner": [*matrices, mean.count],
            "optimizer": step.optimizer.variables,
        }
        for name, variables in restored.items():
            for variable, value in zip(variables, written[name], strict=True):
                np.testing.assert_array_equal(variable, value)
        assert mean.count.numpy() == 2

        before = [each.numpy() for each in mean.means]
        adaptation.learn(dict(PAIRS[2:]))
        for one, earlier, matrix in zip(mean.means, before, matrices, strict=True):
            expected = (2 * earlier + matrix.numpy()) / 3  # of three corrections
            np.testing.assert_allclose(one, expected, atol=1e-6)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(learn, copied, untrained, monkeypatch, number):
    learn_one = CorrectionLearner.learn

    def learn_and_signal(self, new):
        signal.raise_signal(number)
        return learn_one(self, new)

    corrections = {**LATER, "a red cat": "eine rote katze"}
    with monkeypatch.context() as patch:
        patch.setattr(CorrectionLearner, "learn", learn_and_signal)
        if number == signal.SIGINT:
            with pytest.raises(KeyboardInterrupt):
                learn(untrained, copied, corrections)
        else:
            result = learn(untrained, copied, corrections)
            assert (result["new"], result["stopped"]) == (1, "SIGTERM")
    result = learn(untrained, copied, corrections)
    assert (result["learned"], result["new"]) == (4, 1)


def test_what_is_too_long_is_left_out(learn, copied, untrained):
    long = {"cat " * 40: "katze", "dog": "hund " * 40}
    result = learn(untrained, copied, {**long, **LATER})
    assert (result["new"], result["too_long"]) == (1, 2)


def test_an_adapter_that_learned_nothing_is_not_written(learn, untrained, tmp_path):
    result = learn(untrained, tmp_path / "new", {"cat " * 40: "katze"})
    assert (result["checkpoint"], result["learned"], result["too_long"]) == (None, 0, 1)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["lock"]
    assert learn(untrained, tmp_path / "new")["new"] == 2


def test_a_model_that_cannot_learn(learn, adapter, untrained, exported, tmp_path):
    for path, about in (
        ([untrained, untrained], "ensemble"),
        (exported, "import the export"),
        (adapter, "export"),
    ):
        with refused("model_dir", about=about):
            learn(path, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_directory_that_is_not_the_adapters(learn, copied, untrained, tmp_path):
    with refused("adapter_dir", "lora_rank: 2, not 4"):
        learn(untrained, copied, LATER, config=LearningConfig(lora_rank=4))
    with refused("adapter_dir", untrained):
        learn(untrained, untrained)
    (tmp_path / "note").write_text("mine")
    with refused("adapter_dir", tmp_path):
        learn(untrained, tmp_path)
    config = json.loads((copied / "config.json").read_text())
    config["base"]["fingerprint"] = "another"
    (copied / "config.json").write_text(json.dumps(config))
    with refused("model_dir", untrained):
        learn(untrained, copied, LATER)


def test_an_adapter_without_a_running_mean(learn, copied, untrained, tmp_path):
    path = f"{copied}/checkpoints/step-00000004"
    earlier = {  # as adapters were saved before there was one
        name: [tf.Variable(value) for value in read_variables(path, name)]
        for name in ("model", "optimizer")
    }
    tf.train.Checkpoint(**earlier).write(path)
    assert kt.load(untrained, adapter=copied).translate(["the cat"])
    before = contents(copied)
    with refused("adapter_dir", copied, about="choose a new directory"):
        learn(untrained, copied, LATER)
    assert contents(copied) == before
    assert learn(untrained, tmp_path / "new", LATER)["new"] == len(LATER)


def test_a_server_goes_on_with_an_adapters_configuration(adapter, untrained, tmp_path):
    expected = dataclasses.replace(
        CONFIG, steps=LearningConfig.steps, earlier=LearningConfig.earlier
    )
    assert config_of(adapter) == expected
    assert config_of(tmp_path / "new") == LearningConfig()
    with refused("adapter_dir", untrained):
        config_of(untrained)


def test_data_with_another_vocabulary(learn, prepared, untrained, tmp_path):
    files = tuple([str(prepared.parent / f"train.{language}")] for language in ("de", "en"))
    options = PreparationConfig(vocab_size=300, max_length=32, seed=1)
    prepare(FileSource({"train": files}), tmp_path / "data", options)
    with refused("data_dir", tmp_path / "data"):
        learn(untrained, tmp_path / "new", data_dir=tmp_path / "data")
    assert not (tmp_path / "new").exists()


def test_a_loss_that_is_not_finite(learn, untrained, tmp_path, monkeypatch):
    monkeypatch.setattr(CorrectionLearner, "learn", lambda self, new: float("nan"))
    with refused("loss", "nan"):
        learn(untrained, tmp_path / "new")
    assert not (tmp_path / "new" / "config.json").exists()


def test_the_model_has_the_adapters_weights(adapter, untrained):
    frozen, merged = restore(untrained).model, restore(adapter).model
    changed = [
        not np.array_equal(one, other)
        for one, other in zip(frozen.weights, merged.weights, strict=True)
    ]
    assert 0 < sum(changed) < len(changed)
