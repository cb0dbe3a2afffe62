"""The folder of a running preparation: its files, and its record of them.

The record is written before any other file, and names every file that the preparation will write.
So a restarted preparation removes exactly these, and no files with similar names. The record lists
the vocabularies once they are complete; after that the preparation can be resumed.
"""

import dataclasses
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from keras_transformer.fields import FileName
from keras_transformer.files.paths import remove_folder
from pipelines.checksummed_json import read_checksummed_or_none, write_checksummed
from pipelines.data_files import remove_files

WORK_FOLDER = "unfinished"
_RECORD_FILE = "preparation.json"


@dataclasses.dataclass(frozen=True)
class WorkRecord:
    """The state that an interrupted preparation resumes from, besides its blocks and shards."""

    settings: dict[str, Any]  # of source and configuration, as metadata.json has them
    splits: list[FileName]
    files: list[FileName]  # all files written to the data directory except metadata.json
    vocabularies: dict[FileName, str]  # those that are complete: file -> SHA-256


def work_folder(data_dir: Path) -> Path:
    """Returns the folder of a running preparation in a data directory."""
    return data_dir / WORK_FOLDER


def write_record(data_dir: Path, record: WorkRecord) -> None:
    """Writes the record, creating its folder if needed."""
    work_folder(data_dir).mkdir(exist_ok=True)
    write_checksummed(_record_file(data_dir), dataclasses.asdict(record))


def read_record(data_dir: Path) -> WorkRecord | None:
    """Reads the record; None if it is missing or damaged."""
    return read_checksummed_or_none(_record_file(data_dir), WorkRecord)


def remove_work(data_dir: Path, splits: Iterable[str]) -> None:
    """Removes the work on `splits`, then the record, and then the folder if it is empty."""
    work = work_folder(data_dir)
    for split in splits:
        file = rf"{re.escape(split)}(-block-\d+\.tfrecord|(-block-\d+)?\.json)"
        is_work = re.compile(rf"{file}|\.{file}\.[0-9a-f]{{8}}\.tmp").fullmatch
        for path in list(work.glob("*")):
            if is_work(path.name):
                path.unlink(missing_ok=True)
    remove_files(work, [_RECORD_FILE])
    if not any(work.glob("*")):
        remove_folder(work)


def files_without_record(data_dir: Path) -> list[str]:
    """Returns the folder's other files, which are useless if the record is damaged or lost."""
    names = [path.name for path in work_folder(data_dir).glob("*")]
    return [f"{WORK_FOLDER}/{name}" for name in names if _RECORD_FILE not in name]


def _record_file(data_dir: Path) -> Path:
    return work_folder(data_dir) / _RECORD_FILE
