import math

import numpy as np
import pytest

from keras_transformer.training.metrics import perplexity_of, summarize


def test_summary_by_hand():
    # smoothed, plain, target and source tokens, their positions, norms
    sums = np.array([300.0, 100 * math.log(5), 100, 80, 150, 90, 6.0])
    summary = summarize(sums, steps=3, seconds=4.0)
    assert summary["loss"] == 3.0
    assert summary["perplexity"] == pytest.approx(5.0)
    assert summary["tokens_per_second"] == 25.0
    assert summary["padding"] == pytest.approx(1 - 180 / 240)
    assert summary["gradient_norm"] == 2.0


def test_nothing_is_no_division_by_zero():
    assert summarize(np.zeros(7), steps=0, seconds=0.0)["loss"] == 0


def test_perplexity_of_a_huge_loss_is_infinite():
    assert perplexity_of(math.log(7)) == pytest.approx(7)
    assert perplexity_of(1e4) == math.inf
