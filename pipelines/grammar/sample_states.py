"""Random clauses without an action: be and become, the weather, and what there is somewhere."""

from random import Random

from pipelines.grammar import sample_phrases as phrases
from pipelines.grammar.derivations import (
    Clause,
    Comparison,
    Nominal,
    NounPhrase,
    PrepositionalPhrase,
)
from pipelines.grammar.entries import Adjective
from pipelines.grammar.nouns import NOUNS, NOUNS_BY_KIND, nouns_of
from pipelines.grammar.verbs import EXISTENTIAL, VERB, VERBS_BY_FRAME
from pipelines.grammar.words import ADJECTIVES, DETERMINER, EXPLETIVE, NAMES, PREPOSITION, PRONOUN

_PEOPLE = NOUNS_BY_KIND["person"] + NOUNS_BY_KIND["kin"]
_STATES = ("old", "tired", "ill", "rich", "famous", "nervous", "angry", "curious", "hungry", "sad")
_PREDICATES = tuple(
    adjective for adjective in ADJECTIVES if adjective.english not in ("German", "French")
)
_COMPARED = tuple(adjective for adjective in _PREDICATES if adjective.german_comparative)
_PROFESSIONS = {
    gender: tuple(
        noun
        for noun in NOUNS_BY_KIND["person"]
        if noun.gender == gender and noun.english not in ("man", "woman", "boy", "girl", "guest")
    )
    for gender in "mf"
}
_PREDICATE = {adjective.english: adjective for adjective in _PREDICATES}
_CONTENTS = {
    "room": nouns_of(("furniture", "device", "dish", "opening")),
    "area": nouns_of(("plant", "animal", "building")),
    "building": nouns_of(("furniture", "image", "instrument")),
    "open": nouns_of(("plant", "animal")),
    "waterside": nouns_of(("plant", "hotel", "restaurant")),
}
_CONTAINING = tuple(
    noun
    for noun in NOUNS
    if noun.kind in _CONTENTS and noun.english not in ("roof", "bridge", "station")
)


def copula_clause(rng: Random, tense: str | None = None) -> Clause:
    """be or become, with an adjective, a comparison or a profession."""
    tense = tense or rng.choice(("present", "present", "past", "perfect"))
    negated = rng.random() < 0.15
    choice = rng.random()
    if choice < 0.2:
        adjective = _PREDICATE[rng.choice(_STATES)]
        subject = phrases.participant(rng, _PEOPLE, "definite")
        return Clause(subject, VERB["become"], tense, negated=negated, predicate=adjective)
    if choice < 0.32:
        return _profession(rng, tense, negated)
    if choice < 0.55:
        return _comparison(rng, tense, negated)
    adjective = rng.choice(_PREDICATES)
    subject = _described(rng, adjective)
    if tense == "perfect" and "person" not in adjective.kinds:
        tense = "past"  # "the car has been red" is said by nobody
    return Clause(subject, VERB["be"], tense, negated=negated, predicate=adjective)


def _described(rng: Random, adjective: Adjective) -> Nominal:
    nouns = NOUNS_BY_KIND[rng.choice(adjective.kinds)]
    if nouns[0].is_person:
        return phrases.participant(rng, _PEOPLE, "definite")
    return phrases.noun_phrase(rng, rng.choice(nouns), "definite", described=0)


def _comparison(rng: Random, tense: str, negated: bool) -> Clause:
    tense = "past" if tense == "perfect" else tense
    adjective = rng.choice(_COMPARED)
    nouns = NOUNS_BY_KIND[rng.choice(adjective.kinds)]
    if len(nouns) < 2:
        nouns = NOUNS_BY_KIND["vehicle"]
    first, second = rng.sample(nouns, 2)
    comparison = Comparison(
        adjective,
        phrases.noun_phrase(rng, second, "definite", described=0),
        rng.random() < 0.3,
    )
    subject = phrases.noun_phrase(rng, first, "definite", described=0)
    return Clause(subject, VERB["be"], tense, negated=negated, predicate=comparison)


def _profession(rng: Random, tense: str, negated: bool) -> Clause:
    gender = "m" if rng.random() < 0.7 else "f"
    names = [name for name in NAMES if name.gender == gender]
    kin = [noun for noun in NOUNS_BY_KIND["kin"] if noun.gender == gender]
    chance = rng.random()
    if chance < 0.3:
        subject: Nominal = PRONOUN["he" if gender == "m" else "she"]
    elif chance < 0.6:
        subject = rng.choice(names)
    else:
        owner = DETERMINER[rng.choice(("my", "his", "her", "our", "their"))]
        subject = NounPhrase(rng.choice(kin), owner)
    adjective = rng.choice(phrases.ADJECTIVES_OF["person"])
    noun = rng.choice(_PROFESSIONS[gender])
    profession = NounPhrase(noun, DETERMINER["a"], False, adjective)
    return Clause(subject, VERB["be"], tense, negated=negated, predicate=profession)


def weather_clause(rng: Random, tense: str) -> Clause:
    """It is raining."""
    verb = rng.choice(VERBS_BY_FRAME["weather"])
    return Clause(EXPLETIVE, verb, tense)


def existential_clause(rng: Random) -> Clause:
    """There are three trees in the garden."""
    container = rng.choice(_CONTAINING)
    noun = rng.choice(_CONTENTS[container.kind])
    object = phrases.noun_phrase(rng, noun, "indefinite", described=0.45)
    name = "in" if container.kind == "building" else rng.choice(phrases.LOCATIVES[container.kind])
    landmark = phrases.noun_phrase(rng, container, "definite", described=0.2)
    where = PrepositionalPhrase(PREPOSITION[name], landmark)
    tense = "present" if rng.random() < 0.6 else "past"
    return Clause(EXPLETIVE, EXISTENTIAL, tense, object=object, place=where)
