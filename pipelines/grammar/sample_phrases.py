"""Random noun phrases, places and adverbials that make sense."""

from collections.abc import Sequence
from itertools import accumulate
from random import Random

from pipelines.grammar.derivations import Nominal, NounPhrase, PrepositionalPhrase
from pipelines.grammar.entries import Adjective, Adverb, Noun
from pipelines.grammar.nouns import MASS_KINDS, NOUN, NOUNS, NOUNS_BY_KIND
from pipelines.grammar.words import (
    ADJECTIVES,
    BARE,
    DETERMINER,
    DIRECTIONS,
    LOCATIVES,
    NAMES,
    PREPOSITION,
    PRONOUNS,
    TIMES,
)

ADJECTIVES_OF: dict[str, tuple[Adjective, ...]] = {
    kind: tuple(adjective for adjective in ADJECTIVES if kind in adjective.kinds)
    for kind in NOUNS_BY_KIND
}
_POSSESSIVES = ("my", "his", "her", "our", "their")
# Nobody says "my forest" or "the baker's rain".
UNOWNED = ("person", "open", "waterside", "area", "cause", "opening", "plant", "event")
_SINGULAR_ONLY, _PLURAL_ONLY = ("a", "every"), ("all", "many", "some", "several", "", "number")
_WEIGHTS = {
    "subject": "the 46 a 12 this 8 owned 14 every 4 no 2 all 3 many 3 some 2 several 2 number 3 "
    "bare 3",
    "object": "the 36 a 26 this 6 owned 12 possessor 5 many 2 some 2 several 2 number 5 bare 4",
    "definite": "the 62 this 10 owned 18 possessor 10",
    "negatable": "the 38 this 6 owned 12 a 34 bare 10",
    "indefinite": "a 50 many 8 some 5 several 5 number 15 no 12",
    "antecedent": "the 75 a 20 all 5",
    "kin": "owned 85 possessor 15",
    "mass": "the 45 bare 40 this 7 owned 8",
    "which": "which 75 how_many 25",
}


def _weighted(listing: str) -> tuple[list[str], list[int]]:
    """The names ("" for no determiner) and their cumulative weights."""
    fields = listing.split()
    names = ["" if name == "bare" else name.replace("_", " ") for name in fields[::2]]
    return names, list(accumulate(int(weight) for weight in fields[1::2]))


_CHOICES = {role: _weighted(listing) for role, listing in _WEIGHTS.items()}
_NUMBERS = tuple(range(2, 13)) * 8 + tuple(range(13, 100))
_LOCATED = tuple(
    (PREPOSITION[name], noun)
    for noun in NOUNS
    if noun.kind not in ("vehicle", "furniture")
    for name in LOCATIVES.get(noun.kind, ())
)
_DIRECTED = tuple(
    (PREPOSITION[name], noun) for noun in NOUNS for name in DIRECTIONS.get(noun.kind, ())
)
_DRIVEN = tuple(
    (preposition, noun)
    for preposition, noun in _DIRECTED
    if preposition.english in ("to", "through", "around", "onto")
    and noun.kind not in ("room", "plant")
    and noun.english != "roof"
)
_DATED = tuple(
    (PREPOSITION[name], noun)
    for name in ("before", "after", "during")
    for noun in NOUNS_BY_KIND["event"]
) + tuple(
    (PREPOSITION[name], noun)
    for name in ("because of", "despite")
    for noun in NOUNS_BY_KIND["cause"]
)
_COMPANIONS = NOUNS_BY_KIND["person"] + NOUNS_BY_KIND["kin"] * 2
_TIMES_IN: dict[str, tuple[Adverb, ...]] = {
    tense: tuple(adverb for adverb in TIMES if tense in adverb.tenses)
    for tense in ("present", "past", "perfect", "modal")
}


