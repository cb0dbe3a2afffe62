"""JSON files with a checksum of their own content, so that any change is detected."""

import hashlib
import json
import os
from typing import Any

from keras_transformer.errors import InputError, require
from keras_transformer.fields import from_json
from keras_transformer.files.json_files import read_json, write_json
from keras_transformer.files.paths import to_path

_CHECKSUM = "checksum"  # the checksum's field


def write_checksummed(path: str | os.PathLike, content: dict[str, Any]) -> None:
    """Replaces a file by `content` and its checksum as JSON, like `replacing`."""
    write_json(path, {**content, _CHECKSUM: _checksum(path, content)})


def read_checksummed(path: str | os.PathLike, kind: Any) -> Any:
    """Reads a file written by `write_checksummed`.

    Args:
        path: the file.
        kind: the required content, as for `fields.from_json`.

    Raises:
        InputError: if the file cannot be read, has other content, or was changed.
    """
    return checked(read_json(path), path, kind)


def checked(content: dict[str, Any], path: str | os.PathLike, kind: Any) -> Any:
    """Checks content read from `path`; see `read_checksummed`."""
    fields = {name: value for name, value in content.items() if name != _CHECKSUM}
    unchanged = content.get(_CHECKSUM) == _checksum(path, fields)
    rule = "must be unchanged: delete its folder, and prepare the data again"
    require(unchanged, None, rule, "a changed file", path)
    return from_json(kind, fields, path)


def read_checksummed_or_none(path: str | os.PathLike, kind: Any) -> Any:
    """Like `read_checksummed`; returns None for a missing or damaged file."""
    try:
        return read_checksummed(path, kind)
    except InputError:
        return None


def _checksum(path: str | os.PathLike, content: dict[str, Any]) -> str:
    """Returns a checksum of a file's content and name, so that files are not confused."""
    text = json.dumps([to_path(path).name, content], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
