import dataclasses
import hashlib
import json
from pathlib import Path

import pytest

from keras_transformer.config import TrainingConfig, TransformerConfig
from keras_transformer.errors import InputError
from keras_transformer.training.model_directory import (
    ModelDescription,
    check_model_dir,
    create_or_check,
    described_in,
    read_description,
    remove_unfinished_files,
    require_new,
)

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
        {"vocabulary.model": b"mine"},
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
    rule = "^model_dir must be new or empty, or a directory that training has made. Received: .*"
    for check in (check_model_dir, lambda *arguments: create_or_check(*arguments, data_dir)):
        with pytest.raises(InputError, match=f"{rule}model, which holds something else$"):
            check(model_dir, DESCRIPTION)
    with pytest.raises(InputError, match=r"^model_dir must not exist yet, or be empty"):
        require_new(model_dir)
    assert {path.name: path.read_bytes() for path in model_dir.iterdir()} == others


def test_a_file_is_no_directory(any_folder):
    (any_folder / "model").write_bytes(b"mine")
    with pytest.raises(InputError, match=r"^model_dir must be new or empty, or a directory"):
        check_model_dir(any_folder / "model", DESCRIPTION)


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


@pytest.mark.parametrize(
    "use",
    [
        lambda: check_model_dir("", DESCRIPTION),
        lambda: require_new(""),
        lambda: read_description(""),
        lambda: described_in(""),
    ],
)
def test_an_empty_name_is_not_the_working_directory(use):
    with pytest.raises(
        InputError, match=r"^model_dir must be given: the name of a directory. Received: ''$"
    ):
        use()


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
    with pytest.raises(InputError, match=r"\.model, not None; another source_vocabulary\."):
        create_or_check(any_folder / "model", DESCRIPTION, data_dir)


def test_a_vocabulary_that_is_missing_is_copied_and_another_one_refused(any_folder, data_dir):
    model_dir = any_folder / "model"
    create_or_check(model_dir, DESCRIPTION, data_dir)
    (model_dir / "vocabulary.model").unlink()
    create_or_check(model_dir, DESCRIPTION, data_dir)
    assert (model_dir / "vocabulary.model").read_bytes() == b"words"
    (model_dir / "vocabulary.model").write_bytes(b"others")
    rule = r"^\S+model/vocabulary.model must be the vocabulary of the model and its data: remove it"
    with pytest.raises(InputError, match=f"{rule}, .* Received: another file$"):
        check_model_dir(model_dir, DESCRIPTION)


def test_a_directory_of_another_version_is_refused(any_folder, data_dir):
    create_or_check(any_folder / "model", DESCRIPTION, data_dir)
    path = any_folder / "model" / "config.json"
    content = json.loads(path.read_text())
    content["model"]["layout"] = "joined"
    path.write_text(json.dumps(content))
    rule = "config.json: model.layout must be a field that this version knows"
    with pytest.raises(InputError, match=rule):
        read_description(any_folder / "model")
    path.write_text(json.dumps({**content, "format_version": 1}))
    with pytest.raises(InputError, match=r"config.json: format_version must be 3. Received: 1$"):
        create_or_check(any_folder / "model", DESCRIPTION, data_dir)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vocabulary_fingerprint": "xyz"}, "which has another vocabulary. Choose another"),
        ({"model": TransformerConfig(vocab_size=100, d_k=16, d_ff=9)}, "d_ff: 2048, not 9. Choose"),
        ({"training": TrainingConfig(seed=3)}, "label_smoothing: 0.2, not 0.1; .*seed: 1, not 3"),
        (
            {"preset": "base"},
            "has preset: tiny, not base. Choose another directory, or preset=tiny$",
        ),
        (
            {"max_length": 9},
            "64, not 9. Choose another directory, or the data and settings it has$",
        ),
        (
            {"task": "parsing", "task_options": {"words": "keep"}},
            r"task: translation, not parsing; task_options: {}, not {'words': 'keep'}\. Choose",
        ),
    ],
)
def test_another_model_is_refused_and_told_what_to_do(tmp_path, data_dir, change, message):
    create_or_check(tmp_path / "model", DESCRIPTION, data_dir)
    other = dataclasses.replace(DESCRIPTION, **change)
    with pytest.raises(InputError, match=message):
        create_or_check(tmp_path / "model", other, data_dir)
    assert read_description(tmp_path / "model") == DESCRIPTION


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "must be a directory that training has made.*has no config.json"),
        ("{", "must be readable JSON"),
        ("[]", "config.json: its content must be of type dict"),
        ("{}", "format_version must be 3. Received: None"),
        ('{"format_version": 2}', "format_version must be 3. Received: 2"),
        ('{"format_version": 9}', "format_version must be 3. Received: 9"),
        ('{"format_version": 3}', "config.json: preset must be given"),
        ('{"format_version": 3, "width": 3}', "width must be a field that this version knows"),
    ],
)
def test_directories_that_are_none(tmp_path, content, message):
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(InputError, match=message):
        read_description(tmp_path)


@pytest.mark.parametrize(
    ("part", "name", "value", "message"),
    [
        ("model", "dropout", 7, r"dropout must be in \[0, 1\). Received: 7"),
        ("model", "num_layers", 2**39, "model.num_layers must be from 1 to 1000. Received: 5"),
        ("model", "decoder_layers", 1001, "decoder_layers must be from 1 to 1000. Received: 1001"),
        ("model", "vocab_size", 2**30, "model.d_model and the other sizes must make a model of at"),
        ("model", "source_vocab_size", 2**39, "must exceed the 4 special ids, and be below 2.31"),
        ("model", "d_model", 2**39, "make a model of at most 68,719,476,736 weights. Received: "),
        ("model", "num_heads", 2**39, "make a model of at most 68,719,476,736 weights. Received: "),
        ("model", "max_positions", 2**39, "max_positions must be from 1 to 1073741824. Received"),
        ("model", "attention_window", 2**39, "attention_window must be from 1 to 1073741824"),
        ("training", "tokens_per_batch", 2**39, "tokens_per_batch must be from 1 to 1073741824"),
        ("training", "accumulate_steps", 2**39, "training.accumulate_steps must be at most tok"),
    ],
)
def test_values_out_of_range_are_named(tmp_path, data_dir, part, name, value, message):
    create_or_check(tmp_path / "model", DESCRIPTION, data_dir)
    path = tmp_path / "model" / "config.json"
    content = json.loads(path.read_text())
    content[part][name] = value
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=f"config.json: .*{message}"):
        read_description(tmp_path / "model")
