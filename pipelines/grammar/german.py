"""German inflection: articles, adjectives, nouns, verbs, numbers and contractions.

Every rule is a function of entries and features, independent of sentence structure.
"""

from functools import cache

from pipelines.grammar import entries
from pipelines.grammar.lexicon import NUMBER

PLURAL = "p"  # the plural has one set of endings for all genders
_COLUMNS = ("m", "f", "n", PLURAL)


def _endings(*rows: str) -> dict[tuple[str, str], str]:
    """Returns a table of cases (rows) by genders and plural (columns); "-" is no ending."""
    return {
        (case, column): form.removeprefix("-")
        for case, row in zip(entries.CASES, rows, strict=True)
        for column, form in zip(_COLUMNS, row.split(), strict=True)
    }


ARTICLE_PATTERNS = {
    "der": _endings("der die das die", "den die das die", "dem der dem den", "des der des der"),
    "ein": _endings("- e - e", "en e - e", "em er em en", "es er es er"),
    "dies": _endings("er e es e", "en e es e", "em er em en", "es er es er"),
    "none": _endings(*["- - - -"] * 4),
}
ADJECTIVE_ENDINGS = {
    "weak": _endings("e e e en", "en e e en", "en en en en", "en en en en"),
    "mixed": _endings("er e es en", "en e es en", "en en en en", "en en en en"),
    "strong": _endings("er e es e", "en e es e", "em er em en", "en er en er"),
}
RELATIVE_PRONOUNS = _endings("der die das die", "den die das die", "dem der dem denen", "- - - -")
_CONTRACTIONS = {"in dem": "im", "an dem": "am", "zu dem": "zum", "von dem": "vom"}
_CONTRACTIONS |= {"zu der": "zur", "in das": "ins", "an das": "ans"}
# Verbs whose first and third person singular are the same: ich kann, ich mag, ich weiß.
_PRETERITE_PRESENTS = ("können", "dürfen", "sollten", "müssen", "wollen", "mögen", "wissen")


def agreement_column(gender: str, plural: bool) -> str:
    """Returns the column of the ending tables for a noun phrase."""
    return PLURAL if plural else gender


@cache
def article(determiner: entries.Determiner, case: str, column: str) -> str:
    """Returns the inflected determiner: den, einem, dieser, unserer; "" for none."""
    ending = ARTICLE_PATTERNS[determiner.pattern][case, column]
    return ending if determiner.pattern == "der" else determiner.german + ending


@cache
def attributive(adjective: entries.Adjective, endings: str, case: str, column: str) -> str:
    """Returns the adjective as inflected before a noun: teures, dunkle, müden, rosa."""
    if not adjective.stem:
        return adjective.german
    return adjective.stem + ADJECTIVE_ENDINGS[endings][case, column]


@cache
def decline(noun: entries.Noun, case: str, plural: bool) -> str:
    """Returns the noun in its case: dem Studenten, des Hauses, den Kindern, den Autos."""
    if plural:
        dative_n = case == entries.DATIVE and noun.german_plural[-1] not in "ns"
        return noun.german_plural + ("n" if dative_n else "")
    if noun.weak:
        # the oblique singular of a weak noun looks like its plural
        return noun.german if case == entries.NOMINATIVE else noun.german_plural
    return noun.genitive if case == entries.GENITIVE else noun.german


def contract(preposition: str, phrase: str) -> str:
    """Joins a preposition and a noun phrase, contracting "in dem" and the like.

    Only articles contract: "dem" as a relative pronoun must not be passed here.
    """
    first, _, rest = phrase.partition(" ")
    contracted = _CONTRACTIONS.get(f"{preposition} {first}")
    return f"{contracted} {rest}" if contracted else f"{preposition} {phrase}"


@cache
def finite(verb: entries.GermanVerb, tense: str, person: int, plural: bool) -> str:
    """Returns the finite form without a separable prefix, in the present or the past."""
    if tense == "past":
        return _plural_past(verb.past) if plural else verb.past
    if plural:
        return "sind" if verb.infinitive == "sein" else verb.infinitive
    if person == 3 or verb.infinitive in _PRETERITE_PRESENTS:
        return verb.present
    return _first_person(verb.infinitive)


def _plural_past(past: str) -> str:
    return past + ("n" if past.endswith("e") else "en")


def _first_person(infinitive: str) -> str:
    if infinitive == "sein":
        return "bin"
    if infinitive.endswith("eln"):
        return infinitive[:-3] + "le"  # ich lächle
    return infinitive.removesuffix("n").removesuffix("e") + "e"


def participle(verb: entries.GermanVerb) -> str:
    """Returns the past participle: angerufen, besucht, gegangen."""
    return verb.prefix + verb.participle


def zu_infinitive(verb: entries.GermanVerb) -> str:
    """Returns the infinitive with zu: anzurufen in one word, zu kaufen in two."""
    return f"{verb.prefix}zu{verb.infinitive}" if verb.prefix else f"zu {verb.infinitive}"


@cache
def number_word(number: int) -> str:
    """Returns a cardinal from 1 to 99 in words, units before tens: einundzwanzig."""
    if number in NUMBER:
        return NUMBER[number].german
    units = number % 10
    return f"{NUMBER[units].german}und{NUMBER[number - units].german}"
