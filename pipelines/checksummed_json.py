"""JSON files that hold a checksum of their own content, so that any change of them is found."""

import hashlib
import json
import os
from typing import Any

from keras_transformer.errors import InputError, require
from keras_transformer.fields import from_json
from keras_transformer.files.json_files import read_json, write_json
from keras_transformer.files.paths import to_path

_CHECKSUM = "checksum"  # the field that holds it


def write_checksummed(path: str | os.PathLike, content: dict[str, Any]) -> None:
    """Replaces a file by JSON of `content` and its checksum, as `replacing` does."""
    write_json(path, {**content, _CHECKSUM: _checksum(path, content)})


def read_checksummed(path: str | os.PathLike, kind: Any) -> Any:
    """Reads what `write_checksummed` has written.

    Args:
        path: the file.
        kind: what it must hold, as `fields.from_json` takes it.

    Raises:
        InputError: if the file cannot be read, holds anything else, or has been changed.
    """
    return checked(read_json(path), path, kind)


def checked(content: dict[str, Any], path: str | os.PathLike, kind: Any) -> Any:
    """Checks content that was read from `path`; see `read_checksummed`."""
    fields = {name: value for name, value in content.items() if name != _CHECKSUM}
    unchanged = content.get(_CHECKSUM) == _checksum(path, fields)
    rule = "must be as it was written: delete its folder, and prepare the data again"
    require(unchanged, None, rule, "a changed file", path)
    return from_json(kind, fields, path)


def read_checksummed_or_none(path: str | os.PathLike, kind: Any) -> Any:
    """What `read_checksummed` returns; None for a file that is missing or damaged."""
    try:
        return read_checksummed(path, kind)
    except InputError:
        return None


def _checksum(path: str | os.PathLike, content: dict[str, Any]) -> str:
    """A checksum of a file's content and name: one file is not taken for another."""
    text = json.dumps([to_path(path).name, content], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
