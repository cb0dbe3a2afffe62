import itertools
import os
import resource
from collections import Counter

import pytest
import tensorflow as tf

from pipelines.prepare import sharding
from pipelines.prepare.sharding import Sharding, serialized_example
from tests.data_folders import interrupt


def numbered(begin, end):
    return [([number + 4, 2], [number + 5, 9, 2]) for number in range(begin, end)]


def stored(path):
    """The pairs of a shard, in order."""
    examples = [
        tf.train.Example.FromString(record.numpy()) for record in tf.data.TFRecordDataset(str(path))
    ]
    sides = ("source", "target")
    return [
        tuple(list(example.features.feature[side].int64_list.value) for side in sides)
        for example in examples
    ]


@pytest.fixture
def small(monkeypatch):
    """Shards small enough for a small corpus to have several."""
    monkeypatch.setattr(sharding, "_PAIRS_PER_SHARD", 100)


def write(folder, blocks, seed=1):
    """Writes 300 pairs in blocks of 60, in the order given."""
    folder.mkdir(exist_ok=True)
    split = Sharding(folder, "train", 300, seed)
    for number in blocks:
        split.write_block(number, iter(numbered(60 * number, 60 * number + 60)), {"blank": number})
    return split


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.glob("train-*")}


def test_pairs_are_shuffled_over_shards_and_within(any_folder, small):
    info = write(any_folder, range(5)).finish()
    assert info.pairs == 300 and info.dropped == {"blank": 0 + 1 + 2 + 3 + 4}
    assert (info.source_tokens, info.target_tokens, info.longest) == (600, 900, 3)
    assert list(info.shards) == [f"train-0000{i}-of-00003.tfrecord" for i in range(3)]
    shards = [stored(any_folder / name) for name in info.shards]
    assert sorted(itertools.chain(*shards)) == sorted(numbered(0, 300))
    for name, shard in zip(info.shards, shards, strict=True):
        assert (any_folder / name).stat().st_size == info.shards[name]
        assert 70 < len(shard) < 130
        numbers = [source[0] - 4 for source, _ in shard]
        # Of a random order, one place in two rises (standard deviation 3 of 100 places), and of
        # each block comes about a third.
        assert 0.35 < sum(a < b for a, b in itertools.pairwise(numbers)) / len(numbers) < 0.65
        assert all(2 < count < 42 for count in Counter(n // 60 for n in numbers).values())
    assert {path.name for path in any_folder.iterdir()} == set(info.shards)  # no block is left


def test_shards_depend_on_the_seed_and_not_on_which_block_came_first(any_folder, small):
    orders = {"a": range(5), "b": [3, 0, 4, 1, 2]}
    for name, order in orders.items():
        write(any_folder / name, order).finish()
    write(any_folder / "c", range(5), seed=2).finish()
    assert contents(any_folder / "a") == contents(any_folder / "b") != contents(any_folder / "c")


def test_a_block_is_replaced_only_by_a_complete_one(tmp_path, small, monkeypatch):
    split = write(tmp_path, [0])
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", None)
        with pytest.raises(TypeError):
            split.write_block(0, numbered(0, 30), {})
    assert len(split.groups(0)) == 3  # another worker may be reading it
    split.finish()
    assert sum(len(stored(path)) for path in tmp_path.glob("train-*")) == 60


def test_a_block_that_is_too_large_for_a_file_is_named(tmp_path, small):
    split = write(tmp_path, [])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        file = tmp_path / "train-block-00000.tfrecord"
        with pytest.raises(OSError, match=rf"File too large: '{file}'$"):
            split.write_block(0, numbered(0, 300), {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())


def test_shards_of_workers_are_not_written_again(any_folder, small, monkeypatch):
    split = write(any_folder, range(5))
    groups = [split.groups(block) for block in range(5)]
    split.write_shard(1, [of_block[1] for of_block in groups])
    written = interrupt(monkeypatch, Sharding, "write_shard", 9)
    info = split.finish()
    assert [number for _, number, _ in written] == [0, 2]
    assert sum(len(stored(any_folder / name)) for name in info.shards) == info.pairs == 300


def test_an_empty_split_has_an_empty_shard(any_folder):
    info = write(any_folder, []).finish()
    assert info.pairs == 0 and list(info.shards.values()) == [0] * len(info.shards)


def message(source, target):
    """As protobuf writes it."""
    features = {
        name: tf.train.Feature(int64_list=tf.train.Int64List(value=ids))
        for name, ids in (("source", source), ("target", target))
    }
    return tf.train.Example(features=tf.train.Features(feature=features))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ([5, 2], [2]),
        ([0, 127, 128, 16383, 16384, 65535, 65536, 2**21 - 1], [2]),
        (list(range(100, 300)), [7] * 20000),
    ],
)
def test_examples_have_the_bytes_of_protobuf(source, target):
    expected = message(source, target)
    assert serialized_example(source, target) == expected.SerializeToString(deterministic=True)
