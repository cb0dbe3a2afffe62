import dataclasses
import hashlib
import json

import pytest
import tensorflow as tf

from pipelines.batches.data_set import DataSet
from pipelines.prepare.metadata import Metadata, SplitInfo, read_metadata, write_metadata
from pipelines.prepare.sharding import serialized_example
from tests.refusals import refused

SHARD = "train-00000-of-00001.tfrecord"


def write(path, first=4):
    """Three records of equal size."""
    path.unlink(missing_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for number in range(first, first + 3):
            writer.write(serialized_example([number, 2], [number, 9, 2]))
    return path


@pytest.fixture
def metadata(any_folder):
    (any_folder / "vocabulary.model").write_bytes(b"any")
    info = SplitInfo.total([SplitInfo.from_lengths([(2, 3)] * 3, {})], [write(any_folder / SHARD)])
    return Metadata(
        task="translation",
        tokenizer="bpe",
        vocabulary="vocabulary.model",
        vocab_size=300,
        fingerprint=hashlib.sha256(b"any").hexdigest(),
        max_length=9,
        languages=["en", "de"],
        settings={"--seed": 1},
        splits={"train": info},
    )


def test_statistics_by_hand():
    parts = [
        SplitInfo.from_lengths([(2, 2), (4, 17)], {"blank": 1}),
        SplitInfo.from_lengths([(9, 1)], {"blank": 2}),
    ]
    assert SplitInfo.total(parts, []) == SplitInfo(
        pairs=3,
        dropped={"blank": 3},
        source_tokens=15,
        target_tokens=20,
        longest_source=9,
        longest_target=17,
        length_histogram={"8": 1, "16": 1, "24": 1},
    )
    assert SplitInfo.total(parts, []).longest == 17
    assert SplitInfo.total([SplitInfo.from_lengths([], {})], []).longest == 0


def test_metadata_come_back(metadata, any_folder):
    write_metadata(any_folder, metadata)
    assert read_metadata(any_folder) == metadata


def test_the_checksum_of_earlier_data_sets_is_the_same(metadata, any_folder):
    write_metadata(any_folder, metadata)
    checksum = "a5f16b24fef1159cd932680d98dd07f6c61ebec4a55ca4fa34670eee9bd3a499"
    assert json.loads((any_folder / "metadata.json").read_text())["checksum"] == checksum


def test_a_folder_without_metadata_is_not_a_data_set(metadata, any_folder):
    with refused("data_dir", any_folder):
        read_metadata(any_folder)
    with refused("data_dir", any_folder / "nowhere"):
        read_metadata(any_folder / "nowhere")


@pytest.mark.parametrize("version", [99, None])
def test_metadata_of_other_versions_are_named(metadata, any_folder, version):
    fields = {**dataclasses.asdict(metadata), "format_version": version}
    (any_folder / "metadata.json").write_text(json.dumps(fields))
    with refused(None, version, "metadata.json", about="format_version"):
        read_metadata(any_folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda fields: fields.pop("splits"),
        lambda fields: fields.update(extra=1),
        lambda fields: fields["splits"]["train"].update(shards={}),
        lambda fields: fields.update(max_length=8),
        lambda fields: fields.pop("checksum"),
    ],
)
def test_changed_metadata_are_named(metadata, any_folder, change):
    write_metadata(any_folder, metadata)
    fields = json.loads((any_folder / "metadata.json").read_text())
    change(fields)
    (any_folder / "metadata.json").write_text(json.dumps(fields))
    with refused(None, "a changed file", "metadata.json"):
        read_metadata(any_folder)


@pytest.mark.parametrize("content", ["", "{", "[]", "null"])
def test_broken_metadata_are_named(any_folder, content):
    (any_folder / "metadata.json").write_text(content)
    with refused(None, place="metadata.json"):
        read_metadata(any_folder)


def test_lost_and_shortened_files_are_named(metadata, any_folder):
    write_metadata(any_folder, metadata)
    shard = any_folder / SHARD
    content = shard.read_bytes()
    shard.write_bytes(content[:-1])
    with refused(None, f"{len(content) - 1} bytes", SHARD, about=f"{len(content)} bytes"):
        DataSet.open(any_folder)
    shard.unlink()
    with refused(None, "no such file", SHARD):
        DataSet.open(any_folder)
    shard.write_bytes(content)
    (any_folder / "vocabulary.model").unlink()
    with refused(None, "no such file", place="vocabulary.model"):
        DataSet.open(any_folder)
