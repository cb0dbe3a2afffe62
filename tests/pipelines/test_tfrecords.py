import itertools

import numpy as np
import pytest
import tensorflow as tf

from pipelines import tfrecords
from pipelines.tfrecords import example, frames, masked_checksum, read_through, sound_records


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


def test_the_checksum_is_crc32c():
    # RFC 3720, B.4, and the check value of the catalogue of CRCs.
    for content, crc in ((b"\0" * 32, 0x8A9136AA), (b"123456789", 0xE3069283)):
        turned = (crc >> 15) | (crc << 17) & 0xFFFFFFFF
        assert masked_checksum(content) == (turned + 0xA282EAD8) % 2**32


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
    spans = list(itertools.pairwise(starts))
    assert frames(path.read_bytes()) == spans
    assert sound_records(path.read_bytes()) == (spans, [])
    assert read_through(path) == (50, None)


@pytest.mark.parametrize("offset", [0, 7, 8, 11, 12, 20, -1])  # length, checksum, content, checksum
def test_a_flipped_bit_costs_its_record_alone(file, offset):
    path, starts = file
    content = bytearray(path.read_bytes())
    content[starts[10 + (offset < 0)] + offset] ^= 0x10
    content[starts[30] + 14] ^= 1
    path.write_bytes(content)
    sound, damaged = sound_records(bytes(content))
    assert damaged == [starts[10], starts[30]]
    assert [begin for begin, _ in sound] == [s for s in starts[:-1] if s not in damaged]
    assert read_through(path) == (10, starts[10])


@pytest.mark.parametrize("kept", [1, 11, 14])
def test_a_cut_off_file_has_the_records_before(file, kept):
    path, starts = file
    content = path.read_bytes()[: starts[20] + kept]
    path.write_bytes(content)
    sound, damaged = sound_records(content)
    assert len(sound) == 20 and damaged == [starts[20]]
    assert read_through(path) == (20, starts[20])


def test_overwritten_parts_and_other_files(file, tmp_path):
    path, starts = file
    content = bytearray(path.read_bytes())
    content[starts[5] + 3 : starts[9] + 2] = b"\0" * (starts[9] + 2 - starts[5] - 3)
    sound, damaged = tfrecords.sound_records(bytes(content))
    assert [begin for begin, _ in sound] == [*starts[:5], *starts[10:-1]]
    assert damaged[0] == starts[5]
    (tmp_path / "text").write_text("no records at all, but long enough for a header")
    assert read_through(tmp_path / "text") == (0, 0)
