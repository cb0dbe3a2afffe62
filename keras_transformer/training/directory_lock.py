"""One training process a model directory: a lock on a file, which dies with its process."""

import contextlib
import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from absl import logging

from keras_transformer.errors import InputError, reason


@contextlib.contextmanager
def locked(model_dir: str | Path) -> Iterator[None]:
    """Keeps other processes from training in `model_dir`, which may not exist yet.

    The file stays behind and means nothing by itself: the operating system drops the lock when the
    process ends, however it ends.

    Raises:
        InputError: where another process holds the lock, or the directory cannot be made.
    """
    path = Path(model_dir) / "lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(path, "a+", encoding="utf-8")  # noqa: SIM115  (closed below: it is the lock)
    except OSError as error:
        rule = "--model_dir must be a directory that can be written to"
        raise InputError(f"{rule}. Received: {model_dir} ({reason(error)})") from None
    with file:
        _lock(file, path)
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        yield


def _lock(file, path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            # Some network file systems have no locks; training there must go on.
            logging.warning("%s cannot be locked (%s): train once at a time", path, reason(error))
            return
        file.seek(0)
        raise InputError(
            "--model_dir must not be in use by another process. Received: "
            f"{path.parent}, locked by {file.read().strip() or 'another process'} ({path})"
        ) from None
