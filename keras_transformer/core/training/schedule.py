"""Learning rate schedules: section 5.3, one that decays to zero, and a constant one."""

import math
from typing import Any

import keras
from keras import ops

from keras_transformer.core.config import TrainingConfig
from keras_transformer.support.errors import require
from keras_transformer.support.fields import shown

LONGEST_WARMUP = 1 / 5  # share of a run whose rate decays to zero


@keras.saving.register_keras_serializable(package="keras_transformer")
class WarmupInverseSquareRoot(keras.optimizers.schedules.LearningRateSchedule):
    """Equation 3: rate = d_model^-0.5 min(step_num^-0.5, step_num warmup_steps^-1.5).

    It grows linearly for `warmup_steps` steps and then decays with the inverse square root of the
    step. step_num counts from 1: the optimizer's `iterations` is 0 at the first update.

    Args:
        d_model: width of the model.
        warmup_steps: where the rate is largest.
        scale: a factor on the rate; 1 in the paper.
    """

    def __init__(self, d_model: int, warmup_steps: int = 4000, scale: float = 1.0):
        super().__init__()
        self.d_model, self.warmup_steps, self.scale = d_model, warmup_steps, scale

    def __call__(self, step):
        """Returns the rate for the next update, float32, given the number of updates, int."""
        step_num = ops.cast(step, "float32") + 1
        slope = ops.minimum(step_num**-0.5, step_num * self.warmup_steps**-1.5)
        return self.scale * self.d_model**-0.5 * slope

    def get_config(self):
        return {"d_model": self.d_model, "warmup_steps": self.warmup_steps, "scale": self.scale}


@keras.saving.register_keras_serializable(package="keras_transformer")
class WarmupToZero(WarmupInverseSquareRoot):
    """A linear warm-up, then a decay to zero at the end of the run. Not in the paper.

    The largest rate is that of equation 3, scale (d_model warmup_steps)^-0.5. In a short run, the
    warm-up takes a fifth of the steps, and leads to the same rate.

    Args:
        d_model: width of the model.
        warmup_steps: where the rate is largest, in runs of at least five times as many steps.
        total_steps: number of steps in the run, an int; or a scalar variable, if not yet known.
        scale: a factor on the rate.
        shape: "linear", or "cosine", which decays slowly at the beginning and at the end.
    """

    def __init__(
        self,
        d_model: int,
        warmup_steps: int,
        total_steps: Any,
        scale: float = 1.0,
        shape: str = "linear",
    ):
        is_known = shape in ("linear", "cosine")
        require(is_known, "shape", "must be one of linear, cosine", shown(shape))
        super().__init__(d_model, warmup_steps, scale)
        self.total_steps, self.shape = total_steps, shape

    def __call__(self, step):
        """Returns the rate for the next update, float32, given the number of updates, int."""
        step_num = ops.cast(step, "float32") + 1
        total_steps = ops.cast(self.total_steps, "float32")
        warmup_steps = ops.minimum(float(self.warmup_steps), total_steps * LONGEST_WARMUP)
        warmup_steps = ops.maximum(warmup_steps, 1.0)
        rise = ops.minimum(step_num / warmup_steps, 1.0)
        decay_steps = ops.maximum(total_steps + 1 - warmup_steps, 1.0)
        fall = ops.clip((total_steps + 1 - step_num) / decay_steps, 0.0, 1.0)
        if self.shape == "cosine":
            fall = (1 - ops.cos(math.pi * fall)) / 2
        largest = self.scale * (self.d_model * self.warmup_steps) ** -0.5
        return largest * ops.minimum(rise, fall)

    def get_config(self):
        total_steps = int(self.total_steps)
        return {**super().get_config(), "total_steps": total_steps, "shape": self.shape}


@keras.saving.register_keras_serializable(package="keras_transformer")
class WarmupToConstant(WarmupInverseSquareRoot):
    """A linear warm-up to the largest rate of equation 3, which then stays. Not in the paper."""

    def __call__(self, step):
        """Returns the rate for the next update, float32, given the number of updates, int."""
        step_num = ops.cast(step, "float32") + 1
        return super().__call__(ops.minimum(step_num, float(self.warmup_steps)) - 1)


def make_schedule(
    d_model: int, config: TrainingConfig, total_steps: Any = None
) -> WarmupInverseSquareRoot:
    """Builds the learning rate schedule from a training configuration.

    Args:
        d_model: the width of the model, for equation 3.
        config: warm-up, peak rate and decay.
        total_steps: the number of steps in the run, for a `decay` to zero; see WarmupToZero. If
            None, the rate decays as in equation 3 with any `decay`.
    """
    if config.learning_rate:
        # Equation 3 peaks at warmup_steps, with (d_model warmup_steps)^-0.5.
        scale = config.learning_rate * (d_model * config.warmup_steps) ** 0.5
    else:
        scale = config.learning_rate_scale
    if config.decay == "constant":
        return WarmupToConstant(d_model, config.warmup_steps, scale)
    if not config.decays_to_zero or total_steps is None:
        return WarmupInverseSquareRoot(d_model, config.warmup_steps, scale)
    return WarmupToZero(d_model, config.warmup_steps, total_steps, scale, shape=config.decay)
