"""Adam as in section 5.3, applied to gradients that are already summed over the replicas."""

import keras
import tensorflow as tf

from keras_transformer.config import TrainingConfig
from keras_transformer.training.schedule import WarmupInverseSquareRoot

# Of the loss in float16: as large as its gradients bear, and doubled after so many good updates.
FIRST_SCALE, STEPS_TO_DOUBLE = 2.0**15, 2000


class Adam(keras.optimizers.Adam):
    """keras.optimizers.Adam that leaves out what it must not apply.

    An update whose gradients are not all finite is skipped: neither parameters nor moments nor the
    step of the schedule change. In float16 the loss is scaled, lest its gradients vanish; the scale
    is halved at such an update, which tells that it was too large.

    Gradients come summed over replicas, and every replica applies them to its own copies: the loop
    needs their sum itself, for its norm. And each parameter is updated by TensorFlow's one fused
    operation instead of ten that each read and write all parameters.

    Args:
        config: the training configuration.
        d_model: width of the model, which equation 3 depends on.
    """

    def __init__(self, config: TrainingConfig, d_model: int):
        super().__init__(
            WarmupInverseSquareRoot.of(d_model, config),
            beta_1=config.adam_beta_1,
            beta_2=config.adam_beta_2,
            epsilon=config.adam_epsilon,
        )
        self.clip_norm = config.clip_norm
        self.scaled = config.precision == "float16"

    def build(self, variables):
        super().build(variables)
        if self.scaled:
            first = keras.initializers.Constant(FIRST_SCALE)
            self.loss_scale = self.add_variable((), initializer=first, name="loss_scale")
            self.good_updates = self.add_variable((), dtype="int32", name="good_updates")

    def scale_loss(self, loss):
        """float32 scalar -> the same, times the scale of float16."""
        return loss * self._scale()

    def apply(self, grads, trainable_variables=None):
        """Updates the variables, if the gradients allow it.

        Args:
            grads: dense float32 gradients of the scaled loss, summed over the replicas.
            trainable_variables: those that the optimizer was built for, in the same order.

        Returns:
            float32 scalar, the norm of all gradients together, without scale and before they are
            clipped; and bool scalar, whether it was finite, and the update made.
        """
        variables = trainable_variables or self._trainable_variables
        scale = self._scale()
        norm = tf.linalg.global_norm(grads) / scale
        finite = tf.math.is_finite(norm)
        factor = 1.0 / scale
        if self.clip_norm:
            factor *= tf.minimum(1.0, self.clip_norm / tf.maximum(norm, 1e-30))
        if self.clip_norm or self.scaled:
            grads = [gradient * factor for gradient in grads]
        rate = tf.convert_to_tensor(self.learning_rate)
        tf.cond(finite, lambda: self._update(grads, variables, rate), lambda: self._skip())
        return norm, finite

    def _scale(self):
        return _local(self.loss_scale).read_value() if self.scaled else 1.0

    def _update(self, grads, variables, rate):
        step = tf.cast(_local(self._iterations).assign_add(1), tf.float32)
        for gradient, variable in zip(grads, variables, strict=True):
            index = self._get_variable_index(variable)
            tf.raw_ops.ResourceApplyAdam(
                var=_local(variable).handle,
                m=_local(self._momentums[index]).handle,
                v=_local(self._velocities[index]).handle,
                beta1_power=self.beta_1**step,
                beta2_power=self.beta_2**step,
                lr=rate,
                beta1=self.beta_1,
                beta2=self.beta_2,
                epsilon=self.epsilon,
                grad=gradient,
            )
        if self.scaled:
            good = _local(self.good_updates).assign_add(1)
            double = tf.equal(good % STEPS_TO_DOUBLE, 0)
            scale = _local(self.loss_scale)
            scale.assign(scale.read_value() * tf.where(double, 2.0, 1.0))
        return tf.constant(0)

    def _skip(self):
        if self.scaled:
            scale = _local(self.loss_scale)
            scale.assign(scale.read_value() / 2)
            _local(self.good_updates).assign(0)
        return tf.constant(0)


def _local(variable):
    """The tf.Variable of the replica that is being updated."""
    value = variable.value if isinstance(variable, keras.Variable) else variable
    replicas = getattr(value, "_get_on_device_or_primary", None)
    return value if replicas is None else replicas()


def make_optimizer(d_model: int, config: TrainingConfig) -> Adam:
    """Builds the optimizer that `config` describes for a model of width `d_model`."""
    return Adam(config, d_model)
