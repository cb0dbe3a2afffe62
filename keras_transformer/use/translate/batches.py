"""Batches of sentences of similar length."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from keras_transformer.core.search.engines.engine import Rows
from keras_transformer.core.search.engines.streams import in_streams
from keras_transformer.support.progress import progress_bar

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


def in_batches(
    function: Callable[[list[int]], Sequence],
    lengths: Sequence[int],
    batch_tokens: int,
    streams: int,
    progress: bool,
) -> list:
    """Calls a function for batches of similar length, several of them in parallel.

    Args:
        function: takes the indices of a batch's sentences, and returns as many results.
        lengths: of all sentences, in tokens.
        batch_tokens: see `length_batches`.
        streams: the number of batches in parallel; see search/engines/streams.py.
        progress: whether to show a progress bar on stderr.

    Returns:
        The result for each sentence.
    """
    batches = list(length_batches(lengths, batch_tokens, streams))
    ordered: list[Any] = [None] * len(lengths)
    with progress_bar(total=len(lengths), unit=" sentences", disable=not progress) as bar:
        results = in_streams(function, batches, streams)
        for batch, batch_results in zip(batches, results, strict=True):
            for index, result in zip(batch, batch_results, strict=True):
                ordered[index] = result
            bar.update(len(batch))
    return ordered
