"""Files for later download, kept for some minutes under random names."""

import secrets
import time
from collections.abc import Callable

KEPT_SECONDS = 600.0
MOST_FILES = 64
MOST_BYTES = 1 << 28  # of all files together; the newest one is always kept


class FileStore:
    """Keeps the newest files in memory for a while.

    Args:
        clock: returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._files: dict[str, tuple[float, bytes]] = {}  # when each was added; oldest first

    def add(self, content: bytes, ending: str) -> str:
        """Stores a file, and returns its unguessable name.

        Args:
            content: the file's bytes.
            ending: the suffix, such as ".md".
        """
        name = secrets.token_urlsafe(24) + ending
        self._files[name] = (self._clock(), content)
        self._forget()
        return name

    def get(self, name: str) -> bytes | None:
        """Returns a file; None if unknown or no longer kept."""
        self._forget()
        if name not in self._files:
            return None
        return self._files[name][1]

    def _forget(self) -> None:
        """Removes files that are too old, and the oldest ones beyond the size limit."""
        now = self._clock()
        size = sum(len(content) for _, content in self._files.values())
        for name, (added, content) in list(self._files.items()):
            is_too_much = len(self._files) > MOST_FILES or size > MOST_BYTES
            if (is_too_much and len(self._files) > 1) or now - added >= KEPT_SECONDS:
                del self._files[name]
                size -= len(content)
