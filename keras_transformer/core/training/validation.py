"""Validation during training, which changes nothing that is saved."""

import math

import tensorflow as tf

from keras_transformer.core.training.data import TrainingData
from keras_transformer.core.training.metrics import held_out_perplexity
from keras_transformer.core.training.step import TrainingStep


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
