import numpy as np
import pytest
from keras import ops

from keras_transformer.model.attention import MultiHeadAttention, scaled_dot_product_attention
from tests import numpy_reference


def test_attention_by_hand():
    # Two keys, d_k = 4, so scores are divided by 2: scores 2 ln 3 / 2 and 0, weights 3/4 and 1/4.
    queries = np.array([[2 * np.log(3), 0, 0, 0]], "float32")
    keys = np.array([[1, 0, 0, 0], [0, 1, 0, 0]], "float32")
    values = np.array([[8.0], [4.0]], "float32")
    outputs, weights = scaled_dot_product_attention(queries, keys, values)
    np.testing.assert_allclose(weights, [[0.75, 0.25]], rtol=1e-5)
    np.testing.assert_allclose(outputs, [[7.0]], rtol=1e-5)


def test_forbidden_key_gets_no_weight():
    rng = np.random.default_rng(0)
    queries, keys, values = rng.normal(size=(3, 5, 4)).astype("float32")
    mask = np.array([True, True, False, True, False])
    outputs, weights = scaled_dot_product_attention(queries, keys, values, mask)
    np.testing.assert_array_equal(ops.convert_to_numpy(weights)[:, [2, 4]], 0)
    expected = numpy_reference.attention(queries, keys, values, np.tile(mask, (5, 1)))
    np.testing.assert_allclose(outputs, expected, atol=1e-5)


def test_fully_masked_row_is_finite():
    ones = np.ones((2, 3), "float32")
    outputs, weights = scaled_dot_product_attention(ones, ones, ones, np.zeros((2, 2), bool))
    np.testing.assert_allclose(weights, np.full((2, 2), 0.5), rtol=1e-6)
    np.testing.assert_allclose(outputs, ones, rtol=1e-6)


@pytest.mark.parametrize(("d_k", "d_v"), [(None, None), (3, 5)])
@pytest.mark.parametrize("to_memory", [False, True])
def test_multi_head_attention_equals_numpy(d_k, d_v, to_memory):
    layer = MultiHeadAttention(2, d_k or 4, d_v)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2, 4, 8)).astype("float32")
    memory = rng.normal(size=(2, 6, 8)).astype("float32") if to_memory else None
    layer.build(x.shape)
    outputs = layer(x, memory)
    kernels = [
        ops.convert_to_numpy(kernel)
        for kernel in (
            layer.query_kernel,
            layer.key_kernel,
            layer.value_kernel,
            layer.output_kernel,
        )
    ]
    looked_at = x if memory is None else memory
    allowed = np.ones((4, looked_at.shape[1]), bool)
    for b in range(2):
        expected = numpy_reference.multi_head(x[b], looked_at[b], *kernels, 2, allowed)
        np.testing.assert_allclose(outputs[b], expected, atol=1e-5)


def test_projections_are_xavier_uniform_and_without_bias():
    layer = MultiHeadAttention(4, 16)
    layer.build((1, 2, 64))
    assert [v.name for v in layer.trainable_variables] == [
        "query_kernel",
        "key_kernel",
        "value_kernel",
        "output_kernel",
    ]
    limit = np.sqrt(6 / (64 + 64))
    for kernel in layer.trainable_variables:
        values = ops.convert_to_numpy(kernel)
        assert 0.95 * limit < np.abs(values).max() <= limit
        assert abs(values.std() - limit / np.sqrt(3)) < 0.02 * limit
