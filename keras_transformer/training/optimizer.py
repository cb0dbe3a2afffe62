"""Adam as in section 5.3, applied to gradients that are already summed over the replicas."""

import keras
import tensorflow as tf

from keras_transformer.config import TrainingConfig
from keras_transformer.training.schedule import WarmupInverseSquareRoot


class Adam(keras.optimizers.Adam):
    """keras.optimizers.Adam with two differences, neither of which changes its results.

    Gradients come summed over replicas: the loop needs their sum itself, for its norm and for
    dividing by the number of tokens of the global batch. And each parameter is updated by
    TensorFlow's one fused operation instead of ten that each read and write all parameters.
    """

    def _all_reduce_sum_gradients(self, grads_and_vars):
        return list(grads_and_vars)

    def update_step(self, gradient, variable, learning_rate):
        index = self._get_variable_index(variable)
        step = tf.cast(self.iterations + 1, tf.float32)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=_local(self._momentums[index]).handle,
            v=_local(self._velocities[index]).handle,
            beta1_power=self.beta_1**step,
            beta2_power=self.beta_2**step,
            lr=learning_rate,
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=gradient,
        )


def _local(variable: keras.Variable):
    """The tf.Variable of the replica that is being updated."""
    value = variable.value
    replicas = getattr(value, "_get_on_device_or_primary", None)
    return value if replicas is None else replicas()


def make_optimizer(d_model: int, config: TrainingConfig) -> keras.optimizers.Optimizer:
    """Builds the optimizer; for float16 with a dynamic scale of the loss around it.

    Args:
        d_model: width of the model, which equation 3 depends on.
        config: the training configuration.
    """
    optimizer = Adam(
        WarmupInverseSquareRoot.of(d_model, config),
        beta_1=config.adam_beta_1,
        beta_2=config.adam_beta_2,
        epsilon=config.adam_epsilon,
    )
    if config.precision == "float16":
        return keras.optimizers.LossScaleOptimizer(optimizer)
    return optimizer
