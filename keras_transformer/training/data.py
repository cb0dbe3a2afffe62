"""What the training loop is given to read and to try the model on."""

import dataclasses
from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.training.buckets import Buckets


@dataclasses.dataclass(frozen=True)
class TrainingData:
    """What the loop reads.

    Fields:
        batches: an endless tf.data.Dataset of (source int32 [B, S], target int32 [B, T]).
        validation: a finite one, or None.
        translate_sample: called with the model at each validation; returns scalars (such as
            {"bleu": 31.2}) and a text to show, or is None.
        draw_sample: called likewise; returns pictures uint8 [Y, X, 3] by name, or is None.
        buckets: the shapes that XLA compiles training steps for; None leaves XLA out.
    """

    batches: tf.data.Dataset
    validation: tf.data.Dataset | None = None
    translate_sample: Callable[[keras.Model], tuple[dict[str, float], str]] | None = None
    draw_sample: Callable[[keras.Model], dict[str, np.ndarray]] | None = None
    buckets: Buckets | None = None
