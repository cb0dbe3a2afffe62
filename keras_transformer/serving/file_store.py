"""Files that clients fetch a little later: in memory, for some minutes, under names of chance."""

import re
import secrets
import time
from collections.abc import Callable

KEPT_SECONDS = 600.0
MOST_FILES = 64


class FileStore:
    """Keeps the newest files for a while.

    Args:
        clock: gives seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._files: dict[str, tuple[float, bytes]] = {}  # name: until when, and what

    def add(self, content: bytes, ending: str) -> str:
        """Keeps a file, and returns its name: nobody can guess it.

        Args:
            content: of the file.
            ending: of the name, as ".md".
        """
        self._forget()
        while len(self._files) >= MOST_FILES:
            del self._files[next(iter(self._files))]
        ending = ending if re.fullmatch(r"\.[A-Za-z0-9]{1,10}", ending) else ""
        name = secrets.token_urlsafe(24) + ending
        self._files[name] = (self._clock() + KEPT_SECONDS, content)
        return name

    def get(self, name: str) -> bytes | None:
        """Returns a file; None for one that is not kept, or no longer."""
        self._forget()
        _, content = self._files.get(name, (0.0, None))
        return content

    def _forget(self) -> None:
        now = self._clock()
        self._files = {name: file for name, file in self._files.items() if file[0] > now}
