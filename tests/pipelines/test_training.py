"""Training on a data directory as a function: its arguments, and what it makes of them."""

import dataclasses
import errno
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.training import loop
from keras_transformer.core.training.model_directory import read_description
from keras_transformer.core.training.run_config import DeviceConfig, LoopConfig
from keras_transformer.loading import load
from pipelines.batches.data_set import DataSet
from pipelines.evaluation import EvaluationConfig, evaluate_on
from pipelines.prepare.metadata import read_metadata, write_metadata
from pipelines.training import train_on
from tests.processes import ROOT
from tests.program_fixtures import make_model_dir
from tests.refusals import refused
from tests.restoring import restore

SMALL = {"num_layers": 1, "d_model": 16, "d_ff": 16, "num_heads": 2, "tokens_per_batch": 256}


def test_a_model_is_trained_and_resumed(trained_run, prepared, tmp_path):
    model_dir = shutil.copytree(trained_run, tmp_path / "model")
    description = read_description(model_dir)
    assert (description.preset, description.model.d_ff) == ("tiny", 16)
    assert description.training.seed == 3
    assert description.training.tokens_per_batch == 256
    assert description.languages == ["en", "de"]
    settings = {**SMALL, "seed": 3}
    result = train_on(prepared, model_dir, "tiny", settings, loop=LoopConfig(train_steps=2))
    assert (result["step"], result["stopped"]) == (2, "train_steps")
    assert result["checkpoint"] == f"{model_dir}/checkpoints/step-00000002"
    with refused("model_dir", "seed: 3, not 1"):
        train_on(prepared, model_dir, "tiny", SMALL, loop=LoopConfig(train_steps=2))


def test_a_run_goes_on_with_the_vocabulary_of_its_data_alone(trained_run, prepared, tmp_path):
    model_dir = shutil.copytree(trained_run, tmp_path / "model")
    settings, loop = {**SMALL, "seed": 3}, LoopConfig(train_steps=2)
    vocabulary = model_dir / read_metadata(prepared).vocabulary
    words = vocabulary.read_bytes()
    vocabulary.write_bytes(b"another")
    with refused(None, "another file", place="vocabulary.model"):
        train_on(prepared, model_dir, "tiny", settings, loop=loop)
    vocabulary.unlink()
    assert train_on(prepared, model_dir, "tiny", settings, loop=loop)["step"] == 2
    assert vocabulary.read_bytes() == words


def test_a_run_begins_with_the_weights_and_the_model_of_another(
    untrained, prepared, tmp_path, monkeypatch
):
    begun = []

    def begin(model_config, *_, initialize, describe, **__):
        model = Transformer(model_config)
        initialize(model)
        describe()
        begun.append(model)

    monkeypatch.setattr(loop, "train", begin)
    # A command that fails late leaves nothing in the way of the corrected one.
    with refused("init_from", "num_layers: 1, not 2"):
        train_on(prepared, tmp_path, settings={"num_layers": 2}, init_from=untrained)
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]
    train_on(prepared, tmp_path, init_from=untrained)
    description = read_description(tmp_path)
    assert (description.preset, description.model.d_ff) == ("tiny", 16)
    for one, same in zip(restore(untrained).model.weights, begun[0].weights, strict=True):
        np.testing.assert_array_equal(one, same)


@pytest.mark.parametrize(
    ("arguments", "argument", "received"),
    [
        ({"settings": {"width": 3}}, "settings", "'width'"),
        ({"settings": {"vocab_size": 30}}, "settings", "'vocab_size'"),
        ({"settings": {"dropout": 2.0}}, "dropout", "2.0"),
        ({"settings": {"decoder_layers": 2**39}}, "decoder_layers", 2**39),
        ({"settings": {"d_ff": 2**39}}, "d_model", "6,761,996,529,892,352"),
        ({"init_from": "absent"}, "init_from", "absent"),
        ({"loop": LoopConfig(patience=2)}, "best_metric", "loss"),
        ({"devices": DeviceConfig(replicas=2)}, "replicas", "one_device"),
    ],
)
def test_errors_name_arguments_and_nothing_is_written(
    prepared, tmp_path, arguments, argument, received
):
    with refused(argument, received):
        train_on(prepared, tmp_path / "model", **arguments)
    assert not (tmp_path / "model").exists()


