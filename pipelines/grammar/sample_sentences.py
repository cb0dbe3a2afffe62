"""Random sentences: which constructions there are, and how often each is used."""

from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from random import Random

from pipelines.grammar import sample_clauses as clauses
from pipelines.grammar import sample_phrases as phrases
from pipelines.grammar import sample_states as states
from pipelines.grammar.derivations import (
    Clause,
    Coordination,
    Interrogative,
    Nominal,
    NounPhrase,
    PrepositionalPhrase,
    Question,
    RelativePronoun,
    Sentence,
    Statement,
    Subordinate,
)
from pipelines.grammar.entries import ACCUSATIVE, Noun, Verb
from pipelines.grammar.nouns import NOUNS, NOUNS_BY_KIND
from pipelines.grammar.verbs import VERB, VERBS_BY_FRAME
from pipelines.grammar.words import CONJUNCTION, PREPOSITION, PRONOUN

_EVENTFUL = tuple(
    verb
    for frame in ("intransitive", "transitive", "prepositional")
    for verb in VERBS_BY_FRAME[frame]
    if verb not in clauses.STATIVE
)
_WITH_OBJECT = tuple(
    verb for frame in ("transitive", "prepositional") for verb in VERBS_BY_FRAME[frame]
)
_ASKED_FOR = tuple(
    verb
    for verb in VERBS_BY_FRAME["transitive"]
    if verb.case == ACCUSATIVE and not any(noun.is_person for noun in clauses.OBJECTS[verb])
)
_OF_PEOPLE = tuple(
    verb for verb in _WITH_OBJECT if any(noun.is_person for noun in clauses.OBJECTS[verb])
)
# What a noun can do, and what can be done with it.
_DOES: dict[Noun, tuple[Verb, ...]] = {
    noun: tuple(verb for verb in _EVENTFUL if noun in clauses.SUBJECTS[verb]) for noun in NOUNS
}
_UNDERGOES: dict[Noun, tuple[Verb, ...]] = {
    noun: tuple(verb for verb in _WITH_OBJECT if noun in clauses.OBJECTS[verb]) for noun in NOUNS
}
_INHABITED = NOUNS_BY_KIND["building"] + NOUNS_BY_KIND["area"]
_STAYING = tuple(VERB[name] for name in ("live", "work", "sleep", "wait", "sit", "stay"))
_REASONS = ("because", "although", "when", "if", "while", "before", "as soon as")
_REASON_WEIGHTS = list(accumulate((30, 15, 20, 8, 10, 9, 8)))
# Only the causes and conditions: nobody comes "before it is raining".
_WEATHER_REASONS = ("because", "although", "when", "while")


def simple(rng: Random) -> Sentence:
    """One main clause, with its subject first."""
    return Statement(clauses.plain_clause(rng))


def fronted(rng: Random) -> Sentence:
    """One main clause with its adverbial of time or cause in front."""
    while True:
        clause = clauses.plain_clause(rng, adverbials=1.0)
        if clause.circumstance:
            return Statement(replace(clause, circumstance=None), clause.circumstance)


def coordinated(rng: Random) -> Sentence:
    """Two main clauses, in the same tense."""
    tense = rng.choice(("present", "past", "perfect"))
    first = clauses.plain_clause(rng, tense, adverbials=0.15)
    second = clauses.plain_clause(rng, tense, adverbials=0.15)
    while second.verb is first.verb:
        second = clauses.plain_clause(rng, tense, adverbials=0.15)
    return Coordination(first, rng.choice(("and", "but")), second)


def existential(rng: Random) -> Sentence:
    """There is, and at times the question after it."""
    clause = states.existential_clause(rng)
    if rng.random() < 0.85:
        return Statement(clause)
    return Question(clause)


def weather(rng: Random) -> Sentence:
    """It was raining yesterday, with the time in front or at the end."""
    tense = rng.choice(("present", "past", "perfect"))
    time = phrases.time(rng, tense) if tense != "present" else None
    clause = states.weather_clause(rng, tense)
    if time and rng.random() < 0.5:
        return Statement(clause, time)
    return Statement(replace(clause, circumstance=time))


def with_reason(rng: Random) -> Sentence:
    """A main clause and an adverbial clause after or before it, in the same tense."""
    tense = rng.choice(("present", "past"))
    if rng.random() < 0.25:
        name = rng.choice(_WEATHER_REASONS)
        inner = states.weather_clause(rng, tense)
    else:
        name = rng.choices(_REASONS, cum_weights=_REASON_WEIGHTS)[0]
        inner = _inner(rng, tense, with_state=name in _WEATHER_REASONS[:2])
    if name in ("if", "as soon as") and tense == "past":
        name = "when"
    subordinate = Subordinate(CONJUNCTION[name], inner)
    clause = clauses.plain_clause(rng, tense, adverbials=0.1)
    while clause.verb.frame == "copula" and name not in _WEATHER_REASONS[:2]:
        clause = clauses.plain_clause(rng, tense, adverbials=0.1)
    if rng.random() < 0.35:
        return Statement(clause, subordinate)
    return Statement(replace(clause, tail=subordinate))


