"""The one exception for what a user got wrong: an argument, a file, a configuration."""

import difflib
import errno
import os
import re
from collections.abc import Iterable
from typing import Any

# The name for pip. On PyPI, "keras-transformer" is another project with the same import name.
DISTRIBUTION = "keras-transformer-nmt"


class InputError(ValueError):
    """Input that cannot be used: an argument, a file, a configuration.

    The message is one line, "PLACE: ARGUMENT RULE. Received: RECEIVED", of which the parts that are
    None are left out. A program prints it and exits with code 1; callers of the library may catch
    it, and find the parts as attributes.

    Args:
        argument: the name of the argument that is wrong, or of the field of a file: "beam_size".
            None if the file as a whole is wrong.
        rule: what must hold: "must be at least 1".
        received: what was received instead.
        place: the file, or the file and the line, as in "train.en:7".
    """

    # What a layer raises when it is called, Keras raises again as a new error, with the first of
    # `args` for its message, unless it finds this mark. Where it builds a functional model, it
    # makes an error of the whole message, which is the argument then, without a rule.
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
        """Returns the error with other parts, such as the place that only the caller knows."""
        kept = {
            "argument": self.argument,
            "rule": self.rule,
            "received": self.received,
            "place": self.place,
        }
        return InputError(**{**kept, **parts})

    def message(self, argument: str | None) -> str:
        """Returns the error's line with the argument under another name, such as that of a flag."""
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
    """Raises an InputError where input does not meet a condition.

    Args:
        condition: whether the input meets it.
        argument, rule, received, place: the parts of the error; see InputError.
    """
    if not condition:
        raise InputError(argument, rule, "None" if received is None else received, place)


def with_file_name(error: Exception, path: str | os.PathLike) -> OSError:
    """Returns an error of reading or writing as one of the system, with the name of a file.

    Args:
        error: an OSError, whose own file name is kept; or an error of TensorFlow, which is a text
            alone, "FILE; REASON".
        path: the name for an error that has none.
    """
    if isinstance(error, OSError):
        return error if error.filename else OSError(error.errno, error.strerror, str(path))
    why = reason(error)
    for code in errno.errorcode:
        if why.endswith(f"; {os.strerror(code)}"):
            return OSError(code, os.strerror(code), str(path))
    return OSError(errno.EIO, why, str(path))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns " (did you mean X?)", X being the known name that is most like a wrong one.

    Where none is like it, "" is returned.
    """
    similar = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {similar[0]}?)" if similar else ""


def reason(error: BaseException) -> str:
    """Returns the first line of an error's message, or the error's type if it has no message.

    What TensorFlow adds for its developers is left out: the names of its functions and operations.
    """
    developers_part = r"\{\{function_node .*?\}\}| \[Op:\w+\]( name: ?\S*)?"
    message = re.sub(developers_part, "", str(error)).strip()
    return (message or type(error).__name__).splitlines()[0]


def install_command(extra: str) -> str:
    """Returns the command that installs the packages of an extra of pyproject.toml.

    It names the distribution where that is installed, and else the clone that is used without
    being installed: pip would look for the name in its index.
    """
    import importlib.metadata  # takes 20 ms, and few programs need it

    installed = any(importlib.metadata.distributions(name=DISTRIBUTION))
    name = DISTRIBUTION if installed else "."
    return f'pip install "{name}[{extra}]"'
