import math

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF

from keras_transformer.use.translate.answers import Translation
from keras_transformer.use.translate.minimum_risk import by_utility

TEXTS = ["A man rides a bike.", "A man rides his bike.", "A dog ran.", "A man is riding a bike."]
LOG_PROBS = [-3.0, -2.5, -2.0, -4.0]


def answers_of(rows):
    return [Translation(text, log_prob / 2, log_prob, 5) for text, log_prob in rows]


@pytest.mark.parametrize("utility", ["chrf", "bleu"])
def test_the_best_of_a_search_by_hand(utility):
    metric = CHRF() if utility == "chrf" else BLEU(effective_order=True)
    utilities = [[metric.sentence_score(h, [y]).score for y in TEXTS] for h in TEXTS]
    probabilities = np.exp(LOG_PROBS) / np.sum(np.exp(LOG_PROBS))
    expected = np.array(utilities) @ probabilities
    found = by_utility(answers_of(zip(TEXTS, LOG_PROBS, strict=True)), utility, sampled=False)
    order = np.argsort(-expected)
    assert [best.text for best in found] == [TEXTS[i] for i in order]
    np.testing.assert_allclose([best.score for best in found], expected[order])
    assert [best.log_prob for best in found] == [LOG_PROBS[i] for i in order]


def test_draws_count_as_often_as_they_came():
    # By probability the dog would win; of five draws, four are about a man.
    draws = answers_of([(TEXTS[2], -0.1), *[(TEXTS[0], -9.0)] * 3, (TEXTS[1], -9.0)])
    found = by_utility(draws, "chrf", sampled=True)
    assert [best.text for best in found] == [TEXTS[0], TEXTS[1], TEXTS[2]]
    other = [CHRF().sentence_score(TEXTS[0], [TEXTS[i]]).score for i in (1, 2)]
    assert found[0].score == pytest.approx((3 * 100 + sum(other)) / 5)
    assert by_utility(draws, "chrf", sampled=False)[0].text == TEXTS[2]


def test_of_equal_texts_the_most_probable_stays():
    answers = answers_of([(TEXTS[0], -1.0), (TEXTS[1], -2.0), (TEXTS[0], -9.0)])
    for given in (answers, answers[::-1]):
        found = by_utility(given, "chrf", sampled=False)
        assert [(best.text, best.log_prob) for best in found] == [(TEXTS[0], -1), (TEXTS[1], -2)]


def test_one_alone_stays():
    lone = answers_of([("", -math.inf)])
    assert by_utility(lone, "bleu", sampled=False) == lone
