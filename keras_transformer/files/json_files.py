"""JSON files: written whole or not at all, and checked when they are read."""

import json
import os
from typing import Any

from keras_transformer.errors import InputError, reason
from keras_transformer.fields import from_json
from keras_transformer.files.paths import to_path
from keras_transformer.files.reading import require_end
from keras_transformer.files.replacing import write_file

_MAX_DEPTH = 50  # levels of arrays and objects in JSON


def write_json(path: str | os.PathLike, content: Any) -> None:
    """Replaces a file by indented JSON as `replacing` does."""
    write_file(path, json.dumps(content, ensure_ascii=False, indent=2) + "\n")


def read_json(path: str | os.PathLike, kind: Any = dict[str, Any]) -> Any:
    """Reads a JSON file and checks it against an annotation.

    Args:
        path: the file, local or remote.
        kind: what the file must hold, as `fields.from_json` takes it; an object if not given.

    Returns:
        The content of the file, as `fields.from_json` returns it.

    Raises:
        InputError: if there is no such file, or it holds anything else.
        OSError: if it cannot be read.
    """
    require_end(path)
    try:
        content = to_path(path).read_bytes()
    except FileNotFoundError as error:
        raise InputError(None, "must be readable JSON", error.strerror, path) from None
    return parse_json(content, str(path), kind)


def parse_json(content: bytes, name: str, kind: Any) -> Any:
    """Returns what bytes of JSON hold, checked against an annotation.

    Args:
        content: JSON in UTF-8.
        name: what the bytes are, for errors.
        kind: what they must hold, as `fields.from_json` takes it.

    Raises:
        InputError: if they hold anything else, or more than _MAX_DEPTH levels.
    """
    try:
        parsed = json.loads(content.decode("utf-8"))
        written = json.dumps(parsed, ensure_ascii=False, indent=1)  # a space for each level
        written.encode("utf-8")  # fails for half a surrogate pair, which is no text
        if "\n" + " " * _MAX_DEPTH in written:
            raise ValueError(f"more than {_MAX_DEPTH} levels")
    except (ValueError, RecursionError) as error:
        raise InputError(None, "must be readable JSON", reason(error), name) from None
    return from_json(kind, parsed, name)
