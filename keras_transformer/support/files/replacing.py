"""Files and folders that are written atomically.

They are written under a temporary name next to their destination, and then renamed. TensorFlow
writes those on remote file systems.
"""

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from keras_transformer.support.files.paths import (
    RemotePath,
    is_device,
    remove_folder,
    resolved,
    to_path,
)

# Errors for files that cannot grow, which only writing raises.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Opens a file that atomically replaces `path` when the block ends.

    If the block raises an error, `path` is unchanged. If the process is killed or the power fails,
    `path` is either the old or the new file. The new file gets the old one's permissions. A
    symbolic link is kept, and its target is replaced. A pipe or a device is written to directly.

    Raises:
        OSError: if the file cannot be written; it names `path`.
        InputError: if symbolic links form a loop.
    """
    path = to_path(path)
    if is_device(path):  # before it is resolved: the target of /dev/stdout may have no path
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


def write_file(path: str | os.PathLike, content: bytes | str) -> None:
    """Replaces a file like `replacing`; text is written as UTF-8."""
    with replacing(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


@contextlib.contextmanager
def replacing_folder(path: str | os.PathLike, last: str | os.PathLike) -> Iterator[Path]:
    """Yields a new folder that replaces `path` when the block ends without an error.

    The old folder is renamed (see `replaced_folder`), the new one gets its name, and then the old
    one is removed. If the process is killed between the two renames, `put_back` restores the old
    folder's name. The new folder gets the old one's permissions.

    A remote folder cannot be renamed: the old one is removed, and the new one's files are copied
    one by one, `last` after all others, so that its presence means that the folder is complete.

    Args:
        path: the folder to replace or create.
        last: a file in the new folder, relative to it.

    Raises:
        OSError: if the folder cannot be written.
        InputError: if symbolic links form a loop.
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
    """Renames a new folder to an old one's name, and removes the old one, if any."""
    if not path.exists():
        new.rename(path)
        return
    old = replaced_folder(path)
    path.rename(old)
    try:
        new.rename(path)
    except OSError:
        put_back(path)
        raise
    shutil.rmtree(old, ignore_errors=True)


def replaced_folder(path: Path) -> Path:
    """Returns where an old folder is kept while it is being replaced."""
    return path.with_name(f".{path.name}.replaced")


def put_back(path: str | os.PathLike) -> None:
    """Restores an old folder's name if a program was killed while replacing it."""
    path = resolved(path)
    if isinstance(path, Path) and not path.exists():
        with contextlib.suppress(OSError):  # there is none, or it cannot be renamed
            replaced_folder(path).rename(path)


def _copy_to_remote(folder: Path, target: RemotePath, last: Path) -> None:
    """Copies the files in a local folder one by one, `last` after all others."""
    names = [file.relative_to(folder) for file in folder.rglob("*") if file.is_file()]
    names.sort(key=lambda name: name == last)
    for name in names:
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        with copy.file_system() as gfile:
            gfile.copy(str(folder / name), str(copy), overwrite=True)


def _make_file(path: Path, mode: int = 0o666) -> None:
    path.touch(mode, exist_ok=False)


@contextlib.contextmanager
def _temporary(
    path: "Path | RemotePath", make: Callable[..., None]
) -> Iterator["Path | RemotePath"]:
    """Creates a unique file or folder next to `path`, and removes it in the end.

    It is locked while its program runs. Leftovers of killed programs for the same `path` are not
    locked, and are removed first. Its permissions are at most those of `path`, except that the
    owner has all. Write errors name `path` instead of it.

    Args:
        path: the file or folder that it will replace.
        make: creates a local file or folder, with a `mode` if given.
    """
    remove_abandoned(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    mode = _permissions(path)
    options = {} if mode is None else {"mode": mode | stat.S_IRWXU}
    try:
        with _failures_named(path, temporary):
            if isinstance(path, RemotePath):
                yield temporary
                return
            make(temporary, **options)
            with _locked(temporary):
                yield temporary
    finally:
        _remove(temporary)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Locks a file or folder while the block runs, if the file system supports locks."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def remove_abandoned(path: "Path | RemotePath") -> None:
    """Removes the temporary files and folders that killed programs left next to `path`.

    Those of running programs are locked, and stay. So does everything on a file system without
    locks, such as a remote one.
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
    """Whether `name` is a temporary name for the file or folder `file`."""
    return re.fullmatch(rf"\.{re.escape(file)}\.[0-9a-f]{{8}}\.tmp", name) is not None


def _remove(path: "Path | RemotePath") -> None:
    """Removes a file or a folder, if there is one."""
    if path.is_dir():
        remove_folder(path)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _failures_named(
    path: "Path | RemotePath", temporary: "Path | RemotePath | None" = None
) -> Iterator[None]:
    """Sets the file name in write errors that have none or a temporary one."""
    try:
        yield
    except OSError as error:
        has_no_name = error.filename is None and error.errno in _NO_ROOM
        if has_no_name or (temporary is not None and error.filename == str(temporary)):
            raise OSError(error.errno, error.strerror, str(path)) from None
        raise


def _keep_permissions(old: "Path | RemotePath", new: "Path | RemotePath") -> None:
    """Copies the permissions of a local file or folder, if it exists, to its replacement."""
    mode = _permissions(old)
    if mode is not None and mode != _permissions(new):
        new.chmod(mode)


def _permissions(path: "Path | RemotePath") -> int | None:
    """Returns the permissions of a local file or folder; None if it does not exist."""
    if isinstance(path, RemotePath) or not path.exists():
        return None
    return stat.S_IMODE(path.stat().st_mode)
