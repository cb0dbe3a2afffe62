"""Paths of local files, and of remote ones (gs://BUCKET/FILE) with the methods of pathlib.

TensorFlow is imported for remote ones alone.
"""

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any, BinaryIO

from keras_transformer.errors import InputError, reason, require


def to_path(path: str | os.PathLike) -> "Path | RemotePath":
    """Returns a path of pathlib, or a RemotePath for "SCHEME://...", except for "file://".

    Remote file systems are those that TensorFlow knows, and tensorflow-io where it is installed.

    Raises:
        InputError: for what no file can be called: NUL characters, and halves of surrogate pairs.
    """
    text = os.fspath(path).removeprefix("file://")
    rule = "must be a name that a file can have"
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
    """Raises InputError for an empty path, which would stand for the working directory."""
    require(os.fspath(path) != "", argument, "must be given: the name of a directory", "''")


class RemotePath(PurePosixPath):
    """A file or folder of a file system that is not local, with the methods of pathlib.Path.

    Every method raises an OSError where the file system refuses, as those of pathlib do.
    """

    def __str__(self) -> str:
        return super().__str__().replace(":/", "://", 1)  # pathlib keeps one slash

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


def resolved(path: str | os.PathLike) -> "Path | RemotePath":
    """Returns what a path leads to where all symbolic links are followed.

    Raises:
        InputError: where they lead to each other.
    """
    path = to_path(path)
    if isinstance(path, RemotePath):
        return path
    target = Path(os.path.realpath(path))
    try:
        target.stat()
    except OSError as error:
        rule = "must lead to a file or folder"
        require(error.errno != errno.ELOOP, None, rule, "links that lead to each other", path)
    return target


def is_device(path: str | os.PathLike) -> bool:
    """Whether `path` is a pipe, a terminal or the like, which a file must not take the place of."""
    file = to_path(path)
    return file.exists() and not file.is_file() and not file.is_dir()


def remove_folder(path: "Path | RemotePath") -> None:
    """Removes a folder and all in it, as far as it exists and can be removed."""
    if isinstance(path, Path):
        shutil.rmtree(path, ignore_errors=True)
        return
    with contextlib.suppress(OSError), path.file_system() as gfile:
        gfile.rmtree(str(path))
