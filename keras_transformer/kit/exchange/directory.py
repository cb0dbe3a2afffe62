"""An export's directory: written atomically, with a card that describes it."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from keras_transformer.support.errors import InputError, require, with_file_name
from keras_transformer.support.fields import from_json
from keras_transformer.support.files.json_files import read_json, write_json
from keras_transformer.support.files.paths import resolved, to_path
from keras_transformer.support.files.replacing import put_back, replacing_folder
from keras_transformer.use.store.card import CARD, FORMAT_VERSION, ModelCard, file_sizes


def check_export_dir(export_dir: str | os.PathLike, overwrite: bool) -> None:
    """Raises InputError if writing would replace anything but an export, or needs `overwrite`.

    A folder with an export and other files is not replaced either: the error names one of them.
    """
    export_dir = to_path(export_dir)
    put_back(export_dir)
    if export_dir.exists() and not (export_dir.is_dir() and not any(export_dir.glob("*"))):
        rule = "must not exist yet, or be empty, without overwrite"
        require(overwrite, "export_dir", rule, repr(str(export_dir)))
        rule = "must only replace an earlier export"
        is_export = (export_dir / CARD).is_file()
        require(is_export, "overwrite", rule, f"export_dir={str(export_dir)!r}")
        for file in _other_files(export_dir):
            raise InputError("overwrite", rule, f"{file}, which was not written by an export")


def _other_files(export_dir: Path) -> Iterator[Path]:
    """Yields the files in an export's folder that its card does not list."""
    content = read_json(export_dir / CARD)
    exported = from_json({"files": dict[str, Any]}, content, export_dir / CARD)["files"]
    for folder, _, names in tf.io.gfile.walk(str(export_dir)):
        for name in names:
            file = to_path(folder) / name
            path = file.relative_to(export_dir)
            if path != CARD and path.as_posix() not in exported:
                yield file


def write_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Writes the files of an export into its new folder; `contents` has them by name."""
    for name, content in contents.items():
        (folder / name).write_bytes(content)


def write_export(
    write: Callable[[Path], None],
    export_dir: str | os.PathLike,
    card: ModelCard,
    overwrite: bool = False,
) -> int:
    """Writes an export atomically.

    Args:
        write: writes the export's files into a new folder.
        export_dir: the export's directory; it must not exist, or be empty.
        card: the model card; it is written last.
        overwrite: whether to replace an earlier export.

    Returns:
        The size in bytes.

    Raises:
        InputError: if `export_dir` contains something else.
        OSError: if it cannot be written.
    """
    export_dir = resolved(export_dir)
    check_export_dir(export_dir, overwrite)
    try:
        with replacing_folder(export_dir, CARD) as folder:
            (folder / CARD).parent.mkdir()
            write(folder)
            sizes = file_sizes(folder)
            content = {"format_version": FORMAT_VERSION, **card.to_json(), "files": sizes}
            write_json(folder / CARD, content)
    except (OSError, tf.errors.OpError) as error:
        raise with_file_name(error, export_dir) from None
    return sum(file_sizes(export_dir).values())
