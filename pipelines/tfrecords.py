"""TFRecord files byte by byte: what a record looks like, and which of a damaged file are whole.

A file is a row of frames: length (uint64), its checksum, content, its checksum; all little-endian,
checksums masked CRC-32C. TensorFlow reads and writes them; it stops at the first damaged record,
though, and says neither which file it is in nor what comes after.
"""

import os
import struct
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

_LENGTH, _CHECKSUM = struct.Struct("<Q"), struct.Struct("<I")
_HEADER_BYTES = _LENGTH.size + _CHECKSUM.size
FRAME_BYTES = _HEADER_BYTES + _CHECKSUM.size  # of a record, beside its content
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


def read_through(path: str | os.PathLike) -> tuple[int, int | None]:
    """Counts the records of a file up to the first damaged or cut-off one.

    Returns:
        How many, and the byte where the damage begins; None where there is none.
    """
    import tensorflow as tf

    records = end = 0
    try:
        for batch in tf.data.TFRecordDataset(os.fspath(path)).batch(_READ_AT_ONCE):
            records += len(batch)
            end += int(tf.reduce_sum(tf.strings.length(batch))) + FRAME_BYTES * len(batch)
    except tf.errors.DataLossError:
        sound, damaged = sound_records(Path(path).read_bytes())
        return sum(end <= damaged[0] for _, end in sound), damaged[0]
    # To TensorFlow, a file may end within a header.
    return records, end if end < os.path.getsize(path) else None


def sound_records(content: bytes) -> tuple[list[Span], list[int]]:
    """Reads past damage: a bad record costs that record alone.

    Args:
        content: a file that may be damaged, or cut off.

    Returns:
        Where sound records begin and end, and where damage begins.
    """
    sound, damaged = [], []
    begin = 0
    while begin < len(content):
        end = _end(content, begin)
        if end is not None and _is_checked(content, begin + _HEADER_BYTES, end):
            sound.append((begin, end))
        else:
            damaged.append(begin)
            if end is None:  # the length is wrong itself
                end = _next_header(content, begin + 1)
        begin = end
    return sound, damaged


def _end(content: bytes, begin: int) -> int | None:
    """Where the record that begins here ends; None where there is no record."""
    if not _is_checked(content, begin, begin + _HEADER_BYTES):
        return None
    end = begin + FRAME_BYTES + _LENGTH.unpack_from(content, begin)[0]
    return end if end <= len(content) else None


def _next_header(content: bytes, begin: int) -> int:
    """The next place from `begin` on where a record seems to begin, or the end."""
    # The upper bytes of any length below 2**24 are zero: only there is a checksum worth its time.
    zeros = begin + 3
    while (zeros := content.find(b"\0" * 5, zeros)) >= 0:
        if _end(content, zeros - 3) is not None:
            return zeros - 3
        zeros += 1
    return len(content)


def _is_checked(content: bytes, begin: int, end: int) -> bool:
    """Whether the last four bytes of a span are the checksum of those before."""
    if end > len(content):
        return False
    return masked_checksum(content[begin : end - 4]) == _CHECKSUM.unpack_from(content, end - 4)[0]


def masked_checksum(content: bytes) -> int:
    """CRC-32C, turned and moved as TFRecord files have it."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc = _CRC_TABLE[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _crc_of_byte(byte: int) -> int:
    polynomial = 0x82F63B78  # Castagnoli's, its bits in reverse
    *_, crc = accumulate(range(8), lambda crc, _: crc >> 1 ^ polynomial * (crc & 1), initial=byte)
    return crc


_CRC_TABLE = [_crc_of_byte(byte) for byte in range(256)]
