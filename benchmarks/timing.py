"""What the benchmarks share: the checkout on the path, times of calls, errors in one line."""

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

from keras_transformer.errors import InputError

DOCS = Path(__file__).resolve().parent.parent / "docs"  # where the charts go


def run(main: Callable[[], None]) -> None:
    """Runs `main`; an InputError ends it with one line on stderr and exit code 1."""
    # Each size is a trace of its own here, which TensorFlow would warn of.
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    try:
        main()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def seconds_of(call: Callable[[], object], repeats: int, limit: float) -> float:
    """Median seconds of a call after its first; of fewer calls where they take over `limit`."""
    call()
    seconds: list[float] = []
    while len(seconds) < repeats and sum(seconds) < limit:
        begun = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds)
