"""Files and folders: written whole or not at all, checked when they are read, locked while in use.

The standard library gives the operations; this module gives the guarantees and the one-line errors
that every part of the project needs alike. It imports neither TensorFlow nor Keras.
"""

import codecs
import contextlib
import json
import os
import secrets
import shutil
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from absl import logging

from keras_transformer.errors import InputError, reason
from keras_transformer.fields import from_json

_MAX_DEPTH = 50  # levels of arrays and objects in JSON


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Opens a file that takes the place of `path` when the block ends, and never a part of it.

    If the block raises an error, `path` stays as it was. If the process is killed or the power
    fails, `path` is either the old or the new file. A symbolic link is kept, and its target is
    replaced.
    """
    path = Path(os.path.realpath(path))
    temporary = _temporary(path)
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def replacing_folder(path: str | os.PathLike) -> Iterator[Path]:
    """Gives a new folder that takes the place of `path` when the block ends without an error."""
    path = Path(os.path.realpath(path))
    new, old = _temporary(path), _temporary(path)
    try:
        new.mkdir(parents=True)
        yield new
        if path.exists():
            path.rename(old)
        new.rename(path)
    finally:
        if old.exists() and not path.exists():
            old.rename(path)
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _temporary(path: Path) -> Path:
    """A name beside `path` that no other process or thread uses."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")


def write_file(path: str | os.PathLike, content: bytes | str) -> None:
    """Replaces a file as `replacing` does; text is written as UTF-8."""
    with replacing(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


def write_json(path: str | os.PathLike, content: Any) -> None:
    """Replaces a file by indented JSON as `replacing` does."""
    write_file(path, json.dumps(content, ensure_ascii=False, indent=2) + "\n")


def read_json(path: str | os.PathLike, kind: Any = dict[str, Any]) -> Any:
    """Reads a JSON file, checked against the annotation `kind` as of fields.from_json.

    Raises InputError if it cannot be read, or holds anything else.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        written = json.dumps(content, ensure_ascii=False, indent=1)
        written.encode("utf-8")  # half a surrogate pair is no text
        if "\n" + " " * _MAX_DEPTH in written:
            raise ValueError(f"more than {_MAX_DEPTH} levels")
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} must be readable JSON. Received: {reason(error)}") from None
    return from_json(kind, content, path)


def text_lines(file: Iterable[bytes], name: str) -> Iterator[str]:
    r"""Decodes the lines of a UTF-8 file, without line ends and an initial byte-order mark.

    Lines end at "\n" or "\r\n" and nowhere else: U+2028, U+0085 and a lone "\r" are characters of a
    line. An InputError names the file, as `name`, and the line that is not UTF-8.
    """
    for number, line in enumerate(file, start=1):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            byte = f"byte 0x{line[error.start]:02x} at column {error.start + 1}"
            raise InputError(f"{name}:{number} must be UTF-8. Received: {byte}") from None


@contextlib.contextmanager
def locked(path: str | os.PathLike, flag: str) -> Iterator[None]:
    """Holds the lock file `path` while the block runs, and makes its folder where there is none.

    The operating system drops the lock when the process ends, however it ends; the file may stay
    behind and then means nothing.

    Raises:
        InputError: naming the folder by its `flag`, such as "--model_dir", if another process holds
            the lock or the folder cannot be written to.
    """
    import filelock  # takes 30 ms, and only some programs lock a folder

    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as error:
        rule = f"{flag} must be a directory that can be written to"
        raise InputError(f"{rule}. Received: {path.parent} ({reason(error)})") from None
    lock = filelock.FileLock(path, blocking=False)
    try:
        lock.acquire()
    except filelock.Timeout:
        holder = path.read_text().strip() or "another process"
        rule = f"{flag} must not be in use by another process"
        received = f"{path.parent}, locked by {holder} ({path})"
        raise InputError(f"{rule}. Received: {received}") from None
    except OSError as error:  # some network file systems have no locks
        logging.warning("%s cannot be locked (%s): use it once at a time", path, reason(error))
    with contextlib.suppress(OSError):  # a note for others; the lock does not depend on it
        path.write_text(f"process {os.getpid()} on {socket.gethostname()}\n")
    try:
        yield
    finally:
        lock.release()
