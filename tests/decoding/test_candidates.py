import math

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding.candidates import (
    SamplingConfig,
    best_extensions,
    block_width,
    log_sum_exp,
    sampled_extensions,
    top_k,
)
from keras_transformer.errors import InputError


def test_best_extensions_by_hand():
    # Two beams, three tokens: 0.5 * (0.2, 0.2, 0.6) and 0.4 * (0.7, 0.2, 0.1).
    logits = tf.math.log([[[0.2, 0.2, 0.6], [0.7, 0.2, 0.1]]]) + 3.0
    found = best_extensions(tf.math.log([[0.5, 0.4]]), logits, 4)
    assert found.tokens.numpy().tolist() == [[2, 0, 0, 1]]
    assert found.parents.numpy().tolist() == [[0, 1, 0, 0]]
    np.testing.assert_allclose(np.exp(found.log_probs), [[0.3, 0.28, 0.1, 0.1]], rtol=1e-5)
    np.testing.assert_allclose(np.exp(found.token_log_probs), [[0.6, 0.7, 0.2, 0.2]], rtol=1e-5)


def test_log_sum_exp_of_large_logits():
    logits = tf.constant([[[1000.0, 1000.0, -1000.0]]])
    wanted = 1000 + math.log(2)
    assert float(log_sum_exp(logits, tf.constant([[[1000.0]]]))[0, 0, 0]) == pytest.approx(wanted)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("k", [1, 8])
def test_top_k_in_blocks_is_top_k(k, ties):
    generator = np.random.default_rng(k)
    values = generator.normal(size=(3, 2, 8000)).astype("f4")
    if ties:  # few different values, many of them equal to the largest
        values = np.round(values)
    wanted = tf.math.top_k(tf.constant(values), k)
    found = top_k(tf.constant(values), k)
    np.testing.assert_array_equal(found[0], wanted.values)
    np.testing.assert_array_equal(found[1], wanted.indices)


def test_block_width_leaves_little_to_rank():
    assert block_width(8000, 8) == 32  # 250 maxima and 8 blocks of 32
    assert block_width(32768, 8) == 64
    assert block_width(37000, 8) == 74
    assert block_width(8011, 8) is None  # a prime


def test_top_p_keeps_the_token_that_passes_it():
    # 0.5, 0.3, 0.2 with top_p 0.6: the first two may be drawn, as 5 to 3.
    logits = tf.repeat(tf.math.log([[[0.3, 0.5, 0.2]]]), 4, axis=1)
    uniform = tf.constant([[0.0, 0.62, 0.63, 0.999]])
    config = SamplingConfig(top_p=0.6)
    found = sampled_extensions(tf.zeros([1, 4]), logits, uniform, config)
    assert found.tokens.numpy().tolist() == [[1, 1, 0, 0]]
    np.testing.assert_allclose(np.exp(found.log_probs), [[0.5, 0.5, 0.3, 0.3]], rtol=1e-5)


def test_temperature_flattens():
    # Temperature 2 takes square roots: 0.9 and 0.1 become 3 to 1.
    logits = tf.repeat(tf.math.log([[[0.9, 0.1]]]), 2, axis=1)
    uniform = tf.constant([[0.74, 0.76]])
    config = SamplingConfig(temperature=2.0)
    found = sampled_extensions(tf.zeros([1, 2]), logits, uniform, config)
    assert found.tokens.numpy().tolist() == [[0, 1]]
    np.testing.assert_allclose(np.exp(found.log_probs), [[0.9, 0.1]], rtol=1e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": 0.0}, "--temperature must be a positive number. Received: 0.0"),
        ({"temperature": math.nan}, "--temperature must be a positive number. Received: nan"),
        ({"top_k": -1}, "--top_k must be at least 0. Received: -1"),
        ({"top_p": 0.0}, "--top_p must be in \\(0, 1\\]. Received: 0.0"),
    ],
)
def test_sampling_is_checked(settings, message):
    with pytest.raises(InputError, match=message):
        SamplingConfig(**settings)
