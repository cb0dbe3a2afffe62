"""JSON files: written atomically, and checked when read."""

import json
import os
from typing import Any

from keras_transformer.support.errors import InputError, reason
from keras_transformer.support.fields import from_json
from keras_transformer.support.files.paths import to_path
from keras_transformer.support.files.reading import require_end
from keras_transformer.support.files.replacing import write_file

_MAX_DEPTH = 50  # levels of arrays and objects in JSON


def write_json(path: str | os.PathLike, content: Any) -> None:
    """Replaces a file by indented JSON, like `replacing`."""
    write_file(path, json.dumps(content, ensure_ascii=False, indent=2) + "\n")


def read_json(path: str | os.PathLike, kind: Any = dict[str, Any]) -> Any:
    """Reads a JSON file and checks it against an annotation.

    Args:
        path: the file, local or remote.
        kind: the required content, as for `fields.from_json`; an object if not given.

    Returns:
        The file's content, as returned by `fields.from_json`.

    Raises:
        InputError: if there is no such file, or it has other content.
        OSError: if it cannot be read.
    """
    require_end(path)
    try:
        content = to_path(path).read_bytes()
    except FileNotFoundError as error:
        raise InputError(None, "must be readable JSON", error.strerror, path) from None
    return parse_json(content, str(path), kind)


def parse_json(content: bytes, name: str, kind: Any) -> Any:
    """Parses JSON bytes, and checks them against an annotation.

    Args:
        content: JSON in UTF-8.
        name: the name of the content, for errors.
        kind: the required content, as for `fields.from_json`.

    Raises:
        InputError: if they have other content, or more than _MAX_DEPTH levels.
    """
    try:
        parsed = json.loads(content.decode("utf-8"))
        written = json.dumps(parsed, ensure_ascii=False, indent=1)  # a space for each level
        written.encode("utf-8")  # fails for lone surrogates, which are not text
        if "\n" + " " * _MAX_DEPTH in written:
            raise ValueError(f"more than {_MAX_DEPTH} levels")
    except (ValueError, RecursionError) as error:
        raise InputError(None, "must be readable JSON", reason(error), name) from None
    return from_json(kind, parsed, name)
