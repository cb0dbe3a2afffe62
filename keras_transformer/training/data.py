"""The training loop's data: training batches, and data for validation."""

import dataclasses
from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class TrainingData:
    """A run's data, in batches of (source int32 [B, S], target int32 [B, T])."""

    batches: tf.data.Dataset  # endless
    # Padded lengths for XLA, ascending, the last one for the longest sentence. Without them, XLA
    # is not used.
    lengths: Sequence[int] | None = None
    validation: tf.data.Dataset | None = None  # finite
    # Called at each validation; returns scores, such as {"bleu": 31.2}, and a text to show.
    translate_sample: Callable[[keras.Model], tuple[dict[str, float], str]] | None = None
    # Called at each validation; returns pictures, uint8 [height, width, 3], by name.
    draw_sample: Callable[[keras.Model], dict[str, np.ndarray]] | None = None
