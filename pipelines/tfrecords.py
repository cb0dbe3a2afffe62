"""TFRecord files byte by byte: how a record is encoded, and where a file is damaged.

A file is a sequence of frames: length (uint64), its checksum, content, its checksum; all
little-endian. TensorFlow reads and writes them and verifies the checksums, but its error at a
damaged record names neither the file nor the place.
"""

import os
import struct
from collections.abc import Sequence

_LENGTH = struct.Struct("<Q")
FRAME_BYTES = 16  # of a frame beside its content: length and two checksums
_READ_AT_ONCE = 4096

Span = tuple[int, int]  # first byte, and the one after the last


def example(source: Sequence[int], target: Sequence[int]) -> bytes:
    """A tf.train.Example with int64 lists "source" and "target", none empty.

    The bytes are protobuf's, which takes several times as long to make them.
    """
    return _field(b"\x0a", _entry(b"source", source) + _entry(b"target", target))


def _entry(name: bytes, ids: Sequence[int]) -> bytes:
    """An entry of the map Features.feature: a key, and a Feature with an Int64List."""
    values = _field(b"\x0a", b"".join([_varint(value) for value in ids]))
    return _field(b"\x0a", _field(b"\x0a", name) + _field(b"\x12", _field(b"\x1a", values)))


def _field(tag: bytes, content: bytes) -> bytes:
    return tag + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """A number below 2**21 in groups of 7 bits, the lowest first, all but the last marked."""
    return _VARINTS[value] if value < len(_VARINTS) else _make_varint(value)


def _make_varint(value: int) -> bytes:
    groups = []
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])


_VARINTS = [_make_varint(value) for value in range(1 << 16)]


def frames(content: bytes) -> list[Span]:
    """Where the records of sound content begin and end."""
    spans, begin = [], 0
    while begin < len(content):
        end = begin + FRAME_BYTES + _LENGTH.unpack_from(content, begin)[0]
        spans.append((begin, end))
        begin = end
    return spans


def damaged_byte(path: str | os.PathLike) -> int | None:
    """Where the first damaged or cut-off record of a file begins; None where all are sound.

    Raises:
        tf.errors.NotFoundError: where there is no such file.
    """
    import tensorflow as tf

    path = os.fspath(path)
    records = end = 0
    for at_once in (_READ_AT_ONCE, 1):  # then one at a time, up to the damaged record
        try:
            for batch in tf.data.TFRecordDataset(path).skip(records).batch(at_once):
                records += len(batch)
                end += int(tf.reduce_sum(tf.strings.length(batch))) + FRAME_BYTES * len(batch)
            break
        except tf.errors.DataLossError:
            continue
    # TensorFlow raises no error where a file ends within a frame's header.
    return end if end < os.path.getsize(path) else None
