import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.core.model.attention import MultiHeadAttention, scaled_dot_product_attention
from tests import numpy_reference
from tests.refusals import refused

PROJECTIONS = ("query", "key", "value", "output")


def test_attention_by_hand():
    # Two keys, d_k = 4, so scores are divided by 2: scores 2 ln 3 / 2 and 0, weights 3/4 and 1/4.
    queries = np.array([[2 * np.log(3), 0, 0, 0]], "float32")
    keys = np.array([[1, 0, 0, 0], [0, 1, 0, 0]], "float32")
    values = np.array([[8.0], [4.0]], "float32")
    outputs, weights = scaled_dot_product_attention(queries, keys, values)
    np.testing.assert_allclose(weights, [[0.75, 0.25]], rtol=1e-5)
    np.testing.assert_allclose(outputs, [[7.0]], rtol=1e-5)


def test_fully_masked_row_is_finite():
    ones = np.ones((2, 3), "float32")
    outputs, weights = scaled_dot_product_attention(ones, ones, ones, np.zeros((2, 2), bool))
    np.testing.assert_allclose(weights, np.full((2, 2), 0.5), rtol=1e-6)
    np.testing.assert_allclose(outputs, ones, rtol=1e-6)


def random_layer(*arguments, shapes=((1, 1, 8),), **settings):
    """A built MultiHeadAttention with random kernels and biases."""
    layer = MultiHeadAttention(*arguments, **settings)
    layer.build(*shapes)
    rng = np.random.default_rng(7)
    for variable in layer.trainable_variables:
        variable.assign(rng.normal(size=variable.shape, scale=0.5))
    return layer


def dense_layers(layer):
    return [layer.query_dense, layer.key_dense, layer.value_dense, layer.output_dense]


def by_numpy(layer, query, value, allowed):
    """The layer's outputs for one sentence: query [Q, D], value [P, D], allowed bool [Q, P]."""
    kernels = [ops.convert_to_numpy(dense.kernel) for dense in dense_layers(layer)]
    biases = [0, 0, 0, 0]
    if layer.use_bias:
        biases = [ops.convert_to_numpy(dense.bias) for dense in dense_layers(layer)]
    return numpy_reference.multi_head(query, value, *kernels, layer.num_heads, allowed, biases)


def test_what_cannot_be_attended_to_is_refused():
    with refused("key_dim", 3):
        MultiHeadAttention(2, 3, positions="rotary")
    inputs = np.ones((2, 5, 8), "float32")
    with refused("query", "(5, 8)"):
        MultiHeadAttention(2, 4)(inputs[0])
    with refused("value", "(5, 8)"):
        MultiHeadAttention(2, 4)(inputs, inputs[0])


@pytest.mark.parametrize(
    ("d_k", "d_v", "to_memory", "use_bias"),
    [(4, None, False, True), (4, None, True, False), (3, 5, False, False), (3, 5, True, True)],
)
def test_multi_head_attention_equals_numpy(d_k, d_v, to_memory, use_bias):
    layer = random_layer(2, d_k, d_v, use_bias=use_bias)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2, 4, 8)).astype("float32")
    memory = rng.normal(size=(2, 6, 8)).astype("float32") if to_memory else None
    outputs = layer(x, memory)
    value = x if memory is None else memory
    allowed = np.ones((4, value.shape[1]), bool)
    for b in range(2):
        expected = by_numpy(layer, x[b], value[b], allowed)
        np.testing.assert_allclose(outputs[b], expected, atol=1e-5)


def test_projections_are_xavier_uniform_and_without_bias():
    layer = MultiHeadAttention(4, 16)
    layer.build((1, 2, 64))
    assert [v.path for v in layer.trainable_variables] == [
        f"{layer.name}/{name}/kernel" for name in PROJECTIONS
    ]
    limit = np.sqrt(6 / (64 + 64))
    for kernel in layer.trainable_variables:
        values = ops.convert_to_numpy(kernel)
        assert 0.95 * limit < np.abs(values).max() <= limit
        assert abs(values.std() - limit / np.sqrt(3)) < 0.02 * limit


def test_attention_dropout_drops_weights_in_training_alone():
    layer = MultiHeadAttention(2, 4, dropout=0.5)
    x = np.random.default_rng(3).normal(size=(1, 80, 8)).astype("float32")
    assert not np.allclose(layer(x, training=True), layer(x))
    np.testing.assert_array_equal(layer(x, training=False), layer(x))


