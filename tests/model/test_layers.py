"""Feed-forward network, embedding, residual connection and masks, each against NumPy."""

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_transformer.model.embedding import TokenEmbedding
from keras_transformer.model.feed_forward import FeedForward
from keras_transformer.model.masks import causal_mask, padding_mask
from keras_transformer.model.sublayer import LayerNorm, Residual, normalize
from tests import numpy_reference


def randomize(layer, seed=0):
    rng = np.random.default_rng(seed)
    for variable in layer.trainable_variables:
        variable.assign(rng.normal(size=variable.shape))


def test_feed_forward_equals_numpy():
    layer = FeedForward(12)
    layer.build((2, 3, 8))
    randomize(layer)
    x = np.random.default_rng(1).normal(size=(2, 3, 8)).astype("float32")
    weights = [ops.convert_to_numpy(v) for v in layer.trainable_variables]
    np.testing.assert_allclose(
        layer(x), numpy_reference.feed_forward(x, *weights), rtol=1e-5, atol=1e-5
    )


def test_embedding_scales_and_makes_logits_with_its_matrix():
    embedding = TokenEmbedding(11, 8)
    vectors = ops.convert_to_numpy(embedding(np.array([[3, 5]])))
    matrix = ops.convert_to_numpy(embedding.matrix)
    np.testing.assert_allclose(vectors[0], matrix[[3, 5]].astype("float64") * np.sqrt(8), rtol=1e-5)
    states = np.random.default_rng(1).normal(size=(4, 8)).astype("float32")
    logits = embedding(states, reverse=True)
    np.testing.assert_allclose(logits, states @ matrix.T, atol=1e-5)
    assert len(embedding.weights) == 1
    assert embedding.compute_output_shape((2, 5)) == (2, 5, 8)
    assert embedding.compute_output_shape((2, 5, 8), reverse=True) == (2, 5, 11)


def test_embedding_variance_is_one_over_d_model():
    layer = TokenEmbedding(2000, 64)
    layer.build((1, 1))
    assert abs(ops.convert_to_numpy(layer.matrix).std() * 8 - 1) < 0.01


def test_layer_norm_equals_numpy():
    layer = LayerNorm()
    layer.build((4, 8))
    randomize(layer)
    x = np.random.default_rng(1).normal(size=(4, 8), scale=3).astype("float32")
    gain, bias = (ops.convert_to_numpy(v) for v in layer.trainable_variables)
    np.testing.assert_allclose(layer(x), numpy_reference.layer_norm(x, gain, bias), atol=1e-5)


def test_layer_norm_gradient_equals_differentiation():
    rng = np.random.default_rng(2)
    x, upstream = (tf.constant(rng.normal(size=(3, 4, 8)), tf.float32) for _ in range(2))
    gain, bias = (tf.constant(rng.normal(size=8), tf.float32) for _ in range(2))

    def plain(x, gain, bias):
        mean = tf.reduce_mean(x, -1, keepdims=True)
        variance = tf.reduce_mean((x - mean) ** 2, -1, keepdims=True)
        return (x - mean) / tf.sqrt(variance + 1e-6) * gain + bias

    gradients = []
    for function in (normalize, plain):
        with tf.GradientTape() as tape:
            tape.watch([x, gain, bias])
            total = tf.reduce_sum(function(x, gain, bias) * upstream)
        gradients.append(tape.gradient(total, [x, gain, bias]))
    for written, differentiated in zip(*gradients, strict=True):
        np.testing.assert_allclose(written, differentiated, atol=1e-5)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_residual(norm):
    layer = Residual(norm)
    layer.build((2, 3, 8))
    randomize(layer)
    x, y = np.random.default_rng(1).normal(size=(2, 2, 3, 8)).astype("float32")
    gain, bias = (ops.convert_to_numpy(v) for v in layer.trainable_variables)
    if norm == "post":
        np.testing.assert_array_equal(layer.sublayer_input(x), x)
        expected = numpy_reference.layer_norm(x + y, gain, bias)
    else:
        before = numpy_reference.layer_norm(x, gain, bias)
        np.testing.assert_allclose(layer.sublayer_input(x), before, atol=1e-5)
        expected = x + y
    np.testing.assert_allclose(layer(x, y), expected, atol=1e-5)


def test_masks():
    np.testing.assert_array_equal(
        padding_mask(np.array([[5, 2, 0], [7, 0, 0]])), [[True, True, False], [True, False, False]]
    )
    np.testing.assert_array_equal(
        causal_mask(3), [[True, False, False], [True, True, False], [True, True, True]]
    )
