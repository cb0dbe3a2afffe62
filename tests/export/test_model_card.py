import dataclasses
import json

import pytest

from keras_transformer.config import TrainingConfig, TransformerConfig
from keras_transformer.decoding.config import DecodingConfig
from keras_transformer.errors import InputError
from keras_transformer.evaluation.results import write_results
from keras_transformer.export.model_card import CARD, describe, read_card, write_export
from keras_transformer.training.model_directory import ModelDescription, create_or_check

FACTS = {"checkpoint": "average:5", "step": 70}
OF_MODEL = {
    **{"task": "translation", "task_options": {}, "step": 7, "vocabulary_fingerprint": "0123"},
    **{
        "config": dataclasses.asdict(TransformerConfig(100)),
        **json.loads(json.dumps(dataclasses.asdict(DecodingConfig()))),
    },
}
FOUND = {"bleu": 39.1, "signature": "nrefs:1|case:mixed", **FACTS}


@pytest.fixture
def model_dir(any_folder):
    (any_folder / "vocabulary.model").write_bytes(b"pieces")
    description = ModelDescription(
        "tiny",
        TransformerConfig(100),
        TrainingConfig(warmup_steps=7),
        vocabulary="vocabulary.model",
        vocabulary_fingerprint="0123",
        max_length=64,
        task="parsing",
        task_options={"words": "tags"},
    )
    create_or_check(any_folder / "model", description, any_folder)
    return any_folder / "model"


def test_what_the_model_directory_knows(model_dir):
    about = describe(model_dir, FACTS)
    assert (about["task"], about["task_options"]) == ("parsing", {"words": "tags"})
    assert (about["preset"], about["evaluation"]) == ("tiny", None)
    assert about["training"]["warmup_steps"] == 7
    assert about["data"] == {
        "vocabulary": "vocabulary.model",
        "vocabulary_fingerprint": "0123",
        "source_vocabulary": None,
        "source_vocabulary_fingerprint": None,
        "max_length": 64,
    }


def test_evaluation_is_of_the_same_checkpoint(model_dir):
    write_results(model_dir, "test", FOUND)
    assert describe(model_dir, FACTS)["evaluation"] == FOUND
    for other in ({"step": 71}, {"checkpoint": "latest"}):
        assert describe(model_dir, {**FACTS, **other})["evaluation"] is None


def test_card_lists_the_files_and_tells_of_missing_ones(any_folder):
    def write(folder):
        (folder / "part").mkdir()
        (folder / "part" / "weights").write_bytes(b"12345")
        (folder / "saved_model.pb").write_bytes(b"123")

    export = any_folder / "export"
    size = write_export(write, export, OF_MODEL)
    wanted = {"format_version": 2, **OF_MODEL, "files": {"part/weights": 5, "saved_model.pb": 3}}
    assert read_card(export) == json.loads((export / CARD).read_text()) == wanted
    assert size == 8 + (export / CARD).stat().st_size
    (export / "part" / "more").write_bytes(b"")
    assert read_card(export) == wanted, "files that are added do no harm"
    (export / "part" / "weights").write_bytes(b"1234")
    with pytest.raises(InputError, match=r"must be whole.*where part/weights has 4 of 5 bytes"):
        read_card(export)


def test_exports_of_earlier_versions_have_no_restrictions(tmp_path):
    later = {"min_length": 0, "no_repeat_ngram_size": 0, "forbidden_phrases": ()}
    card = {name: value for name, value in OF_MODEL.items() if name not in later}
    write = lambda folder: (folder / "saved_model.pb").write_bytes(b"123")  # noqa: E731
    write_export(write, tmp_path / "export", card)
    found = read_card(tmp_path / "export")
    assert {name: found[name] for name in later} == later
    write_export(write, tmp_path / "other", card | {"forbidden_phrases": ["a", 3]})
    with pytest.raises(InputError, match=r"forbidden_phrases\[1\] must be of type str"):
        read_card(tmp_path / "other")


def test_an_export_that_cannot_be_written_is_none(any_folder):
    def fail(folder):
        raise PermissionError(13, "Permission denied")

    rule = r"--export_dir must be writable\. Received: .*export: .*Permission denied"
    with pytest.raises(InputError, match=rule):
        write_export(fail, any_folder / "export", {})
    assert list(any_folder.glob("*")) == []
