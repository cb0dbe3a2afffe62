"""The fixed set of batch shapes that XLA compiles training steps for.

XLA compiles once for every shape, for seconds to minutes each. So batches are padded to a few
shapes: both sides to one of the lengths that batches are cut by, and rows to one number for each.
"""

import bisect
from collections.abc import Sequence

import tensorflow as tf

Shape = tuple[int, int]  # rows, length of both sides


def bucket_shapes(lengths: Sequence[int], tokens_per_batch: int, parts: int = 1) -> list[Shape]:
    """The shapes for rising lengths, of which the last is at least that of every sentence.

    tokens_per_batch bounds rows x length, and rows are rounded up to a multiple of `parts`.
    """
    return [(-(-(tokens_per_batch // length) // parts) * parts, length) for length in lengths]


def pad_to_bucket(shapes: Sequence[Shape], source: tf.Tensor, target: tf.Tensor) -> list[tf.Tensor]:
    """Pads an eager batch, int32 [b, S] and [b, T], to [B, L], the smallest shape that holds it."""
    longer = max(source.shape[1], target.shape[1])
    rows, length = shapes[bisect.bisect_left(shapes, longer, key=lambda shape: shape[1])]
    sides = (source, target)
    return [tf.pad(s, [[0, rows - s.shape[0]], [0, length - s.shape[1]]]) for s in sides]
