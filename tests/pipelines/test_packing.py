"""Packed batches: rows, shapes, epochs, and iterators that are saved and restored."""

import itertools
import os
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

from pipelines.batches import batching
from pipelines.batches.packing import (
    PREFETCHED_BATCHES,
    BatchShape,
    Lengths,
    batch_shape,
    pack,
    packed_epochs,
)
from pipelines.prepare.metadata import SplitInfo
from tests.pipelines.test_batching import write

ROW = Lengths(64, 64)


def lengths_of_sentences(count, seed=0):
    """Random lengths like those of the 29,000 captions of Multi30k: about 15 ids, up to 50."""
    rng = np.random.default_rng(seed)
    source = np.clip(rng.lognormal(2.65, 0.33, count), 4, 50).astype(int)
    target = np.clip(source * rng.lognormal(0.02, 0.22, count), 3, 54).astype(int)
    return list(map(Lengths, source.tolist(), target.tolist()))


def rows_of(pairs, packed, starts):
    """The lengths of the pairs in each row."""
    bounds = zip(starts, [*starts[1:], len(packed)], strict=True)
    return [[pairs[index] for index in packed[start:end]] for start, end in bounds]


def test_rows_by_hand():
    pairs = [Lengths(4, 5), Lengths(6, 5), Lengths(9, 9), Lengths(10, 10), Lengths(3, 2)]
    for seed in range(5):
        packed, starts = pack(pairs, Lengths(10, 10), seed)
        rows = {frozenset(row) for row in rows_of(range(5), packed, starts)}
        assert rows == {frozenset({0, 1}), frozenset({2}), frozenset({3}), frozenset({4})}
    assert pack([], ROW, 1) == ([], [])


@pytest.mark.parametrize("count", [1, 30, 3000])
def test_each_pair_is_in_one_row_and_rows_hold_them(count):
    pairs = lengths_of_sentences(count)
    packed, starts = pack(pairs, ROW, seed=1)
    assert sorted(packed) == list(range(count))
    for row in rows_of(pairs, packed, starts):
        assert row and ROW.holds(Lengths(*(sum(side) for side in zip(*row, strict=True))))
    assert pack(pairs, ROW, seed=1) == (packed, starts)
    assert count == 1 or pack(pairs, ROW, seed=2) != (packed, starts)


