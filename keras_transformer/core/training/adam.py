"""Adam as in section 5.3, for gradients already summed over the replicas.

An update is a tf.cond on the global norm of the gradients, on each replica's own copy of the
variables. Keras' LossScaleOptimizer would add a second condition, and does not count skipped steps.
Only the training loop uses this class; `fit` takes Keras' own.
"""

from typing import NamedTuple

import keras
import tensorflow as tf

FIRST_LOSS_SCALE = 2.0**15  # for float16
UPDATES_TO_DOUBLE = 2000  # the scale doubles after this many consecutive finite updates


class Update(NamedTuple):
    """The outcome of FusedAdam.apply."""

    gradient_norm: tf.Tensor  # float32 scalar, global norm of the unscaled, unclipped gradients
    applied: tf.Tensor  # bool scalar; False if the norm was not finite and nothing was changed


class FusedAdam(keras.optimizers.Adam):
    """Adam for the training loop: on TensorFlow, for gradients already summed over the replicas.

    It computes the same updates as keras.optimizers.Adam, the optimizer for `fit`, but with one
    fused operation per parameter instead of ten, each of which reads and writes the whole
    parameter. An update with non-finite gradients is skipped: parameters, moments and the
    schedule's step stay unchanged.

    Args:
        learning_rate: a float or a keras.optimizers.schedules.LearningRateSchedule.
        beta_1: decay of the first moment, section 5.3.
        beta_2: decay of the second moment, section 5.3.
        epsilon: added to the root of the second moment, section 5.3.
        clip_norm: maximum global norm of the gradients; 0 for no limit.
        scale_losses: whether to multiply the loss by a scale that keeps float16 gradients from
            underflowing. A skipped update halves the scale.
    """

    def __init__(
        self,
        learning_rate=0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.98,
        epsilon: float = 1e-9,
        clip_norm: float = 0.0,
        scale_losses: bool = False,
    ):
        super().__init__(learning_rate, beta_1, beta_2, epsilon)
        self.schedule = learning_rate
        self.clip_norm = clip_norm
        self.scaled = scale_losses

    def build(self, variables):
        """Creates the moments for trainable variables, and the loss scale for float16."""
        super().build(variables)
        if self.scaled:
            first = keras.initializers.Constant(FIRST_LOSS_SCALE)
            self.loss_scale = self.add_variable((), initializer=first, name="loss_scale")
            self.good_updates = self.add_variable((), dtype="int32", name="good_updates")

    def scale_loss(self, loss):
        """float32 scalar -> the same, times the loss scale for float16."""
        return loss * self._scale()

    def apply(self, grads, trainable_variables=None) -> Update:
        """Updates the variables, unless a gradient is not finite.

        Args:
            grads: dense float32 gradients of the scaled loss, summed over the replicas.
            trainable_variables: the variables that the optimizer was built for, in the same order.

        Returns:
            The gradients' norm, and whether the update was applied.
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
        tf.cond(
            finite,
            lambda: self._update_all(grads, variables, rate),
            lambda: tf.constant(0),
        )
        if self.scaled:
            self._adapt_scale(finite)
        return Update(norm, finite)

    def last_rate(self):
        """Returns the learning rate of the last update, float32; before it, that of the first."""
        if not isinstance(self.schedule, keras.optimizers.schedules.LearningRateSchedule):
            return tf.convert_to_tensor(self.learning_rate)
        updates = tf.convert_to_tensor(self.iterations)
        return self.schedule(tf.maximum(updates - 1, 0))

    def _scale(self):
        return of_this_replica(self.loss_scale).read_value() if self.scaled else 1.0

    def _update_all(self, grads, variables, rate):
        """Updates parameters and moments; returns a constant, as a tf.cond branch must."""
        step = tf.cast(of_this_replica(self._iterations).assign_add(1), tf.float32)
        slots = zip(grads, variables, self._momentums, self._velocities, strict=True)
        for gradient, variable, momentum, velocity in slots:
            tf.raw_ops.ResourceApplyAdam(
                var=of_this_replica(variable).handle,
                m=of_this_replica(momentum).handle,
                v=of_this_replica(velocity).handle,
                beta1_power=self.beta_1**step,
                beta2_power=self.beta_2**step,
                lr=rate,
                beta1=self.beta_1,
                beta2=self.beta_2,
                epsilon=self.epsilon,
                grad=gradient,
            )
        return tf.constant(0)

    def _adapt_scale(self, finite):
        """Halves the scale after a skipped update; doubles it after many finite ones."""
        good_updates = of_this_replica(self.good_updates)
        good_updates.assign(tf.where(finite, good_updates + 1, 0))
        is_time_to_double = tf.equal(good_updates % UPDATES_TO_DOUBLE, 0)
        growth = tf.where(is_time_to_double, 2.0, 1.0)
        scale = of_this_replica(self.loss_scale)
        scale.assign(scale * tf.where(finite, growth, 0.5))


def of_this_replica(variable):
    """Returns the tf.Variable on the current replica."""
    value = variable.value if isinstance(variable, keras.Variable) else variable
    if isinstance(value, tf.distribute.DistributedValues):
        return value._get_on_device_or_primary()
    return value
