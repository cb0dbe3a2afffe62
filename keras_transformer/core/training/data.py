"""The training loop's data: training batches, and data for validation."""

import dataclasses
from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class TrainingData:
    """A run's data, in batches of (source int32 [B, S], target int32 [B, T])."""

    batches: tf.data.Dataset  # endless
    longest: int | None = None  # length of the longest sentence, in ids; None if unknown
    validation: tf.data.Dataset | None = None  # finite
    # Called at each validation; returns scores, such as {"bleu": 31.2}, and a text to show.
    translate_sample: Callable[[keras.Model], tuple[dict[str, float], str]] | None = None
    # Called at each validation; returns pictures, uint8 [height, width, 3], by name.
    draw_sample: Callable[[keras.Model], dict[str, np.ndarray]] | None = None
    # Whether all batches have one shape, and several sentences in a row (model/packing.py). XLA
    # then compiles the step.
    packed: bool = False
    target_tokens: int | None = None  # in one pass over the training data; None if unknown

    @property
    def iterator_name(self) -> str:
        """The name of the position in the batches in a checkpoint.

        Packed batches have another one, so that a run can begin without a GPU, and go on with one.
        """
        return "packed_iterator" if self.packed else "iterator"
