"""Progress bars on stderr, which a terminal redraws. Anywhere else, they are a line a minute."""

import io
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from tqdm import tqdm

SECONDS_BETWEEN_LINES = 60
PICTURE = "|{bar}|"  # in a bar's format


def progress_bar(items: Iterable | None = None, **options: Any) -> tqdm:
    """Returns a progress bar.

    In a file or a pipe, work that takes less than a minute shows nothing.

    Args:
        items: what to iterate over; None to call the bar's `update`.
        options: of tqdm. With a `delay`, a bar without a total does not begin at 0.
    """
    if sys.stderr.isatty():
        return tqdm(items, **options)
    options |= {
        "file": _Lines(sys.stderr),
        "delay": SECONDS_BETWEEN_LINES,
        "mininterval": SECONDS_BETWEEN_LINES,
        "maxinterval": SECONDS_BETWEEN_LINES,
    }
    if "bar_format" in options:
        options["bar_format"] = options["bar_format"].replace(PICTURE, ",")
    else:
        options["ncols"] = 0  # no picture of a bar
    return tqdm(items, **options)


class AboveBars(io.TextIOBase):
    """stderr as a stream whose lines appear above the progress bars of a terminal."""

    def write(self, text: str) -> int:
        tqdm.write(text, file=sys.stderr, end="")
        return len(text)

    def flush(self) -> None:
        sys.stderr.flush()


class _Lines:
    """A stream that writes each state of a bar as a line, in place of redrawing it."""

    def __init__(self, stream: TextIO):
        self._stream = stream

    def write(self, text: str) -> None:
        if text.strip():
            self._stream.write(f"{text.strip()}\n")

    def flush(self) -> None:
        self._stream.flush()
