"""The exception for invalid user input: an argument, a file, a configuration."""

import difflib
import errno
import importlib
import os
import re
from collections.abc import Iterable
from types import ModuleType
from typing import Any

# The distribution name; "keras-transformer" on PyPI is another project with the same import name.
DISTRIBUTION = "keras-transformer-nmt"


class InputError(ValueError):
    """Invalid input: an argument, a file, a configuration.

    The message is one line, "PLACE: ARGUMENT RULE. Received: RECEIVED", without the parts that are
    None. Programs print it and exit with code 1; library callers may catch it and read the parts as
    attributes.

    Args:
        argument: the name of the invalid argument, or of a field in a file: "beam_size". None if
            the file as a whole is invalid.
        rule: what must hold: "must be at least 1".
        received: what was received instead.
        place: the file, or the file and the line, as in "train.en:7".
    """

    # Without this mark, Keras re-raises a layer's error as a new one, with the first of `args` as
    # its message. When building a functional model, it passes the whole message as `argument`,
    # without a rule.
    _keras_call_info_injected = True

    def __init__(
        self,
        argument: str | None,
        rule: str = "",
        received: Any = None,
        place: str | os.PathLike | None = None,
    ):
        self.argument, self.rule, self.received = argument, rule, received
        self.place = None if place is None else str(place)
        super().__init__(self.argument, self.rule, self.received, self.place)

    def __str__(self) -> str:
        return self.message(self.argument)

    def replaced(self, **parts: Any) -> "InputError":
        """Returns the error with parts replaced, such as the place, which only the caller knows."""
        kept = {
            "argument": self.argument,
            "rule": self.rule,
            "received": self.received,
            "place": self.place,
        }
        return InputError(**{**kept, **parts})

    def message(self, argument: str | None) -> str:
        """Returns the error's message with the argument renamed, such as to a flag."""
        if argument is None:
            subject = self.place
        else:
            subject = argument if self.place is None else f"{self.place}: {argument}"
        line = self.rule if subject is None else f"{subject} {self.rule}".rstrip()
        if self.received is not None:
            line = f"{line}. Received: {self.received}"
        return " ".join(line.splitlines())


def require(
    condition: bool,
    argument: str | None,
    rule: str,
    received: Any,
    place: str | os.PathLike | None = None,
) -> None:
    """Raises an InputError if a condition does not hold.

    Args:
        condition: whether the input meets it.
        argument, rule, received, place: the parts of the error; see InputError.
    """
    if not condition:
        raise InputError(argument, rule, "None" if received is None else received, place)


def with_file_name(error: Exception, path: str | os.PathLike) -> OSError:
    """Returns a read or write error as an OSError with a file name.

    Args:
        error: an OSError, which keeps its own file name; or a TensorFlow error, whose message is
            "FILE; REASON".
        path: the file name for errors that have none.
    """
    if isinstance(error, OSError):
        return error if error.filename else OSError(error.errno, error.strerror, str(path))
    why = reason(error)
    for code in errno.errorcode:
        if why.endswith(f"; {os.strerror(code)}"):
            return OSError(code, os.strerror(code), str(path))
    return OSError(errno.EIO, why, str(path))


def lacks_memory(error: Exception) -> bool:
    """Whether a device has no memory left: TensorFlow's error is that of a full disk, too."""
    import tensorflow as tf

    is_full = isinstance(error, tf.errors.ResourceExhaustedError)
    return is_full and os.strerror(errno.ENOSPC) not in str(error)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns " (did you mean X?)", where X is the known name most similar to a wrong one.

    Returns "" if none is similar.
    """
    similar = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {similar[0]}?)" if similar else ""


def reason(error: BaseException) -> str:
    """Returns the first line of an error's message, or the error's type if it has no message.

    Names of functions and operations, which TensorFlow adds for its developers, are removed.
    """
    developers_part = r"\{\{function_node .*?\}\}| \[Op:\w+\]( name: ?\S*)?"
    message = re.sub(developers_part, "", str(error)).strip()
    return (message or type(error).__name__).splitlines()[0]


def install_command(extra: str) -> str:
    """Returns the command that installs an extra from pyproject.toml.

    It names the distribution if installed, and otherwise the path of the clone: pip would look up
    the name in its index.
    """
    import importlib.metadata  # takes 20 ms, and few programs need it

    installed = any(importlib.metadata.distributions(name=DISTRIBUTION))
    name = DISTRIBUTION if installed else "."
    return f'pip install "{name}[{extra}]"'


def import_extra(package: str) -> ModuleType:
    """Imports a package that the extra of the same name installs.

    Raises:
        InputError: if it is not installed.
    """
    try:
        return importlib.import_module(package)
    except ImportError:
        rule = f"must be installed ({install_command(package)})"
        raise InputError(package, rule, "none installed") from None
