import itertools
import os
import shutil
from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

from pipelines.batches import batching

LONGEST = 40
BUDGET = 120


def corpus(pairs, seed=0):
    """Random pairs, each made unique by its first source id."""
    generator = np.random.default_rng(seed)
    sentences = []
    for number in range(pairs):
        lengths = generator.integers(1, LONGEST, size=2)
        source, target = (generator.integers(4, 99, size=n).tolist() for n in lengths)
        sentences.append(([1000 + number, *source[1:], 2][:LONGEST], [*target, 2]))
    return sentences


def write(path, pairs):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for source, target in pairs:
            features = {
                name: tf.train.Feature(int64_list=tf.train.Int64List(value=ids))
                for name, ids in (("source", source), ("target", target))
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())
    return str(path)


@pytest.fixture
def chunked(monkeypatch):
    """Chunks small enough for a small corpus to have several."""
    monkeypatch.setattr(batching, "_CHUNK_PAIRS", 150)


@pytest.fixture
def files(tmp_path):
    pairs = corpus(400)
    return [write(tmp_path / f"{i}", pairs[i::6]) for i in range(6)]


def rows(batches):
    """The unpadded pairs of batches, as tuples."""
    return [
        (tuple(s[s != 0].tolist()), tuple(t[t != 0].tolist()))
        for source, target in batches
        for s, t in zip(source, target, strict=True)
    ]


def epoch_of(iterator, pairs):
    """Batches of the next epoch, which must end exactly at a batch's end."""
    batches, count = [], 0
    while count < pairs:
        batches.append([side.numpy() for side in next(iterator)])
        count += len(batches[-1][0])
    assert count == pairs
    return batches


def test_length_lattice_by_hand():
    assert batching.length_lattice(9) == [2, 4, 6, 8, 9]
    assert batching.length_lattice(2) == [2]
    assert batching.length_lattice(1) == [1]
    evens = list(range(2, 33, 2))
    assert batching.length_lattice(90) == [*evens, 36, 40, 44, 48, 52, 60, 68, 80, 88, 90]


def test_epochs_hold_each_pair_once_within_the_budget(files, chunked):
    expected = Counter((tuple(s), tuple(t)) for s, t in corpus(400))
    lattice = set(batching.length_lattice(LONGEST))
    iterator = iter(batching.epochs(files, 400, LONGEST, BUDGET, seed=3))
    orders, members = [], []
    for _ in range(3):
        batches = epoch_of(iterator, 400)
        assert Counter(rows(batches)) == expected
        for source, target in batches:
            assert source.dtype == target.dtype == np.int32
            assert source.size <= BUDGET and target.size <= BUDGET
            assert source.shape[1] in lattice and target.shape[1] in lattice
        orders.append([row[0][0] for row in rows(batches)])
        members.append({frozenset(source[:, 0].tolist()) for source, _ in batches})
    assert orders[0] != orders[1] != orders[2] != orders[0]
    # Other batches, too, not only another order of the same ones.
    assert len(members[0] & members[1]) < len(members[0]) / 2


def taken(dataset):
    return list(dataset.as_numpy_iterator())


def test_epochs_depend_on_the_seed_alone(files, chunked):
    first, again, other = (
        rows(taken(batching.epochs(files, 400, LONGEST, BUDGET, seed).take(90)))
        for seed in (7, 7, 8)
    )
    assert first == again != other


def test_one_pass_repeats_itself_and_loses_nothing(files, chunked):
    passes = [rows(taken(batching.one_pass(files, 400, LONGEST, BUDGET))) for _ in range(2)]
    assert passes[0] == passes[1]
    assert Counter(passes[0]) == Counter((tuple(s), tuple(t)) for s, t in corpus(400))


def test_an_empty_split_has_no_batches(tmp_path):
    assert list(batching.one_pass([write(tmp_path / "none", [])], 0, 1, 10)) == []


