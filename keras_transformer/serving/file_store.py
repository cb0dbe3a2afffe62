"""Files that clients fetch a little later: kept for some minutes, under random names."""

import secrets
import time
from collections.abc import Callable

KEPT_SECONDS = 600.0
MOST_FILES = 64
MOST_BYTES = 1 << 28  # of all files; the newest one is kept in any case


class FileStore:
    """Keeps the newest files in memory for a while.

    Args:
        clock: gives seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._files: dict[str, tuple[float, bytes]] = {}  # when each was added; the oldest first

    def add(self, content: bytes, ending: str) -> str:
        """Keeps a file, and returns its name: nobody can guess it.

        Args:
            content: of the file.
            ending: of the name, as ".md".
        """
        name = secrets.token_urlsafe(24) + ending
        self._files[name] = (self._clock(), content)
        self._forget()
        return name

    def get(self, name: str) -> bytes | None:
        """Returns a file; None for one that is not kept, or no longer."""
        self._forget()
        if name not in self._files:
            return None
        return self._files[name][1]

    def _forget(self) -> None:
        """Removes files that are too old, and the oldest if there is too much."""
        now = self._clock()
        size = sum(len(content) for _, content in self._files.values())
        for name, (added, content) in list(self._files.items()):
            is_too_much = len(self._files) > MOST_FILES or size > MOST_BYTES
            if (is_too_much and len(self._files) > 1) or now - added >= KEPT_SECONDS:
                del self._files[name]
                size -= len(content)
