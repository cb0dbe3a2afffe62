"""Runs a program: parses its flags, prints its result as one JSON line, and sets its exit code."""

import contextlib
import functools
import json
import os
import shlex
import signal
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from command import PROGRAMS_FOLDER
from command.errors import fail, remote_errors, system_message, with_flag
from command.flags import parse_flags
from command.log import log_to_stderr, quiet_libraries

from absl import app, flags, logging

from keras_transformer.core.training.interruption import is_in_thread
from keras_transformer.support.errors import InputError, reason

# Environment variables for TensorFlow, unless already set.
ENVIRONMENT = {
    # Without it, TensorFlow waits 20 minutes if no Google Cloud Storage server answers.
    "GCS_REQUEST_CONNECTION_TIMEOUT_SECS": "5",
    "GCS_RETRY_CONFIG_MAX_RETRIES": "5",
}
TENSORFLOW_PACKAGES = ("tensorflow", "tensorflow_text", "keras")  # may be missing at run time


def _show_all(heading: str) -> bool:
    return True


def run(
    main: Callable[[], dict[str, Any] | None], is_relevant: Callable[[str], bool] = _show_all
) -> None:
    """Runs `main` as a program: parses flags, prints its result as one JSON line on stdout.

    Args:
        main: the program; returns its result, if it has one.
        is_relevant: whether --help lists the flags under a heading, given the other flags.

    A wrong flag, an InputError, or a failing file or stream ends with one line on stderr and exit
    code 1, never a traceback. As usual on Unix, the exit code is 130 after Ctrl-C, 143 after
    SIGTERM, and 141 if the reader of stdout has gone.
    """
    _open_standard_streams()
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    flags.FLAGS.set_default("verbosity", logging.INFO)
    log_to_stderr()
    parse = functools.partial(parse_flags, is_relevant=is_relevant)
    try:
        try:
            with _ending_at_sigterm():
                app.run(lambda arguments: _run(main, arguments), flags_parser=parse)
        except SystemExit as ending:
            _end_compilation(ending.code)
            raise
        finally:
            sys.stdout.flush()
    except OSError as error:
        _give_up_stdout()
        if isinstance(error, BrokenPipeError) and error.filename is None:
            sys.exit(141)
        fail(system_message(error))


def _run(main: Callable[[], dict[str, Any] | None], arguments: list[str]) -> None:
    if len(arguments) > 1:
        fail(f"every argument must be a flag (--name=value). Received: {arguments[1]!r}")
    try:
        with quiet_libraries(), remote_errors():
            result = main()
    except InputError as error:
        fail(with_flag(error))
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in TENSORFLOW_PACKAGES:
            raise
        rule = "must be installed, except for models in CTranslate2's format"
        fail(str(InputError("TensorFlow", rule, f"not installed ({reason(error)})")))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    if result is not None:
        print(json.dumps(result, ensure_ascii=False), flush=True)


@contextlib.contextmanager
def _ending_at_sigterm() -> Iterator[None]:
    """Makes SIGTERM raise SystemExit, so that no temporary file is left; a second one kills."""

    def end(number: int, frame: types.FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        sys.exit(128 + number)

    earlier = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, earlier)


def _end_compilation(code: int | str | None) -> None:
    """Ends the process at once if XLA still compiles after a signal: TensorFlow would wait."""
    if is_in_thread() and not isinstance(code, str):
        sys.stdout.flush()
        os._exit(code or 0)


def _open_standard_streams() -> None:
    """Reopens closed ones, whose descriptors the next opened files would otherwise get."""
    if sys.stdin is None:
        os.open(os.devnull, os.O_RDONLY)
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stdout is None:
        fail("stdout must be open for the result. Received: a closed stream")


def _give_up_stdout() -> None:
    """Discards stdout's buffer, whose flush would fail again at exit."""
    with contextlib.suppress(OSError):  # stdout may not be a file, as in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def as_typed(name: str, *arguments: str) -> str:
    """Returns a program's command as the user of this checkout or installation types it."""
    is_checkout = PROGRAMS_FOLDER.name == "bin"
    program = f"python bin/{name}.py" if is_checkout else f"keras-transformer {name}"
    return f"{program} {shlex.join(arguments)}"


def show_curves(model_dir: str | Path) -> None:
    """Prints how to view a model's training curves."""
    command = [sys.executable, "-m", "tensorboard.main", f"--logdir={model_dir}"]
    print(f"curves: {shlex.join(command)}", file=sys.stderr)
