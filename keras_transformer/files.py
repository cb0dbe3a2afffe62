"""Files and folders: written whole or not at all, checked when they are read, locked while in use.

The standard library gives the operations, and TensorFlow those on remote files (gs://BUCKET/FILE),
for which alone it is imported. This module gives the guarantees and the one-line errors that every
part of the project needs alike.
"""

import codecs
import contextlib
import errno
import gzip
import importlib
import json
import os
import re
import secrets
import shutil
import socket
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any, BinaryIO

from absl import logging

from keras_transformer.errors import InputError, reason
from keras_transformer.fields import from_json

LOCK_HOLDER = b"process "  # what a lock file begins with, if a process has held the lock
_MAX_DEPTH = 50  # levels of arrays and objects in JSON


def to_path(path: str | os.PathLike) -> "Path | RemotePath":
    """Returns a path of pathlib, or a RemotePath for "SCHEME://...", except for "file://".

    Remote file systems are those that TensorFlow knows, and tensorflow-io where it is installed.
    """
    text = os.fspath(path).removeprefix("file://")
    scheme, separator, _ = text.partition("://")
    if not separator or not scheme.isalnum():
        return Path(text)
    import tensorflow as tf

    if scheme not in tf.io.gfile.get_registered_schemes():
        with contextlib.suppress(ImportError):
            import tensorflow_io  # noqa: F401  (registers its own)
    return RemotePath(text)


class RemotePath(PurePosixPath):
    """A file or folder of a file system that is not local, with the methods of pathlib.Path.

    Every method raises an OSError where the file system refuses, as those of pathlib do.
    """

    def __str__(self) -> str:
        return super().__str__().replace(":/", "://", 1)  # pathlib keeps one slash

    def resolve(self) -> "RemotePath":
        return self

    def exists(self) -> bool:
        with self.file_system() as gfile:
            return gfile.exists(str(self))

    def is_dir(self) -> bool:
        with self.file_system() as gfile:
            return gfile.isdir(str(self))

    def is_file(self) -> bool:
        return self.exists() and not self.is_dir()

    def stat(self) -> SimpleNamespace:
        with self.file_system() as gfile:
            return SimpleNamespace(st_size=gfile.stat(str(self)).length)

    def glob(self, pattern: str) -> Iterator["RemotePath"]:
        with self.file_system() as gfile:
            return map(RemotePath, gfile.glob(str(self / pattern)))

    def mkdir(self, parents: bool = False, exist_ok: bool = False) -> None:
        """Makes a folder with its parents, if there is none; the arguments change nothing."""
        with self.file_system() as gfile:
            gfile.makedirs(str(self))

    def touch(self) -> None:
        with self.open("ab") as file:
            file.write(b"")

    def unlink(self, missing_ok: bool = False) -> None:
        if not missing_ok or self.exists():
            with self.file_system() as gfile:
                gfile.remove(str(self))

    def replace(self, target: "RemotePath") -> None:
        """Gives a file another name; not all file systems can do this with a folder."""
        if target != self:  # a copy, and then the file would be removed
            with self.file_system() as gfile:
                gfile.rename(str(self), str(target), overwrite=True)

    @contextlib.contextmanager
    def open(self, mode: str, encoding: str | None = None) -> Iterator[BinaryIO]:
        """Opens a file to read ("rb"), write ("xb") or append to ("a", "ab")."""
        with self.file_system() as gfile, gfile.GFile(str(self), mode.replace("x", "w")) as file:
            yield file

    def read_bytes(self) -> bytes:
        with self.open("rb") as file:
            return file.read()

    @contextlib.contextmanager
    def file_system(self) -> Iterator[Any]:
        """Gives tf.io.gfile; in the block, errors of TensorFlow become OSErrors with this path."""
        import tensorflow as tf

        try:
            yield tf.io.gfile
        except tf.errors.NotFoundError:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), str(self)) from None
        except tf.errors.OpError as error:
            raise OSError(errno.EIO, reason(error), str(self)) from None


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Opens a file that takes the place of `path` when the block ends, and never a part of it.

    If the block raises an error, `path` stays as it was. If the process is killed or the power
    fails, `path` is either the old or the new file. A symbolic link is kept, and its target is
    replaced. A pipe or a device is written to.

    Raises:
        OSError: where the file cannot be written.
    """
    path = to_path(path).resolve()
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as file:
            yield file
        return
    temporary = _temporary(path)
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            if isinstance(path, Path):
                os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def replacing_folder(path: str | os.PathLike, last: str | os.PathLike) -> Iterator[Path]:
    """Gives a new folder that takes the place of `path` when the block ends without an error.

    A remote folder cannot be renamed: the old one is removed, and the files of the new one are
    copied one by one, `last` as the last of them. Whoever finds that file finds a whole folder.

    Args:
        path: the folder to replace or to make.
        last: a file of the new folder, relative to it.

    Raises:
        OSError: where the folder cannot be written.
    """
    path = to_path(path).resolve()
    if isinstance(path, RemotePath):
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
            remove_folder(path)
            _copy_to_remote(Path(folder), path, Path(last))
        return
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


def _copy_to_remote(folder: Path, target: RemotePath, last: Path) -> None:
    """Copies the files of a local folder one by one, `last` after all others."""
    names = [file.relative_to(folder) for file in folder.rglob("*") if file.is_file()]
    names.sort(key=lambda name: name == last)
    for name in names:
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        with copy.file_system() as gfile:
            gfile.copy(str(folder / name), str(copy), overwrite=True)


def remove_folder(path: "Path | RemotePath") -> None:
    """Removes a folder and all in it, as far as it exists and can be removed."""
    if isinstance(path, Path):
        shutil.rmtree(path, ignore_errors=True)
        return
    with contextlib.suppress(OSError), path.file_system() as gfile:
        gfile.rmtree(str(path))


def _temporary(path: "Path | RemotePath") -> "Path | RemotePath":
    """Returns a path beside `path` that no other process or thread uses."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")


