"""Batches of sentences of similar length."""

from collections.abc import Iterator, Sequence

from keras_transformer.search.engine import Rows

# A row counts as at least this many tokens: however short, its beams take memory.
MIN_ROW_TOKENS = 32
# Batches with fewer tokens are not split further among streams.
MIN_BATCH_TOKENS = 512


def longer_lengths(sources: Rows, targets: Rows) -> list[int]:
    """Returns the length of the longer side of each pair."""
    return [max(len(one), len(other)) for one, other in zip(sources, targets, strict=True)]


def length_batches(
    lengths: Sequence[int], batch_tokens: int, parts: int = 1
) -> Iterator[list[int]]:
    """Groups sentences into batches of similar length, as indices into `lengths` (in tokens).

    The longest come first, so that a batch too large for memory fails at once and the remaining
    time is not underestimated.

    Args:
        batch_tokens: limit on sentences x longest length in a batch, except for a single longer
            one.
        parts: minimum number of batches, if there are enough tokens.
    """
    share = sum(max(length, MIN_ROW_TOKENS) for length in lengths) // parts
    batch_tokens = min(batch_tokens, max(share, MIN_BATCH_TOKENS))
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    start = 0
    while start < len(order):
        rows = max(batch_tokens // max(lengths[order[start]], MIN_ROW_TOKENS), 1)
        yield order[start : start + rows]
        start += rows
