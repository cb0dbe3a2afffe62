"""German inflection: articles, adjectives, nouns, verbs, numbers and contractions."""

from functools import cache

from pipelines.grammar import lexicon
from pipelines.grammar.lexicon import ACCUSATIVE, DATIVE, GENITIVE, NOMINATIVE

PLURAL = "p"  # the plural has one set of endings for all genders


def _endings(*rows: str) -> dict[tuple[str, str], str]:
    """Returns a table of cases (rows) by genders and plural (columns); "-" is no ending."""
    return {
        (case, column): form.removeprefix("-")
        for case, row in zip((NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE), rows, strict=True)
        for column, form in zip(("m", "f", "n", PLURAL), row.split(), strict=True)
    }


ARTICLES = {
    "der": _endings("der die das die", "den die das die", "dem der dem den", "des der des der"),
    "ein": _endings("- e - e", "en e - e", "em er em en", "es er es er"),
    "dies": _endings("er e es e", "en e es e", "em er em en", "es er es er"),
    "none": _endings("- - - -", "- - - -", "- - - -", "- - - -"),
}
ADJECTIVES = {
    "weak": _endings("e e e en", "en e e en", "en en en en", "en en en en"),
    "mixed": _endings("er e es en", "en e es en", "en en en en", "en en en en"),
    "strong": _endings("er e es e", "en e es e", "em er em en", "en er en er"),
}
RELATIVE_PRONOUNS = _endings("der die das die", "den die das die", "dem der dem denen", "- - - -")
_CONTRACTIONS = {"in dem": "im", "an dem": "am", "zu dem": "zum", "von dem": "vom"}
_CONTRACTIONS |= {"zu der": "zur", "in das": "ins", "an das": "ans"}
# Verbs whose first and third person singular are the same: ich kann, ich mag, ich weiß.
_PRETERITE_PRESENTS = ("können", "dürfen", "sollten", "müssen", "wollen", "mögen", "wissen")
_NUMBERS = (
    "ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf",
    "zwölf", "dreizehn", "vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn",
)  # fmt: skip
_TENS = ("zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig")


def article(determiner: lexicon.Determiner, case: str, column: str) -> str:
    """Returns the inflected determiner: den, einem, dieser, unserer; "" for none."""
    ending = ARTICLES[determiner.pattern][case, column]
    return ending if determiner.pattern == "der" else determiner.german + ending


def attributive(adjective: lexicon.Adjective, endings: str, case: str, column: str) -> str:
    """Returns the adjective as inflected before a noun: teures, dunkle, müden, rosa."""
    if not adjective.stem:
        return adjective.german
    return adjective.stem + ADJECTIVES[endings][case, column]


def decline(noun: lexicon.Noun, case: str, plural: bool) -> str:
    """Returns the noun in its case: dem Studenten, des Hauses, den Kindern, den Autos."""
    if plural:
        dative_n = case == DATIVE and noun.german_plural[-1] not in "ns"
        return noun.german_plural + ("n" if dative_n else "")
    if case == GENITIVE or (case != NOMINATIVE and "weak" in noun.features):
        return noun.genitive  # all cases of a weak noun but the nominative are the same
    return noun.german


def contract(preposition: str, phrase: str) -> str:
    """Joins a preposition and a noun phrase, contracting "in dem" and the like.

    Only articles contract: "dem" as a relative pronoun must not be passed here.
    """
    first, _, rest = phrase.partition(" ")
    contracted = _CONTRACTIONS.get(f"{preposition} {first}")
    return f"{contracted} {rest}" if contracted else f"{preposition} {phrase}"


@cache
def finite(verb: lexicon.Verb | lexicon.Modal, tense: str, person: int, plural: bool) -> str:
    """Returns the finite form without a separable prefix, in the present or the past."""
    infinitive = verb.german.removeprefix(verb.prefix)
    if tense == "past":
        plural_ending = "n" if verb.german_past.endswith("e") else "en"
        return verb.german_past + (plural_ending if plural else "")
    if plural:
        return "sind" if infinitive == "sein" else infinitive
    if person == 3 or infinitive in _PRETERITE_PRESENTS:
        return verb.german_present
    if infinitive == "sein":
        return "bin"
    if infinitive.endswith("eln"):
        return infinitive[:-3] + "le"  # ich lächle
    return infinitive.removesuffix("n").removesuffix("e") + "e"


def zu_infinitive(verb: lexicon.Verb) -> str:
    """Returns the infinitive with zu: anzurufen in one word, zu kaufen in two."""
    if verb.prefix:
        return f"{verb.prefix}zu{verb.german.removeprefix(verb.prefix)}"
    return f"zu {verb.german}"


def number_word(number: int) -> str:
    """Returns a cardinal from 2 to 99 in words, units before tens: einundzwanzig."""
    if number < 20:
        return _NUMBERS[number - 1]
    tens, units = _TENS[number // 10 - 2], number % 10
    return f"{_NUMBERS[units - 1]}und{tens}" if units else tens
