"""IBM model 1 (Brown et al. 1993): the probability that a target token translates a source token.

Each target token in a sentence comes from one of its source tokens, and EM estimates the
probability of each pair. A source token that occurs several times in a sentence counts once.
Learning takes about 200 bytes per target token, and half a minute for five million of them.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

_ITERATIONS = 5
_CANDIDATES = 256  # target ids kept per source id between iterations


class Row(NamedTuple):
    """The translations of one source id, most probable first."""

    target_ids: np.ndarray
    probabilities: np.ndarray


def translation_table(
    sources: list[np.ndarray], targets: list[np.ndarray], num_sources: int, vocab_size: int
) -> dict[int, Row]:
    """Estimates the translations of each source id.

    Args:
        sources: the ids of each source sentence.
        targets: the ids of each target sentence.
        num_sources: the number of different source ids.
        vocab_size: the number of different target ids.

    Returns:
        Source id -> its row, for the ids that occur.
    """
    occurrences = _Occurrences(sources, targets, num_sources)
    table: dict[int, Row] = {}
    for _ in range(_ITERATIONS):
        table = _iterate(occurrences, table, vocab_size)
    return table


def _iterate(occurrences: "_Occurrences", table: dict[int, Row], vocab_size: int) -> dict[int, Row]:
    """One iteration of EM, which starts from the probabilities in `table`."""
    totals = np.zeros(len(occurrences.target_ids))
    for source_id, positions in occurrences:
        ids = occurrences.target_ids[positions]
        totals[positions] += _probabilities(table, source_id, ids, vocab_size)
    new_table = {}
    for source_id, positions in occurrences:
        ids = occurrences.target_ids[positions]
        shares = _probabilities(table, source_id, ids, vocab_size)
        shares = shares / np.maximum(totals[positions], 1e-30)
        counts = np.bincount(ids, shares, vocab_size)
        present = np.flatnonzero(counts)
        best = present[np.argsort(-counts[present], kind="stable")[:_CANDIDATES]]
        new_table[source_id] = Row(best, counts[best] / counts.sum())
    return new_table


def _probabilities(
    table: dict[int, Row], source_id: int, ids: np.ndarray, vocab_size: int
) -> np.ndarray:
    """The probabilities of target ids, given a source id; 1 before the first iteration."""
    if source_id not in table:
        return np.ones(len(ids))
    probabilities = np.zeros(vocab_size)
    probabilities[table[source_id].target_ids] = table[source_id].probabilities
    return probabilities[ids]


class _Occurrences:
    """For each source id, the positions in `target_ids` of the sentences that contain it."""

    def __init__(self, sources: list[np.ndarray], targets: list[np.ndarray], num_ids: int):
        self.target_ids = np.concatenate(targets)
        self._lengths = np.array([len(row) for row in targets])
        self._starts = np.cumsum(self._lengths) - self._lengths
        sentences = np.repeat(np.arange(len(sources)), [len(row) for row in sources])
        # Sorted by id, then by sentence, each pair once.
        keys = np.unique(np.concatenate(sources).astype(np.int64) * len(sources) + sentences)
        ids, self._sentences = np.divmod(keys, len(sources))
        self._bounds = np.searchsorted(ids, np.arange(num_ids + 1))

    def __iter__(self) -> Iterator[tuple[int, np.ndarray]]:
        for source_id in np.flatnonzero(np.diff(self._bounds)).tolist():
            sentences = self._sentences[self._bounds[source_id] : self._bounds[source_id + 1]]
            lengths = self._lengths[sentences]
            offsets = self._starts[sentences] - (np.cumsum(lengths) - lengths)
            yield source_id, np.repeat(offsets, lengths) + np.arange(lengths.sum())
