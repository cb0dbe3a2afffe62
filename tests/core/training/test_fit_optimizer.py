import keras
import numpy as np

from keras_transformer.core.config import TrainingConfig
from keras_transformer.core.training.fit_optimizer import make_fit_optimizer


def test_updates_equal_adam_by_numpy():
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
