"""The optimizer as a Keras one for `fit`, on any Keras backend."""

import keras

from keras_transformer.core.config import TrainingConfig
from keras_transformer.core.training.schedule import make_schedule


def make_fit_optimizer(
    d_model: int, config: TrainingConfig, total_steps=None
) -> keras.optimizers.Optimizer:
    """Builds the optimizer for `fit` from a training configuration: Adam (section 5.3) or Muon.

    Args:
        d_model: the width of the model, for equation 3.
        config: the optimizer, its learning rate schedule and the Adam settings.
        total_steps: the number of steps in the run, for a `decay` to zero: see make_schedule.
    """
    schedule = make_schedule(d_model, config, total_steps)
    clip_norm = config.clip_norm or None
    if config.optimizer == "muon":
        return keras.optimizers.Muon(  # its other defaults are those of training/muon.py
            schedule,
            adam_beta_1=config.adam_beta_1,
            adam_beta_2=config.adam_beta_2,
            epsilon=config.adam_epsilon,
            weight_decay=None,
            adam_weight_decay=None,
            global_clipnorm=clip_norm,
        )
    return keras.optimizers.Adam(
        schedule,
        beta_1=config.adam_beta_1,
        beta_2=config.adam_beta_2,
        epsilon=config.adam_epsilon,
        global_clipnorm=clip_norm,
    )