def test_cut_by_hand():
    # Padded: (2, 2) (4, 2) (2, 4) (6, 4) (4, 4); budget 12 has 2 rows of 6, 3 of 4, 6 of 2.
    source = tf.constant([1, 3, 2, 5, 4], tf.int64)
    target = tf.constant([2, 2, 3, 3, 4], tf.int64)
    order, starts = batching.cut(source, target, [2, 4, 6], 12, tf.constant([1, 2]))
    # The longest first; then, of length 4, from the longer target to the longer source.
    assert order.numpy().tolist() == [3, 2, 4, 1, 0]
    # Row 0 lets 2 in; then a row of length 4 lets 3 in.
    assert starts.numpy().tolist() == [0, 2, 5]


def test_cut_keeps_the_shorter_side_narrow():
    generator = np.random.default_rng(1)
    source = generator.integers(2, 20, size=2000)
    target = np.clip(source + generator.integers(-4, 5, size=2000), 2, 20)
    lattice = batching.length_lattice(20)
    order, starts = (
        tensor.numpy()
        for tensor in batching.cut(
            tf.constant(source), tf.constant(target), lattice, 400, tf.constant([0, 0])
        )
    )
    for lengths in (source, target):
        batches = np.split(lengths[order], starts[1:-1])
        padded = sum(len(batch) * batch.max() for batch in batches)
        assert lengths.sum() / padded > 0.9


def test_pad_rounds_up_to_the_lattice():
    sentences = tf.ragged.constant([[5], [5, 6, 7], [8, 9]], tf.int32)
    padded = batching.pad(sentences, tf.constant([1, 3]), [2, 4])
    np.testing.assert_array_equal(padded, [[5, 6, 7, 0], [8, 9, 0, 0]])
    short = batching.pad(sentences, tf.constant([0, 1]), [2, 4])
    np.testing.assert_array_equal(short, [[5, 0]])


def test_the_rows_of_all_workers_are_an_epoch(files, chunked):
    """Every worker reads all batches; of each, row n is for replica n mod R."""
    shares, replicas = [], 3
    for replica in range(replicas):
        iterator = iter(batching.epochs(files, 400, LONGEST, BUDGET, seed=3))
        batches = epoch_of(iterator, 400)
        shares.append(rows([[side[replica::replicas] for side in batch] for batch in batches]))
    assert all(shares)
    assert Counter(itertools.chain(*shares)) == Counter(
        (tuple(s), tuple(t)) for s, t in corpus(400)
    )


@pytest.mark.parametrize("steps", [5, 60])  # in the first epoch and in the second
def test_a_restored_iterator_continues_exactly(files, chunked, tmp_path, steps):
    def pipeline(files):
        dataset = batching.epochs(files, 400, LONGEST, 400, seed=5)
        return iter(dataset.apply(batching.prefetch()))

    iterator = pipeline(files)
    for _ in range(steps):
        next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).save(os.fspath(tmp_path / "saved"))
    expected = [next(iterator) for _ in range(100)]

    (tmp_path / "moved").mkdir()
    fresh = pipeline([os.fspath(shutil.move(file, tmp_path / "moved")) for file in files])
    tf.train.Checkpoint(iterator=fresh).restore(path)
    for pair in expected:
        for wanted, got in zip(pair, next(fresh), strict=True):
            np.testing.assert_array_equal(wanted, got)


def test_a_saved_iterator_holds_the_batches_made_ahead_and_no_more(tmp_path):
    """The size of a checkpoint does not grow with the data."""

    def saved(pairs):
        folder = tmp_path / str(pairs)
        folder.mkdir()
        file = write(folder / "shard", corpus(pairs))
        dataset = batching.epochs([file], pairs, LONGEST, 200, seed=5)
        iterator = iter(dataset.apply(batching.prefetch()))
        next(iterator)
        path = tf.train.Checkpoint(iterator=iterator).save(os.fspath(folder / "saved"))
        return os.path.getsize(path + ".data-00000-of-00001"), os.path.getsize(file)

    (small, few), (large, many) = saved(300), saved(3000)
    assert many - few > 200_000
    # Batches, sides, positions, bytes; and as much again for what is said of each tensor.
    assert abs(large - small) < 2 * (8 * 2 * 200 * 4)
