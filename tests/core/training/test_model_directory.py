import dataclasses
import hashlib
import json
from pathlib import Path

import pytest

from keras_transformer.core.config import TrainingConfig, TransformerConfig
from keras_transformer.core.training.model_directory import (
    ModelDescription,
    check_model_dir,
    create_or_check,
    read_description,
    remove_unfinished_files,
    require_new,
)
from tests.refusals import refused

DESCRIPTION = ModelDescription(
    preset="tiny",
    model=TransformerConfig(vocab_size=100, d_k=16),
    training=TrainingConfig(label_smoothing=0.2),
    vocabulary="vocabulary.model",
    vocabulary_fingerprint=hashlib.sha256(b"words").hexdigest(),
    max_length=64,
    languages=["en", "de"],
)


@pytest.fixture
def data_dir(any_folder):
    (any_folder / "vocabulary.model").write_bytes(b"words")
    return any_folder


def test_round_trip(any_folder, data_dir):
    for _ in range(2):  # made, then checked
        create_or_check(any_folder / "model", DESCRIPTION, data_dir)
        assert read_description(any_folder / "model") == DESCRIPTION
        assert (any_folder / "model" / "vocabulary.model").read_bytes() == b"words"


@pytest.mark.parametrize(
    "others",
    [
        {"notes.txt": b"mine"},
        {"lock": b"mine"},
        {"training_log.jsonl": b"mine"},
        {"lock": b"", "vocabulary.model": b"mine"},
    ],
)
def test_a_folder_with_other_content_is_refused(any_folder, data_dir, others):
    model_dir = any_folder / "model"
    model_dir.mkdir()
    for name, content in others.items():
        (model_dir / name).write_bytes(content)
    for check in (check_model_dir, lambda *arguments: create_or_check(*arguments, data_dir)):
        with refused("model_dir", model_dir, about="empty"):
            check(model_dir, DESCRIPTION)
    with refused("model_dir", model_dir, about="empty"):
        require_new(model_dir)
    with refused("model_dir", model_dir / next(iter(others)), about="directory"):
        check_model_dir(model_dir / next(iter(others)), DESCRIPTION)
    assert {path.name: path.read_bytes() for path in model_dir.iterdir()} == others


@pytest.mark.parametrize("holder", [b"", b"process 7 on host\n"])
def test_what_a_run_left_before_its_first_checkpoint_is_no_other_content(
    any_folder, data_dir, holder
):
    model_dir = any_folder / "model"
    (model_dir / "tensorboard").mkdir(parents=True)
    (model_dir / "tensorboard" / "events").write_bytes(b"1")
    own = {"lock": holder, "training_log.jsonl": b"", ".config.json.0123abcd.tmp": b"{"}
    for name, content in own.items():
        (model_dir / name).write_bytes(content)
    create_or_check(model_dir, DESCRIPTION, data_dir)
    assert read_description(model_dir) == DESCRIPTION
    # A name that is not the program's is not its file.
    (model_dir / ".config.json.mine.tmp").write_bytes(b"mine")
    remove_unfinished_files(model_dir, DESCRIPTION)
    expected = {".config.json.mine.tmp", "config.json", "vocabulary.model", "tensorboard"}
    expected |= {"lock", "training_log.jsonl"}
    if not isinstance(model_dir, Path):  # without locks, it may be that of a program that runs
        expected.add(".config.json.0123abcd.tmp")
    assert {path.name for path in model_dir.iterdir()} == expected


def test_an_empty_name_is_not_the_working_directory():
    with refused("model_dir", "''"):
        check_model_dir("", DESCRIPTION)
    with refused("model_dir", "''"):
        require_new("")
    with refused("model_dir", "''"):
        read_description("")


def test_data_of_other_file_names_is_of_the_same_model(any_folder, data_dir):
    create_or_check(any_folder / "model", DESCRIPTION, data_dir)
    other = dataclasses.replace(DESCRIPTION, languages=["txt", "txt"])
    create_or_check(any_folder / "model", other, data_dir)
    assert read_description(any_folder / "model") == DESCRIPTION


def test_both_vocabularies_are_kept(any_folder, data_dir):
    (data_dir / "source_vocabulary.model").write_bytes(b"other words")
    own = {"source_vocabulary": "source_vocabulary.model", "source_vocabulary_fingerprint": "s"}
    separate = dataclasses.replace(DESCRIPTION, **own)
    create_or_check(any_folder / "model", separate, data_dir)
    assert (any_folder / "model" / "vocabulary.model").read_bytes() == b"words"
    assert (any_folder / "model" / "source_vocabulary.model").read_bytes() == b"other words"
    with refused("model_dir", ".model, not None; another source_vocabulary."):
        create_or_check(any_folder / "model", DESCRIPTION, data_dir)


