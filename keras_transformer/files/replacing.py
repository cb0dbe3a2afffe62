"""Files and folders that are written whole or not at all.

They are written under another name beside their place, and then given their own. TensorFlow writes
those of remote file systems.
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

from keras_transformer.files.paths import RemotePath, is_device, remove_folder, resolved, to_path

# The errors of a file that cannot become larger, which only writing raises.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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


def write_file(path: str | os.PathLike, content: bytes | str) -> None:
    """Replaces a file as `replacing` does; text is written as UTF-8."""
    with replacing(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


@contextlib.contextmanager
def replacing_folder(path: str | os.PathLike, last: str | os.PathLike) -> Iterator[Path]:
    """Gives a new folder that takes the place of `path` when the block ends without an error.

    The old folder is renamed (see `replaced_folder`), the new one gets its name, and then the old
    one is removed. If the process is killed between the two renames, `put_back` gives the old
    folder its name again. The new folder has the permissions of the old one.

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
    """Gives a new folder the name of an old one, if there is one, which is removed."""
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
    """Where an old folder is while a new one takes its place."""
    return path.with_name(f".{path.name}.replaced")


def put_back(path: str | os.PathLike) -> None:
    """Gives an old folder its name again if a program was killed before the new one had it."""
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
    """Locks a file or folder while the block runs, where the file system has locks."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


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
