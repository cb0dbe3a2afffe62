"""How tests look at errors: by the argument and the value, and not by the sentence."""

import contextlib
import re

import pytest

from keras_transformer.errors import InputError


@contextlib.contextmanager
def refused(argument, received=None, place=None, about=None):
    """Checks that the code within raises an InputError.

    Args:
        argument: the argument that is wrong; None where the file as a whole is.
        received: a part of what was received, as text.
        place: a part of the file, or of the file and line, that is wrong.
        about: a word of the rule, where an argument has several rules.

    Yields:
        pytest's ExceptionInfo, as `pytest.raises` does.
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
    """Checks that a program has ended with one line about a flag or a file.

    Args:
        errors: what is on stderr.
        subject: the flag, as in "--beam_size", or the file or file and line that is wrong.
        received: a part of what was received, as text.
        about: a word of the rule, where a flag has several rules.
    """
    line = errors.rstrip("\n").splitlines()[-1]
    message, _, value = line.partition(". Received: ")
    assert re.match(rf"error: {re.escape(str(subject))}(?!\w)", message), errors
    assert received is None or str(received) in value, errors
    assert about is None or about in message, errors


def check_message(message, about, received):
    """Checks the message of a request that a server has refused: "RULE. Received: VALUE".

    Args:
        message: one line.
        about: words of the rule, such as the name of a field.
        received: a part of the value that the message repeats.
    """
    rule, _, value = message.partition(". Received: ")
    assert about in rule and received in value, message
    assert "\n" not in message and len(message) < 280
