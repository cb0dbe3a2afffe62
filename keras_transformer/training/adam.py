"""Adam of section 5.3 as Keras computes it: the optimizer for `fit`, on any backend of Keras."""

import keras

from keras_transformer.config import TrainingConfig
from keras_transformer.training.schedule import make_schedule


def make_adam(d_model: int, config: TrainingConfig, total_steps=None) -> keras.optimizers.Adam:
    """Builds the optimizer for `fit` that a training configuration describes.

    Args:
        d_model: the width of the model, which equation 3 depends on.
        config: the schedule of the learning rate and the settings of Adam.
        total_steps: the steps of the run, which a `decay` to zero needs to know: see make_schedule.
    """
    return keras.optimizers.Adam(
        make_schedule(d_model, config, total_steps),
        beta_1=config.adam_beta_1,
        beta_2=config.adam_beta_2,
        epsilon=config.adam_epsilon,
        global_clipnorm=config.clip_norm or None,
    )
