"""Paths of local files, and of remote ones (gs://BUCKET/FILE) with pathlib's methods.

TensorFlow is only imported for remote paths.
"""

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any, BinaryIO

from keras_transformer.support.errors import InputError, reason, require


def to_path(path: str | os.PathLike) -> "Path | RemotePath":
    """Returns a pathlib path, or a RemotePath for "SCHEME://..." other than "file://".

    Remote file systems are those of TensorFlow, and of tensorflow-io if installed.

    Raises:
        InputError: for invalid file names: NUL characters and lone surrogates.
    """
    text = os.fspath(path).removeprefix("file://")
    rule = "must be a valid file name"
    require("\0" not in text, "path", rule, ascii(text))
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise InputError("path", rule, ascii(text)) from None
    scheme, separator, _ = text.partition("://")
    if not separator or not scheme.isalnum():
        return Path(text)
    import tensorflow as tf

    if scheme not in tf.io.gfile.get_registered_schemes():
        with contextlib.suppress(ImportError):
            import tensorflow_io  # noqa: F401  (registers its own)
    return RemotePath(text)


def require_name(path: str | os.PathLike, argument: str) -> None:
    """Raises InputError for an empty path, which would mean the working directory."""
    require(os.fspath(path) != "", argument, "must be given: the name of a directory", "''")


class RemotePath(PurePosixPath):
    """A file or folder on a remote file system, with the methods of pathlib.Path.

    Every method raises an OSError if the file system refuses, as in pathlib. `etils.epath` does not
    replace it: it supports four schemes, but not the other file systems of TensorFlow.
    """

    def __str__(self) -> str:
        return super().__str__().replace(":/", "://", 1)  # pathlib keeps only one slash

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
        """Creates a folder with its parents, if there is none; the arguments are ignored."""
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
        """Renames a file; not all file systems can rename a folder."""
        if target != self:  # it would copy and then remove the file
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
        """Yields tf.io.gfile; in the block, TensorFlow's errors become OSErrors with this path."""
        import tensorflow as tf

        try:
            yield tf.io.gfile
        except tf.errors.NotFoundError:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), str(self)) from None
        except tf.errors.OpError as error:
            raise OSError(errno.EIO, reason(error), str(self)) from None


def resolved(path: str | os.PathLike) -> "Path | RemotePath":
    """Resolves all symbolic links in a path.

    Raises:
        InputError: if they form a loop.
    """
    path = to_path(path)
    if isinstance(path, RemotePath):
        return path
    target = Path(os.path.realpath(path))
    try:
        target.stat()
    except OSError as error:
        rule = "must lead to a file or folder"
        require(error.errno != errno.ELOOP, None, rule, "a loop of links", path)
    return target


def is_device(path: str | os.PathLike) -> bool:
    """Whether `path` is a pipe, a terminal or the like, which a file must not replace."""
    file = to_path(path)
    return file.exists() and not file.is_file() and not file.is_dir()


def cache_folder() -> Path:
    """Returns this library's folder in the user's cache, which need not exist."""
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(caches).expanduser() / "keras-transformer"


def remove_folder(path: "Path | RemotePath") -> None:
    """Removes a folder and its content, as far as possible."""
    if isinstance(path, Path):
        shutil.rmtree(path, ignore_errors=True)
        return
    with contextlib.suppress(OSError), path.file_system() as gfile:
        gfile.rmtree(str(path))