def test_a_vocabulary_that_is_missing_is_copied_and_another_one_refused(any_folder, data_dir):
    model_dir = any_folder / "model"
    create_or_check(model_dir, DESCRIPTION, data_dir)
    (model_dir / "vocabulary.model").unlink()
    create_or_check(model_dir, DESCRIPTION, data_dir)
    assert (model_dir / "vocabulary.model").read_bytes() == b"words"
    (model_dir / "vocabulary.model").write_bytes(b"others")
    with refused(None, "another file", model_dir / "vocabulary.model"):
        check_model_dir(model_dir, DESCRIPTION)


def test_a_directory_of_another_version_is_refused(any_folder, data_dir):
    create_or_check(any_folder / "model", DESCRIPTION, data_dir)
    path = any_folder / "model" / "config.json"
    content = json.loads(path.read_text())
    content["model"]["layout"] = "joined"
    path.write_text(json.dumps(content))
    with refused("model.layout", '"joined"', path):
        read_description(any_folder / "model")
    path.write_text(json.dumps({**content, "format_version": 1}))
    with refused("format_version", 1, path, "4"):
        create_or_check(any_folder / "model", DESCRIPTION, data_dir)


def test_a_model_of_hugging_face_must_be_imported(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "marian", "d_model": 512}')
    with refused("path", "Hugging Face", about="import_model"):
        read_description(tmp_path, "path")


@pytest.mark.parametrize(
    ("change", "differences"),
    [
        ({"vocabulary_fingerprint": "xyz"}, ["another vocabulary"]),
        ({"model": TransformerConfig(vocab_size=100, d_k=16, d_ff=9)}, ["d_ff: 2048, not 9"]),
        (
            {"training": TrainingConfig(seed=3)},
            ["label_smoothing: 0.2, not 0.1", "seed: 1, not 3"],
        ),
        ({"preset": "base"}, ["preset: tiny, not base", "preset=tiny"]),
        ({"max_length": 9}, ["64, not 9"]),
        (
            {"task": "parsing", "task_options": {"words": "keep"}},
            ["task: translation, not parsing", "task_options: {}, not {'words': 'keep'}"],
        ),
    ],
)
def test_another_model_is_refused_and_told_what_to_do(tmp_path, data_dir, change, differences):
    create_or_check(tmp_path / "model", DESCRIPTION, data_dir)
    other = dataclasses.replace(DESCRIPTION, **change)
    with refused("model_dir", tmp_path / "model") as caught:
        create_or_check(tmp_path / "model", other, data_dir)
    assert all(difference in caught.value.received for difference in differences)
    assert read_description(tmp_path / "model") == DESCRIPTION


@pytest.mark.parametrize(
    ("content", "argument", "received", "about"),
    [
        ("[]", None, "[]", "dict"),
        ("{}", "format_version", "None", "4"),
        ('{"format_version": 9}', "format_version", "9", "4"),
        ('{"format_version": 4}', "preset", "none", "given"),
        ('{"format_version": 4, "width": 3}', "width", "3", "field"),
    ],
)
def test_descriptions_that_are_none(tmp_path, content, argument, received, about):
    (tmp_path / "config.json").write_text(content)
    with refused(argument, received, tmp_path / "config.json", about):
        read_description(tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "argument", "about"),
    [
        ("model.dropout", 7, "model.dropout", "[0, 1)"),
        ("model.decoder_layers", 1001, "model.decoder_layers", "1000"),
        ("model.vocab_size", 2**30, "model.d_model", "68,719,476,736"),
        ("model.source_vocab_size", 2**39, "model.source_vocab_size", "2^31"),
        ("model.d_model", 2**39, "model.d_model", "68,719,476,736"),
        ("model.max_positions", 2**39, "model.max_positions", "1073741824"),
        ("model.attention_window", 2**39, "model.attention_window", "1073741824"),
        ("training.tokens_per_batch", 2**39, "training.tokens_per_batch", "1073741824"),
        ("training.accumulate_steps", 2**39, "training.accumulate_steps", "tokens_per_batch"),
    ],
)
def test_values_out_of_range_are_named(tmp_path, data_dir, name, value, argument, about):
    create_or_check(tmp_path / "model", DESCRIPTION, data_dir)
    path = tmp_path / "model" / "config.json"
    content = json.loads(path.read_text())
    part, _, field = name.partition(".")
    content[part][field] = value
    path.write_text(json.dumps(content))
    received = value if name == argument and name != "model.d_model" else None
    with refused(argument, received, path, about):
        read_description(tmp_path / "model")
