"""Capitals and title case, for models that know sentences as they are usually written.

    THE DOG SLEEPS.  ->  The dog sleeps.  ->  Der Hund schläft.  ->  DER HUND SCHLÄFT.
    The Old Dog Sleeps Here  ->  The old dog sleeps here  ->  Der alte Hund schläft hier

Titles come back as sentences: most languages write them so.
"""

import re
from enum import Enum
from typing import Literal

CaseRule = Literal["auto", "keep"]  # whether case is looked at

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_FEWEST_CAPITALS = 2  # words: "NATO" is a name
_FEWEST_IN_TITLE = 4  # words: "Mr. John Smith" is a name
_LONG = 4  # letters: shorter words of a title are often not capitalized
_NOUNS_HAVE_CAPITALS = ("de", "lb")


class Case(Enum):
    """How the words of a sentence are written."""

    SENTENCE = "sentence"
    CAPITALS = "capitals"
    TITLE = "title"


def case_of(text: str, language: str) -> Case:
    """Finds the case of a sentence.

    Args:
        text: of the sentence.
        language: of the text, as "en". Where nouns have capitals, nothing is a title.
    """
    words = _WORD.findall(text)
    letters = "".join(words)
    if len(words) >= _FEWEST_CAPITALS and letters == letters.upper() != letters.lower():
        return Case.CAPITALS
    long_words = [word for word in words if len(word) >= _LONG]
    is_title = len(words) >= _FEWEST_IN_TITLE and len(long_words) >= _FEWEST_IN_TITLE - 1
    is_title = is_title and all(word[0].isupper() and word[1:].islower() for word in long_words)
    if is_title and language[:2].lower() not in _NOUNS_HAVE_CAPITALS:
        return Case.TITLE
    return Case.SENTENCE


def in_sentence_case(text: str) -> str:
    """Writes a sentence in small letters after the first one; it keeps its length."""
    lower = [small if len(small := letter.lower()) == 1 else letter for letter in text]
    first = next((place for place, letter in enumerate(text) if letter.isalpha()), None)
    if first is not None:
        lower[first] = text[first]
    return "".join(lower)
