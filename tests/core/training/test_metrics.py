import math

import numpy as np
import pytest

from keras_transformer.core.training.metrics import held_out_perplexity, perplexity_of
from tests.refusals import refused


def test_held_out_perplexity_is_a_mean_over_tokens():
    batches = [(np.array([1.0, 2.0]), [[5, 2, 0], [6, 7, 2]]), (np.float32(3.0), [[2]])]
    perplexity = held_out_perplexity(batches)
    assert perplexity == {"perplexity": math.e, "cross_entropy": 1.0, "tokens": 6}


@pytest.mark.parametrize("batches", [[], [(np.float32(0.0), [[0, 0]])]])
def test_without_a_token_there_is_no_perplexity(batches):
    with refused("perplexity", "none"):
        held_out_perplexity(batches)


def test_perplexity_of_a_huge_loss_is_infinite():
    assert perplexity_of(math.log(7)) == pytest.approx(7)
    assert perplexity_of(1e4) == math.inf
