"""Checks errors in tests by the argument and the value, not by the wording."""

import contextlib
import re

import pytest

from keras_transformer.support.errors import InputError


@contextlib.contextmanager
def refused(argument, received=None, place=None, about=None):
    """Checks that the code in the context raises an InputError.

    Args:
        argument: the wrong argument; None if a file as a whole is wrong.
        received: part of the received value, as text.
        place: part of the name of the wrong file, or of the file and line.
        about: a word from the rule, for arguments with several rules.

    Yields:
        pytest's ExceptionInfo, like `pytest.raises`.
    """
    with pytest.raises(InputError) as caught:
        yield caught
    check(caught.value, argument, received, place, about)


def check(error, argument, received=None, place=None, about=None):
    """Checks the parts of an InputError; see `refused`."""
    assert error.argument == argument, str(error)
    assert received is None or str(received) in str(error.received), str(error)
    assert place is None or str(place) in str(error.place), str(error)
    assert about is None or about in error.rule, str(error)


def check_line(errors, subject, received=None, about=None):
    """Checks that a program ended with one line about a flag or a file.

    Args:
        errors: the program's stderr.
        subject: the wrong flag, such as "--beam_size", or the wrong file, or file and line.
        received: part of the received value, as text.
        about: a word from the rule, for flags with several rules.
    """
    line = errors.rstrip("\n").splitlines()[-1]
    message, _, value = line.partition(". Received: ")
    assert re.match(rf"error: {re.escape(str(subject))}(?!\w)", message), errors
    assert received is None or str(received) in value, errors
    assert about is None or about in message, errors


def check_message(message, about, received):
    """Checks a server's message for a rejected request: "RULE. Received: VALUE".

    Args:
        message: one line.
        about: words from the rule, such as the name of a field.
        received: part of the value that the message repeats.
    """
    rule, _, value = message.partition(". Received: ")
    assert about in rule and received in value, message
    assert "\n" not in message and len(message) < 280


def check_limit(message, received, accepted, name):
    """Checks a server's message for a request that exceeds a limit.

    Args:
        message: one line.
        received: a pattern of what the request has, such as "27,890 characters".
        accepted: what the limit allows, such as "20,000".
        name: the limit's name.
    """
    limit = rf"this server accepts {accepted} \({name}\)"
    assert re.fullmatch(rf"This (text|request|upload) has {received}; {limit}", message), message
