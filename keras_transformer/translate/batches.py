"""Batches of sentences of similar length."""

from collections.abc import Iterator, Sequence

from keras_transformer.search.engine import Rows

# A row counts as at least this many tokens of a batch: however short, its beams take memory.
MIN_ROW_TOKENS = 32
# Batches of fewer tokens than this are not divided further among streams.
MIN_BATCH_TOKENS = 512


def longer_lengths(sources: Rows, targets: Rows) -> list[int]:
    """The length of the longer side of each pair."""
    return [max(len(one), len(other)) for one, other in zip(sources, targets, strict=True)]


def length_batches(
    lengths: Sequence[int], batch_tokens: int, parts: int = 1
) -> Iterator[list[int]]:
    """Cuts sentences into batches of similar length, as indices into their `lengths` in tokens.

    The longest come first, so that a batch too large for memory fails at once and the time left is
    not underestimated.

    Args:
        batch_tokens: bounds sentences x longest of a batch, except for a sentence longer itself.
        parts: how many batches there should be at least, where there are enough tokens.
    """
    share = sum(max(length, MIN_ROW_TOKENS) for length in lengths) // parts
    batch_tokens = min(batch_tokens, max(share, MIN_BATCH_TOKENS))
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    start = 0
    while start < len(order):
        rows = max(batch_tokens // max(lengths[order[start]], MIN_ROW_TOKENS), 1)
        yield order[start : start + rows]
        start += rows
