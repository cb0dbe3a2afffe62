"""Evaluating a model on a data directory as a function."""

import dataclasses
import re
import shutil

import pytest

from keras_transformer.loading import load
from keras_transformer.support.files.reading import file_digest
from keras_transformer.use.evaluate import calibration
from keras_transformer.use.store.model_path import ModelPath
from keras_transformer.use.store.opening import open_model
from keras_transformer.use.store.results import read_results, write_calibration
from pipelines import evaluation
from pipelines.batches.data_set import DataSet
from pipelines.evaluation import EvaluationConfig, evaluate_on
from pipelines.prepare.metadata import read_metadata, write_metadata
from tests.refusals import refused


@pytest.fixture(scope="module")
def translator(untrained):
    return load(untrained, beam_size=1, n_best=1)


def test_the_results_of_all_sentences_are_kept(translator, untrained, prepared, tmp_path):
    model_dir = shutil.copytree(untrained, tmp_path / "model")
    output = str(tmp_path / "answers.txt")
    config = EvaluationConfig(output=output)
    notes = {"min_length": 2}
    results = evaluate_on(DataSet.open(prepared), translator, config, model_dir, notes)
    assert (results["split"], results["sentences"], results["min_length"]) == ("test", 5, 2)
    assert results["languages"] == ["en", "de"] and results["checkpoint"] == "step-00000020"
    assert len((tmp_path / "answers.txt").read_text().splitlines()) == 5
    assert read_results(model_dir, "test") == results

    beginning = evaluate_on(
        DataSet.open(prepared), translator, EvaluationConfig(limit=2), model_dir
    )
    assert beginning["sentences"] == 2
    assert beginning["perplexity"] == pytest.approx(results["perplexity"])  # of all sentences
    assert read_results(model_dir, "test") == results  # of all, still


def test_robustness_is_kept_with_the_results(translator, untrained, prepared, tmp_path):
    model_dir = shutil.copytree(untrained, tmp_path / "model")
    config = EvaluationConfig(robustness=True)
    results = evaluate_on(DataSet.open(prepared), translator, config, model_dir)
    scores = results["robustness"]
    assert list(scores) == ["plain", "upper", "title", "typos", "no_stop", "one_word"]
    assert scores["plain"] == {"bleu": results["bleu"], "chrf": results["chrf"]}
    # No text of the test split ends in a full stop.
    assert scores["no_stop"] == scores["plain"]
    assert scores["one_word"]["words"] == 13  # of three letters or more
    assert read_results(model_dir, "test") == results


def test_references_that_are_the_sources_are_told_of(translator, prepared, tmp_path, caplog):
    evaluate_on(DataSet.open(prepared), translator, EvaluationConfig(limit=1))
    assert str(prepared) not in caplog.text
    data_dir = shutil.copytree(prepared, tmp_path / "data")
    shutil.copy(data_dir / "test.source.txt", data_dir / "test.target.txt")
    metadata = read_metadata(data_dir)
    texts = {name: file_digest(data_dir / name) for name in metadata.splits["test"].texts}
    test = dataclasses.replace(metadata.splits["test"], texts=texts)
    splits = {**metadata.splits, "test": test}
    write_metadata(data_dir, dataclasses.replace(metadata, splits=splits))
    evaluate_on(DataSet.open(data_dir), translator, EvaluationConfig(limit=1))
    assert re.search(f"test .*{re.escape(str(data_dir))}", caplog.text)


@pytest.mark.parametrize(
    ("settings", "argument", "received"),
    [
        ({"limit": 0}, "limit", "0"),
        ({"tokenize": "moses"}, "tokenize", "moses"),
        ({"split": "dev"}, "split", "dev"),
        ({"split": "train"}, "split", "train"),
        ({"output": "/no/such/folder/x"}, "output", "/no/such/folder/x"),
    ],
)
def test_errors_name_arguments(prepared, settings, argument, received):
    with refused(argument, received):
        EvaluationConfig(**settings).check(DataSet.open(prepared))


def test_a_calibration_belongs_to_its_weights(untrained, prepared, tmp_path, monkeypatch):
    monkeypatch.setattr(calibration, "LEAST_SENTENCES", 2)
    monkeypatch.setattr(evaluation, "CHOOSING_SPLIT", "test")
    model_dir = shutil.copytree(untrained, tmp_path / "model")
    translator = load(model_dir, beam_size=2, n_best=1)
    config = EvaluationConfig(calibrate=True)
    results = evaluate_on(DataSet.open(prepared), translator, config, model_dir)
    assert set(results["calibrated"]) == {*results["confidence"], "planted"}
    assert {"unrelated", "untranslated"} <= set(results["calibrated"]["planted"])
    stored = ModelPath(model_dir)
    card = open_model(stored).restore().card
    assert card.calibration.checkpoint == translator.checkpoint
    assert 0 < load(model_dir).translate(["the cat"], confidence=True)[0][0].confidence < 1
    other = dataclasses.replace(card.calibration, checkpoint={"checkpoint": "step-00000030"})
    write_calibration(model_dir, other)
    assert open_model(stored).restore().card.calibration is None


def test_a_calibration_needs_sentences(translator, prepared, monkeypatch):
    config = EvaluationConfig(calibrate=True)
    with refused("calibrate", "train, test"):
        config.check(DataSet.open(prepared))
    monkeypatch.setattr(evaluation, "CHOOSING_SPLIT", "test")
    with refused("calibrate", "5"):
        evaluate_on(DataSet.open(prepared), translator, config)
