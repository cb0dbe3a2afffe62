"""Files and folders: written whole or not at all, checked when they are read, locked while in use.

The standard library gives the operations, and TensorFlow those on remote files (gs://BUCKET/FILE),
for which alone it is imported. This module gives the guarantees and the one-line errors that every
part of the project needs alike.
"""

import codecs
import contextlib
import ctypes
import errno
import fcntl
import gzip
import hashlib
import importlib
import json
import os
import re
import secrets
import shutil
import socket
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any, BinaryIO

from absl import logging

from keras_transformer.errors import InputError, reason, require
from keras_transformer.fields import from_json

LOCK_HOLDER = b"process "  # what a lock file begins with, if a process has held the lock
_MAX_DEPTH = 50  # levels of arrays and objects in JSON
# The errors of a file that cannot become larger, which only writing raises.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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
    fails, `path` is either the old or the new file. The new file has the permissions of the old
    one. A symbolic link is kept, and its target is replaced. A pipe or a device is written to.

    Raises:
        OSError: where the file cannot be written; it names `path`.
        InputError: where symbolic links lead to each other.
    """
    path = to_path(path)
    if is_device(path):  # before it is resolved: what /dev/stdout leads to may have no path
        with _failures_named(path), path.open("wb") as file:
            yield file
        return
    path = resolved(path)
    with _temporary(path, _make_file) as temporary:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            if isinstance(path, Path):
                os.fsync(file.fileno())
        _keep_permissions(path, temporary)
        temporary.replace(path)


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
        is_loop = error.errno == errno.ELOOP
        require(
            not is_loop, f"{path} must lead to a file or folder", "links that lead to each other"
        )
    return target


@contextlib.contextmanager
def _failures_named(
    path: "Path | RemotePath", temporary: "Path | RemotePath | None" = None
) -> Iterator[None]:
    """Gives errors of writing the name of a file, where they have none or a temporary one."""
    try:
        yield
    except OSError as error:
        has_no_name = error.filename is None and error.errno in _NO_ROOM
        if has_no_name or (temporary is not None and error.filename == str(temporary)):
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def _keep_permissions(old: "Path | RemotePath", new: "Path | RemotePath") -> None:
    """Gives what takes the place of a local file or folder, if there is one, its permissions."""
    mode = _permissions(old)
    if mode is not None and mode != _permissions(new):
        new.chmod(mode)


def _permissions(path: "Path | RemotePath") -> int | None:
    """The permissions of a local file or folder; None where there is none."""
    if isinstance(path, RemotePath) or not path.exists():
        return None
    return stat.S_IMODE(path.stat().st_mode)


@contextlib.contextmanager
def replacing_folder(path: str | os.PathLike, last: str | os.PathLike) -> Iterator[Path]:
    """Gives a new folder that takes the place of `path` when the block ends without an error.

    If the process is killed, `path` is either the old or the new folder. Where the system cannot
    exchange two folders in one step, there is a moment in which the old one waits under another
    name (see `replaced_folder`), and `put_back` gives it its own again. The new folder has the
    permissions of the old one.

    A remote folder cannot be renamed: the old one is removed, and the files of the new one are
    copied one by one, `last` as the last of them. Whoever finds that file finds a whole folder.

    Args:
        path: the folder to replace or to make.
        last: a file of the new folder, relative to it.

    Raises:
        OSError: where the folder cannot be written.
        InputError: where symbolic links lead to each other.
    """
    path = resolved(path)
    if isinstance(path, RemotePath):
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
            remove_folder(path)
            _copy_to_remote(Path(folder), path, Path(last))
        return
    put_back(path)
    if path.exists():
        shutil.rmtree(replaced_folder(path), ignore_errors=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    with _temporary(path, Path.mkdir) as new:
        yield new
        _keep_permissions(path, new)
        _put_in_place(new, path)


def _put_in_place(new: Path, path: Path) -> None:
    """Gives a new folder the name of an old one; the old one is removed, or gets the new's name."""
    if not path.exists():
        new.rename(path)
        return
    if _exchange(new, path):
        return
    old = replaced_folder(path)
    path.rename(old)
    try:
        new.rename(path)
    except OSError:
        old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _exchange(first: Path, second: Path) -> bool:
    """Exchanges two folders in one step, as Linux can; returns whether it was done."""
    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE
    return renameat2(here, os.fsencode(first), here, os.fsencode(second), exchange) == 0


def replaced_folder(path: Path) -> Path:
    """Where an old folder waits while a new one takes its place, if it must be moved first."""
    return path.with_name(f".{path.name}.replaced")


def put_back(path: str | os.PathLike) -> None:
    """Gives an old folder its name again, if a program was killed before the new one was there."""
    path = resolved(path)
    if isinstance(path, Path) and not path.exists():
        with contextlib.suppress(OSError):  # there is none, or it cannot be renamed
            replaced_folder(path).rename(path)


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


def _make_file(path: Path, mode: int = 0o666) -> None:
    path.touch(mode, exist_ok=False)