def _inner(rng: Random, tense: str, with_state: bool) -> Clause:
    """A short clause about somebody, to be put inside another."""
    if with_state and rng.random() < 0.25:
        return states.copula_clause(rng, tense)
    subject = clauses.somebody(rng)
    verb = _done_by_people(rng)
    while not clauses.has_past(verb, tense, subject):
        verb = _done_by_people(rng)
    return clauses.verb_clause(rng, verb, tense, 0.1, subject=subject)


def _done_by_people(rng: Random) -> Verb:
    verb = rng.choice(_EVENTFUL)
    while clauses.SUBJECTS[verb][0].kind != "person":
        verb = rng.choice(_EVENTFUL)
    return verb


def reported(rng: Random) -> Sentence:
    """say that, ask whether: a clause as the content of a verb."""
    verb = rng.choice(VERBS_BY_FRAME["clausal"])
    tense = rng.choice(("present", "past"))
    inner_tense = rng.choice(("present", "perfect")) if tense == "present" else "past"
    inner = clauses.plain_clause(rng, inner_tense, adverbials=0.15)
    name = "whether" if verb.particle == "whether" else "that"
    subject = phrases.participant(rng, NOUNS_BY_KIND["person"], "definite")
    negated = verb.english in ("believe that", "say that") and rng.random() < 0.15
    tail = Subordinate(CONJUNCTION[name], inner)
    return Statement(Clause(subject, verb, tense, negated=negated, tail=tail))


def infinitive(rng: Random) -> Sentence:
    """tries to open the door, and goes to the station in order to help the tourist."""
    subject = phrases.participant(rng, NOUNS_BY_KIND["person"], "subject")
    verb = _done_by_people(rng)
    while verb.english in _INVOLUNTARY:
        verb = _done_by_people(rng)
    inner = clauses.verb_clause(rng, verb, "present", 0.0, subject=subject)
    inner = replace(inner, tense="present", negated=False)
    if rng.random() < 0.6:
        tense = rng.choice(("present", "past", "perfect"))
        tail = Subordinate(CONJUNCTION["to"], inner)
        control = rng.choice(VERBS_BY_FRAME["control"])
        return Statement(Clause(subject, control, tense, tail=tail))
    tail = Subordinate(CONJUNCTION["in order to"], inner)
    outer = rng.choice((VERB["go"], VERB["drive"], VERB["hurry"], VERB["get up"], VERB["wait"]))
    clause = clauses.verb_clause(rng, outer, None, 0.0, subject=subject)
    return Statement(replace(clause, negated=False, tail=tail))


_INVOLUNTARY = (
    "sneeze",
    "lose",
    "break",
    "forget",
    "see",
    "hear",
    "fall asleep",
    "dream of",
    "hurry",
)


def with_relative(rng: Random) -> Sentence:
    """A relative clause on the subject, or on an object that ends its clause."""
    for _ in range(100):
        tense = rng.choice(("present", "past", "perfect"))
        verb = rng.choice(_EVENTFUL)
        on_object = bool(verb.objects) and rng.random() < 0.5
        nouns = clauses.OBJECTS[verb] if on_object else clauses.SUBJECTS[verb]
        noun = rng.choice(nouns)
        if noun.kind in ("kin", "cause", "stuff", "drink"):
            continue
        antecedent = _antecedent(rng, noun, "present" if tense == "perfect" else tense)
        if antecedent is None or antecedent.relative.verb is verb:
            continue
        if on_object:
            clause = clauses.verb_clause(rng, verb, tense, 0.0, object=antecedent)
            negated = clause.negated and antecedent.definite
            return Statement(replace(clause, negated=negated))
        if clauses.has_past(verb, tense, antecedent):
            return Statement(clauses.verb_clause(rng, verb, tense, 0.0, subject=antecedent))
    raise RuntimeError("no antecedent was found for a relative clause in 100 verbs")


