"""English inflection: verbs, nouns, articles and numbers."""

from functools import cache

from pipelines.grammar.entries import Noun
from pipelines.grammar.words import ENGLISH_NUMBERS, ENGLISH_TENS

_BE = {
    "present": {(1, False): "am", (3, False): "is"},
    "past": {(1, False): "was", (3, False): "was"},
}
_BE_PLURAL = {"present": "are", "past": "were"}
# The sound decides on "a" or "an", not the letter.
_VOWEL_EXCEPTIONS = {"university": "a", "honest": "an"}


@cache
def third_person(base: str) -> str:
    """-es after a sibilant or o, -ies for consonant and y, has."""
    if base == "have":
        return "has"
    if base.endswith(("s", "sh", "ch", "x", "z", "o")):
        return base + "es"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + "s"


@cache
def be(tense: str, person: int, plural: bool) -> str:
    """The finite forms of "be"."""
    return _BE_PLURAL[tense] if plural else _BE[tense][person, False]


def present(base: str, person: int, plural: bool) -> str:
    """The simple present of any verb but "be"."""
    return third_person(base) if person == 3 and not plural else base


def indefinite_article(following: str) -> str:
    """ "a" or "an", by the word that follows."""
    word = following.split(" ", 1)[0]
    return _VOWEL_EXCEPTIONS.get(word) or ("an" if word[0] in "aeiou" else "a")


def noun_form(noun: Noun, plural: bool) -> str:
    """Singular or plural."""
    return noun.english_plural if plural else noun.english


def possessive(phrase: str, plural: bool) -> str:
    """the teacher's, the teachers', the children's."""
    return phrase + ("'" if plural and phrase.endswith("s") else "'s")


@cache
def number_word(number: int) -> str:
    """A cardinal from 2 to 99: twenty-one."""
    if number in ENGLISH_NUMBERS:
        return ENGLISH_NUMBERS[number]
    tens, units = divmod(number, 10)
    if tens == 1:
        irregular = {3: "thirteen", 5: "fifteen", 8: "eighteen"}
        return irregular.get(units) or ENGLISH_NUMBERS[units] + "teen"
    if units == 0:
        return ENGLISH_TENS[tens]
    unit = "one" if units == 1 else ENGLISH_NUMBERS[units]
    return f"{ENGLISH_TENS[tens]}-{unit}"
