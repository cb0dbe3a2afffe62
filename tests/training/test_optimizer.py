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


@pytest.mark.parametrize("gradient", [np.inf, np.nan])
def test_float16_skips_a_step_that_is_not_finite_and_halves_the_scale(gradient):
    optimizer = make_optimizer(4, TrainingConfig(precision="float16"))
    variable = tf.Variable([1.0])
    optimizer.build([variable])
    before = float(optimizer.dynamic_scale)
    optimizer.apply([tf.constant([gradient], tf.float32)], [variable])
    assert float(variable[0]) == 1.0
    assert float(optimizer.dynamic_scale) == before / 2
