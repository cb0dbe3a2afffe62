import dataclasses
import json

import pytest

from keras_transformer.config import TrainingConfig, TransformerConfig
from keras_transformer.errors import InputError
from keras_transformer.training.model_directory import (
    ModelDescription,
    create_or_check,
    read_description,
)

DESCRIPTION = ModelDescription(
    preset="tiny",
    model=TransformerConfig(vocab_size=100, d_k=16),
    training=TrainingConfig(label_smoothing=0.2),
    vocabulary="vocabulary.model",
    vocabulary_fingerprint="abc",
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
    with pytest.raises(InputError, match="source_vocabulary_fingerprint: s, not None"):
        create_or_check(any_folder / "model", DESCRIPTION, data_dir)


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
        ({"vocabulary_fingerprint": "xyz"}, "vocabulary_fingerprint: abc, not xyz"),
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
        ('{"format_version": 1}', "format_version must be 3. Received: 1"),
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


def test_values_out_of_range_are_named(tmp_path, data_dir):
    create_or_check(tmp_path / "model", DESCRIPTION, data_dir)
    path = tmp_path / "model" / "config.json"
    content = json.loads(path.read_text())
    content["model"]["dropout"] = 7
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"dropout must be in \[0, 1\). Received: 7"):
        read_description(tmp_path / "model")
