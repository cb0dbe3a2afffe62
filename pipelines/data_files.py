"""The files of a data directory: their names, the text of its splits, and what is left over."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from keras_transformer.config import SUFFIXES
from keras_transformer.files import remove_folder, replacing, to_path

METADATA_FILE = "metadata.json"
# What an interrupted preparation has written; it resumes from there.
WORK_FOLDER = "unfinished"
_VOCABULARY_SUFFIX = "|".join(re.escape(suffix) for suffix in SUFFIXES.values())
_DATA_FILE = (
    r"\w+-\d{5}-of-\d{5}\.tfrecord"
    r"|\w+\.(source|target|trees)\.txt"
    rf"|\w*vocabulary({_VOCABULARY_SUFFIX})"
)
_TEMPORARY_FILE = rf"\.({_DATA_FILE}|metadata\.json)\.\w+\.tmp"


def leftovers(data_dir: Path) -> list[Path]:
    """Files in a folder that have the names of data files, temporary files or unfinished work."""
    name = re.compile(f"{_DATA_FILE}|{_TEMPORARY_FILE}|{WORK_FOLDER}")
    return [path for path in data_dir.glob("*") if name.fullmatch(path.name)]


def remove_leftovers(data_dir: Path, keep_data: bool) -> None:
    """Deletes unfinished work and temporary files, and the data files unless they are kept."""
    remove_folder(data_dir / WORK_FOLDER)
    for path in leftovers(data_dir):
        if path.is_file() and not (keep_data and re.fullmatch(_DATA_FILE, path.name)):
            path.unlink()


def text_file(data_dir: str | os.PathLike, split: str, side: str) -> Path:
    """Path of a split's text; `side` is "source", "target", or "trees" for parsing's gold trees."""
    return to_path(data_dir) / f"{split}.{side}.txt"


def split_of(path: Path) -> str:
    """The split that a shard or text file belongs to."""
    return re.split(r"[-.]", path.name)[0]


def keep_text(
    data_dir: Path, split: str, pairs: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """Yields text pairs, and writes them to the text files of a split once all were taken."""
    source_file = text_file(data_dir, split, "source")
    target_file = text_file(data_dir, split, "target")
    with replacing(source_file) as sources, replacing(target_file) as targets:
        for source, target in pairs:
            sources.write(source.encode("utf-8") + b"\n")
            targets.write(target.encode("utf-8") + b"\n")
            yield source, target
