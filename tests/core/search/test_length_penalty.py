"""The length penalty by hand: ((5 + 7) / 6)^alpha is 2^alpha."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.search.length_penalty import length_penalty, penalized


@pytest.mark.parametrize(("alpha", "penalty"), [(0.0, 1.0), (1.0, 2.0), (2.0, 4.0)])
def test_numbers_arrays_and_tensors_have_the_same_penalty(alpha, penalty):
    assert length_penalty(7, alpha) == penalty
    assert length_penalty(np.array([1, 7]), alpha).tolist() == [1.0, penalty]
    assert length_penalty(tf.constant([1.0, 7.0]), alpha).numpy().tolist() == [1.0, penalty]


def test_a_score_is_the_log_probability_divided_by_the_penalty():
    assert penalized(-3.0, 7, 1.0) == -1.5