def _antecedent(rng: Random, noun: Noun, tense: str) -> NounPhrase | None:
    phrase = phrases.noun_phrase(rng, noun, "antecedent", described=0.2)
    pronoun = RelativePronoun(noun, phrase.plural)
    if noun in _INHABITED and rng.random() < 0.5:
        inside = PrepositionalPhrase(PREPOSITION["in"], pronoun)
        verb = rng.choice(_STAYING)
        clause = Clause(clauses.somebody(rng), verb, tense, complement=inside)
        return replace(phrase, relative=clause)
    does, undergoes = _DOES[noun], _UNDERGOES[noun]
    if does and (not undergoes or rng.random() < 0.5):
        verb = rng.choice(does)
        if not clauses.has_past(verb, tense, pronoun):
            return None
        clause = clauses.verb_clause(rng, verb, tense, 0.2, subject=pronoun)
    elif undergoes:
        verb = rng.choice(undergoes)
        subject = clauses.somebody(rng)
        if clauses.SUBJECTS[verb][0].kind != "person":
            return None
        if not clauses.has_past(verb, tense, subject):
            return None
        if clauses.clashes(subject, pronoun):
            return None
        clause = clauses.verb_clause(rng, verb, tense, 0.0, subject, pronoun)
    else:
        return None
    return replace(phrase, relative=replace(clause, circumstance=None, negated=False))


def _question(clause: Clause, asked: str = "") -> Question:
    """An affirmative question; nobody asks about what they do themselves."""
    subject = clause.subject
    if subject is PRONOUN["I"]:
        subject = PRONOUN["he"]
    elif subject is PRONOUN["we"]:
        subject = PRONOUN["they"]
    return Question(replace(clause, subject=subject, negated=False), asked)


def yes_no(rng: Random) -> Sentence:
    """Does the man read the book?"""
    return _question(clauses.plain_clause(rng, adverbials=0.2))


def asking_who(rng: Random) -> Sentence:
    """Who reads the book? Which student ...? How many children ...?"""
    verb = _done_by_people(rng)
    subject: Nominal = Interrogative(person=True)
    if rng.random() < 0.5:
        subject = phrases.noun_phrase(rng, rng.choice(NOUNS_BY_KIND["person"]), "which", 0.1)
    clause = clauses.verb_clause(rng, verb, None, 0.15, subject=subject)
    return Question(replace(clause, negated=False), "subject")


def asking_for_object(rng: Random) -> Sentence:
    """What does he read? Whom does she help? Which book ...? How many apples ...?"""
    choice = rng.random()
    if choice < 0.35:
        verb, asked = rng.choice(_ASKED_FOR), Interrogative(person=False)
    elif choice < 0.65:
        verb, asked = rng.choice(_OF_PEOPLE), Interrogative(person=True)
    else:
        verb = rng.choice(_WITH_OBJECT)
        nouns = [noun for noun in clauses.OBJECTS[verb] if noun.german_plural]
        if not nouns or any(noun.kind == "kin" for noun in nouns):
            return asking_for_object(rng)
        asked = phrases.noun_phrase(rng, rng.choice(nouns), "which", described=0.15)
    clause = clauses.verb_clause(rng, verb, None, 0.0, object=asked)
    return _question(clause, "object")


def asking_adverb(rng: Random) -> Sentence:
    """Where, when, why."""
    choice = rng.random()
    if choice < 0.3:
        verb = rng.choice((VERB["go"], VERB["drive"], VERB["put"], VERB["place"]))
        clause = clauses.verb_clause(rng, verb, None, 0.0)
        return _question(replace(clause, complement=None), "where (direction)")
    if choice < 0.6:
        verb = rng.choice((*_STAYING, VERB["read"], VERB["buy"], VERB["meet"], VERB["rest"]))
        clause = clauses.verb_clause(rng, verb, None, 0.0)
        return _question(replace(clause, complement=None), "where")
    if choice < 0.8:
        clause = clauses.verb_clause(
            rng, rng.choice(_EVENTFUL), rng.choice(("present", "past")), 0.0
        )
        return _question(clause, "when")
    clause = clauses.plain_clause(rng, rng.choice(("present", "past")), adverbials=0.0)
    return _question(clause, "why")


_CONSTRUCTIONS: dict[Callable[[Random], Sentence], int] = {
    simple: 33,
    fronted: 10,
    with_reason: 14,
    reported: 8,
    infinitive: 6,
    with_relative: 10,
    coordinated: 4,
    existential: 4,
    weather: 1,
    yes_no: 5,
    asking_who: 2,
    asking_for_object: 4,
    asking_adverb: 3,
}
_NAMES = list(_CONSTRUCTIONS)
_CUMULATIVE = list(accumulate(_CONSTRUCTIONS.values()))


def random_sentence(rng: Random) -> Sentence:
    """A derivation drawn from all constructions."""
    return rng.choices(_NAMES, cum_weights=_CUMULATIVE)[0](rng)