# Attention to a neighbourhood, section 4. A window of one; an even and an odd window; one that
# reaches further than the sequence.
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", [1, 4, 5, 40])
def test_window_equals_attention_to_the_neighbourhood(window, causal):
    layer = random_layer(2, 3, 5, window=window)
    x = np.random.default_rng(2).normal(size=(2, 11, 8)).astype("float32")
    lengths = [11, 7]
    not_padding = np.arange(11) < np.array(lengths)[:, None]
    outputs, scores = layer(
        x, query_mask=not_padding, use_causal_mask=causal, return_attention_scores=True
    )
    scores = ops.convert_to_numpy(scores)
    for b, length in enumerate(lengths):
        allowed = numpy_reference.neighbourhood(length, length, window)
        if causal:
            allowed = np.tril(allowed)
        expected = by_numpy(layer, x[b, :length], x[b, :length], allowed)
        np.testing.assert_allclose(outputs[b, :length], expected, atol=1e-5)
        assert (scores[b, :, :length, :length][:, ~allowed] == 0).all()
        assert (scores[b, :, :length, length:] == 0).all()


@pytest.mark.parametrize(
    ("policy", "mean", "most"),
    [("float32", 1e-6, 1e-5), ("mixed_float16", 3e-4, 1e-2), ("mixed_bfloat16", 2e-3, 8e-2)],
)
def test_window_in_narrow_types(policy, mean, most):
    layer = random_layer(2, 4, window=6, dtype=policy)
    layer.set_weights([weight / 2 for weight in layer.get_weights()])
    x = np.random.default_rng(2).normal(size=(1, 150, 8)).astype("float32")
    x = ops.cast(x, layer.compute_dtype)
    outputs = ops.convert_to_numpy(ops.cast(layer(x), "float32"))[0]
    exact = ops.convert_to_numpy(ops.cast(x, "float32"))[0]
    expected = by_numpy(layer, exact, exact, numpy_reference.neighbourhood(150, 150, 6))
    np.testing.assert_allclose(outputs, expected, atol=most)
    assert np.abs(outputs - expected).mean() < mean


# Keras' own layer with the same weights and arguments.


def keras_layer_like(layer, query, value, key):
    """A keras.layers.MultiHeadAttention that has the weights of ours."""
    own = keras.layers.MultiHeadAttention(
        layer.num_heads, layer.key_dim, layer.value_dim, use_bias=layer.use_bias
    )
    own.build(query.shape, value.shape, key.shape)
    denses = [own.query_dense, own.key_dense, own.value_dense, own.output_dense]
    for dense, same in zip(denses, dense_layers(layer), strict=True):
        dense.kernel.assign(ops.reshape(same.kernel, dense.kernel.shape))
        if layer.use_bias:
            dense.bias.assign(ops.reshape(same.bias, dense.bias.shape))
    return own


RNG = np.random.default_rng(11)
QUERY = RNG.normal(size=(2, 4, 8)).astype("float32")
VALUE = RNG.normal(size=(2, 6, 10)).astype("float32")
KEY = RNG.normal(size=(2, 6, 12)).astype("float32")
VALUE_MASK = np.array([[True] * 6, [True, True, True, False, False, False]])
KEY_MASK = np.array([[True] * 5 + [False], [False] + [True] * 5])
ALLOWED = RNG.random((2, 4, 6)) < 0.7
ALLOWED[:, :, 1] = True  # no query without a key


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"key": KEY},
        {"value_mask": VALUE_MASK},
        {"key": KEY, "value_mask": VALUE_MASK, "key_mask": KEY_MASK},
        {"attention_mask": ALLOWED},
        {"attention_mask": ALLOWED[0]},
        {"attention_mask": ALLOWED.astype("int32"), "value_mask": VALUE_MASK},
        {"attention_mask": np.stack([ALLOWED, np.ones_like(ALLOWED)], 1)},  # [B, H, Q, P]
        {"use_causal_mask": True},
        {"key": KEY, "use_causal_mask": True, "attention_mask": ALLOWED, "training": False},
    ],
    ids=lambda arguments: " ".join(arguments) or "value",
)
def test_equals_keras_own_layer_called_with_the_same_arguments(arguments):
    key = arguments.get("key", VALUE)
    shapes = (QUERY.shape, VALUE.shape, key.shape)
    layer = random_layer(2, 3, 5, use_bias=True, shapes=shapes)
    own = keras_layer_like(layer, QUERY, VALUE, key)
    found, scores = layer(QUERY, VALUE, return_attention_scores=True, **arguments)
    expected, expected_scores = own(QUERY, VALUE, return_attention_scores=True, **arguments)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(scores, expected_scores, atol=1e-6)
    np.testing.assert_array_equal(layer(QUERY, VALUE, **arguments), found)
