import dataclasses
import hashlib
import json

import pytest
import tensorflow as tf

from keras_transformer import InputError
from pipelines import records
from pipelines.records import Metadata, SplitInfo, read_metadata, write_metadata
from pipelines.tfrecords import example

SHARD = "train-00000-of-00001.tfrecord"


def write(path, first=4):
    """Three records of equal size."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for number in range(first, first + 3):
            writer.write(example([number, 2], [number, 9, 2]))
    return path


@pytest.fixture
def metadata(tmp_path):
    (tmp_path / "vocabulary.model").write_bytes(b"any")
    info = SplitInfo.of([(2, 3)] * 3, {}).with_shards([write(tmp_path / SHARD)])
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
    parts = [SplitInfo.of([(2, 2), (4, 17)], {"blank": 1}), SplitInfo.of([(9, 1)], {"blank": 2})]
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
    assert SplitInfo.total([SplitInfo.of([], {})], []).longest == 0


def test_metadata_come_back(metadata, tmp_path):
    write_metadata(tmp_path, metadata)
    assert read_metadata(tmp_path) == metadata
    assert not list(tmp_path.glob("*.part"))


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
    shard = tmp_path / SHARD
    content = shard.read_bytes()
    shard.write_bytes(content[:-1])
    with pytest.raises(InputError, match=rf"tfrecord must have {len(content)} bytes"):
        read_metadata(tmp_path)
    shard.unlink()
    with pytest.raises(InputError, match=r"tfrecord must have .* Received: no such file"):
        read_metadata(tmp_path)
    shard.write_bytes(content)
    (tmp_path / "vocabulary.model").unlink()
    with pytest.raises(InputError, match=r"vocabulary.model must exist"):
        read_metadata(tmp_path)


def test_a_shard_of_another_data_set_is_named(metadata, tmp_path):
    write_metadata(tmp_path, metadata)
    write(tmp_path / SHARD, first=50)  # of the same size
    with pytest.raises(
        InputError,
        match=rf"{SHARD} must be the shard that was prepared: .* a shard of another data set",
    ):
        read_metadata(tmp_path)
    assert read_metadata(tmp_path, check_files=False) == metadata


def test_a_damaged_beginning_is_named(metadata, tmp_path):
    write_metadata(tmp_path, metadata)
    shard = tmp_path / SHARD
    content = bytearray(shard.read_bytes())
    content[len(content) // 3 + 20] ^= 1
    shard.write_bytes(content)
    with pytest.raises(
        InputError, match=rf"{SHARD} must hold sound .* at byte {len(content) // 3}"
    ):
        read_metadata(tmp_path)


def test_data_prepared_before_beginnings_were_written_down(metadata, tmp_path):
    fields = dataclasses.asdict(metadata)
    del fields["splits"]["train"]["beginnings"]
    (tmp_path / "metadata.json").write_text(json.dumps(fields))
    assert read_metadata(tmp_path).splits["train"].pairs == 3


def test_only_own_leftovers_are_removed(tmp_path):
    own = ["vocabulary.txt", "test.source.txt", "train-00000-of-00002.tfrecord.part"]
    own += ["train-00000-of-00002.tfrecord", "metadata.json.part"]
    foreign = ["notes.txt", "my.tfrecord", "vocabulary.txt.bak", "metadata.json"]
    for name in own + foreign:
        (tmp_path / name).write_text("x")
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "unfinished" / "train-block-00000.json").write_text("x")
    assert records.has_leftovers(tmp_path)
    records.remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(foreign)
    assert not records.has_leftovers(tmp_path)
