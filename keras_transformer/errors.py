"""The one exception for what a user got wrong: a flag, a file, a configuration."""

from typing import Any


class InputError(ValueError):
    """Input that cannot be used.

    The message is one line that names the flag or the file and line, the rule, and the value
    received. The programs in bin/ print it and exit with code 1; library callers may catch it.
    """

    def __init__(self, message: str):
        super().__init__(" ".join(message.splitlines()))


def require(condition: bool, rule: str, received: Any) -> None:
    """Raises InputError, "RULE. Received: RECEIVED", where input does not meet the condition.

    The rule names the flag or the file: "--beam_size must be positive".
    """
    if not condition:
        raise InputError(f"{rule}. Received: {received}")


def reason(error: BaseException) -> str:
    """The first line of an error's message, or the error's type if it has no message."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
