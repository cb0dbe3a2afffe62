import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.config import TrainingConfig
from keras_transformer.training.optimizer import make_optimizer


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


def test_the_largest_rate_can_be_given():
    config = TrainingConfig(warmup_steps=10, learning_rate=0.003, decay="cosine")
    optimizer = make_optimizer(16, config, total_steps=50)
    rates = [float(optimizer._learning_rate(step)) for step in range(50)]
    assert max(rates) == rates[9] == pytest.approx(0.003)


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
    monkeypatch.setattr("keras_transformer.training.optimizer.UPDATES_TO_DOUBLE", 3)
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


def test_scale_does_not_change_the_update():
    results = []
    for precision in ("float32", "float16"):
        optimizer = make_optimizer(4, TrainingConfig(precision=precision, warmup_steps=1))
        variable = tf.Variable([1.0, 2.0])
        optimizer.build([variable])
        for gradient in ([0.5, -1.0], [2.0, 0.25]):
            optimizer.apply([optimizer.scale_loss(tf.constant(gradient))], [variable])
        results.append(variable.numpy())
    np.testing.assert_array_equal(*results)
