"""Checks of the texts that a caller gives."""

from collections.abc import Iterable
from typing import Any

from keras_transformer.errors import require
from keras_transformer.fields import shown


def as_texts(texts: Iterable[str], argument: str) -> list[str]:
    """Makes a list of any iterable of strings.

    A string is an iterable of strings, too, of its letters: it is refused.

    Args:
        texts: what the caller gave.
        argument: what the caller calls it, for errors.

    Raises:
        InputError: for a single string, or for anything else that is no text.
    """
    is_many = _is_many(texts)
    rule = 'must be a list of strings; for one text write ["..."]'
    require(is_many, argument, rule, shown(texts))
    listed = list(texts)
    for place, text in enumerate(listed):
        as_text(text, f"{argument}[{place}]")
    return listed


def as_text(text: Any, argument: str) -> str:
    """Returns a text; anything else raises an InputError."""
    require(isinstance(text, str), argument, "must be a string", shown(text))
    return text


def as_text_lists(rows: Iterable[Iterable[str]], argument: str) -> list[list[str]]:
    """Makes lists of any iterable of iterables of strings; see `as_texts`."""
    is_many = _is_many(rows)
    rule = 'must be a list with a list of strings for each text, as [["..."]]'
    require(is_many, argument, rule, shown(rows))
    return [as_texts(row, f"{argument}[{place}]") for place, row in enumerate(rows)]


def _is_many(values: Any) -> bool:
    """Whether these are several values; a string is one, and so is an array of no dimensions."""
    if isinstance(values, str | bytes):
        return False
    return isinstance(values, Iterable) and getattr(values, "ndim", 1) > 0