@contextlib.contextmanager
def _temporary(
    path: "Path | RemotePath", make: Callable[..., None]
) -> Iterator["Path | RemotePath"]:
    """Makes a file or folder beside `path` that nobody else uses, and removes it in the end.

    It is locked while its program runs. What a killed program has left for the same `path` has no
    lock, and is removed first. Nobody may do more with it than with `path`, except for its owner,
    who has all permissions. Errors of writing name `path` in place of it.

    Args:
        path: what it will take the place of.
        make: makes a local file or folder, with a `mode` if one is given.
    """
    remove_abandoned(path)
    mode = _permissions(path)
    options = {} if mode is None else {"mode": mode | stat.S_IRWXU}
    lock = None
    while lock is None:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
        if isinstance(temporary, RemotePath):
            break
        with _failures_named(path, temporary), contextlib.suppress(FileExistsError):
            make(temporary, **options)
            lock = _lock_new(temporary)
    try:
        with _failures_named(path, temporary):
            yield temporary
    finally:
        _remove(temporary)
        if lock is not None:
            os.close(lock)


def _lock_new(path: Path) -> int | None:
    """Opens a new file or folder, and locks it where the file system has locks.

    Returns:
        The descriptor that holds the lock, or None where another program has removed the file: it
        was taken for one of a killed program.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    if path.exists():
        return descriptor
    os.close(descriptor)
    return None


def remove_abandoned(path: "Path | RemotePath") -> None:
    """Removes the temporary files and folders that killed programs have left beside `path`.

    Those of programs that still run are locked, and stay. So does all that is on a file system
    without locks, such as a remote one.
    """
    if isinstance(path, RemotePath):
        return
    try:
        names = [name for name in os.listdir(path.parent) if is_temporary(name, path.name)]
    except OSError:  # there is no such folder, or its names cannot be read
        return
    for name in names:
        with contextlib.suppress(OSError):
            lock = os.open(path.parent / name, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path.parent / name)
            finally:
                os.close(lock)


def is_temporary(name: str, file: str) -> bool:
    """Whether `name` is one that a file or folder called `file` has while it is being written."""
    return re.fullmatch(rf"\.{re.escape(file)}\.[0-9a-f]{{8}}\.tmp", name) is not None


def _remove(path: "Path | RemotePath") -> None:
    """Removes a file or a folder, if there is one."""
    if path.is_dir():
        remove_folder(path)
    else:
        path.unlink(missing_ok=True)


def is_device(path: str | os.PathLike) -> bool:
    """Whether `path` is a pipe, a terminal or the like, which a file must not take the place of."""
    file = to_path(path)
    return file.exists() and not file.is_file() and not file.is_dir()


def require_end(path: str | os.PathLike, argument: str = "") -> None:
    """Refuses to read a device such as /dev/zero, which has no end.

    Pipes, terminals and the empty device are read like files.

    Args:
        path: what is to be read.
        argument: what the caller calls it, for errors; the path if not given.

    Raises:
        InputError: for such a device.
    """
    file = to_path(path)
    if isinstance(file, RemotePath) or not file.is_char_device():
        return
    if file.samefile(os.devnull):
        return
    descriptor = os.open(file, os.O_RDONLY | os.O_NOCTTY)
    is_terminal = os.isatty(descriptor)
    os.close(descriptor)
    rule = f"{argument or path} must be a file, a pipe or a terminal"
    require(is_terminal, rule, f"{path}, a device")


def file_digest(path: str | os.PathLike) -> str:
    """Returns the SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with to_path(path).open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


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
    require_end(path)
    try:
        content = to_path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path} must be readable JSON. Received: {reason(error)}") from None
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
        raise InputError(f"{name} must be readable JSON. Received: {reason(error)}") from None
    return from_json(kind, parsed, name)


@contextlib.contextmanager
def opened(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Opens a file to read its bytes, decompressed if its name ends in .gz or .zst.

    Raises:
        InputError: for a .zst file where the package that reads it is missing, and for a device
            that has no end.
        zlib.error: where the compressed bytes are damaged.
    """
    require_end(path)
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


def text_lines(file: Iterable[bytes], name: str, keep_ends: bool = False) -> Iterator[str]:
    r"""Decodes the lines of a UTF-8 file, without line ends and an initial byte-order mark.

    Lines end at "\n" or "\r\n" and nowhere else: U+2028, U+0085 and a lone "\r" are characters of a
    line.

    Args:
        file: its lines as bytes, with their ends.
        name: of the file, for errors.
        keep_ends: whether line ends and byte-order mark are kept.

    Raises:
        InputError: naming the line that is not UTF-8.
    """
    for number, line in enumerate(file, start=1):
        if number == 1 and not keep_ends:
            line = line.removeprefix(codecs.BOM_UTF8)
        if not keep_ends:
            line = line.removesuffix(b"\n").removesuffix(b"\r")
        try:
            yield line.decode("utf-8")
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
