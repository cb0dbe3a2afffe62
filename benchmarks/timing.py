"""Shared by the benchmarks: makes the checkout importable, checks flags, reports errors."""

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

# The programs run from a checkout, whether it is installed or not.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from keras_transformer.support.errors import InputError, require

DOCS = Path(__file__).resolve().parent.parent / "docs"


def run(main: Callable[[], None]) -> None:
    """Runs `main`; on an InputError, prints one line on stderr and exits with code 1."""
    # Each size is retraced here, and TensorFlow would warn about that.
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    try:
        main()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def check_positive(arguments, *names: str) -> None:
    """Rejects flags that are not positive."""
    for name in names:
        value = getattr(arguments, name)
        require(value >= 1, f"--{name}", "must be at least 1", value)
