"""Learns which target subwords may come of each source subword, from the pairs of a data directory.

IBM model 1 (Brown et al. 1993) over subwords: a target subword comes of one of the source subwords
of its sentence, and EM finds with which probability it comes of each. EOS, which ends every source,
takes the part of the empty word. A sentence's source subwords count once each.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from keras_transformer.config import EOS_ID, PAD_ID, UNK_ID
from pipelines.data_set import DataSet

LIKELY = 64  # the most target subwords of a source subword
LEAST_PROBABILITY = 1e-3  # of one of them
ALWAYS = 200  # subwords that are considered for any source, the most frequent ones
# Learning takes about 200 bytes a target token of the sample, and half a minute in all.
_SAMPLE_TOKENS = 5_000_000
_ITERATIONS = 5
_KEPT = 4  # times LIKELY: what is kept of a source subword from one iteration to the next


def learn_shortlist(data_dir: str | os.PathLike) -> tuple[list[np.ndarray], list[int], int]:
    """Learns the tables of a Shortlist from the training split: (likely, always, vocab_size).

    Larger data are sampled: records are in random order, and the first five million target tokens
    are read.

    Raises:
        InputError: if the folder is not a data set, or a shard is damaged.
    """
    data = DataSet.open(data_dir)
    metadata = data.metadata
    sources: list[np.ndarray] = []
    targets: list[np.ndarray] = []
    tokens = 0
    with data.damage_named():
        for source, target in data.evaluation_batches("train", 25_000).as_numpy_iterator():
            sources += [row[row != PAD_ID] for row in source]
            targets += [row[row != PAD_ID] for row in target]
            tokens += np.count_nonzero(target != PAD_ID)
            if tokens > _SAMPLE_TOKENS:
                break
    likely = likely_targets(sources, targets, metadata.source_vocab_size, metadata.vocab_size)
    counts = np.bincount(np.concatenate(targets), minlength=metadata.vocab_size)
    frequent = np.argsort(-counts, kind="stable")[:ALWAYS]
    always = np.union1d([EOS_ID, UNK_ID], frequent[counts[frequent] > 0]).tolist()
    return likely, always, metadata.vocab_size


class Row(NamedTuple):
    """The target ids that come of one source id, the most probable first."""

    target_ids: np.ndarray
    probabilities: np.ndarray


def likely_targets(
    sources: list[np.ndarray],
    targets: list[np.ndarray],
    source_vocab_size: int | None,
    vocab_size: int,
) -> list[np.ndarray]:
    """For each source id, the at most LIKELY target ids that most probably come of it.

    In a shared vocabulary the source id itself comes before them, because names, numbers and bytes
    are copied.

    Args:
        sources: the ids of each source sentence.
        targets: the ids of each target sentence.
        source_vocab_size: ids of the source's own vocabulary; None for a shared one.
        vocab_size: ids of the target's vocabulary.
    """
    is_shared = source_vocab_size is None
    num_sources = vocab_size if is_shared else source_vocab_size
    table = translation_table(sources, targets, num_sources, vocab_size)
    likely = []
    for source_id in range(num_sources):
        ids = np.zeros(0, int)
        if source_id in table:
            row = table[source_id]
            ids = row.target_ids[row.probabilities > LEAST_PROBABILITY][:LIKELY]
        if is_shared:
            ids = np.append(source_id, ids[ids != source_id])
        likely.append(ids)
    return likely


def translation_table(
    sources: list[np.ndarray], targets: list[np.ndarray], num_sources: int, vocab_size: int
) -> dict[int, Row]:
    """Learns of each source id which target ids come of it: IBM model 1.

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
    """One iteration of EM: the table that is expected with the probabilities of `table`."""
    totals = np.zeros(len(occurrences.target_ids))
    for source_id, places in occurrences:
        ids = occurrences.target_ids[places]
        totals[places] += _probabilities(table, source_id, ids, vocab_size)
    found = {}
    for source_id, places in occurrences:
        ids = occurrences.target_ids[places]
        shares = _probabilities(table, source_id, ids, vocab_size)
        shares = shares / np.maximum(totals[places], 1e-30)
        counts = np.bincount(ids, shares, vocab_size)
        best = np.argsort(-counts, kind="stable")[: _KEPT * LIKELY]
        best = best[counts[best] > 0]
        found[source_id] = Row(best, counts[best] / counts.sum())
    return found


def _probabilities(
    table: dict[int, Row], source_id: int, ids: np.ndarray, vocab_size: int
) -> np.ndarray:
    """The probabilities that target ids come of a source id; 1 before the first iteration."""
    if source_id not in table:
        return np.ones(len(ids))
    probabilities = np.zeros(vocab_size)
    probabilities[table[source_id].target_ids] = table[source_id].probabilities
    return probabilities[ids]


class _Occurrences:
    """For each source id, the places in `target_ids` that belong to sentences that contain it."""

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
