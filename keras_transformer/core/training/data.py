"""The training loop's data, and the validation with it, which changes nothing that is saved."""

import dataclasses
import math
from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.core.training.metrics import held_out_perplexity
from keras_transformer.core.training.step import TrainingStep


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


def validate(
    training_step: TrainingStep, data: TrainingData, step: int, histograms: bool
) -> dict[str, float]:
    """Evaluates the model, and writes samples and pictures to TensorBoard.

    Args:
        training_step: the training step, with the model.
        data: its held-out batches and samples are used, if any.
        step: the number of steps so far, for the summaries.
        histograms: whether to write histograms of all parameters.

    Returns:
        {"loss" (without label smoothing, nats per token), "perplexity"} on the held-out batches,
        and the scores of the sample. If the loss is not finite, nothing else is measured, as such a
        model gives no answers.
    """
    measured = {}
    if data.validation is not None:
        losses = (
            (training_step.held_out_loss(source, target), target)
            for source, target in data.validation
        )
        held_out = held_out_perplexity(losses)
        measured["loss"] = held_out["cross_entropy"]
        measured["perplexity"] = held_out["perplexity"]
        if not math.isfinite(measured["loss"]):
            return measured
    if data.translate_sample is not None:
        scores, text = data.translate_sample(training_step.model)
        measured.update(scores)
        tf.summary.text("validation/translations", text, step=step)
    if data.draw_sample is not None:
        pictures = data.draw_sample(training_step.model)
        for name, picture in pictures.items():
            tf.summary.image(f"attention/{name}", picture[None], step=step)
    if histograms:
        for variable in training_step.model.trainable_variables:
            values = tf.convert_to_tensor(variable.value)
            tf.summary.histogram(variable.path, values, step=step)
    return measured
