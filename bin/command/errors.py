"""The errors of a program: one line on stderr, which names the flag that was wrong."""

import contextlib
import dataclasses
import re
import sys
from collections.abc import Iterator
from typing import NoReturn

from absl import flags

from keras_transformer.support.errors import InputError, reason

LONGEST_MESSAGE = 2000  # characters; longer messages are cut in the middle


def fail(message: str) -> NoReturn:
    """Ends the program with one line on stderr and exit code 1."""
    print(f"error: {_one_line(message)}", file=sys.stderr)
    sys.exit(1)


def with_flag(error: InputError) -> str:
    """Returns an error's message, naming the flag that the user typed.

    The library names the argument: "beam_size must be at least 1". The user of a program typed
    --beam_size, or a setting in --config: "--config dropout must be ...". Arguments that are not
    flags of this program, and fields of files, keep their names.
    """
    if error.argument is None or error.place is not None:
        return str(error)
    name = re.split(r"[\[. ]", error.argument)[0]
    if _is_setting(name):
        return error.message(f"--config {error.argument}")
    return error.message(f"--{error.argument}" if name in flags.FLAGS else error.argument)


def _is_setting(name: str) -> bool:
    """Whether a name is a setting that was given in --config, or can only be given there."""
    from keras_transformer.core.config import TrainingConfig, TransformerConfig

    if "config" not in flags.FLAGS:
        return False
    in_config = {setting.partition("=")[0] for setting in flags.FLAGS["config"].value}
    fields = [*dataclasses.fields(TransformerConfig), *dataclasses.fields(TrainingConfig)]
    without_flag = {field.name for field in fields if field.name not in flags.FLAGS}
    return name in in_config | without_flag


def system_message(error: OSError) -> str:
    """Returns the message for a system error: "No space left on device: FILE (advice)"."""
    message = error.strerror or reason(error)
    if error.strerror and error.filename is not None:
        message += f": {error.filename}"
    notes = "; ".join(getattr(error, "__notes__", []))
    return f"{message} ({notes})" if notes else message


def _one_line(message: str) -> str:
    """Returns a message for the terminal: one line, no control characters, limited length.

    The middle is cut, as the cause of an error is at the beginning or at the end.
    """
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in message)
    if len(shown) <= LONGEST_MESSAGE:
        return shown
    half = LONGEST_MESSAGE // 2
    return f"{shown[:half]} ... {shown[-half:]}"


@contextlib.contextmanager
def remote_errors() -> Iterator[None]:
    """Turns TensorFlow's errors for remote files that it reads and writes itself into OSErrors."""
    try:
        yield
    except Exception as error:
        tf = sys.modules.get("tensorflow")
        if tf is None or not isinstance(error, tf.errors.OpError) or "://" not in str(error):
            raise
        raise OSError(reason(error)) from None
