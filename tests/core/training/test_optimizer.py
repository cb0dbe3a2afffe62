import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.config import TrainingConfig
from keras_transformer.core.training.optimizer import make_fit_optimizer, make_optimizer


def test_updates_equal_adam_by_numpy():
    config = TrainingConfig(warmup_steps=3)
    optimizer = make_optimizer(4, config)
    start = np.array([1.0, -2.0, 3.0])
    variable = tf.Variable(start, dtype=tf.float32)
    optimizer.build([variable])
    expected, m, v = start.copy(), 0.0, 0.0
    rng = np.random.default_rng(0)
    for step in range(1, 8):
        gradient = rng.normal(size=3)
        rate = 4**-0.5 * min(step**-0.5, step * 3**-1.5)
        m = 0.9 * m + 0.1 * gradient
        v = 0.98 * v + 0.02 * gradient**2
        expected -= rate * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.98**step)) + 1e-9)
        optimizer.apply([tf.constant(gradient, tf.float32)], [variable])
    np.testing.assert_allclose(variable, expected, rtol=1e-5)
    assert int(optimizer.iterations) == 7


@pytest.mark.parametrize("gradient", [np.inf, np.nan])
def test_float16_skips_a_step_that_is_not_finite_and_halves_the_scale(gradient):
    optimizer = make_optimizer(4, TrainingConfig(precision="float16"))
    variable = tf.Variable([1.0])
    optimizer.build([variable])
    before = float(optimizer.loss_scale)
    optimizer.apply([tf.constant([gradient], tf.float32)], [variable])
    assert float(variable[0]) == 1.0
    assert float(optimizer.loss_scale) == before / 2


def test_float16_doubles_the_scale_after_good_updates(monkeypatch):
    monkeypatch.setattr("keras_transformer.core.training.adam.UPDATES_TO_DOUBLE", 3)
    optimizer = make_optimizer(4, TrainingConfig(precision="float16"))
    variable = tf.Variable([1.0])
    optimizer.build([variable])
    scales = []
    for gradient in (1.0, 1.0, np.inf, 1.0, 1.0, 1.0, 1.0):
        scales.append(float(optimizer.loss_scale))
        optimizer.apply([tf.constant([gradient * scales[-1]], tf.float32)], [variable])
    scales.append(float(optimizer.loss_scale))
    assert [scale / 2**15 for scale in scales] == [1, 1, 1, 0.5, 0.5, 0.5, 1, 1]


@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_gradients_are_clipped_by_their_norm_together(precision):
    optimizer = make_optimizer(4, TrainingConfig(clip_norm=1.0, precision=precision))
    variables = [tf.Variable([1.0]), tf.Variable([1.0])]
    optimizer.build(variables)
    gradients = [optimizer.scale_loss(tf.constant([number])) for number in (3.0, 4.0)]
    norm, finite = optimizer.apply(gradients, variables)
    assert (float(norm), bool(finite)) == (5.0, True)
    moments = [float(moment[0]) for moment in optimizer._momentums]
    np.testing.assert_allclose(moments, [0.1 * 0.6, 0.1 * 0.8], rtol=1e-6)
    gradients = [optimizer.scale_loss(tf.constant([number])) for number in (0.3, 0.4)]
    optimizer.apply(gradients, variables)  # short enough as it is
    moments = [float(moment[0]) for moment in optimizer._momentums]
    np.testing.assert_allclose(moments, [0.054 + 0.03, 0.072 + 0.04], rtol=1e-6)


def make_muon(config, **values):
    """Keras variables with these values by name, and the optimizer that is built for them."""
    variables = [
        keras.Variable(value, dtype="float32", name=name) for name, value in values.items()
    ]
    optimizer = make_optimizer(4, dataclasses.replace(config, optimizer="muon"))
    optimizer.build(variables)
    return variables, optimizer


SHAPES = {"square": (3, 3), "wide": (3, 5), "wide_too": (3, 5), "tall": (6, 2), "bias": (3,)}


def test_updates_equal_keras_muon():
    """Embeddings and biases are left to Adam by both."""
    rng = np.random.default_rng(0)
    values = {name: rng.normal(size=shape) for name, shape in SHAPES.items()}
    values["embeddings"] = rng.normal(size=(7, 3))
    config = TrainingConfig(warmup_steps=3, clip_norm=1.0)
    variables, optimizer = make_muon(config, **values)
    same = [keras.Variable(value, dtype="float32", name=name) for name, value in values.items()]
    keras_muon = make_fit_optimizer(4, dataclasses.replace(config, optimizer="muon"))
    assert isinstance(keras_muon, keras.optimizers.Muon)
    for _ in range(4):
        grads = [tf.constant(rng.normal(size=v.shape), tf.float32) for v in variables]
        optimizer.apply(grads, variables)
        keras_muon.apply(grads, same)
    for variable, other, value in zip(variables, same, values.values(), strict=True):
        np.testing.assert_allclose(variable.numpy(), other.numpy(), rtol=2e-4, atol=1e-5)
        assert np.abs(variable.numpy() - value).max() > 0.05


def test_a_matrix_moves_in_an_almost_orthogonal_direction():
    """By NumPy: the singular vectors of the Nesterov momentum, with singular values close to 1."""
    config = TrainingConfig(warmup_steps=1)
    start = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")
    (matrix,), optimizer = make_muon(config, kernel=start)
    first, second = np.random.default_rng(1).normal(size=(2, 4, 3)).astype("float32")
    optimizer.apply([tf.constant(first)], [matrix])
    before = matrix.numpy()
    optimizer.apply([tf.constant(second)], [matrix])
    momentum = 0.95 * first + second
    rows, _, columns = np.linalg.svd(second + 0.95 * momentum, full_matrices=False)
    rate = 4**-0.5 * 2**-0.5
    update = (before - matrix.numpy()) / (rate * 0.2 * 4**0.5)
    singular_values = rows.T @ update @ columns.T
    np.testing.assert_allclose(singular_values, np.diag(np.diag(singular_values)), atol=1e-4)
    assert np.diag(singular_values).min() > 0.6 and np.diag(singular_values).max() < 1.3


@pytest.mark.parametrize("bad", ["kernel", "bias"])
def test_muon_skips_a_step_that_is_not_finite(bad):
    variables, optimizer = make_muon(TrainingConfig(), kernel=np.eye(3), bias=np.ones(3))
    everything = [*variables, *optimizer.variables]
    before = [variable.numpy() for variable in everything]
    grads = [tf.fill(v.shape, np.nan if v.name == bad else 1.0) for v in variables]
    assert not optimizer.apply(grads, variables).applied
    for variable, value in zip(everything, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), value)


def test_updates_for_fit_equal_adam_by_numpy():
    config = TrainingConfig(warmup_steps=3, learning_rate_scale=0.5, clip_norm=0.1)
    adam = make_fit_optimizer(4, config)
    expected, m, v = np.array([1.0, -2.0, 3.0]), 0.0, 0.0
    variable = keras.Variable(expected)
    gradient = np.array([0.3, 0.0, 0.4])  # of norm 0.5, which is clipped
    for step in range(1, 6):
        rate = 0.5 * 4**-0.5 * min(step**-0.5, step * 3**-1.5)
        m = 0.9 * m + 0.1 * gradient / 5
        v = 0.98 * v + 0.02 * (gradient / 5) ** 2
        expected -= rate * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.98**step)) + 1e-9)
        adam.apply([keras.ops.convert_to_tensor(gradient, "float32")], [variable])
    np.testing.assert_allclose(variable.numpy(), expected, rtol=1e-5)