@pytest.fixture
def longest_test(prepared, tmp_path):
    """Data whose metadata say that the test split has the longest sentence, and its length."""
    data_dir = shutil.copytree(prepared, tmp_path / "data")
    metadata = read_metadata(data_dir)
    longest = max(info.longest for info in metadata.splits.values()) + 1
    splits = {**metadata.splits}
    splits["test"] = dataclasses.replace(splits["test"], longest_target=longest)
    write_metadata(data_dir, dataclasses.replace(metadata, splits=splits))
    return data_dir, longest


def test_learned_positions_for_the_sentences_of_all_splits(longest_test, tmp_path, monkeypatch):
    data_dir, longest = longest_test
    settings = {**SMALL, "positions": "learned", "max_positions": longest - 1}
    with refused("max_positions", longest - 1, about=f"at least {longest}"):
        train_on(data_dir, tmp_path / "model", "tiny", settings, loop=LoopConfig(train_steps=1))
    assert not (tmp_path / "model").exists()
    monkeypatch.setattr(loop, "train", lambda *_, **__: {"step": 1})
    train_on(data_dir, tmp_path / "model", "tiny", {**settings, "max_positions": longest})


@pytest.mark.slow  # another model is traced
@pytest.mark.parametrize("missing", [0, 1])
def test_evaluation_with_learned_positions_for_the_longest_sentence(prepared, tmp_path, missing):
    longest = max(info.longest for info in read_metadata(prepared).splits.values())
    learned = {"positions": "learned", "max_positions": longest - missing}
    model_dir = make_model_dir(prepared, tmp_path / "model", {1: (1, 1)}, **learned)
    translator, data = load(model_dir, beam_size=1, n_best=1), DataSet.open(prepared)
    if missing:
        with refused("test", longest, about=f"at most {longest - 1}"):
            evaluate_on(data, translator)
    else:
        scores = evaluate_on(data, translator, EvaluationConfig(limit=1))
        assert np.isfinite(scores["perplexity"])


def exhausted(error):
    def train(*_, **__):
        raise error

    return train


def test_memory_that_a_device_lacks_is_named(prepared, tmp_path, monkeypatch):
    error = tf.errors.ResourceExhaustedError(None, None, "OOM when allocating\nmore")
    monkeypatch.setattr(loop, "train", exhausted(error))
    with refused("tokens_per_batch", "500 (OOM when allocating)", about="accumulate_steps"):
        train_on(prepared, tmp_path / "model", "tiny", settings={"tokens_per_batch": 500})


def test_a_damaged_shard_is_named(prepared, tmp_path, monkeypatch):
    data_dir = shutil.copytree(prepared, tmp_path / "data")
    (name,) = read_metadata(data_dir).splits["train"].shards
    content = bytearray((data_dir / name).read_bytes())
    content[-1] ^= 1
    (data_dir / name).write_bytes(content)
    monkeypatch.setattr(loop, "train", exhausted(tf.errors.DataLossError(None, None, "corrupted")))
    with refused(None, "a damaged record", place=name):
        train_on(data_dir, tmp_path / "model", "tiny")


@pytest.mark.parametrize(
    "error",
    [
        tf.errors.ResourceExhaustedError(None, None, "events.v2; No space left on device"),
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    ],
)
def test_a_full_disk_is_named(prepared, tmp_path, monkeypatch, error):
    monkeypatch.setattr(loop, "train", exhausted(error))
    with pytest.raises(OSError) as caught:
        train_on(prepared, tmp_path / "model", "tiny")
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(tmp_path / "model")


def test_other_errors_of_files_stay_what_they_are(prepared, tmp_path, monkeypatch):
    error = PermissionError(errno.EACCES, os.strerror(errno.EACCES), "file")
    monkeypatch.setattr(loop, "train", exhausted(error))
    with pytest.raises(PermissionError):
        train_on(prepared, tmp_path / "model", "tiny")


def test_a_model_directory_must_have_a_name_and_be_free(prepared, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = {path: path.read_bytes() for path in prepared.iterdir()}
    for model_dir, received in (("", "''"), (prepared, prepared)):
        with refused("model_dir", received):
            train_on(prepared, model_dir, "tiny")
    assert {path: path.read_bytes() for path in prepared.iterdir()} == before
    assert not any(tmp_path.iterdir())


def test_wrong_arguments_are_refused_before_tensorflow_is_imported(prepared):
    program = """
import sys
from keras_transformer.support.errors import InputError
from pipelines.training import train_on
try:
    train_on(sys.argv[1], "nowhere", settings={"width": 3})
except InputError:
    print("tensorflow" in sys.modules)
"""
    command = [sys.executable, "-c", program, str(prepared)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