is_temporary = re.compile(r"\..+\.[0-9a-f]{8}\.tmp").fullmatch  # a name that _temporary gives


def remove_temporaries(folder: "Path | RemotePath", pattern: str) -> None:
    """Removes what killed processes have left of files that they were replacing.

    Only for whom no other process writes these files at the same time.

    Args:
        folder: where the files are.
        pattern: of their names, as `glob` takes it.
    """
    for path in list(folder.glob(f".{pattern}.*.tmp")):
        if is_temporary(path.name):
            path.unlink(missing_ok=True)


def write_file(path: str | os.PathLike, content: bytes | str) -> None:
    """Replaces a file as `replacing` does; text is written as UTF-8."""
    with replacing(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


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
        InputError: if the file cannot be read, or holds anything else.
    """
    try:
        content = json.loads(to_path(path).read_bytes().decode("utf-8"))
        written = json.dumps(content, ensure_ascii=False, indent=1)  # a space for each level
        written.encode("utf-8")  # fails for half a surrogate pair, which is no text
        if "\n" + " " * _MAX_DEPTH in written:
            raise ValueError(f"more than {_MAX_DEPTH} levels")
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} must be readable JSON. Received: {reason(error)}") from None
    return from_json(kind, content, path)


@contextlib.contextmanager
def opened(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Opens a file to read its bytes, decompressed if its name ends in .gz or .zst.

    Raises:
        InputError: for a .zst file where the package that reads it is missing.
        zlib.error: where the compressed bytes are damaged.
    """
    with to_path(path).open("rb") as file:
        if str(path).endswith(".zst"):
            zstd = _zstandard(path)
            try:
                yield zstd.ZstdFile(file)
            except zstd.ZstdError as error:
                raise zlib.error(str(error)) from None
        elif str(path).endswith(".gz"):
            yield gzip.GzipFile(fileobj=file)
        else:
            yield file


def _zstandard(path: str | os.PathLike) -> Any:
    """Returns the module of Python 3.14, or the package that has it for earlier versions."""
    for name in ("compression.zstd", "backports.zstd"):
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    raise InputError(
        f"{path} needs a package (pip install backports.zstd). Received: none installed"
    )


def text_lines(file: Iterable[bytes], name: str) -> Iterator[str]:
    r"""Decodes the lines of a UTF-8 file, without line ends and an initial byte-order mark.

    Lines end at "\n" or "\r\n" and nowhere else: U+2028, U+0085 and a lone "\r" are characters of a
    line.

    Args:
        file: its lines as bytes, with their ends.
        name: of the file, for errors.

    Raises:
        InputError: naming the line that is not UTF-8.
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
def locked(path: str | os.PathLike, argument: str) -> Iterator[None]:
    """Holds the lock file `path` while the block runs, and makes its folder where there is none.

    The operating system releases the lock when the process ends, however it ends. The file may stay
    behind and then means nothing. Remote file systems have no locks, nor have some network file
    systems: there, the block runs without one, after a warning.

    Args:
        path: the lock file, which lies in the folder that it protects.
        argument: the caller's name of that folder, for errors, such as "model_dir".

    Raises:
        InputError: if another process holds the lock, or the folder cannot be written to.
    """
    import filelock  # takes 30 ms, and only some programs lock a folder

    path = to_path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as error:
        rule = f"{argument} must be a directory that can be written to"
        raise InputError(f"{rule}. Received: {path.parent} ({reason(error)})") from None
    if isinstance(path, RemotePath):
        _warn_of_no_lock(path, "it is remote")
        yield
        return
    lock = filelock.FileLock(path, blocking=False)
    try:
        lock.acquire()
    except filelock.Timeout:
        holder = path.read_bytes().decode().strip() or "another process"
        rule = f"{argument} must not be in use by another process"
        received = f"{path.parent}, locked by {holder} ({path})"
        raise InputError(f"{rule}. Received: {received}") from None
    except OSError as error:
        _warn_of_no_lock(path, reason(error))
    with contextlib.suppress(OSError):  # a note for others; the lock does not depend on it
        path.write_bytes(LOCK_HOLDER + f"{os.getpid()} on {socket.gethostname()}\n".encode())
    try:
        yield
    finally:
        lock.release()


def _warn_of_no_lock(path: "Path | RemotePath", why: str) -> None:
    """Says that nothing keeps a second process from using a folder at the same time."""
    rule = "use it by one process at a time"
    logging.warning("%s cannot be locked (%s): %s", path.parent, why, rule)
