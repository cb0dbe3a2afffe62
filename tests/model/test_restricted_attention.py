"""Restricted self-attention against one query at a time in NumPy, and against masked attention."""

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_transformer.config import TransformerConfig
from keras_transformer.model.attention import MultiHeadAttention, scaled_dot_product_attention
from keras_transformer.model.decoder import Decoder
from keras_transformer.model.encoder import Encoder
from keras_transformer.model.masks import causal_mask, window_mask
from keras_transformer.model.restricted_attention import (
    MIN_BLOCK,
    RestrictedSelfAttention,
    block_sizes,
    restricted_attention,
)
from keras_transformer.model.transformer import Transformer
from tests import numpy_reference

# One block; whole blocks; a last block that is not full; a window of one; windows beyond the ends.
SIZES = [(1, 5), (7, 3), (96, 6), (131, 1), (131, 7), (200, 40), (205, 64), (64, 64), (65, 500)]


def neighbourhood(length, window, causal):
    """Which keys a query may see, told pair by pair."""
    allowed = np.zeros((length, length), bool)
    for i in range(length):
        for j in range(max(0, i - window // 2), min(length, i + window // 2 + 1)):
            allowed[i, j] = j <= i or not causal
    return allowed


def heads(batch, length, d_k=4, d_v=6, seed=0):
    rng = np.random.default_rng(seed)
    return [
        rng.normal(size=(batch, 2, length, width)).astype("float32") for width in (d_k, d_k, d_v)
    ]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("length", "window"), SIZES)
def test_equals_attention_to_the_neighbourhood(length, window, causal):
    queries, keys, values = heads(2, length)
    found = ops.convert_to_numpy(restricted_attention(queries, keys, values, window, causal))
    allowed = neighbourhood(length, window, causal)
    for b, h in np.ndindex(2, 2):
        expected = numpy_reference.attention(queries[b, h], keys[b, h], values[b, h], allowed)
        np.testing.assert_allclose(found[b, h], expected, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_padding_is_not_seen(causal):
    length, window, lengths = 150, 8, [150, 70, 3]
    queries, keys, values = heads(3, length)
    real = np.arange(length) < np.array(lengths)[:, None]
    keys[~np.broadcast_to(real[:, None], keys.shape[:3])] = 1e4
    found = restricted_attention(queries, keys, values, window, causal, real)
    found = ops.convert_to_numpy(found)
    for b, n in enumerate(lengths):
        allowed = neighbourhood(n, window, causal)
        for h in range(2):
            parts = [part[b, h, :n] for part in (queries, keys, values)]
            expected = numpy_reference.attention(*parts, allowed)
            np.testing.assert_allclose(found[b, h, :n], expected, atol=1e-5)
    assert np.isfinite(found).all()


@pytest.mark.parametrize(("batch", "length"), [(0, 100), (0, 5), (2, 0)])
def test_nothing_in_nothing_out(batch, length):
    assert restricted_attention(*heads(batch, length), 8).shape == (batch, 2, length, 6)


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_equal_those_of_masked_attention(causal):
    length, window = 131, 10
    parts = [tf.constant(part) for part in heads(2, length)]
    real = np.arange(length) < np.array([[131], [90]])
    weights = np.random.default_rng(1).normal(size=(2, 2, length, 6)).astype("float32")
    weights *= real[:, None, :, None]  # nothing is read at padding
    mask = neighbourhood(length, window, causal) & real[:, None, None, :]

    def full(queries, keys, values):
        return scaled_dot_product_attention(queries, keys, values, mask)[0]

    def blocked(queries, keys, values):
        return restricted_attention(queries, keys, values, window, causal, real)

    gradients = []
    for function in (full, blocked):
        with tf.GradientTape() as tape:
            tape.watch(parts)
            total = tf.reduce_sum(function(*parts) * weights)
        gradients.append(tape.gradient(total, parts))
    for expected, found in zip(*gradients, strict=True):
        assert np.abs(expected).max() > 0.1
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_one_trace_serves_all_lengths(causal):
    spec = [tf.TensorSpec([None, 2, None, d], tf.float32) for d in (4, 4, 6)]
    traced = tf.function(
        lambda *parts: restricted_attention(*parts, 9, causal), input_signature=spec
    )
    for length in (0, 1, 64, 65, 150):
        parts = heads(2, length)
        np.testing.assert_allclose(
            traced(*parts), restricted_attention(*parts, 9, causal), atol=1e-5
        )


def test_blocks_never_hold_more_keys_than_three_windows():
    # (length, window): blocks of r queries see r // 2 keys on each side of their own.
    assert block_sizes(10_000, 64) == (64, 32)
    assert block_sizes(10_000, 1) == (MIN_BLOCK, 0)
    assert block_sizes(128, 64) == (128, 0)
    assert block_sizes(129, 64) == (64, 32)
    assert block_sizes(0, 64) == (1, 0)
    for length in (0, 5, 128, 129, 10_000):
        dynamic = block_sizes(tf.constant(length), 64)
        assert tuple(int(size) for size in dynamic) == block_sizes(length, 64)


def test_memory_does_not_grow_with_the_square_of_the_length():
    # Every tensor of the graph, counted: none has more elements than r, or d, for each position.
    length, window, d_k = 4096, 16, 4
    traced = tf.function(lambda *parts: restricted_attention(*parts, window)).get_concrete_function(
        *[tf.TensorSpec([1, 1, length, d_k], tf.float32)] * 3
    )
    sizes = [
        output.shape.num_elements()
        for operation in traced.graph.get_operations()
        for output in operation.outputs
    ]
    assert None not in sizes
    assert length * 2 * MIN_BLOCK >= max(sizes) >= length * MIN_BLOCK


CONFIG = TransformerConfig(
    vocab_size=20,
    num_layers=2,
    d_model=8,
    d_ff=16,
    num_heads=2,
    dropout=0.0,
    attention_window=6,
)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("policy", "mean", "most"),
    [("float32", 1e-6, 1e-5), ("mixed_float16", 3e-4, 1e-2), ("mixed_bfloat16", 2e-3, 8e-2)],
)
def test_layer_equals_masked_multi_head_attention(policy, mean, most, causal):
    length = 150
    layer = RestrictedSelfAttention(2, 4, window=6, dtype=policy)
    plain = MultiHeadAttention(2, 4, dtype=policy)
    x = np.random.default_rng(2).normal(size=(2, length, 8)).astype("float32")
    not_padding = np.arange(length) < np.array([[150], [97]])
    layer.build(x.shape)
    plain.build(x.shape)
    plain.set_weights(layer.get_weights())
    x = ops.cast(x, layer.compute_dtype)
    settings = {"mask": not_padding, "use_causal_mask": causal}
    found = ops.convert_to_numpy(ops.cast(layer(x, **settings), "float32"))[not_padding]
    near = neighbourhood(length, 6, causal)
    expected, weights = plain(x, None, near, mask=not_padding, return_attention_scores=True)
    expected = ops.convert_to_numpy(ops.cast(expected, "float32"))[not_padding]
    np.testing.assert_allclose(found, expected, atol=most)
    assert np.abs(found - expected).mean() < mean
    attended, own_weights = layer(x, return_attention_scores=True, **settings)
    attended = ops.convert_to_numpy(ops.cast(attended, "float32"))[not_padding]
    np.testing.assert_array_equal(attended, expected)
    np.testing.assert_array_equal(ops.cast(own_weights, "float32"), ops.cast(weights, "float32"))


def test_attention_dropout_drops_weights_in_training_alone():
    layer = RestrictedSelfAttention(2, 4, window=6, dropout=0.5)
    x = np.random.default_rng(3).normal(size=(1, 80, 8)).astype("float32")
    assert not np.allclose(layer(x, training=True), layer(x))
    np.testing.assert_array_equal(layer(x, training=False), layer(x))


def test_stacks_equal_masked_stacks():
    length = 140
    rng = np.random.default_rng(4)
    x, memory = rng.normal(size=(2, 2, length, 8)).astype("float32")
    not_padding = np.arange(length) < np.array([[140], [80]])
    settings = {"num_layers": 2, "num_heads": 2, "key_dim": 4, "d_ff": 16}
    encoders = [Encoder(**settings, attention_window=window) for window in (6, None)]
    for encoder in encoders:
        encoder.build(x.shape)
    encoders[1].set_weights(encoders[0].get_weights())
    states = x
    for layer in encoders[1].layers:
        near = neighbourhood(length, 6, False)
        arguments = {"attention_mask": near, "mask": not_padding}
        states = layer.in_residual("self_attention", states, **arguments)
        states = layer.in_residual("feed_forward", states)
    found = ops.convert_to_numpy(encoders[0](x, mask=not_padding))
    expected = ops.convert_to_numpy(states)
    np.testing.assert_allclose(found[not_padding], expected[not_padding], atol=1e-5)

    decoders = [Decoder(**settings, attention_window=window) for window in (6, None)]
    for decoder in decoders:
        decoder.build(x.shape)
    decoders[1].set_weights(decoders[0].get_weights())
    states = x
    for layer in decoders[1].layers:
        near = neighbourhood(length, 6, True)
        arguments = {"memory": memory, "memory_mask": not_padding}
        states = layer.in_residual("self_attention", states, attention_mask=near)
        states = layer.in_residual("cross_attention", states, **arguments)
        states = layer.in_residual("feed_forward", states)
    np.testing.assert_allclose(decoders[0](x, **arguments), states, atol=1e-5)


def test_model_has_the_same_variables_and_sees_no_future():
    model = Transformer(CONFIG)
    plain = Transformer(
        TransformerConfig(vocab_size=20, num_layers=2, d_model=8, d_ff=16, num_heads=2)
    )
    assert [v.path for v in model.variables if v.trainable] == [
        v.path for v in plain.variables if v.trainable
    ]
    rng = np.random.default_rng(5)
    source, target = rng.integers(4, 20, size=(2, 1, 100))
    before = ops.convert_to_numpy(model({"source": source, "target": target}))
    target[0, 60] = 3
    after = ops.convert_to_numpy(model({"source": source, "target": target}))
    np.testing.assert_array_equal(before[:, :60], after[:, :60])
    # Two layers of reach 3: what came in at 60 can be felt at 66 and no further.
    changed = np.abs(before - after).max(axis=(0, 2)) > 0
    assert changed[60] and not changed[67:].any()


def test_window_mask_of_any_positions():
    found = window_mask(np.array([[5], [0]]), np.arange(8)[None], 4)
    np.testing.assert_array_equal(np.flatnonzero(found[0, 0]), [3, 4, 5, 6, 7])
    np.testing.assert_array_equal(np.flatnonzero(found[1, 0]), [0, 1, 2])
    found = window_mask(np.array([5]), np.arange(8), 4, causal=True)
    np.testing.assert_array_equal(np.flatnonzero(found), [3, 4, 5])
    positions = np.arange(9)
    np.testing.assert_array_equal(window_mask(positions, positions, 1), np.eye(9, dtype=bool))
    np.testing.assert_array_equal(window_mask(positions, positions, 16), np.ones((9, 9), bool))
    np.testing.assert_array_equal(
        window_mask(positions, positions, 17, causal=True), causal_mask(9)
    )
