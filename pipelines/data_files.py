"""The files in a data directory: their names, and the text of its splits."""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from keras_transformer.config import SUFFIXES
from keras_transformer.files.paths import to_path
from keras_transformer.files.replacing import remove_abandoned, replacing

METADATA_FILE = "metadata.json"
_VOCABULARY_SUFFIX = "|".join(re.escape(suffix) for suffix in SUFFIXES.values())
_DATA_FILE = re.compile(
    r"\w+-\d{5}-of-\d{5}\.tfrecord"
    r"|\w+\.(source|target|trees|directions)\.txt"
    rf"|\w*vocabulary({_VOCABULARY_SUFFIX})"
)


def named_as_data(data_dir: Path) -> list[str]:
    """Returns the files in a folder that are named like those of a data set."""
    return [path.name for path in data_dir.glob("*") if _DATA_FILE.fullmatch(path.name)]


def remove_files(folder: Path, names: Iterable[str]) -> None:
    """Deletes files in a folder, and temporary files that killed programs left of them."""
    for name in names:
        (folder / name).unlink(missing_ok=True)
        remove_abandoned(folder / name)


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


def split_of(path: Path) -> str:
    """Returns the split that a shard or text file belongs to."""
    return re.split(r"[-.]", path.name)[0]


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
