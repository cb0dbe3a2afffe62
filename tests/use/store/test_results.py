import json
import math

import pytest

from keras_transformer.use.store.results import read_results, read_training, write_results
from tests.refusals import refused


def test_results_are_read_back(any_folder):
    assert read_results(any_folder, "test") is None
    write_results(any_folder, "test", {"bleu": 1.5, "checkpoint": "a"})
    write_results(any_folder, "validation", {"bleu": 7})
    write_results(any_folder, "test", {"bleu": 2.5})
    assert read_results(any_folder, "test") == {"bleu": 2.5}
    assert read_results(any_folder, "validation") == {"bleu": 7}
    assert {path.name for path in any_folder.iterdir()} == {
        *("evaluation-test.json", "evaluation-validation.json"),
    }


def test_a_directory_that_cannot_be_written_is_no_error(tmp_path, caplog):
    write_results(tmp_path / "no", "test", {"bleu": 1})
    assert "evaluation-test.json" in caplog.text and "No such file or directory" in caplog.text


@pytest.mark.parametrize(("content", "received"), [("{", "line 1 column 2"), ("[1]", "[1]")])
def test_broken_results_are_named(tmp_path, content, received):
    (tmp_path / "evaluation-test.json").write_text(content)
    with refused(None, received, "evaluation-test.json"):
        read_results(tmp_path, "test")


def test_training_stands_at_its_last_checkpoint(tmp_path):
    unknown = {"steps": None, "minutes": None, "perplexity": None}
    assert read_training(tmp_path) == unknown
    directory = tmp_path / "checkpoints"
    directory.mkdir()
    facts = [
        {"step": 7},
        {"step": 8, "seconds": 6, "validation": {"loss": 9.0}},
        {"step": 20, "seconds": 90.0, "validation": {"loss": math.log(5)}},
    ]
    expected = [
        {**unknown, "steps": 7},
        {"steps": 8, "minutes": 0.1, "perplexity": 8103.0839},
        {"steps": 20, "minutes": 1.5, "perplexity": 5.0},
    ]
    for known, wanted in zip(facts, expected, strict=True):
        record = {"format_version": 4, "model": "f", **known}
        (directory / f"step-{known['step']:08d}.json").write_text(json.dumps(record))
        assert read_training(tmp_path) == wanted
