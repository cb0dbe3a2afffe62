"""The optimizers, a row each: for the training loop, and for `fit` on any Keras backend."""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras

from keras_transformer.core.config import TrainingConfig
from keras_transformer.core.training.adam import FusedAdam
from keras_transformer.core.training.muon import FusedMuon, keras_muon
from keras_transformer.core.training.schedule import make_schedule


class Optimizer(NamedTuple):
    """Two classes, or functions with their arguments, that compute the same updates."""

    for_loop: type[FusedAdam]
    for_fit: Callable[..., keras.optimizers.Optimizer]


OPTIMIZERS = {  # by TrainingConfig.optimizer
    "adam": Optimizer(FusedAdam, keras.optimizers.Adam),
    "muon": Optimizer(FusedMuon, keras_muon),
}


def make_optimizer(d_model: int, config: TrainingConfig, total_steps=None) -> FusedAdam:
    """Builds the training loop's optimizer from a training configuration.

    Args:
        d_model: the width of the model, for equation 3.
        config: the optimizer, its learning rate schedule and the Adam settings.
        total_steps: the number of steps in the run, for a `decay` to zero: see make_schedule.
    """
    return OPTIMIZERS[config.optimizer].for_loop(
        **_arguments(d_model, config, total_steps),
        clip_norm=config.clip_norm,
        scale_losses=config.precision == "float16",
    )


def make_fit_optimizer(
    d_model: int, config: TrainingConfig, total_steps=None
) -> keras.optimizers.Optimizer:
    """Builds the same optimizer for `fit`; see `make_optimizer` for the arguments."""
    return OPTIMIZERS[config.optimizer].for_fit(
        **_arguments(d_model, config, total_steps), global_clipnorm=config.clip_norm or None
    )


def _arguments(d_model: int, config: TrainingConfig, total_steps) -> dict[str, Any]:
    return {
        "learning_rate": make_schedule(d_model, config, total_steps),
        "beta_1": config.adam_beta_1,
        "beta_2": config.adam_beta_2,
        "epsilon": config.adam_epsilon,
    }
