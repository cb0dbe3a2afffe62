"""The one exception for what a user got wrong: a flag, a file, a configuration."""


class InputError(ValueError):
    """Input that cannot be used.

    The message is one line that names the flag or the file and line, the rule, and the value
    received. The programs in bin/ print it and exit with code 1; library callers may catch it.
    """


def reason(error: BaseException) -> str:
    """The first line of what `error` says, or its type where it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
