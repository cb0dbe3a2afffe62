"""Confidence that is fitted to references, beside brute force."""

import itertools

import numpy as np
import pytest

from keras_transformer.use.evaluate.calibration import (
    auroc,
    calibration_error,
    confidence_quality,
    fit,
    logistic_regression,
    planted_errors,
)

SOURCES = ["Two dogs run over the green grass .", "No .", "In 1984 she read 2 books at home ."]
TARGETS = ["Zwei Hunde laufen über das grüne Gras .", "Nein .", "1984 las sie 2 Bücher zu Hause ."]


def errors_of(index):
    return {error.kind: error.text for error in planted_errors(SOURCES, TARGETS, [index])}


def test_planted_errors_are_of_every_kind():
    errors = errors_of(2)
    words = TARGETS[2].split()
    assert errors["untranslated"] == SOURCES[2]
    assert errors["unrelated"] == TARGETS[1]
    assert len(errors["omission"].split()) == len(words) - 3
    assert len(words) + 2 <= len(errors["repetition"].split()) <= len(words) + 4
    assert sum(a != b for a, b in zip(errors["number"], TARGETS[2], strict=True)) == 1
    changed = errors["word"].split()
    assert sum(a != b for a, b in zip(changed, words, strict=True)) == 1


def test_a_short_translation_gets_the_errors_that_fit():
    assert set(errors_of(1)) == {"word", "untranslated", "unrelated"}


def test_planted_errors_differ_from_the_translation_and_are_the_same_at_each_call():
    errors = planted_errors(SOURCES, TARGETS, range(3))
    assert errors == planted_errors(SOURCES, TARGETS, range(3))
    assert all(error.text != TARGETS[error.index] for error in errors)


def test_auroc_is_a_share_of_pairs():
    values = np.array([0.1, 0.4, 0.4, 0.8, 0.3, 0.9])
    is_low = np.array([True, True, False, False, False, True])
    pairs = itertools.product(values[is_low], values[~is_low])
    expected = np.mean([1.0 * (low < high) + 0.5 * (low == high) for low, high in pairs])
    assert auroc(values, is_low) == pytest.approx(expected)


def test_auroc_of_rows_of_one_kind_is_a_guess():
    assert auroc(np.array([0.1, 0.2]), np.array([False, False])) == 0.5


def test_quality_is_measured_by_both_scores():
    chrf = np.array([90.0, 80, 20, 70, 60])
    edit_rates = np.array([10.0, 20, 30, 150, 30])
    confidences, log_probs = np.array([0.9, 0.8, 0.1, 0.2, 0.7]), -np.arange(5.0)
    assert confidence_quality(confidences, log_probs, chrf, edit_rates, 50.0) == {
        "auroc": 1.0,
        "auroc_log_prob": 0.5,
        "auroc_ter": 0.75,
        "auroc_log_prob_ter": 0.75,
        "calibration_error": pytest.approx(np.mean([0.1, 0.2, 0.1, 0.8, 0.3])),
    }


def test_calibration_error_is_the_mean_gap_of_ten_bins():
    probabilities = np.repeat(np.linspace(0.05, 0.95, 10), 100)
    outcomes = np.concatenate([np.arange(100) < count for count in range(0, 100, 10)])
    assert calibration_error(probabilities, outcomes) == pytest.approx(0.05)


def test_logistic_regression_minimizes_the_loss():
    random = np.random.default_rng(0)
    rows = random.normal(size=[200, 3])
    outcomes = random.random(200) < 1 / (1 + np.exp(-(rows @ [1.0, -2.0, 0.0] + 0.5)))
    importance = random.uniform(0.1, 2, 200)

    def loss(weights, bias):
        logits = rows @ weights + bias
        losses = np.logaddexp(0, logits) - outcomes * logits
        return importance @ losses + weights @ weights / 2

    weights, bias = logistic_regression(rows, outcomes, importance)
    least = loss(weights, bias)
    for step in np.eye(4) * 1e-3:
        assert loss(weights + step[:3], bias + step[3]) > least
        assert loss(weights - step[:3], bias - step[3]) > least


def test_probabilities_hold_without_planted_errors():
    random = np.random.default_rng(0)
    facts = random.normal(3.0, 2.0, size=[4000, 2])
    good = random.random(4000) < 1 / (1 + np.exp(-(facts[:, 0] - 2.0)))
    weights, bias = fit(facts, ~good, random.normal([-3.0, 9.0], 1.0, size=[400, 2]))
    probabilities = 1 / (1 + np.exp(-(facts @ weights + bias)))
    assert probabilities.mean() == pytest.approx(good.mean(), abs=0.005)
    assert calibration_error(probabilities, good) < 0.05


def test_planted_errors_get_less_confidence():
    random = np.random.default_rng(0)
    facts = random.normal(size=[500, 2]) * [1.0, 0.0]  # the second says nothing about chrF
    bad = random.random(500) < 1 / (1 + np.exp(facts[:, 0] + 1.5))
    planted = np.array([[0.5, 1.0]] * 100)
    weights, bias = fit(facts, bad, planted)
    assert (planted @ weights + bias).max() < np.quantile(facts[~bad] @ weights + bias, 0.02)
