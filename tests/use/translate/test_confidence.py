"""The evidence for a translation, by hand, and the probability that follows from it."""

import math

import pytest

from keras_transformer.support.errors import InputError
from keras_transformer.support.fields import from_json
from keras_transformer.use.store.calibration import Calibration, Evidence
from keras_transformer.use.translate.answers import AlignedPair
from keras_transformer.use.translate.confidence import evidence

HALF = math.log(0.5)
NO_WEIGHTS = dict.fromkeys(Evidence._fields, 0.0)


def evidence_of(source="▁a ▁b ▁c", target="▁x ▁y", log_probs=None, alignment=None):
    """Returns the evidence for texts that are written as subwords."""
    source_pieces, target_pieces = [*source.split(), "</s>"], [*target.split(), "</s>"]
    pair = AlignedPair(
        source_pieces,
        target_pieces,
        source_words=[],
        target_words=[],
        log_probs=[HALF] * len(target_pieces) if log_probs is None else log_probs,
        alignment=list(range(len(target_pieces))) if alignment is None else alignment,
    )
    return evidence(source.replace("▁", ""), target.replace("▁", ""), pair)


def test_log_probability_is_the_mean_of_the_subwords():
    assert evidence_of(log_probs=[-1.0, -2.0, -0.3]).log_prob == pytest.approx(-1.1)


@pytest.mark.parametrize(
    ("target", "log_probs", "surprise"),
    [
        ("▁x ▁y ▁z", [-3.0, -3.0, -3.0, -7.0], -4.0),
        ("▁x ▁y ▁z ▁w", [-3.0, -3.0, -3.0, -3.0, -3.0], 0.0),
        ("▁x ▁y", [-0.1, -14.8, -0.1], 0.0),  # altogether not below -15
        ("▁x ▁y", [-0.1, -14.8, -0.2], -11.8),
        ("▁x ▁x", [-0.1, -9.8, -0.1], 0.0),  # altogether not below -10
        ("▁x ▁x", [-0.1, -9.8, -0.2], -6.8),
    ],
)
def test_only_an_improbable_subword_is_a_surprise(target, log_probs, surprise):
    assert evidence_of(target=target, log_probs=log_probs).surprise == pytest.approx(surprise)


@pytest.mark.parametrize(
    ("alignment", "coverage"),
    [
        ([0, 1, 3], 2 / 3),
        ([0, 0, 3], 1 / 3),
        ([2, 1, 3], 2 / 3),  # the first subwords count as aligned
        ([0, 3, 1], 1 / 3),  # neither the source's EOS nor what the translation's EOS attends to
    ],
)
def test_coverage_counts_source_subwords(alignment, coverage):
    assert evidence_of(alignment=alignment).coverage == pytest.approx(coverage)


def test_lengths_include_the_end():
    facts = evidence_of(source="▁a ▁b ▁c", target="▁x")
    assert facts.length == pytest.approx(math.log(2))
    assert facts.ratio == pytest.approx(math.log(2 / 4))


@pytest.mark.parametrize(
    ("source", "target", "repetition"),
    [
        ("▁a ▁b", "▁x ▁y ▁x ▁y", 1),
        ("▁a ▁b", "▁x ▁y ▁z ▁x ▁y", 0),  # not at once
        ("▁a ▁a", "▁x ▁x", 0),  # as in the source
        ("▁a ▁a", "▁x ▁y ▁x ▁y", 1),
    ],
)
def test_repetition(source, target, repetition):
    assert evidence_of(source, target).repetition == repetition


def test_words_of_the_source_are_copied():
    assert evidence_of("▁Ein ▁Haus ▁12", "▁ein ▁Hund ▁12").copied == pytest.approx(1 / 2)


@pytest.mark.parametrize(
    ("target", "numbers"), [("▁x ▁1.000", 0), ("▁x", 1), ("▁1,000 ▁7", 1), ("▁1,001", 1)]
)
def test_numbers_of_the_source(target, numbers):
    assert evidence_of("▁a ▁1,000", target).numbers == numbers


def test_an_empty_translation_has_evidence():
    facts = evidence("", "", AlignedPair(["</s>"], [], [], [], [], []))
    assert facts == Evidence(0, 0, 0, 0, 0, 0, 0, 0)


def test_confidence_is_a_logistic_function_of_the_weighted_evidence():
    calibration = Calibration({**NO_WEIGHTS, "log_prob": 2.0, "numbers": -1.0}, 0.5, 40.0, 100, {})
    facts = Evidence(-0.25, 0, 1, 3, 0, 0, 0, 1)
    assert calibration.confidence(facts) == pytest.approx(1 / (1 + math.exp(1.0)))


def test_confidence_in_extreme_evidence_is_a_probability():
    calibration = Calibration({**NO_WEIGHTS, "log_prob": 1e6}, 0.0, 40.0, 100, {})
    assert 0 <= calibration.confidence(evidence_of(log_probs=[-1e3] * 3)) < 1e-6
    assert calibration.confidence(Evidence(1e3, 0, 0, 0, 0, 0, 0, 0)) <= 1


def test_a_calibration_needs_a_weight_for_each_kind_of_evidence():
    content = {"weights": {"log_prob": 1.0}, "bias": 0.0, "good_chrf": 40.0, "sentences": 100}
    content["checkpoint"] = {}
    with pytest.raises(InputError, match=r"weights must have .*surprise.* Received: log_prob"):
        from_json(Calibration, content, "confidence.json")
