import dataclasses
import itertools
import json
from collections import Counter

import pytest
import tensorflow as tf

from keras_transformer import InputError
from pipelines import records
from pipelines.records import Metadata, SplitInfo, read_metadata, write_metadata, write_split


def stored(path):
    """The pairs of a shard, in order."""
    examples = [
        tf.train.Example.FromString(record.numpy()) for record in tf.data.TFRecordDataset(path)
    ]
    return [
        tuple(
            tuple(example.features.feature[side].int64_list.value) for side in ("source", "target")
        )
        for example in examples
    ]


def numbered(count):
    return [([number + 4, 2], [number + 5, 9, 2]) for number in range(count)]


@pytest.fixture
def metadata(tmp_path):
    (tmp_path / "vocabulary.model").write_bytes(b"any")
    info = write_split(tmp_path, "train", numbered(3), 3, seed=1)
    return Metadata(
        task="translation",
        tokenizer="bpe",
        vocabulary="vocabulary.model",
        vocab_size=300,
        fingerprint="0f",
        max_length=9,
        languages=["en", "de"],
        settings={"--seed": 1},
        splits={"train": info},
    )


def test_statistics_by_hand(tmp_path):
    pairs = [([5, 2], [5, 2]), ([5, 6, 7, 2], [5] * 16 + [2]), ([5] * 8 + [2], [2])]
    info = write_split(tmp_path, "train", iter(pairs), 3, seed=1)
    assert info == SplitInfo(
        pairs=3,
        dropped={},
        source_tokens=15,
        target_tokens=20,
        longest_source=9,
        longest_target=17,
        length_histogram={"8": 1, "16": 1, "24": 1},
        shards={"train-00000-of-00001.tfrecord": info.shards["train-00000-of-00001.tfrecord"]},
    )
    assert info.longest == 17
    assert sorted(stored(str(tmp_path / "train-00000-of-00001.tfrecord"))) == sorted(
        (tuple(source), tuple(target)) for source, target in pairs
    )


def test_pairs_are_shuffled_over_shards_and_within(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "_PAIRS_PER_SHARD", 100)
    info = write_split(tmp_path, "train", numbered(300), 300, seed=1)
    assert list(info.shards) == [f"train-0000{i}-of-00003.tfrecord" for i in range(3)]
    shards = [stored(str(tmp_path / name)) for name in info.shards]
    assert Counter(itertools.chain.from_iterable(shards)) == Counter(
        (tuple(s), tuple(t)) for s, t in numbered(300)
    )
    for name, shard in zip(info.shards, shards, strict=True):
        assert (tmp_path / name).stat().st_size == info.shards[name]
        assert 70 < len(shard) < 130
        numbers = [source[0] for source, _ in shard]
        # Of a random order, one place in two rises (standard deviation 3 of 100 places).
        assert 0.35 < sum(a < b for a, b in itertools.pairwise(numbers)) / len(numbers) < 0.65
    assert not list(tmp_path.glob("*.part"))


def test_the_seed_decides_the_order(tmp_path):
    def order(seed):
        write_split(tmp_path, "train", numbered(50), 50, seed)
        return stored(str(tmp_path / "train-00000-of-00001.tfrecord"))

    assert order(1) == order(1) != order(2)


def test_metadata_come_back(metadata, tmp_path):
    write_metadata(tmp_path, metadata)
    assert read_metadata(tmp_path) == metadata
    assert not (tmp_path / "metadata.json.tmp").exists()


def test_no_metadata_no_data_set(metadata, tmp_path):
    with pytest.raises(InputError, match=r"--data_dir must be a folder completed by prepare_data"):
        read_metadata(tmp_path)
    with pytest.raises(InputError, match=r"no readable metadata.json"):
        read_metadata(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda fields: fields.update(format_version=99), r"format_version 1: .* Received: 99"),
        (lambda fields: fields.pop("format_version"), r"format_version 1: .* Received: None"),
        (lambda fields: fields.pop("task"), r"must be written by prepare_data.py. .*'task'"),
        (lambda fields: fields.pop("splits"), r"must be written by prepare_data.py. .*'splits'"),
        (lambda fields: fields.update(extra=1), r"must be written by prepare_data.py. .*'extra'"),
    ],
)
def test_foreign_metadata_are_named(metadata, tmp_path, change, message):
    fields = dataclasses.asdict(metadata)
    change(fields)
    (tmp_path / "metadata.json").write_text(json.dumps(fields))
    with pytest.raises(InputError, match=message):
        read_metadata(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]", "null"])
def test_broken_metadata_are_named(tmp_path, content):
    (tmp_path / "metadata.json").write_text(content)
    with pytest.raises(InputError, match=r"metadata.json must be (JSON|of format_version)"):
        read_metadata(tmp_path)


def test_lost_and_shortened_files_are_named(metadata, tmp_path):
    write_metadata(tmp_path, metadata)
    shard = tmp_path / "train-00000-of-00001.tfrecord"
    content = shard.read_bytes()
    shard.write_bytes(content[:-1])
    with pytest.raises(InputError, match=rf"tfrecord must have {len(content)} bytes"):
        read_metadata(tmp_path)
    shard.unlink()
    with pytest.raises(InputError, match=r"tfrecord must have .* Received: no such file"):
        read_metadata(tmp_path)
    shard.write_bytes(content)
    (tmp_path / "vocabulary.model").unlink()
    with pytest.raises(InputError, match=r"vocabulary.model must be there"):
        read_metadata(tmp_path)


def test_only_own_leftovers_are_removed(tmp_path):
    own = ["vocabulary.txt", "test.source.txt", "train-00000-of-00002.tfrecord.part"]
    foreign = ["notes.txt", "my.tfrecord", "vocabulary.txt.bak", "metadata.json"]
    for name in own + foreign:
        (tmp_path / name).write_text("x")
    assert records.has_leftovers(tmp_path)
    records.remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(foreign)
    assert not records.has_leftovers(tmp_path)
