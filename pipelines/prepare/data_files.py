"""The files in a data directory: their names, the text of its splits, and checks for damage.

Damage is named, not repaired: TensorFlow stops reading a file at its first bad record, so skipping
that would lose most of the file.
"""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from keras_transformer.core.config import SUFFIXES
from keras_transformer.support.errors import InputError, require
from keras_transformer.support.files.paths import to_path
from keras_transformer.support.files.reading import file_digest
from keras_transformer.support.files.replacing import replacing

METADATA_FILE = "metadata.json"
_VOCABULARY_SUFFIX = "|".join(re.escape(suffix) for suffix in SUFFIXES.values())
_DATA_FILE = re.compile(
    r"\w+-\d{5}-of-\d{5}\.tfrecord"
    r"|\w+\.(source|target|trees|directions)\.txt"
    rf"|\w*vocabulary({_VOCABULARY_SUFFIX})"
)
PREPARE_AGAIN = "delete its folder, and prepare the data again"
_RECORDS_AT_ONCE = 4096


def named_as_data(data_dir: Path) -> list[str]:
    """Returns the files in a folder that are named like those of a data set."""
    return [path.name for path in data_dir.glob("*") if _DATA_FILE.fullmatch(path.name)]


def text_file(data_dir: str | os.PathLike, split: str, side: str) -> Path:
    """Returns the path of a split's text.

    Args:
        data_dir: the folder.
        split: the split's name.
        side: "source", "target", "trees" for parsing's gold trees, or "directions" for the
            languages of each pair, if there are several directions.
    """
    return to_path(data_dir) / f"{split}.{side}.txt"


def text_files(data_dir: str | os.PathLike, split: str, sides: Iterable[str]) -> list[Path]:
    """Returns the files with a split's text; none for the training split."""
    if split == "train":
        return []
    return [text_file(data_dir, split, side) for side in sides]


def keep_text(
    data_dir: Path, split: str, sides: Sequence[str], rows: Iterable[Sequence[str]]
) -> Iterator[tuple[str, str]]:
    """Yields text pairs, and writes a split's text files once all pairs were consumed.

    Args:
        data_dir, split, sides: as for `text_file`.
        rows: for each pair, the texts of these sides, the first two being the pair.
    """
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(replacing(text_file(data_dir, split, side))) for side in sides]
        for row in rows:
            for file, text in zip(files, row, strict=True):
                file.write(f"{text}\n".encode())
            yield row[0], row[1]


def check_digest(path: Path, digest: str) -> None:
    """Raises InputError if a file is missing, or no longer has this SHA-256."""
    rule = f"must be unchanged since preparation: {PREPARE_AGAIN}"
    require(path.is_file(), None, rule, "no such file", path)
    require(file_digest(path) == digest, None, rule, "a changed file", path)


def check_size(shard: Path, size: int) -> None:
    """Raises InputError if a shard is missing, or no longer has this size in bytes."""
    rule = f"must have {size} bytes: {PREPARE_AGAIN}"
    require(shard.is_file(), None, rule, "no such file", shard)
    actual = shard.stat().st_size
    require(actual == size, None, rule, f"{actual} bytes", shard)


def check_records(shard: Path) -> None:
    """Reads a shard to its end; raises InputError if a record is damaged.

    TensorFlow verifies the checksums of the records, but its error does not name the file.
    """
    import tensorflow as tf

    try:
        for _ in tf.data.TFRecordDataset(str(shard)).batch(_RECORDS_AT_ONCE):
            pass
    except tf.errors.DataLossError:
        rule = f"must contain intact records: {PREPARE_AGAIN}"
        raise InputError(None, rule, "a damaged record", shard) from None
