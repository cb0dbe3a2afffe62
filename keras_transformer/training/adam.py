"""Adam of section 5.3 as a Keras optimizer for `fit`, on any Keras backend."""

import keras

from keras_transformer.config import TrainingConfig
from keras_transformer.training.schedule import make_schedule


def make_adam(d_model: int, config: TrainingConfig, total_steps=None) -> keras.optimizers.Adam:
    """Builds the optimizer for `fit` from a training configuration.

    Args:
        d_model: the width of the model, for equation 3.
        config: the learning rate schedule and the Adam settings.
        total_steps: the number of steps in the run, for a `decay` to zero: see make_schedule.
    """
    return keras.optimizers.Adam(
        make_schedule(d_model, config, total_steps),
        beta_1=config.adam_beta_1,
        beta_2=config.adam_beta_2,
        epsilon=config.adam_epsilon,
        global_clipnorm=config.clip_norm or None,
    )