def noun_phrase(rng: Random, noun: Noun, role: str, described: float = 0.43) -> NounPhrase:
    """A phrase around the noun with a determiner that suits its role in the sentence."""
    choice = _determiner_name(rng, noun, role)
    plural = _is_plural(rng, noun, choice)
    adjectives = ADJECTIVES_OF[noun.kind]
    adjective = rng.choice(adjectives) if adjectives and rng.random() < described else None
    if choice == "possessor":
        return NounPhrase(noun, BARE, plural, adjective, None, _possessor(rng, noun))
    if choice == "number":
        return NounPhrase(noun, BARE, plural, adjective, rng.choice(_NUMBERS))
    if choice == "owned":
        choice = rng.choice(_POSSESSIVES)
    return NounPhrase(noun, DETERMINER[choice], plural, adjective)


def _determiner_name(rng: Random, noun: Noun, role: str) -> str:
    if noun.kind == "kin":
        role = "kin"
    elif noun.kind in MASS_KINDS:
        role = "mass"
    names, cumulative = _CHOICES[role]
    choice = rng.choices(names, cum_weights=cumulative)[0]
    if choice in ("owned", "possessor") and noun.kind in UNOWNED:
        return "the"
    if role != "kin" and choice in _PLURAL_ONLY and noun.kind == "cause":
        return "the"
    if role not in ("kin", "mass") and not noun.german_plural and choice in _PLURAL_ONLY:
        return "the"
    return choice


def _is_plural(rng: Random, noun: Noun, choice: str) -> bool:
    if not noun.german_plural or choice in _SINGULAR_ONLY:
        return False
    return choice in _PLURAL_ONLY or choice == "how many" or rng.random() < 0.22


def _possessor(rng: Random, owned: Noun) -> Nominal:
    if owned.kind == "kin" or rng.random() < 0.35:
        return rng.choice(NAMES)
    if rng.random() < 0.4:
        noun = rng.choice(NOUNS_BY_KIND["kin"])
        return NounPhrase(noun, DETERMINER[rng.choice(_POSSESSIVES)])
    noun = rng.choice(NOUNS_BY_KIND["person"])
    return NounPhrase(noun, DETERMINER["the"], rng.random() < 0.2)


def participant(rng: Random, nouns: Sequence[Noun], role: str) -> Nominal:
    """A subject or object; people may also be a pronoun or a name."""
    noun = rng.choice(nouns)
    if noun.is_person and NOUN["teacher"] in nouns and role != "antecedent":
        chance = rng.random()
        if chance < 0.28:
            return rng.choice(PRONOUNS)
        if chance < 0.38:
            return rng.choice(NAMES)
    return noun_phrase(rng, noun, role)


def place(rng: Random) -> PrepositionalPhrase:
    """Where something happens: in the old house, on a bridge, under the tree."""
    preposition, noun = rng.choice(_LOCATED)
    return PrepositionalPhrase(preposition, _landmark(rng, noun))


def place_at(rng: Random, noun: Noun) -> PrepositionalPhrase:
    """Where something is, at a given place."""
    name = rng.choice(LOCATIVES[noun.kind])
    return PrepositionalPhrase(PREPOSITION[name], _landmark(rng, noun))


def direction(rng: Random, by_vehicle: bool) -> PrepositionalPhrase:
    """Where somebody goes: into the house, onto the roof, to the station."""
    preposition, noun = rng.choice(_DRIVEN if by_vehicle else _DIRECTED)
    return PrepositionalPhrase(preposition, _landmark(rng, noun))


def _landmark(rng: Random, noun: Noun) -> NounPhrase:
    return noun_phrase(rng, noun, "definite", described=0.25)


def company(rng: Random) -> PrepositionalPhrase:
    """with or without somebody."""
    preposition = PREPOSITION["with" if rng.random() < 0.7 else "without"]
    noun = rng.choice(_COMPANIONS)
    return PrepositionalPhrase(preposition, noun_phrase(rng, noun, "definite", described=0.2))


def time(rng: Random, tense: str) -> Adverb:
    """An adverbial of time that goes with the tense ("modal" for a modal in the present)."""
    return rng.choice(_TIMES_IN[tense])


def occasion(rng: Random) -> PrepositionalPhrase:
    """before the wedding, despite the rain."""
    preposition, noun = rng.choice(_DATED)
    phrase = noun_phrase(rng, noun, "definite", described=0.15)
    return PrepositionalPhrase(
        preposition, NounPhrase(noun, phrase.determiner, False, phrase.adjective)
    )
