"""Restricted self-attention in blocks: against NumPy, and against the library's mask."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.model.attention import MultiHeadAttention, scaled_dot_product_attention
from keras_transformer.model.masks import window_mask
from tests import numpy_reference

# One block; whole blocks; a last block that is not full; a window of one; windows beyond the ends.
SIZES = [(1, 5), (7, 3), (96, 6), (131, 1), (131, 7), (200, 40), (205, 64), (64, 64), (65, 500)]


@pytest.fixture
def restricted(monkeypatch, request):
    monkeypatch.syspath_prepend(request.config.rootpath / "benchmarks")
    import restricted_attention

    return restricted_attention


def random_heads(batch, length, d_k=4, d_v=6):
    rng = np.random.default_rng(0)
    queries = rng.normal(size=(batch, 2, length, d_k)).astype("float32")
    keys = rng.normal(size=(batch, 2, length, d_k)).astype("float32")
    values = rng.normal(size=(batch, 2, length, d_v)).astype("float32")
    return queries, keys, values


@pytest.mark.parametrize(("length", "window"), SIZES)
def test_equals_attention_to_the_neighbourhood(restricted, length, window):
    queries, keys, values = random_heads(2, length)
    found = restricted.restricted_attention(queries, keys, values, window)
    allowed = numpy_reference.neighbourhood(length, length, window)
    np.testing.assert_array_equal(window_mask(length, length, window), allowed)
    for b, h in np.ndindex(2, 2):
        expected = numpy_reference.attention(queries[b, h], keys[b, h], values[b, h], allowed)
        np.testing.assert_allclose(found[b, h], expected, atol=1e-5)


@pytest.mark.parametrize(("length", "window"), [(20, 5), (131, 10), (150, 64)])
def test_layer_equals_multi_head_attention_with_a_window(restricted, length, window):
    x = np.random.default_rng(2).normal(size=(2, length, 8)).astype("float32")
    blocked = restricted.RestrictedSelfAttention(2, 4, 3, window=window)
    masked = MultiHeadAttention(2, 4, 3, window=window)
    blocked.build(x.shape)
    masked.build(x.shape)
    masked.set_weights(blocked.get_weights())
    np.testing.assert_allclose(blocked(x), masked(x), atol=1e-5)


def test_gradients_equal_those_of_masked_attention(restricted):
    length, window = 131, 10
    heads = [tf.constant(part) for part in random_heads(2, length)]
    factors = np.random.default_rng(1).normal(size=(2, 2, length, 6)).astype("float32")
    mask = window_mask(length, length, window)

    with tf.GradientTape() as tape:
        tape.watch(heads)
        outputs, _ = scaled_dot_product_attention(*heads, mask)
        total = tf.reduce_sum(outputs * factors)
    expected = tape.gradient(total, heads)
    with tf.GradientTape() as tape:
        tape.watch(heads)
        total = tf.reduce_sum(restricted.restricted_attention(*heads, window) * factors)
    found = tape.gradient(total, heads)
    for masked, blocked in zip(expected, found, strict=True):
        assert np.abs(masked).max() > 0.1
        np.testing.assert_allclose(blocked, masked, atol=1e-5)


def test_blocks_never_hold_more_keys_than_three_windows(restricted):
    # (length, window): blocks of r queries meet r // 2 keys on each side of their own.
    assert restricted.block_sizes(10_000, 64) == (64, 32)
    assert restricted.block_sizes(10_000, 1) == (restricted.MIN_BLOCK, 0)
    assert restricted.block_sizes(128, 64) == (128, 0)
    assert restricted.block_sizes(129, 64) == (64, 32)


def test_memory_does_not_grow_with_the_square_of_the_length(restricted):
    # Every tensor of the graph, counted: none has more elements than r, or d, for each position.
    length, window, d_k = 4096, 16, 4
    traced = tf.function(lambda *heads: restricted.restricted_attention(*heads, window))
    graph = traced.get_concrete_function(
        *[tf.TensorSpec([1, 1, length, d_k], tf.float32)] * 3
    ).graph
    sizes = [
        output.shape.num_elements()
        for operation in graph.get_operations()
        for output in operation.outputs
    ]
    assert None not in sizes
    assert length * 2 * restricted.MIN_BLOCK >= max(sizes) >= length * restricted.MIN_BLOCK
