"""Locks for folders that only one process at a time may write to.

Remote folders have no lock: object stores have none, and TensorFlow cannot create a file only if it
does not exist. A warning asks for one process at a time.
"""

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from absl import logging

from keras_transformer.support.errors import InputError, reason
from keras_transformer.support.files.paths import RemotePath, to_path

LOCK_HOLDER = b"process "  # beginning of a lock file, once a process has held the lock


@contextlib.contextmanager
def locked(path: str | os.PathLike, argument: str, wait_seconds: float = 0) -> Iterator[None]:
    """Holds the lock file `path` while the block runs, creating its folder if needed.

    The operating system releases the lock when the process ends, however it ends. The file may stay
    behind and then means nothing. Remote file systems have no locks, nor have some network file
    systems: there, the block runs without one, after a warning.

    Args:
        path: the lock file, which lies in the folder that it protects.
        argument: the caller's name of that folder, for errors, such as "model_dir".
        wait_seconds: how long to wait for another process to release the lock.

    Raises:
        InputError: if another process holds the lock.
        OSError: if the folder cannot be created or written to.
    """
    import filelock  # takes 30 ms, and only some programs lock a folder

    path = to_path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    if isinstance(path, RemotePath):
        _warn_of_no_lock(path, "it is remote")
        yield
        return
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=wait_seconds)
    except filelock.Timeout:
        holder = path.read_bytes().decode().strip() or "another process"
        received = f"{path.parent}, locked by {holder} ({path})"
        raise InputError(argument, "must not be in use by another process", received) from None
    except OSError as error:
        _warn_of_no_lock(path, reason(error))
    with contextlib.suppress(OSError):  # a note for people; the lock does not depend on it
        path.write_bytes(LOCK_HOLDER + f"{os.getpid()} on {socket.gethostname()}\n".encode())
    try:
        yield
    finally:
        lock.release()


def _warn_of_no_lock(path: "Path | RemotePath", why: str) -> None:
    """Warns that nothing keeps a second process from using a folder at the same time."""
    rule = "use it from one process at a time"
    logging.warning("%s cannot be locked (%s): %s", path.parent, why, rule)
