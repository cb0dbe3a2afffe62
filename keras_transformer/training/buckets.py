"""The fixed set of batch shapes that XLA compiles training steps for.

XLA compiles once for every shape, for seconds to minutes each. So batches are padded to one of a
few shapes: for each of the lengths that batches are cut by, one number of rows, and this length for
both sides.
"""

import bisect
from collections.abc import Sequence

import tensorflow as tf

Shape = tuple[int, int]  # rows, length of both sides


class Buckets:
    """The shapes, and padding to them.

    Args:
        lengths: rising; the last is at least that of every sentence.
        tokens_per_batch: bounds rows x padded length of a batch, on either side.
    """

    def __init__(self, lengths: Sequence[int], tokens_per_batch: int):
        self.lengths = list(lengths)
        self.rows = [tokens_per_batch // length for length in self.lengths]

    def shapes(self, multiple: int = 1) -> list[Shape]:
        """All shapes, with rows rounded up to a multiple: of the parts that a batch is cut in."""
        rounded = [-(-rows // multiple) * multiple for rows in self.rows]
        return list(zip(rounded, self.lengths, strict=True))

    def described(self, multiple: int = 1) -> str:
        """All shapes, to be printed."""
        named = [f"{rows}x{length}" for rows, length in self.shapes(multiple)]
        return f"{len(named)} shapes, rows x length of both sides: {' '.join(named)}"

    def pad(self, source: tf.Tensor, target: tf.Tensor, multiple: int = 1):
        """Pads a batch with zeros, to the smallest shape that holds it.

        Args:
            source, target: int32 [b, S] and [b, T], eager.
            multiple: as in `shapes`.

        Returns:
            source and target, int32 [B, L] both, with (B, L) one of `shapes(multiple)`.
        """
        longer = max(source.shape[1], target.shape[1])
        rows, length = self.shapes(multiple)[bisect.bisect_left(self.lengths, longer)]
        sides = (source, target)
        return [tf.pad(s, [[0, rows - s.shape[0]], [0, length - s.shape[1]]]) for s in sides]
