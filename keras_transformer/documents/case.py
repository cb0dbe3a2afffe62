"""Capitals and English titles, for models that know sentences as they are usually written.

    THE DOG SLEEPS.             The dog sleeps.             Der Hund schläft.  DER HUND SCHLÄFT.
    The Old Dog Sleeps All Day  The old dog sleeps all day  Der alte Hund schläft den ganzen Tag

Titles come back as sentences, as other languages write them.
"""

import re
from collections.abc import Sequence
from enum import Enum

CASE_RULES = ("auto", "keep")  # whether case is looked at

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_FEWEST_CAPITALS = 2  # words: "NATO" is a name
_FEWEST_IN_TITLE = 5  # capitalized words: "Dr. John Smith, Berlin" is none
_LONG = 5  # letters: shorter words of a title need not be capitalized
# Words that titles need not capitalize.
_SMALL_IN_TITLES = (
    *("a", "an", "and", "as", "at", "but", "by", "for", "from", "in", "into", "nor", "of", "off"),
    *("on", "onto", "or", "over", "per", "the", "to", "up", "via", "vs", "with"),
)


class Case(Enum):
    """How the words of a sentence are written."""

    SENTENCE = "sentence"
    CAPITALS = "capitals"
    TITLE = "title"


def case_of(text: str, language: str) -> Case:
    """Finds the case of a sentence in a language such as "en"."""
    words = _WORD.findall(text)
    letters = "".join(words)
    if len(words) >= _FEWEST_CAPITALS and letters == letters.upper() != letters.lower():
        return Case.CAPITALS
    is_english = language.lower().startswith("en")
    return Case.TITLE if is_english and _is_title(text, words) else Case.SENTENCE


def _is_title(text: str, words: Sequence[str]) -> bool:
    capitalized = [word for word in words if word[0].isupper()]
    return (
        len(capitalized) >= max(_FEWEST_IN_TITLE, len(words) / 2)
        and all(word.istitle() for word in words if len(word) >= _LONG)
        and (not text.endswith(".") or all(map(_may_be_in_titles, words)))
    )


def _may_be_in_titles(word: str) -> bool:
    """Whether a word is written so in titles alone: of sentences, most have other small words."""
    return not word[0].islower() or word in _SMALL_IN_TITLES


def in_sentence_case(text: str) -> str:
    """Writes a sentence in small letters after the first one; it keeps its length."""
    written = [small if len(small := letter.lower()) == 1 else letter for letter in text]
    first = next((place for place, letter in enumerate(text) if letter.isalpha()), None)
    if first is not None:
        written[first] = text[first]
    return "".join(written)
