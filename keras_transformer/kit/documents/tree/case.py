"""Normalizes all-caps text and English titles, which models have rarely seen.

    THE DOG SLEEPS.             The dog sleeps.             Der Hund schläft.  DER HUND SCHLÄFT.
    The Old Dog Sleeps All Day  The old dog sleeps all day  Der alte Hund schläft den ganzen Tag

Titles are not restored: other languages write them like sentences.
"""

import re
from collections.abc import Sequence
from enum import Enum

CASE_RULES = ("auto", "keep")  # whether to normalize case

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_FEWEST_CAPITALS = 2  # words: a single one, such as "NATO", may be a name
_FEWEST_IN_TITLE = 5  # capitalized words: "Dr. John Smith, Berlin" is not a title
_LONG = 5  # letters: shorter words in a title need not be capitalized
# Words that need not be capitalized in titles.
_SMALL_IN_TITLES = (
    *("a", "an", "and", "as", "at", "but", "by", "for", "from", "in", "into", "nor", "of", "off"),
    *("on", "onto", "or", "over", "per", "the", "to", "up", "via", "vs", "with"),
)


class Case(Enum):
    """The capitalization of a sentence."""

    SENTENCE = "sentence"
    CAPITALS = "capitals"
    TITLE = "title"


def case_of(text: str, language: str) -> Case:
    """Determines the case of a sentence in a language such as "en"."""
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
    """Whether a word may be in a title; most sentences contain other lower-case words."""
    return not word[0].islower() or word in _SMALL_IN_TITLES


def in_sentence_case(text: str) -> str:
    """Writes a sentence in lower case after its first letter, keeping its length."""
    written = [small if len(small := letter.lower()) == 1 else letter for letter in text]
    first = next((place for place, letter in enumerate(text) if letter.isalpha()), None)
    if first is not None:
        written[first] = text[first]
    return "".join(written)
