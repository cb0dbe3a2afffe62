"""The learning rate of section 5.3."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_transformer")
class WarmupInverseSquareRoot(keras.optimizers.schedules.LearningRateSchedule):
    """Equation 3: rate = d_model^-0.5 min(step_num^-0.5, step_num warmup_steps^-1.5).

    It grows linearly for `warmup_steps` steps and then falls with the inverse square root of the
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
        """Maps the number of updates made so far, int, to the rate of the next one, float32."""
        step_num = ops.cast(step, "float32") + 1
        slope = ops.minimum(step_num**-0.5, step_num * self.warmup_steps**-1.5)
        return self.scale * self.d_model**-0.5 * slope

    def get_config(self):
        return {"d_model": self.d_model, "warmup_steps": self.warmup_steps, "scale": self.scale}
