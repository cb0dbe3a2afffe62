"""What training steps add up to."""

from typing import Any, NamedTuple


class StepSums(NamedTuple):
    """Sums over the training steps since the last point of the curves.

    The values are scalars: float64 tensors within TensorFlow, float32 tensors for a single step on
    its way there, floats in a RunState. A step is skipped where its gradients are not finite; of
    such a step, only `skipped` and `skipped_in_row` count.
    """

    smoothed_loss: Any = 0.0  # label-smoothed, over target tokens without padding, in nats
    loss: Any = 0.0  # the same without label smoothing, which perplexity is computed from
    target_tokens: Any = 0.0  # without padding
    source_tokens: Any = 0.0  # without padding
    target_positions: Any = 0.0  # with padding
    source_positions: Any = 0.0  # with padding
    gradient_norm: Any = 0.0  # norm of the gradient of the mean loss over the global batch
    skipped: Any = 0.0  # number of steps that were skipped
    skipped_in_row: Any = 0.0  # no sum: how many of the latest steps were skipped, up to the last
