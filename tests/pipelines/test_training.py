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

from keras_transformer.errors import InputError
from keras_transformer.loading import load, restore
from keras_transformer.training import loop
from keras_transformer.training.device_config import DeviceConfig
from keras_transformer.training.loop_config import LoopConfig
from keras_transformer.training.model_directory import read_description
from pipelines.evaluation import EvaluationConfig, evaluate_on
from pipelines.metadata import read_metadata, write_metadata
from pipelines.training import train_on
from tests.processes import ROOT

SMALL = {"num_layers": 1, "d_model": 16, "d_ff": 16, "num_heads": 2, "tokens_per_batch": 256}


@pytest.fixture(scope="module")
def trained(prepared, tmp_path_factory):
    """A model directory after two steps, and what training returned."""
    model_dir = tmp_path_factory.mktemp("trained_on") / "model"
    loop = LoopConfig(train_steps=2)
    return model_dir, train_on(prepared, model_dir, "tiny", {**SMALL, "seed": 3}, loop=loop)


def test_a_model_is_trained_and_resumed(trained, prepared):
    model_dir, result = trained
    assert (result["step"], result["stopped"]) == (2, "train_steps")
    description = read_description(model_dir)
    assert (description.preset, description.model.d_ff) == ("tiny", 16)
    assert description.training.seed == 3
    assert description.training.tokens_per_batch == 256
    assert description.languages == ["en", "de"]
    settings = {**SMALL, "seed": 3}
    again = train_on(prepared, model_dir, "tiny", settings, loop=LoopConfig(train_steps=2))
    assert again["checkpoint"] == result["checkpoint"]
    with pytest.raises(
        InputError, match=r"^model_dir must be .* has seed: 3, not 1. Choose another"
    ):
        train_on(prepared, model_dir, "tiny", SMALL, loop=LoopConfig(train_steps=2))


def test_a_run_goes_on_with_the_vocabulary_of_its_data_alone(trained, prepared, tmp_path):
    model_dir = shutil.copytree(trained[0], tmp_path / "model")
    settings, loop = {**SMALL, "seed": 3}, LoopConfig(train_steps=3)
    vocabulary = model_dir / read_metadata(prepared).vocabulary
    words = vocabulary.read_bytes()
    vocabulary.write_bytes(b"another")
    with pytest.raises(InputError, match=r"vocabulary\.model must be the vocabulary of the model"):
        train_on(prepared, model_dir, "tiny", settings, loop=loop)
    vocabulary.unlink()
    assert train_on(prepared, model_dir, "tiny", settings, loop=loop)["step"] == 3
    assert vocabulary.read_bytes() == words


def test_a_run_begins_with_the_weights_and_the_model_of_another(trained, prepared, tmp_path):
    model_dir, _ = trained
    loop = LoopConfig(train_steps=1)
    # Commands that fail late leave nothing in the way of the corrected one.
    for settings, message in (
        ({"freeze": "zzz"}, "^freeze must name parts of the model"),
        ({"num_layers": 2}, "^init_from must have the layers .* num_layers: 1, not 2"),
    ):
        with pytest.raises(InputError, match=message):
            train_on(prepared, tmp_path, settings=settings, init_from=model_dir, loop=loop)
        assert [path.name for path in tmp_path.iterdir()] == ["lock"]
    # Nothing is trained but the decoder, so the encoder stays what it was.
    settings = {"tokens_per_batch": 256, "freeze": "embedding,encoder"}
    train_on(prepared, tmp_path, settings=settings, init_from=model_dir, loop=loop)
    description = read_description(tmp_path)
    assert (description.preset, description.model.d_ff) == ("tiny", 16)
    before, after = restore(model_dir).model, restore(tmp_path).model
    for one, same in zip(before.encoder.weights, after.encoder.weights, strict=True):
        np.testing.assert_array_equal(one, same)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"settings": {"width": 3}}, "^settings must be fields of .* Received: 'width'$"),
        ({"settings": {"vocab_size": 30}}, "^settings must be fields of .*'vocab_size'$"),
        ({"settings": {"dropout": 2.0}}, r"^dropout must be in \[0, 1\)"),
        (
            {"settings": {"decoder_layers": 2**39}},
            "^decoder_layers must be from 1 to 1000. Received",
        ),
        (
            {"settings": {"d_ff": 2**39}},
            "^d_model and the other sizes must make a model of at most",
        ),
        ({"init_from": "absent"}, "^init_from must be a directory that training has made"),
        ({"loop": LoopConfig(patience=2)}, r"^best_metric must be measured .* nothing"),
        ({"devices": DeviceConfig(replicas=2)}, "^replicas must go with the strategy mirrored"),
    ],
)
def test_errors_name_arguments_and_nothing_is_written(prepared, tmp_path, arguments, message):
    with pytest.raises(InputError, match=message):
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


