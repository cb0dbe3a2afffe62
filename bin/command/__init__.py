"""Shared by all programs; imported before other packages, as it makes them importable."""

import importlib
import sys
from pathlib import Path
from types import TracebackType


def _end(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """The hook for uncaught exceptions; Ctrl-C prints no traceback."""
    if issubclass(kind, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, traceback)


sys.excepthook = _end  # now, because the following imports take time

# The programs also run from a checkout that is not installed.
PROGRAMS_FOLDER = Path(__file__).resolve().parents[1]
if str(PROGRAMS_FOLDER.parent) not in sys.path:
    sys.path.insert(0, str(PROGRAMS_FOLDER.parent))

try:
    importlib.import_module("absl")
except ModuleNotFoundError as error:
    lacks = f"{sys.executable} lacks this project's packages ({error})"
    sys.exit(f"error: {lacks}. Install them as README.md describes and use that Python")
