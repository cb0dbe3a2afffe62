"""Files that clients fetch a little later: kept for some minutes, under names of chance."""

import os
import re
import secrets
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

KEPT_SECONDS = 600.0
MOST_FILES = 64
_is_name = re.compile(r"[A-Za-z0-9_-]{32}(\.[A-Za-z0-9]{1,10})?").fullmatch


class FileStore:
    """Keeps the newest files for a while, in a folder that only this user may read.

    Several processes may share a store: it is made before they begin. The folder is removed when
    the process that made it ends.

    Args:
        clock: gives seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.time):
        self._clock = clock
        self._folder = tempfile.TemporaryDirectory(prefix="keras-transformer-")

    def add(self, content: bytes, ending: str) -> str:
        """Keeps a file, and returns its name: nobody can guess it.

        Args:
            content: of the file.
            ending: of the name, as ".md".
        """
        ending = ending if re.fullmatch(r"\.[A-Za-z0-9]{1,10}", ending) else ""
        name = secrets.token_urlsafe(24) + ending
        path = Path(self._folder.name, name)
        path.write_bytes(content)
        now = self._clock()
        os.utime(path, (now, now))
        self._forget()
        return name

    def get(self, name: str) -> bytes | None:
        """Returns a file; None for one that is not kept, or no longer."""
        self._forget()
        if not _is_name(name):
            return None
        try:
            return Path(self._folder.name, name).read_bytes()
        except FileNotFoundError:
            return None

    def _forget(self) -> None:
        """Removes files that are too old, and the oldest if there are too many."""
        ages = {}
        for entry in os.scandir(self._folder.name):
            try:
                ages[entry.path] = self._clock() - entry.stat().st_mtime
            except FileNotFoundError:  # another process has just removed it
                continue
        by_age = sorted(ages, key=ages.get)
        old = [path for path, age in ages.items() if age >= KEPT_SECONDS]
        for path in {*old, *by_age[MOST_FILES:]}:
            Path(path).unlink(missing_ok=True)
