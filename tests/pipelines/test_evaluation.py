"""Evaluating a model on a data directory as a function."""

import shutil

import pytest

from keras_transformer.errors import InputError
from keras_transformer.evaluation.results import read_results
from keras_transformer.loading import load
from pipelines.evaluation import EvaluationConfig, evaluate_on


@pytest.fixture(scope="module")
def translator(untrained):
    return load(untrained, beam_size=1, n_best=1)


def test_the_results_of_all_sentences_are_kept(translator, untrained, prepared, tmp_path):
    model_dir = shutil.copytree(untrained, tmp_path / "model")
    output = str(tmp_path / "answers.txt")
    config = EvaluationConfig(output=output)
    notes = {"min_length": 2}
    results = evaluate_on(prepared, translator, config, model_dir, notes)
    assert (results["split"], results["sentences"], results["min_length"]) == ("test", 5, 2)
    assert results["languages"] == ["en", "de"] and results["checkpoint"] == "step-00000020"
    assert len((tmp_path / "answers.txt").read_text().splitlines()) == 5
    assert read_results(model_dir, "test") == results

    beginning = evaluate_on(prepared, translator, EvaluationConfig(limit=2), model_dir)
    assert beginning["sentences"] == 2
    assert beginning["perplexity"] == pytest.approx(results["perplexity"])  # of all sentences
    assert read_results(model_dir, "test") == results  # of all, still


def test_robustness_is_kept_with_the_results(translator, untrained, prepared, tmp_path):
    model_dir = shutil.copytree(untrained, tmp_path / "model")
    config = EvaluationConfig(robustness=True)
    results = evaluate_on(prepared, translator, config, model_dir)
    found = results["robustness"]
    assert list(found) == ["plain", "upper", "title", "typos", "no_stop", "one_word"]
    assert found["plain"] == {"bleu": results["bleu"], "chrf": results["chrf"]}
    # No text of the test split ends in a full stop.
    assert found["no_stop"] == found["plain"]
    assert found["one_word"]["words"] == 13  # of three letters or more
    assert read_results(model_dir, "test") == results


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"limit": 0}, "^limit must be at least 1. Received: 0"),
        ({"tokenize": "moses"}, "^tokenize must be one of 13a, none, "),
        ({"split": "dev"}, r"^split must be one whose text .* has \(test\). Received: dev$"),
        ({"split": "train"}, r"^split must be one whose text .* has \(test\). Received: train$"),
        ({"output": "/no/such/folder/x"}, "output must be a file in a directory"),
    ],
)
def test_errors_name_arguments(prepared, settings, message):
    with pytest.raises(InputError, match=message):
        EvaluationConfig(**settings).check(prepared)
