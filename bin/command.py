"""What all programs share: flags, one library call, one JSON line; errors in one line."""

import dataclasses
import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# The programs run from a checkout that is not installed, too.
FOLDER = Path(__file__).resolve().parent
if str(FOLDER.parent) not in sys.path:
    sys.path.insert(0, str(FOLDER.parent))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from absl import app, flags, logging  # noqa: E402

from keras_transformer.errors import InputError  # noqa: E402


def run(main: Callable[[], dict[str, Any] | None]) -> None:
    """Runs `main` as a program: parses flags, prints its result as one JSON line on stdout.

    A wrong flag or an InputError ends with one line on stderr and exit code 1, never a traceback;
    Ctrl-C ends with exit code 130.
    """
    logging.set_verbosity(logging.INFO)
    app.run(lambda arguments: _run(main, arguments), flags_parser=_parse_flags)


def as_typed(name: str, *arguments: str) -> str:
    """The command of a program, as a user of this checkout or installation types it."""
    program = f"python bin/{name}.py" if FOLDER.name == "bin" else f"keras-transformer {name}"
    return f"{program} {shlex.join(arguments)}"


def flag_values(config: type) -> dict[str, Any]:
    """The values of the flags that are named as fields of the dataclass `config`."""
    names = [field.name for field in dataclasses.fields(config)]
    return {name: flags.FLAGS[name].value for name in names if name in flags.FLAGS}


def _parse_flags(arguments: list[str]) -> list[str]:
    try:
        return flags.FLAGS(arguments)
    except flags.Error as error:
        # --help is a flag of absl, which prints its text.
        _fail(str(error).replace("\n", " "))


def _run(main: Callable[[], dict[str, Any] | None], arguments: list[str]) -> None:
    if len(arguments) > 1:
        _fail(f"every argument must be a flag (--name=value). Received: {arguments[1]!r}")
    try:
        result = main()
    except InputError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    if result is not None:
        print(json.dumps(result, ensure_ascii=False), flush=True)


def _fail(message: str) -> None:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(1)
