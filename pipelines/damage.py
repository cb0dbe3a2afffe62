"""Finds files of a data directory that are missing, cut off, damaged or of another data set.

metadata.json has the size of every shard and a digest of its beginning, so that a shard that was
cut off, or that comes from another data set, is noticed without reading all of it.
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from keras_transformer.errors import InputError
from keras_transformer.files import to_path
from pipelines.data_files import text_file

if TYPE_CHECKING:  # it imports this module
    from pipelines.records import Metadata, SplitInfo

# Bytes of a TFRecord beside its content: the length, and a checksum of each.
FRAME_BYTES = 16
_RECORDS_AT_ONCE = 4096
# The part of a shard that its digest covers.
_BEGINNING_BYTES = 1 << 16


class Damage(NamedTuple):
    """A file of a data directory that is missing, damaged or of another data set."""

    path: Path
    error: InputError  # names the file, and says what to do


def damaged_files(
    data_dir: str | os.PathLike, metadata: "Metadata", read_records: bool = False
) -> Iterator[Damage]:
    """Finds files that are missing, damaged or of another data set.

    Args:
        data_dir: the folder.
        metadata: of that folder.
        read_records: also read every shard to its end, and look for the text of each split.

    Yields:
        Every such file.
    """
    folder = to_path(data_dir)
    fingerprints = {metadata.vocabulary: metadata.fingerprint}
    if metadata.source_vocabulary is not None:
        fingerprints[metadata.source_vocabulary] = metadata.source_fingerprint
    for name, fingerprint in fingerprints.items():
        yield from _vocabulary_damage(folder / name, fingerprint)
    for split, info in metadata.splits.items():
        if read_records and split != "train":
            yield from _text_damage(folder, split, info, metadata.task)
        for name, size in info.shards.items():
            yield from _shard_damage(folder / name, size, info.beginnings.get(name), read_records)


def _vocabulary_damage(path: Path, fingerprint: str) -> Iterator[Damage]:
    if not path.is_file():
        yield _damage(path, "exist", "no such file")
    elif hashlib.sha256(path.read_bytes()).hexdigest() != fingerprint:
        yield _damage(path, "be as it was prepared", "a changed file")


def _text_damage(folder: Path, split: str, info: "SplitInfo", task: str) -> Iterator[Damage]:
    sides = ["source", "target"]
    if task == "parsing":
        sides.append("trees")
    for side in sides:
        path = text_file(folder, split, side)
        try:
            read_text(path, info)
        except InputError as error:
            yield Damage(path, error)


def _shard_damage(
    shard: Path, size: int, digest: str | None, read_records: bool
) -> Iterator[Damage]:
    """The damage of a shard that had `size` bytes, and a beginning of that digest, if known."""
    if not shard.is_file():
        yield _damage(shard, f"have {size} bytes", "no such file")
        return
    found_size = shard.stat().st_size
    if found_size != size:
        yield _damage(shard, f"have {size} bytes", f"{found_size} bytes")
        return
    begins_otherwise = digest is not None and digest != digest_of_beginning(shard)
    byte = damaged_byte(shard) if begins_otherwise or read_records else None
    if byte is not None:
        yield _damage(shard, "hold sound records", f"damage at byte {byte}")
    elif begins_otherwise:
        yield _damage(shard, "be the shard that was prepared", "a shard of another data set")


def _damage(path: Path, rule: str, received: str) -> Damage:
    error = InputError(
        f"{path} must {rule}: prepare the data again with the same settings, which rewrites "
        f"damaged and missing files. Received: {received}"
    )
    return Damage(path, error)


def read_text(path: Path, info: "SplitInfo") -> list[str]:
    """Reads a side of a split's text.

    Args:
        path: the text file.
        info: of the split.

    Returns:
        Its lines: one for each pair of the split, usable or not.

    Raises:
        InputError: where the text is missing, not UTF-8 or has another number of lines.
    """
    if not path.is_file():
        raise _damage(path, "exist", "no such file").error
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise _damage(path, "be UTF-8", str(error)).error from None
    lines = text.split("\n")[:-1]
    count = info.pairs + sum(info.dropped.values())
    if len(lines) != count:
        raise _damage(path, f"have {count} lines", str(len(lines))).error
    return lines


def damaged_byte(shard: str | os.PathLike) -> int | None:
    """Where the first damaged or cut-off record of a shard begins; None where all are sound.

    TensorFlow verifies the checksums, but its error names neither the file nor the place.
    """
    import tensorflow as tf

    records = end = 0
    for at_once in (_RECORDS_AT_ONCE, 1):  # then one at a time, up to the damaged record
        try:
            for batch in tf.data.TFRecordDataset(str(shard)).skip(records).batch(at_once):
                records += len(batch)
                end += int(tf.reduce_sum(tf.strings.length(batch))) + FRAME_BYTES * len(batch)
            break
        except tf.errors.DataLossError:
            continue
    # TensorFlow raises no error where a file ends within the first 12 bytes of a record.
    return end if end < to_path(shard).stat().st_size else None


def digest_of_beginning(shard: Path) -> str:
    """A short digest of the first 64 KiB of a shard, by which it is recognised."""
    with shard.open("rb") as file:
        return hashlib.sha256(file.read(_BEGINNING_BYTES)).hexdigest()[:16]
