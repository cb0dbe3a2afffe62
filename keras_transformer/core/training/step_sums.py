"""Sums over training steps."""

from typing import NamedTuple


class StepSums(NamedTuple):
    """Sums over the training steps since the last point on the curves.

    The values are floats in a RunState and in files. Within TensorFlow they are scalar tensors:
        float32 for a single step, float64 for sums. A step with non-finite gradients is skipped; it
        counts only in `skipped` and `skipped_in_row`.
    """

    smoothed_loss: float = 0.0  # label-smoothed, over target tokens without padding, in nats
    loss: float = 0.0  # the same without label smoothing, for perplexity
    target_tokens: float = 0.0  # without padding
    source_tokens: float = 0.0  # without padding
    target_positions: float = 0.0  # with padding
    source_positions: float = 0.0  # with padding
    gradient_norm: float = 0.0  # norm of the gradient of the mean loss over the global batch
    skipped: float = 0.0  # number of skipped steps
    skipped_in_row: float = 0.0  # not a sum: consecutive skipped steps, up to the last one
