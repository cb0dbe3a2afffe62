"""Random noun phrases, places and adverbials that make sense."""

from random import Random
from typing import TypeVar

from pipelines.grammar import lexicon, tree

T = TypeVar("T")
POSSESSIVES = ("my", "his", "her", "our", "their")
# Nobody says "my forest" or "the baker's rain".
_UNOWNED = ("person", "open", "waterside", "area", "cause", "opening", "plant", "event")
_MASS = ("stuff", "drink", "cause")
_SINGULAR_ONLY, _PLURAL_ONLY = ("a", "every"), ("all", "many", "some", "several", "", "number")
# How often each determiner is drawn, by the phrase's role. "owned" is a possessive, "possessor" a
# phrase with 's, "" no determiner.
# fmt: off
_DETERMINERS = {
    "subject": {
        "the": 46, "a": 12, "this": 8, "owned": 14, "every": 4, "no": 2, "all": 3, "many": 3,
        "some": 2, "several": 2, "number": 3, "": 3,
    },
    "object": {
        "the": 36, "a": 26, "this": 6, "owned": 12, "possessor": 5, "many": 2, "some": 2,
        "several": 2, "number": 5, "": 4,
    },
    "definite": {"the": 62, "this": 10, "owned": 18, "possessor": 10},
    "negatable": {"the": 38, "this": 6, "owned": 12, "a": 34, "": 10},
    "indefinite": {"a": 50, "many": 8, "some": 5, "several": 5, "number": 15, "no": 12},
    "antecedent": {"the": 75, "a": 20, "all": 5},
    "kin": {"owned": 85, "possessor": 15},
    "mass": {"the": 45, "": 40, "this": 7, "owned": 8},
    "which": {"which": 75, "how many": 25},
}
# fmt: on
_NUMBERS = [*range(2, 13)] * 8 + [*range(13, 100)]


def _pairs(kind: str) -> list[tuple[lexicon.Preposition, lexicon.Noun]]:
    """Returns all nouns with their prepositions of this kind, in the order of the nouns."""
    entries = [entry for entry in lexicon.PREPOSITIONS if entry.kind == kind]
    return [(entry, noun) for noun in lexicon.NOUNS for entry in entries if noun in entry.nouns]


# Pairs of a preposition and a noun: places, directions, directions for vehicles, and occasions.
LOCATED = [(entry, noun) for entry, noun in _pairs("place") if noun.kind != "furniture"]
DIRECTED = _pairs("direction")
DRIVEN = [
    (entry, noun)
    for entry, noun in DIRECTED
    if entry.english in ("to", "through", "around", "onto")
    and noun.kind not in ("room", "plant")
    and noun.english != "roof"
]
_OCCASIONS = [
    (entry, noun)
    for entry in lexicon.PREPOSITIONS
    if entry.kind == "occasion"
    for noun in entry.nouns
]
# The prepositions of place for each noun.
LOCATIVES = {
    noun: [entry for entry in lexicon.PREPOSITIONS if entry.kind == "place" and noun in entry.nouns]
    for noun in lexicon.NOUNS
}


def weighted_choice(rng: Random, weights: dict[T, int]) -> T:
    """Draws one of the keys, as often as its weight says."""
    return rng.choices(list(weights), list(weights.values()))[0]


def noun_phrase(
    rng: Random, noun: lexicon.Noun, role: str, described: float = 0.43
) -> tree.NounPhrase:
    """Returns a phrase with the noun, and a determiner that suits its role in the sentence.

    `described` is the probability of an adjective.
    """
    choice = _determiner(rng, noun, role)
    plural = _is_plural(rng, noun, choice)
    adjectives = lexicon.ADJECTIVES_OF[noun.kind]
    adjective = rng.choice(adjectives) if adjectives and rng.random() < described else None
    if choice == "possessor":
        return tree.NounPhrase(
            noun, lexicon.BARE, plural, adjective, possessor=_possessor(rng, noun)
        )
    if choice == "number":
        return tree.NounPhrase(noun, lexicon.BARE, plural, adjective, number=rng.choice(_NUMBERS))
    if choice == "owned":
        choice = rng.choice(POSSESSIVES)
    return tree.NounPhrase(noun, lexicon.DETERMINER[choice], plural, adjective)