def test_learned_positions_for_the_sentences_of_all_splits(longest_test, tmp_path):
    data_dir, longest = longest_test
    settings = {**SMALL, "positions": "learned", "max_positions": longest - 1}
    rule = f"^max_positions must be at least {longest}, the longest sentence of test in "
    with pytest.raises(InputError, match=f"{rule}.* Received: {longest - 1}$"):
        train_on(data_dir, tmp_path / "model", "tiny", settings, loop=LoopConfig(train_steps=1))
    assert not (tmp_path / "model").exists()


def test_as_many_learned_positions_as_the_longest_sentence_has_ids(prepared, tmp_path):
    longest = max(info.longest for info in read_metadata(prepared).splits.values())
    settings = {**SMALL, "positions": "learned", "max_positions": longest}
    loop = LoopConfig(train_steps=1)
    assert train_on(prepared, tmp_path / "model", "tiny", settings, loop=loop)["step"] == 1
    translator = load(tmp_path / "model", beam_size=1, n_best=1)
    scores = evaluate_on(prepared, translator, EvaluationConfig(limit=1))
    assert np.isfinite(scores["perplexity"])


def test_evaluation_on_sentences_longer_than_the_learned_positions(longest_test, tmp_path):
    data_dir, longest = longest_test
    settings = {**SMALL, "positions": "learned", "max_positions": longest}
    train_on(data_dir, tmp_path / "model", "tiny", settings, loop=LoopConfig(train_steps=1))
    translator = load(tmp_path / "model", beam_size=1, n_best=1)
    metadata = read_metadata(data_dir)
    splits = {**metadata.splits}
    splits["test"] = dataclasses.replace(splits["test"], longest_source=longest + 1)
    write_metadata(data_dir, dataclasses.replace(metadata, splits=splits))
    rule = f"^test must have sentences of at most {longest} ids, the max_positions of the model"
    with pytest.raises(InputError, match=f"{rule}. Received: {longest + 1} in "):
        evaluate_on(data_dir, translator)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            tf.errors.ResourceExhaustedError(None, None, "OOM when allocating\nmore"),
            "^tokens_per_batch and the sizes of the model must fit the memory of the device. "
            "Received: OOM when allocating$",
        ),
        (
            tf.errors.ResourceExhaustedError(None, None, "events.v2; No space left on device"),
            "^model_dir must have room for the curves .* Received: events.v2; No space left on",
        ),
        (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
            "^model_dir must have room for the curves .* Received: .*No space left on device$",
        ),
    ],
)
def test_what_a_machine_lacks_is_named(prepared, tmp_path, monkeypatch, error, message):
    def exhausted(*_, **__):
        raise error

    monkeypatch.setattr(loop, "train", exhausted)
    with pytest.raises(InputError, match=message):
        train_on(prepared, tmp_path / "model", "tiny")


def test_other_errors_of_files_stay_what_they_are(prepared, tmp_path, monkeypatch):
    def unreadable(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "file")

    monkeypatch.setattr(loop, "train", unreadable)
    with pytest.raises(PermissionError):
        train_on(prepared, tmp_path / "model", "tiny")


def test_a_model_directory_must_have_a_name_and_be_free(prepared, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = {path: path.read_bytes() for path in prepared.iterdir()}
    for model_dir, message in (
        ("", "^model_dir must be given: the name of a directory. Received: ''$"),
        (prepared, "^model_dir must be new or empty, or a directory that training has made. Rec"),
    ):
        with pytest.raises(InputError, match=message):
            train_on(prepared, model_dir, "tiny")
    assert {path: path.read_bytes() for path in prepared.iterdir()} == before
    assert not any(tmp_path.iterdir())


def test_wrong_arguments_are_refused_before_tensorflow_is_imported(prepared):
    program = """
import sys
from keras_transformer.errors import InputError
from pipelines.training import train_on
try:
    train_on(sys.argv[1], "nowhere", settings={"width": 3})
except InputError:
    print("tensorflow" in sys.modules)
"""
    command = [sys.executable, "-c", program, str(prepared)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