def test_few_places_stay_empty():
    pairs = lengths_of_sentences(4000)
    info = SplitInfo.from_lengths(pairs, {})
    for tokens_per_batch in (3000, 25000):
        shape = batch_shape(info, tokens_per_batch)
        row = Lengths(shape.source_length, shape.target_length)
        _, starts = pack(pairs, row, seed=1)
        rows = -(-len(starts) // shape.rows) * shape.rows  # the last batch is full, too
        places = rows * sum(row)
        assert (info.source_tokens + info.target_tokens) / places > 0.97


def split_of(source_tokens, target_tokens, longest_source, longest_target, pairs=1000):
    return SplitInfo(
        pairs=pairs,
        dropped={},
        source_tokens=source_tokens,
        target_tokens=target_tokens,
        longest_source=longest_source,
        longest_target=longest_target,
        length_histogram={},
    )


@pytest.mark.parametrize(
    ("split", "tokens_per_batch", "parts", "shape"),
    [
        # 1,000,000 tokens need 15,625 rows of 64, and 1% more: 41 batches of 385 rows.
        ((1_000_000, 1_000_000, 50, 50), 25_000, 1, (385, 64, 64)),
        ((1_000_000, 1_000_000, 50, 50), 25_000, 8, (392, 64, 64)),
        # The sides have the ratio 0.8: 80 is the first length where both are multiples of 8.
        ((800_000, 1_000_000, 50, 50), 25_000, 1, (308, 64, 80)),
        ((1_000_000, 800_000, 50, 50), 25_000, 1, (308, 80, 64)),
        # One sentence has 200 tokens.
        ((1_000_000, 1_000_000, 200, 50), 25_000, 1, (124, 200, 200)),
        # All of the data fits into one batch, and all of the batch into a few tokens.
        ((1_000, 1_000, 50, 50), 25_000, 1, (16, 64, 64)),
        ((1_000, 1_000, 9, 9), 16, 1, (1, 16, 16)),
    ],
)
def test_shapes_by_hand(split, tokens_per_batch, parts, shape):
    assert batch_shape(split_of(*split), tokens_per_batch, parts) == shape


def test_places_for_codes_count_as_tokens_of_the_target():
    split = split_of(16_000, 15_000, 10, 16, pairs=1000)
    assert batch_shape(split, 16, extra_target=1) == (1, 24, 24)


SHAPE = BatchShape(8, 48, 40)


def corpus(count):
    """Pairs that end in EOS, each made unique by its first source id."""
    rng = np.random.default_rng(3)
    pairs = []
    for number, lengths in enumerate(lengths_of_sentences(count)):
        source, target = (rng.integers(4, 99, min(length, 30)).tolist() for length in lengths)
        pairs.append(([1000 + number, *source[1:], 2], [*target, 2]))
    return pairs


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Shards of 300 pairs, in two chunks."""
    monkeypatch.setattr(batching, "_CHUNK_PAIRS", 150)
    pairs = corpus(300)
    return [write(tmp_path / f"{i}", pairs[i::4]) for i in range(4)]


def sentences(row):
    """Splits a packed row after each EOS, and checks that only padding follows the last."""
    *parts, rest = np.split(row, np.flatnonzero(row == 2) + 1)
    assert not rest.any()
    return [tuple(part.tolist()) for part in parts]


def epoch_of(iterator, pairs):
    """The pairs of each batch in the next epoch."""
    batches, count = [], 0
    while count < pairs:
        source, target = (side.numpy() for side in next(iterator))
        assert source.shape == (SHAPE.rows, SHAPE.source_length) and source.dtype == np.int32
        assert target.shape == (SHAPE.rows, SHAPE.target_length) and target.dtype == np.int32
        pairs_of_batch = []
        for source_row, target_row in zip(source, target, strict=True):
            sides = sentences(source_row), sentences(target_row)
            pairs_of_batch += list(zip(*sides, strict=True))
        batches.append(pairs_of_batch)
        count += len(pairs_of_batch)
    assert count == pairs
    return batches


def test_epochs_hold_each_pair_once_in_other_batches(files):
    expected = Counter((tuple(source), tuple(target)) for source, target in corpus(300))
    iterator = iter(packed_epochs(files, 300, SHAPE, seed=3))
    epochs = [epoch_of(iterator, 300) for _ in range(2)]
    for batches in epochs:
        assert Counter(itertools.chain(*batches)) == expected
    first, second = ({frozenset(batch) for batch in batches} for batches in epochs)
    assert not first & second
    again = iter(packed_epochs(files, 300, SHAPE, seed=3))
    assert epoch_of(again, 300) == epochs[0]
    assert epoch_of(iter(packed_epochs(files, 300, SHAPE, seed=4)), 300) != epochs[0]


def test_targets_have_places_for_codes(files):
    iterator = iter(packed_epochs(files, 300, SHAPE, seed=3, extra_target=1))
    found = Counter(itertools.chain(*epoch_of(iterator, 300)))
    assert found == Counter((tuple(source), (0, *target)) for source, target in corpus(300))


@pytest.mark.parametrize("taken", [3, 20])  # in the first epoch and in the second
def test_a_restored_iterator_continues_exactly(files, tmp_path, taken):
    def pipeline():
        return iter(
            packed_epochs(files, 300, SHAPE, seed=5).apply(batching.prefetch(PREFETCHED_BATCHES))
        )

    iterator = pipeline()
    for _ in range(taken):
        next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).save(os.fspath(tmp_path / "saved"))
    expected = [next(iterator) for _ in range(30)]
    fresh = pipeline()
    tf.train.Checkpoint(iterator=fresh).restore(path)
    for batch in expected:
        for wanted, got in zip(batch, next(fresh), strict=True):
            np.testing.assert_array_equal(wanted, got)
