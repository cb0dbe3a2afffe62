"""Adam as in section 5.3, applied to gradients that are already summed over the replicas."""

import keras
import tensorflow as tf

from keras_transformer.config import TrainingConfig
from keras_transformer.training.schedule import WarmupInverseSquareRoot, WarmupToZero

# The first scale of a float16 loss, and the number of finite updates after which it is doubled.
FIRST_SCALE, STEPS_TO_DOUBLE = 2.0**15, 2000


@keras.saving.register_keras_serializable(package="keras_transformer")
class FusedAdam(keras.optimizers.Adam):
    """Adam for the training loop: on TensorFlow, for gradients already summed over the replicas.

    With `fit`, use keras.optimizers.Adam, which computes the same updates. Here, one fused
    operation updates a parameter; Keras' own takes ten, which each read and write all parameters.
    An update whose gradients are not all finite is skipped: neither the parameters nor the moments
    nor the step of the schedule change.

    Args:
        learning_rate: a float or a keras.optimizers.schedules.LearningRateSchedule.
        beta_1, beta_2, epsilon: of section 5.3.
        clip_norm: the largest norm of all gradients together; 0 for any.
        scale_losses: whether to multiply the loss by a scale that keeps float16 gradients from
            vanishing. A skipped update halves the scale, which was too large.
    """

    def __init__(
        self,
        learning_rate=0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.98,
        epsilon: float = 1e-9,
        clip_norm: float = 0.0,
        scale_losses: bool = False,
        **kwargs,
    ):
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **kwargs)
        self.clip_norm, self.scaled = clip_norm, scale_losses

    def get_config(self):
        return {**super().get_config(), "clip_norm": self.clip_norm, "scale_losses": self.scaled}

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
        tf.cond(finite, lambda: self._update(grads, variables, rate), lambda: tf.constant(0))
        if self.scaled:
            good, scale = _local(self.good_updates), _local(self.loss_scale)
            good.assign(tf.where(finite, good + 1, 0))
            double = tf.equal(good % STEPS_TO_DOUBLE, 0)
            scale.assign(scale * tf.where(finite, tf.where(double, 2.0, 1.0), 0.5))
        return norm, finite

    def _scale(self):
        return _local(self.loss_scale).read_value() if self.scaled else 1.0

    def _update(self, grads, variables, rate):
        step = tf.cast(_local(self._iterations).assign_add(1), tf.float32)
        slots = zip(grads, variables, self._momentums, self._velocities, strict=True)
        for gradient, variable, momentum, velocity in slots:
            tf.raw_ops.ResourceApplyAdam(
                var=_local(variable).handle,
                m=_local(momentum).handle,
                v=_local(velocity).handle,
                beta1_power=self.beta_1**step,
                beta2_power=self.beta_2**step,
                lr=rate,
                beta1=self.beta_1,
                beta2=self.beta_2,
                epsilon=self.epsilon,
                grad=gradient,
            )
        return tf.constant(0)


def _local(variable):
    """The tf.Variable of the replica that is being updated."""
    value = variable.value if isinstance(variable, keras.Variable) else variable
    replicas = getattr(value, "_get_on_device_or_primary", None)
    return value if replicas is None else replicas()


def make_optimizer(d_model: int, config: TrainingConfig, total_steps=None) -> FusedAdam:
    """Builds the optimizer that `config` describes for a model of width `d_model`.

    `total_steps` are those of the run, which a `decay` to zero needs to know; see WarmupToZero.
    """
    of_rate = {"warmup_steps": config.warmup_steps, "scale": config.learning_rate_scale}
    if config.learning_rate:
        of_rate["scale"] = config.learning_rate * (d_model * config.warmup_steps) ** 0.5
    if config.decay == "inverse_square_root":
        schedule = WarmupInverseSquareRoot(d_model, **of_rate)
    else:
        schedule = WarmupToZero(d_model, **of_rate, total_steps=total_steps, shape=config.decay)
    return FusedAdam(
        schedule,
        beta_1=config.adam_beta_1,
        beta_2=config.adam_beta_2,
        epsilon=config.adam_epsilon,
        clip_norm=config.clip_norm,
        scale_losses=config.precision == "float16",
    )
