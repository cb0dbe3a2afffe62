"""The files of checkpoints: written whole or not at all, and removed whole or not at all.

A checkpoint is three files: TensorFlow's NAME.data-00000-of-00001 and NAME.index, and NAME.json,
its record (checkpoint_record.py). They have other names until all three are on the disk, and are
marked before they are removed. So what a killed process has left is told from checkpoints by its
name, and nothing else is ever removed.
"""

import contextlib
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_transformer.errors import reason, with_file_name
from keras_transformer.files.json_files import write_json
from keras_transformer.files.paths import remove_folder
from keras_transformer.training.checkpoint_record import CheckpointRecord

_WRITING = "writing-"  # before the names of files until a checkpoint is complete
_REMOVING = "removing-"  # before the name of a record whose checkpoint is being removed
_DAMAGED = "damaged-"  # before the names of files that a run could not resume from


def write_checkpoint(directory: Path, record: CheckpointRecord, trackables: dict[str, Any]) -> None:
    """Writes a checkpoint, which has its name when all of it is on the disk.

    Raises:
        OSError: where it cannot be written; it names a file. Nothing is left of it then.
    """
    name = _WRITING + record.name
    try:
        tf.train.Checkpoint(**trackables).write(str(directory / name))
        write_json(directory / f"{name}.json", record.to_json())
        _rename_all(directory, name, record.name)
    except (OSError, tf.errors.OpError) as error:
        with contextlib.suppress(OSError):
            recover_checkpoints(directory, record.name)
        raise with_file_name(error, directory / record.name) from None


def _rename_all(directory: Path, name: str, new_name: str) -> None:
    """Renames the files of a checkpoint, its record as the last of them."""
    files = sorted(directory.glob(f"{name}.*"), key=lambda file: file.suffix == ".json")
    for file in files:
        file.replace(directory / (new_name + file.name.removeprefix(name)))


def recover_checkpoints(directory: Path, prefix: str) -> None:
    """Finishes what a killed process has begun with checkpoints whose names have a prefix.

    One whose record had been written was complete but for its name. Of another, what there is of it
    is removed.
    """
    for mark in list(directory.glob(f"{_WRITING}{prefix}*.json")):
        name = mark.name.removesuffix(".json")
        _rename_all(directory, name, name.removeprefix(_WRITING))
    for path in list(directory.glob(f"{_WRITING}{prefix}*")):
        if path.is_dir():
            remove_folder(path)
        else:
            path.unlink()
    for path in list(directory.glob(f".{_WRITING}{prefix}*.json.*.tmp")):
        path.unlink(missing_ok=True)
    for mark in list(directory.glob(f"{_REMOVING}{prefix}*.json")):
        _remove_marked(directory, mark.name.removeprefix(_REMOVING).removesuffix(".json"))


def _remove_marked(directory: Path, name: str) -> None:
    """Removes the files of a checkpoint that has been marked, and the mark after them."""
    if not (directory / f"{name}.json").exists():  # else it was written again
        for path in list(directory.glob(f"{name}.*")):
            path.unlink()
    (directory / f"{_REMOVING}{name}.json").unlink()


def remove_checkpoint(directory: Path, name: str) -> None:
    """Removes the files of a checkpoint."""
    (directory / f"{name}.json").replace(directory / f"{_REMOVING}{name}.json")
    _remove_marked(directory, name)


def put_aside(directory: Path, name: str) -> None:
    """Gives a damaged checkpoint names under which nothing reads or removes it."""
    _rename_all(directory, name, _DAMAGED + name)


def damage_of(error: BaseException) -> str:
    """What is said of a checkpoint that could not be read, beside the text of TensorFlow."""
    return f"damaged or missing files ({reason(error)})"
