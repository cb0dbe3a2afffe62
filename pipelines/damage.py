"""Finds files in a data directory that are missing, truncated, damaged or changed.

metadata.json has every shard's size, so that truncation is detected without reading it; checksums
within a shard detect other damage. Vocabularies and the text of splits have a digest of the whole
file.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from keras_transformer.errors import InputError
from keras_transformer.files.paths import to_path
from keras_transformer.files.reading import file_digest
from pipelines.metadata import Metadata, SplitInfo

# Bytes in a TFRecord besides its content: the length, and a checksum of each.
FRAME_BYTES = 16
_RECORDS_AT_ONCE = 4096


def damaged_files(
    data_dir: str | os.PathLike, metadata: Metadata, read_records: bool = False
) -> Iterator[InputError]:
    """Finds files that are missing, damaged or changed.

    Args:
        data_dir: the folder.
        metadata: the folder's metadata.
        read_records: whether to also read every shard and the text of each split to the end.

    Yields:
        For every such file, an error with the file as its `place`, and advice.
    """
    folder = to_path(data_dir)
    yield from changed(folder / metadata.vocabulary, metadata.fingerprint)
    if metadata.source_vocabulary is not None:
        yield from changed(folder / metadata.source_vocabulary, metadata.source_fingerprint)
    for info in metadata.splits.values():
        yield from damaged_files_of_split(folder, info, read_records)


def damaged_files_of_split(
    data_dir: Path, info: SplitInfo, read_records: bool
) -> Iterator[InputError]:
    """Finds the damaged files of one split; see `damaged_files`."""
    if read_records:
        for name, digest in info.texts.items():
            yield from changed(data_dir / name, digest)
    for name, size in info.shards.items():
        yield from _damaged_shard(data_dir / name, size, read_records)


def changed(path: Path, digest: str) -> Iterator[InputError]:
    """Checks whether a file is missing, or no longer has this SHA-256."""
    if not path.is_file():
        yield _error(path, "must exist", "no such file")
    elif file_digest(path) != digest:
        yield _error(path, "must be unchanged since preparation", "a changed file")


def _damaged_shard(shard: Path, size: int, read_records: bool) -> Iterator[InputError]:
    """Checks whether a shard is missing, has the wrong size or a damaged record."""
    if not shard.is_file():
        yield _error(shard, f"must have {size} bytes", "no such file")
        return
    found_size = shard.stat().st_size
    if found_size != size:
        yield _error(shard, f"must have {size} bytes", f"{found_size} bytes")
        return
    byte = damaged_byte(shard) if read_records else None
    if byte is not None:
        yield _error(shard, "must contain intact records", f"damage at byte {byte}")


def _error(path: Path, rule: str, received: str) -> InputError:
    advice = "prepare the data again with the same settings to replace damaged and missing files"
    return InputError(None, f"{rule}: {advice}", received, path)


def damaged_byte(shard: str | os.PathLike) -> int | None:
    """Returns where a shard's first damaged or truncated record begins; None if all are intact.

    TensorFlow verifies the checksums, but its error names neither the file nor the position.
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
    # TensorFlow raises no error if a file ends within the first 12 bytes of a record.
    return end if end < to_path(shard).stat().st_size else None
