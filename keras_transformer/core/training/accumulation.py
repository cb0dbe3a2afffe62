"""Gradient accumulation: the gradient over many rows in the memory of a few."""

from collections.abc import Callable

import tensorflow as tf


def accumulate_gradients(
    gradients_of: Callable, source: tf.Tensor, target: tf.Tensor, tokens: tf.Tensor, parts: int
):
    """Sums losses and gradients over parts of a batch, computed one after another.

    Row n belongs to part n mod `parts`.

    Args:
        gradients_of: a function of (source, target, tokens) that returns a nested structure of
            tensors, as in TrainingStep: sums over the given rows.
        source: int32 [B, S].
        target: int32 [B, T].
        tokens: float32 scalar, passed through: the divisor of all gradients.
        parts: 2 or more.

    Returns:
        The structure from `gradients_of`, summed over the parts.
    """

    def gradients_of_part(number):
        return gradients_of(source[number::parts], target[number::parts], tokens)

    def is_part(number, total):
        return number < parts

    def add_part(number, total):
        return number + 1, tf.nest.map_structure(tf.add, total, gradients_of_part(number))

    first = gradients_of_part(0)
    _, total = tf.while_loop(is_part, add_part, (tf.constant(1), first))
    return total
