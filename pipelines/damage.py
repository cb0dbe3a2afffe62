"""Finds files of a data directory that are missing, cut off, damaged or of another data set.

metadata.json has the size of every shard and a digest of its beginning, so that a shard that was
cut off, or that comes from another data set, is noticed without reading all of it. Vocabularies and
the text of splits have a digest of the whole file.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from keras_transformer.errors import InputError
from keras_transformer.files.paths import to_path
from keras_transformer.files.reading import file_digest
from pipelines.data_files import digest_of_beginning
from pipelines.records import Metadata, SplitInfo

# Bytes of a TFRecord beside its content: the length, and a checksum of each.
FRAME_BYTES = 16
_RECORDS_AT_ONCE = 4096


class Damage(NamedTuple):
    """A file of a data directory that is missing, damaged or of another data set."""

    path: Path
    error: InputError  # names the file, and says what to do


def damaged_files(
    data_dir: str | os.PathLike, metadata: Metadata, read_records: bool = False
) -> Iterator[Damage]:
    """Finds files that are missing, damaged or of another data set.

    Args:
        data_dir: the folder.
        metadata: of that folder.
        read_records: also read every shard and the text of each split to the end.

    Yields:
        Every such file.
    """
    folder = to_path(data_dir)
    fingerprints = {metadata.vocabulary: metadata.fingerprint}
    if metadata.source_vocabulary is not None:
        fingerprints[metadata.source_vocabulary] = metadata.source_fingerprint
    for name, fingerprint in fingerprints.items():
        yield from _changed(folder / name, fingerprint)
    for info in metadata.splits.values():
        yield from split_damage(folder, info, read_records)


def split_damage(
    data_dir: str | os.PathLike, info: SplitInfo, read_records: bool
) -> Iterator[Damage]:
    """Finds the damaged files of one split; see `damaged_files`."""
    folder = to_path(data_dir)
    if read_records:
        for name, digest in info.texts.items():
            yield from _changed(folder / name, digest)
    for name, size in info.shards.items():
        yield from _shard_damage(folder / name, size, info.beginnings.get(name), read_records)


def _changed(path: Path, digest: str) -> Iterator[Damage]:
    """The damage of a file that had the SHA-256 `digest`."""
    if not path.is_file():
        yield _damage(path, "must exist", "no such file")
    elif file_digest(path) != digest:
        yield _damage(path, "must be as it was prepared", "a changed file")


def _shard_damage(
    shard: Path, size: int, digest: str | None, read_records: bool
) -> Iterator[Damage]:
    """The damage of a shard that had `size` bytes, and a beginning of that digest."""
    if not shard.is_file():
        yield _damage(shard, f"must have {size} bytes", "no such file")
        return
    found_size = shard.stat().st_size
    if found_size != size:
        yield _damage(shard, f"must have {size} bytes", f"{found_size} bytes")
        return
    begins_otherwise = digest != digest_of_beginning(shard)
    byte = damaged_byte(shard) if begins_otherwise or read_records else None
    if byte is not None:
        yield _damage(shard, "must hold sound records", f"damage at byte {byte}")
    elif begins_otherwise:
        yield _damage(shard, "must be the shard that was prepared", "a shard of another data set")


def _damage(path: Path, rule: str, received: str) -> Damage:
    advice = (
        "prepare the data again with the same settings, which rewrites damaged and missing files"
    )
    return Damage(path, InputError(None, f"{rule}: {advice}", received, path))


def require_unchanged(path: Path, info: SplitInfo) -> None:
    """Raises an InputError where a text file of a split is missing, or not as it was prepared."""
    for damage in _changed(path, info.texts[path.name]):
        raise damage.error


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
