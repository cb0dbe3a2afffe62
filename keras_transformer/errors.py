"""The one exception for what a user got wrong: an argument, a file, a configuration."""

import difflib
import re
from collections.abc import Iterable
from typing import Any

# The name for pip. On PyPI, "keras-transformer" is another project with the same import name.
DISTRIBUTION = "keras-transformer-nmt"


class InputError(ValueError):
    """Input that cannot be used.

    The message is one line: the argument, or the file and its line, then the rule, then the value
    received. A program prints it and exits with code 1; callers of the library may catch it.
    """

    def __init__(self, message: str):
        super().__init__(" ".join(message.splitlines()))


def require(condition: bool, rule: str, received: Any) -> None:
    """Raises an InputError where input does not meet a condition.

    Args:
        condition: whether the input meets it.
        rule: what the input must be, beginning with the argument or the file that it is about:
            "beam_size must be at least 1".
        received: what the input is.

    Raises:
        InputError: "RULE. Received: RECEIVED".
    """
    if not condition:
        raise InputError(f"{rule}. Received: {received}")


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
