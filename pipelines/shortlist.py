"""Learns which target subwords may come of each source subword, from the pairs of a data directory.

IBM model 1 (Brown et al. 1993) over subwords: a target subword comes of one of the source subwords
of its sentence, and EM finds with which probability it comes of each. EOS, which ends every source,
takes the part of the empty word. A sentence's source subwords count once each.
"""

import os
from collections.abc import Iterator

import numpy as np

from keras_transformer.config import EOS_ID, PAD_ID, UNK_ID
from pipelines.datasets import damage_named, evaluation_batches
from pipelines.records import read_metadata

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
    metadata = read_metadata(data_dir)
    sizes = (metadata.source_vocab_size, metadata.vocab_size)
    sides, tokens = [], 0
    with damage_named(data_dir):
        for source, target in evaluation_batches(data_dir, "train", 25_000):
            sides.append((source.numpy(), target.numpy()))
            tokens += np.count_nonzero(sides[-1][1])
            if tokens > _SAMPLE_TOKENS:
                break
    sources = [row[row != PAD_ID] for source, _ in sides for row in source]
    targets = [row[row != PAD_ID] for _, target in sides for row in target]
    likely = likely_targets(sources, targets, *sizes)
    counts = np.bincount(np.concatenate(targets), minlength=metadata.vocab_size)
    frequent = np.argsort(-counts, kind="stable")[:ALWAYS]
    always = np.union1d([EOS_ID, UNK_ID], frequent[counts[frequent] > 0]).tolist()
    return likely, always, metadata.vocab_size


def likely_targets(
    sources: list[np.ndarray],
    targets: list[np.ndarray],
    source_vocab_size: int | None,
    vocab_size: int,
) -> list[np.ndarray]:
    """For each source id, the at most LIKELY target ids that most probably come of it.

    In a shared vocabulary (`source_vocab_size` None) itself comes before them, because names,
    numbers and bytes are copied.
    """
    occurrences = _Occurrences(sources, targets, source_vocab_size or vocab_size)
    rows: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # source id -> target ids, probabilities
    for _ in range(_ITERATIONS):
        totals = np.zeros(len(occurrences.target_ids))
        for source_id, places in occurrences:
            totals[places] += _of_places(
                rows, source_id, occurrences.target_ids[places], vocab_size
            )
        for source_id, places in occurrences:
            ids = occurrences.target_ids[places]
            shares = _of_places(rows, source_id, ids, vocab_size) / np.maximum(
                totals[places], 1e-30
            )
            counts = np.bincount(ids, shares, vocab_size)
            best = np.argsort(-counts, kind="stable")[: _KEPT * LIKELY]
            best = best[counts[best] > 0]
            rows[source_id] = best, counts[best] / counts.sum()
    nothing = np.zeros(0, int), np.zeros(0)
    found = []
    for source_id in range(source_vocab_size or vocab_size):
        ids, probabilities = rows.get(source_id, nothing)
        ids = ids[probabilities > LEAST_PROBABILITY][:LIKELY]
        if source_vocab_size is None:
            ids = np.append(source_id, ids[ids != source_id])
        found.append(ids)
    return found


def _of_places(rows: dict, source_id: int, ids: np.ndarray, vocab_size: int) -> np.ndarray:
    """The probabilities that target ids come of a source id; 1 before the first iteration."""
    if source_id not in rows:
        return np.ones(len(ids))
    table = np.zeros(vocab_size)
    table[rows[source_id][0]] = rows[source_id][1]
    return table[ids]


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
