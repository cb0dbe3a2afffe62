"""Feed-forward network, embedding and layer normalization, each against NumPy."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.core.model.embedding import TokenEmbedding
from keras_transformer.core.model.encoder import EncoderLayer
from keras_transformer.core.model.feed_forward import FeedForward, GatedFeedForward
from tests import numpy_reference
from tests.refusals import refused


def randomize(layer, seed=0):
    rng = np.random.default_rng(seed)
    for variable in layer.trainable_variables:
        variable.assign(rng.normal(size=variable.shape))


PLAIN = (FeedForward, numpy_reference.feed_forward)
PLAIN_WEIGHTS = ("inner/kernel", "inner/bias", "outer/kernel", "outer/bias")
GATED = (GatedFeedForward, numpy_reference.gated_feed_forward)
GATED_WEIGHTS = ("gate/kernel", "inner/kernel", "outer/kernel")


@pytest.mark.parametrize(
    ("kind", "names", "activation"),
    [
        *((PLAIN, PLAIN_WEIGHTS, activation) for activation in numpy_reference.ACTIVATIONS),
        (GATED, GATED_WEIGHTS, "swish"),
        (GATED, GATED_WEIGHTS, "gelu"),
    ],
)
def test_feed_forward_equals_numpy(kind, names, activation):
    make_layer, reference = kind
    layer = make_layer(12, activation=activation)
    layer.build((2, 3, 8))
    randomize(layer)
    x = np.random.default_rng(1).normal(size=(2, 3, 8)).astype("float32")
    assert [v.path for v in layer.trainable_variables] == [f"{layer.name}/{name}" for name in names]
    weights = [ops.convert_to_numpy(v) for v in layer.trainable_variables]
    expected = reference(x, *weights, numpy_reference.ACTIVATIONS[activation])
    np.testing.assert_allclose(layer(x), expected, rtol=1e-5, atol=1e-5)


def test_feed_forward_drops_inner_activations_in_training_alone():
    layer = FeedForward(12, dropout=0.5)
    x = np.random.default_rng(3).normal(size=(1, 80, 8)).astype("float32")
    assert not np.allclose(layer(x, training=True), layer(x))
    np.testing.assert_array_equal(layer(x, training=False), layer(x))


@pytest.mark.parametrize("scale", [True, False])
def test_embedding_scales_and_makes_logits_with_its_matrix(scale):
    embedding = TokenEmbedding(11, 8, scale=scale)
    vectors = ops.convert_to_numpy(embedding(np.array([[3, 5]])))
    matrix = ops.convert_to_numpy(embedding.embeddings)
    factor = np.sqrt(8) if scale else 1
    np.testing.assert_allclose(vectors[0], matrix[[3, 5]].astype("float64") * factor, rtol=1e-5)
    states = np.random.default_rng(1).normal(size=(4, 8)).astype("float32")
    logits = embedding(states, reverse=True)
    np.testing.assert_allclose(logits, states @ matrix.T, atol=1e-5)
    assert len(embedding.weights) == 1
    assert tuple(embedding.compute_output_shape((2, 5))) == (2, 5, 8)
    assert tuple(embedding.compute_output_shape((2, 5, 8), reverse=True)) == (2, 5, 11)


def test_bias_is_added_to_logits_alone():
    embedding = TokenEmbedding(11, 8, use_bias=True)
    states = np.random.default_rng(1).normal(size=(4, 8)).astype("float32")
    without = ops.convert_to_numpy(embedding(states, reverse=True))
    vectors = ops.convert_to_numpy(embedding(np.array([[3, 5]])))
    bias = np.random.default_rng(2).normal(size=11).astype("float32")
    embedding.bias.assign(bias)
    np.testing.assert_allclose(embedding(states, reverse=True), without + bias, atol=1e-6)
    np.testing.assert_array_equal(embedding(np.array([[3, 5]])), vectors)
    assert len(embedding.trainable_variables) == 2


def test_embedding_variance_is_one_over_d_model():
    layer = TokenEmbedding(2000, 64)
    layer.build((1, 1))
    assert abs(ops.convert_to_numpy(layer.embeddings).std() * 8 - 1) < 0.01


@pytest.mark.parametrize("epsilon", [1e-6, 0.1])
def test_layer_norm_equals_numpy(epsilon):
    layer = EncoderLayer(2, 4, 12, norm_epsilon=epsilon).self_attention_norm
    layer.build((4, 8))
    randomize(layer)
    x = np.random.default_rng(1).normal(size=(4, 8)).astype("float32")
    gamma, beta = ops.convert_to_numpy(layer.gamma), ops.convert_to_numpy(layer.beta)
    expected = numpy_reference.layer_norm(x, gamma, beta, epsilon)
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)


def test_a_place_of_normalization_that_is_unknown_is_refused():
    with refused("norm", "both"):
        EncoderLayer(2, 4, 12, norm="both")
