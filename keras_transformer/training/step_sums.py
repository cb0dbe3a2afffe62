"""The sums over training steps."""

from typing import NamedTuple


class StepSums(NamedTuple):
    """Sums over the training steps since the last point of the curves.

    The values are floats in a RunState and in files. Within TensorFlow they are scalar tensors:
    float32 for a single step, float64 for sums. A step is skipped if its gradients are not finite;
    it counts in `skipped` and `skipped_in_row` alone.
    """

    smoothed_loss: float = 0.0  # label-smoothed, over target tokens without padding, in nats
    loss: float = 0.0  # the same without label smoothing, which perplexity is computed from
    target_tokens: float = 0.0  # without padding
    source_tokens: float = 0.0  # without padding
    target_positions: float = 0.0  # with padding
    source_positions: float = 0.0  # with padding
    gradient_norm: float = 0.0  # norm of the gradient of the mean loss over the global batch
    skipped: float = 0.0  # number of steps that were skipped
    skipped_in_row: float = 0.0  # no sum: how many of the latest steps were skipped, up to the last
