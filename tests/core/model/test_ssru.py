"""The SSRU and its scan, against NumPy's recursion, position by position."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.model.ssru import SSRU, linear_recurrence
from tests import numpy_reference


def random_layer():
    layer = SSRU()
    layer.build((2, 3, 4))
    rng = np.random.default_rng(0)
    for variable in layer.trainable_variables:
        variable.assign(rng.normal(size=variable.shape))
    return layer


def test_the_equations_by_hand():
    """With W_f = 0 and b_f = 0, the gate is 1/2 everywhere."""
    layer = SSRU()
    layer.build((1, 3, 2))
    assert [v.path for v in layer.trainable_variables] == [
        f"{layer.name}/{name}" for name in ("input/kernel", "forget/kernel", "forget/bias")
    ]
    layer.input_dense.kernel.assign([[1.0, -1.0], [0.0, 2.0]])
    layer.forget_dense.kernel.assign(np.zeros((2, 2)))
    x = np.array([[[4.0, 0.0], [0.0, 4.0], [-8.0, 0.0]]], "float32")
    # x W is (4, -4), (0, 8), (-8, 8); c is (2, -2), (1, 3), (-3.5, 5.5).
    np.testing.assert_allclose(layer(x), [[[2, 0], [1, 3], [0, 5.5]]])


@pytest.mark.parametrize("length", [1, 2, 3, 8, 13])
def test_the_layer_equals_the_recursion(length):
    layer = random_layer()
    weights = [variable.numpy() for variable in layer.trainable_variables]
    x = np.random.default_rng(1).normal(size=(2, length, 4)).astype("float32")
    expected = [numpy_reference.ssru(rows, *weights) for rows in x]
    np.testing.assert_allclose(layer(x), expected, rtol=1e-5, atol=1e-6)
    any_length = tf.function(layer, input_signature=[tf.TensorSpec([None, None, 4])])
    np.testing.assert_allclose(any_length(x), expected, rtol=1e-5, atol=1e-6)


def test_each_segment_begins_anew():
    layer = random_layer()
    x = np.random.default_rng(1).normal(size=(2, 6, 4)).astype("float32")
    segments = np.array([[0, 0, 0, 1, 1, 1], [0, 1, 1, 1, 1, 2]])
    found = layer(x, segments=segments).numpy()
    for row, start, end in ((0, 0, 3), (0, 3, 6), (1, 0, 1), (1, 1, 5), (1, 5, 6)):
        alone = layer(x[None, row, start:end])
        np.testing.assert_allclose(found[None, row, start:end], alone, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("in_graph", [False, True])
def test_the_gradient_is_that_of_the_recursion(in_graph):
    rng = np.random.default_rng(2)
    factors, values = rng.uniform(size=(2, 1, 7, 3))
    weights = rng.normal(size=(1, 7, 3))

    def gradients_of(recurrence):
        def gradients(factors, values):
            with tf.GradientTape() as tape:
                tape.watch([factors, values])
                loss = tf.reduce_sum(weights * recurrence(factors, values))
            return tape.gradient(loss, [factors, values])

        if in_graph:
            spec = tf.TensorSpec([None, None, 3], tf.float64)
            gradients = tf.function(gradients, input_signature=[spec, spec])
        return gradients(tf.constant(factors), tf.constant(values))

    def one_after_another(factors, values):
        states = [values[:, 0]]
        for position in range(1, 7):
            states.append(factors[:, position] * states[-1] + values[:, position])
        return tf.stack(states, axis=1)

    found, expected = gradients_of(linear_recurrence), gradients_of(one_after_another)
    for one, other in zip(found, expected, strict=True):
        assert np.abs(other).max() > 0.5
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_a_thousand_positions_with_gates_near_0_and_1():
    rng = np.random.default_rng(3)
    gates = rng.choice([1e-30, 0.5, 1 - 1e-6], size=(1, 1000, 5)).astype("float32")
    inputs = rng.normal(size=gates.shape).astype("float32")
    states = np.zeros(gates.shape)
    for position in range(1000):
        earlier = states[:, position - 1] if position > 0 else 0
        gate = gates[:, position].astype("float64")
        states[:, position] = gate * earlier + (1 - gate) * inputs[:, position]
    found = linear_recurrence(gates, (1 - gates) * inputs)
    np.testing.assert_allclose(found, states, rtol=1e-4, atol=1e-6)
