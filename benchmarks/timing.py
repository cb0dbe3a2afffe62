"""Shared by the benchmarks: the checkout on the path, checks of flags, times, one-line errors."""

import json
import logging
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def measured_once(file: Path, measure: Callable[..., dict[str, Any]], *arguments) -> dict[str, Any]:
    """The results that a file holds, or which are measured and written there."""
    if not file.exists():
        log(f"measuring {file.stem}")
        file.write_text(json.dumps(measure(*arguments)), encoding="utf-8")
    return json.loads(file.read_text(encoding="utf-8"))


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
