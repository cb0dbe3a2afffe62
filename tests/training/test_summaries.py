import math

import numpy as np
import pytest

from keras_transformer.training.summaries import perplexity_of, summarize


def test_summary_by_hand():
    # smoothed, plain, target and source tokens, their positions, norms, skipped, in a row
    sums = np.array([300.0, 100 * math.log(5), 100, 80, 150, 90, 6.0, 2, 1])
    summary = summarize(sums, steps=5, seconds=4.0)
    assert summary["loss"] == 3.0
    assert summary["perplexity"] == pytest.approx(5.0)
    assert summary["tokens_per_second"] == 25.0
    assert summary["padding"] == pytest.approx(1 - 180 / 240)
    assert summary["gradient_norm"] == 2.0
    assert summary["skipped"] == 2


def test_nothing_is_no_division_by_zero():
    assert summarize(np.zeros(9), steps=0, seconds=0.0)["loss"] == 0


def test_skipped_steps_have_no_loss():
    summary = summarize(np.array([0.0] * 7 + [4, 4]), steps=4, seconds=1.0)
    assert math.isnan(summary["loss"]) and math.isnan(summary["perplexity"])
    assert summary["gradient_norm"] == summary["tokens_per_second"] == 0


def test_perplexity_of_a_huge_loss_is_infinite():
    assert perplexity_of(math.log(7)) == pytest.approx(7)
    assert perplexity_of(1e4) == math.inf
