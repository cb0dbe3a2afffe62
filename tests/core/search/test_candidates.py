import math

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.search.candidates import best_extensions, block_width


def test_best_extensions_of_large_logits():
    logits = tf.constant([[[1000.0, 1000.0, -1000.0]]])
    extensions = best_extensions(tf.zeros([1, 1]), logits, 3)
    wanted = [-math.log(2), -math.log(2), -2000 - math.log(2)]
    np.testing.assert_allclose(extensions.log_probs, [wanted], rtol=1e-4)  # 1000 has 24 bits


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(("vocab_size", "beams"), [(8000, 4), (7919, 4), (12, 3), (8, 1)])
def test_best_extensions_are_the_best_of_all(vocab_size, beams, ties):
    generator = np.random.default_rng(vocab_size)
    logits = generator.normal(size=(3, beams, vocab_size)).astype("f4")
    if ties:  # few different values, many of them equal to the largest
        logits = np.round(logits)
    alive = generator.normal(size=(3, beams)).astype("f4")
    alive[0, 1:] = -np.inf  # as at the first step
    total = np.log(np.sum(np.exp(logits.astype("f8")), axis=2, keepdims=True))
    every = (alive[:, :, None] + logits - total).reshape(3, -1)
    extensions = best_extensions(tf.constant(alive), tf.constant(logits), 2 * beams)
    places = extensions.parents.numpy() * vocab_size + extensions.tokens.numpy()
    best = -np.sort(-every, axis=1)[:, : 2 * beams]
    np.testing.assert_allclose(extensions.log_probs, best, atol=2e-5)
    np.testing.assert_allclose(np.take_along_axis(every, places, axis=1), best, atol=2e-5)
    for row in places[np.isfinite(best).all(axis=1)]:
        assert len(set(row)) == 2 * beams


def test_block_width_leaves_little_to_rank():
    assert block_width(8000, 4, 8) == 64  # 500 maxima and 8 blocks of 64
    assert block_width(32768, 4, 8) == 128
    assert block_width(7919, 4, 8) == 1  # a prime
