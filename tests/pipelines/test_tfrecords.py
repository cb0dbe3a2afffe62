import itertools

import numpy as np
import pytest
import tensorflow as tf

from pipelines import tfrecords
from pipelines.tfrecords import damaged_byte, example, frames


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
def test_examples_are_protobuf_s(source, target):
    expected = message(source, target)
    assert example(source, target) == expected.SerializeToString(deterministic=True)


@pytest.fixture
def file(tmp_path):
    """A file of 50 records; where they begin, and its end."""
    path, starts = tmp_path / "file", [0]
    generator = np.random.default_rng(1)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for length in generator.integers(1, 40, size=50):
            record = example(generator.integers(0, 500, size=length), [2])
            writer.write(record)
            starts.append(starts[-1] + len(record) + 16)
    return path, starts


def test_sound_files(file):
    path, starts = file
    assert frames(path.read_bytes()) == list(itertools.pairwise(starts))
    assert damaged_byte(path) is None


@pytest.mark.parametrize("at_once", [1, 4, 4096])
@pytest.mark.parametrize("offset", [0, 7, 8, 11, 12, 20, -1])  # length, checksum, content, checksum
def test_the_first_damaged_record_is_found(file, monkeypatch, offset, at_once):
    monkeypatch.setattr(tfrecords, "_READ_AT_ONCE", at_once)
    path, starts = file
    content = bytearray(path.read_bytes())
    content[starts[10 + (offset < 0)] + offset] ^= 0x10
    content[starts[30] + 14] ^= 1
    path.write_bytes(content)
    assert damaged_byte(path) == starts[10]


@pytest.mark.parametrize("kept", [1, 11, 14])
def test_a_cut_off_record_is_found(file, kept):
    path, starts = file
    path.write_bytes(path.read_bytes()[: starts[20] + kept])
    assert damaged_byte(path) == starts[20]


def test_other_and_empty_files(tmp_path):
    (tmp_path / "text").write_text("no records at all, but long enough for a header")
    assert damaged_byte(tmp_path / "text") == 0
    (tmp_path / "empty").write_bytes(b"")
    assert damaged_byte(tmp_path / "empty") is None
