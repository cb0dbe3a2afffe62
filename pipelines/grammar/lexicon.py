"""The words: one German item for each English one, so that every sentence has one translation.

Each class has a table, words/*.csv. The columns of the table are the attributes of its words, and
features are separated by spaces. The order of the rows matters: another order gives other sentences
for the same seed.
"""

import csv
from pathlib import Path
from typing import Any

NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = "nominative", "accusative", "dative", "genitive"
TENSES = ("present", "past", "perfect")


class Word:
    """A row of a table; an empty cell means that there is no such form."""

    def __init__(self, **cells: Any) -> None:
        self.__dict__.update(cells)


class Noun(Word):
    """A noun; nouns of the same kind have the same roles in sentences.

    Features: weak (ends in -n or -en in every case but the nominative singular), no-profession.
    """

    @property
    def is_person(self) -> bool:
        return self.kind in ("person", "kin")


class Verb(Word):
    """A verb, with its subjects, its objects, and the adverbs of manner that it is used with.

    The frame names the constituents it is used with. `particle` follows the English verb (look
    for). The finite German forms are those of the third person, without the separable prefix; they
    govern an object in `case`, after `preposition`. Features:

        sein             its perfect is formed with sein
        reflexive        is reflexive in German
        movable          its English particle follows a pronoun (turn them on)
        stative          names a state: without time, place, manner, and modals except "will"
        no-place         is not used with a free place
        unplanned        is not something that somebody tries to do
        definite-object  its object is definite (the dog, my dog)
    """


class Modal(Word):
    """A modal verb. Features: lexical (takes "do": does not want to).

    The German "sollten" is a subjunctive, which looks like the past.
    """

    prefix = ""


class Adjective(Word):
    """An adjective, and the kinds of nouns it describes; without a stem, it has no endings (rosa).

    Features: attributive (is only used before a noun).
    """


class Adverb(Word):
    """An adverbial, and the tenses it is used in; "modal" is the present of a modal."""


class Preposition(Word):
    """A preposition. Features: two-way (takes the accusative if the verb names a direction)."""


class Determiner(Word):
    """A determiner: its German stem, with the pattern of its own endings and of adjectives'.

    The row without words is the absence of a determiner (books, milk). Features: definite (the
    phrase precedes the adverbials of a German clause), quantifier ("not" with it would be ambiguous
    or wrong: all children do not ...).
    """


class Conjunction(Word):
    """A conjunction, in the past perhaps another (als). Features: infinitive, english-comma."""


class Pronoun(Word):
    """A personal pronoun.

    "You" is omitted because it has three German translations. "It" is only an expletive subject (it
    is raining), because its German gender is that of an unnamed noun.
    """


class Name(Word):
    """A person's name, the same in both languages."""

    person, plural = 3, False


def _read(word_class: type[Word], table: str) -> list[Any]:
    path = Path(__file__).with_name("words") / f"{table}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, restval=""))
    return [
        word_class(**{column: _cell(column, text) for column, text in row.items()}) for row in rows
    ]


def _cell(column: str, text: str) -> Any:
    if column in ("subjects", "objects", "nouns"):
        return nouns_of(text)
    if column == "manners":
        return [ADVERB[name] for name in text.split()]
    if column == "kinds":
        return text.split()
    return int(text) if column == "person" else text


def nouns_of(names: str) -> list[Noun]:
    """Returns the nouns that are named individually, by kind, or as "people", each once."""
    nouns = {}
    for name in names.split():
        for noun in NOUNS:
            if name in (noun.english, noun.kind) or (name == "people" and noun.is_person):
                nouns[noun] = None
    return list(nouns)


NOUNS = _read(Noun, "nouns")
NOUN = {noun.english: noun for noun in NOUNS}
NOUNS_BY_KIND = {noun.kind: [other for other in NOUNS if other.kind == noun.kind] for noun in NOUNS}
PEOPLE = nouns_of("people")

ADVERBS = _read(Adverb, "adverbs")
ADVERB = {adverb.english: adverb for adverb in ADVERBS}
ADVERBS_IN = {
    (kind, tense): [word for word in ADVERBS if word.kind == kind and tense in word.tenses]
    for kind in ("time", "frequency")
    for tense in (*TENSES, "modal")
}

VERBS = _read(Verb, "verbs")
VERBS_BY_FRAME = {
    verb.frame: [other for other in VERBS if other.frame == verb.frame] for verb in VERBS
}
# By the English words; of the two frames of "be", the copula.
VERB = {f"{verb.base} {verb.particle}".rstrip(): verb for verb in reversed(VERBS)}
EXISTENTIAL = VERBS_BY_FRAME["existential"][0]
BE = VERB["be"]
HAVE = Verb(prefix="", german="haben", german_present="hat", german_past="hatte")

MODALS = _read(Modal, "modals")
MODAL = {modal.english: modal for modal in MODALS}

ADJECTIVES = _read(Adjective, "adjectives")
ADJECTIVE = {adjective.english: adjective for adjective in ADJECTIVES}
ADJECTIVES_OF = {
    kind: [adjective for adjective in ADJECTIVES if kind in adjective.kinds]
    for kind in NOUNS_BY_KIND
}

PREPOSITIONS = _read(Preposition, "prepositions")
PREPOSITION = {preposition.english: preposition for preposition in PREPOSITIONS}
DETERMINER = {determiner.english: determiner for determiner in _read(Determiner, "determiners")}
BARE = DETERMINER[""]
CONJUNCTION = {word.english: word for word in _read(Conjunction, "conjunctions")}
PRONOUN = {pronoun.english: pronoun for pronoun in _read(Pronoun, "pronouns")}
EXPLETIVE = PRONOUN["it"]
PRONOUNS = [pronoun for pronoun in PRONOUN.values() if pronoun is not EXPLETIVE]
NAMES = _read(Name, "names")
