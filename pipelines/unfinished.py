"""The folder of a preparation under way: what it has written, and its own record of that.

The record is written before any other file, and names every file that the preparation will write.
So a preparation that begins anew removes these, and none that only have similar names. It holds the
vocabularies as soon as they are complete; after that the preparation can be resumed.
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
    """What an interrupted preparation needs to be resumed, beside its blocks and shards."""

    settings: dict[str, Any]  # of source and configuration, as metadata.json has them
    splits: list[FileName]
    files: list[FileName]  # all that is written to the data directory but metadata.json
    vocabularies: dict[FileName, str]  # those that are complete: file -> SHA-256


def work_folder(data_dir: Path) -> Path:
    """The folder of the preparation under way in a data directory."""
    return data_dir / WORK_FOLDER


def write_record(data_dir: Path, record: WorkRecord) -> None:
    """Writes the record; makes its folder if there is none."""
    work_folder(data_dir).mkdir(exist_ok=True)
    write_checksummed(_record_file(data_dir), dataclasses.asdict(record))


def read_record(data_dir: Path) -> WorkRecord | None:
    """The record; None where there is none, or it is damaged."""
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
    """The files of the folder but the record; they mean nothing where that is damaged or lost."""
    names = [path.name for path in work_folder(data_dir).glob("*")]
    return [f"{WORK_FOLDER}/{name}" for name in names if _RECORD_FILE not in name]


def _record_file(data_dir: Path) -> Path:
    return work_folder(data_dir) / _RECORD_FILE