def _determiner(rng: Random, noun: lexicon.Noun, role: str) -> str:
    if noun.kind == "kin":
        role = "kin"
    elif noun.kind in _MASS:
        role = "mass"
    choice = weighted_choice(rng, _DETERMINERS[role])
    if choice in ("owned", "possessor") and noun.kind in _UNOWNED:
        return "the"
    singular = noun.kind == "cause" or (role != "mass" and not noun.german_plural)
    return "the" if singular and choice in _PLURAL_ONLY else choice


def _is_plural(rng: Random, noun: lexicon.Noun, choice: str) -> bool:
    if not noun.german_plural or choice in _SINGULAR_ONLY:
        return False
    return choice in _PLURAL_ONLY or choice == "how many" or rng.random() < 0.22


def _possessor(rng: Random, owned: lexicon.Noun) -> tree.Nominal:
    if owned.kind == "kin" or rng.random() < 0.35:
        return rng.choice(lexicon.NAMES)
    if rng.random() < 0.4:
        noun = rng.choice(lexicon.NOUNS_BY_KIND["kin"])
        return tree.NounPhrase(noun, lexicon.DETERMINER[rng.choice(POSSESSIVES)])
    noun = rng.choice(lexicon.NOUNS_BY_KIND["person"])
    return tree.NounPhrase(noun, lexicon.DETERMINER["the"], rng.random() < 0.2)


def participant(rng: Random, nouns: list[lexicon.Noun], role: str) -> tree.Nominal:
    """Returns a subject or object; where all people are possible, also a pronoun or a name."""
    noun = rng.choice(nouns)
    if noun.is_person and lexicon.NOUN["teacher"] in nouns:
        chance = rng.random()
        if chance < 0.28:
            return rng.choice(lexicon.PRONOUNS)
        if chance < 0.38:
            return rng.choice(lexicon.NAMES)
    return noun_phrase(rng, noun, role)


def somebody(rng: Random) -> tree.Nominal:
    """Returns a short subject for an embedded clause."""
    if rng.random() < 0.6:
        return rng.choice(lexicon.PRONOUNS)
    return noun_phrase(rng, rng.choice(lexicon.PEOPLE), "definite", described=0.15)


def landmark(
    rng: Random,
    preposition: lexicon.Preposition,
    noun: lexicon.Noun,
    described: float = 0.25,
    direction: bool = False,
) -> tree.PrepositionalPhrase:
    """Returns the preposition with a definite phrase for the noun: in the old house."""
    phrase = noun_phrase(rng, noun, "definite", described)
    return tree.PrepositionalPhrase(preposition, phrase, direction)


def place_at(rng: Random, noun: lexicon.Noun) -> tree.PrepositionalPhrase:
    """Returns a phrase for being at a given place."""
    return landmark(rng, rng.choice(LOCATIVES[noun]), noun)


def company(rng: Random) -> tree.PrepositionalPhrase:
    """Returns a phrase for being with or without somebody."""
    preposition = lexicon.PREPOSITION["with" if rng.random() < 0.7 else "without"]
    noun = rng.choice(preposition.nouns + lexicon.NOUNS_BY_KIND["kin"])
    return landmark(rng, preposition, noun, described=0.2)


def occasion(rng: Random) -> tree.PrepositionalPhrase:
    """Returns a time or cause: before the wedding, despite the rain."""
    preposition, noun = rng.choice(_OCCASIONS)
    phrase = noun_phrase(rng, noun, "definite", described=0.15)
    return tree.PrepositionalPhrase(preposition, phrase._replace(plural=False))
