"""Shared by the benchmarks: the checkout on the path, checks of flags, times, one-line errors."""

import logging
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

# The programs run from a checkout, installed or not.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from keras_transformer.errors import InputError, require

DOCS = Path(__file__).resolve().parent.parent / "docs"  # where the charts go


def run(main: Callable[[], None]) -> None:
    """Runs `main`; an InputError ends it with one line on stderr and exit code 1."""
    # Each size is traced anew here, and TensorFlow would warn about that.
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    try:
        main()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def check_positive(arguments, *names: str) -> None:
    """Rejects flags that are not positive numbers."""
    for name in names:
        value = getattr(arguments, name)
        require(value >= 1, f"--{name}", "must be at least 1", value)


def check_chart(flag: str, path: Path) -> None:
    """Rejects a chart that could not be written, before anything is measured."""
    require(path.parent.is_dir(), flag, "must be in a folder", path)


def seconds_of(call: Callable[[], object], repeats: int, limit: float) -> float:
    """Median seconds of a call after the first one; fewer `repeats` once they exceed `limit`."""
    call()
    seconds: list[float] = []
    while not seconds or (len(seconds) < repeats and sum(seconds) < limit):
        begun = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds)
