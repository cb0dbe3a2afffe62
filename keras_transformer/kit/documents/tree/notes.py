"""Superscripts that are marks of notes or exponents: "1", "*", "[a]", "[note 2]", "-1".

They are not translated and stay at their words. A superscript within a word, as in H^2^O, is none,
and neither is one of letters, as in 2^nd^.
"""

import re

_NOTE = re.compile(r"[\W\d_]+|\s*\[[^\[\]]{1,20}\]\s*")


def is_note(text: str, before: str, after: str) -> bool:
    """Whether a superscript is the mark of a note or an exponent.

    Args:
        text: the superscript.
        before, after: the characters before and after it, or "".
    """
    is_within_word = before.isalpha() and after.isalpha()
    return not is_within_word and _NOTE.fullmatch(text) is not None


def text_of_note(text: str, before: str) -> str:
    """Returns how such a superscript reads.

    A number directly after a word is an exponent and part of the word. Anything else reads as "": a
    mark after a full stop would hide the end of the sentence.

    Args:
        text: the superscript.
        before: the character before it, or "".
    """
    text = text.strip()
    return text if before.isalnum() and text.lstrip("+-−").isdigit() else ""
