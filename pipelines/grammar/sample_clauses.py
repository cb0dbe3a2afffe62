"""Random clauses: a verb, the participants its tables allow, and what suits its tense."""

from dataclasses import dataclass
from random import Random

from pipelines.grammar import sample_phrases as phrases
from pipelines.grammar.derivations import (
    Adverbial,
    Clause,
    Comparison,
    Nominal,
    NounPhrase,
    PrepositionalPhrase,
    agreement,
)
from pipelines.grammar.entries import Adjective, Adverb, Modal, Noun, Verb
from pipelines.grammar.nouns import NOUN, NOUNS, NOUNS_BY_KIND
from pipelines.grammar.verbs import EXISTENTIAL, MODAL, MODALS, VERB, VERBS, VERBS_BY_FRAME
from pipelines.grammar.words import (
    ADJECTIVES,
    ADVERB,
    DETERMINER,
    EXPLETIVE,
    FREQUENCIES,
    NAMES,
    PREPOSITION,
    PRONOUN,
    PRONOUNS,
    TARGETS,
)


def _resolve(names: tuple[str, ...]) -> tuple[Noun, ...]:
    """The nouns that kinds and single nouns name, each once."""
    found: dict[Noun, None] = {}
    for name in names:
        found.update(dict.fromkeys(NOUNS_BY_KIND.get(name) or (NOUN[name],)))
    return tuple(found)


_PEOPLE = NOUNS_BY_KIND["person"] + NOUNS_BY_KIND["kin"]
SUBJECTS = {verb: _resolve(verb.subjects) for verb in VERBS}
OBJECTS = {verb: _resolve(verb.objects) for verb in VERBS}
# Verbs of a state say nothing about a time, a place or a manner.
STATIVE = frozenset(
    VERB[name] for name in ("love", "like", "need", "trust", "be interested in", "understand")
)
_FREQUENCIES_IN: dict[str, tuple[Adverb, ...]] = {
    tense: tuple(adverb for adverb in FREQUENCIES if tense in adverb.tenses)
    for tense in ("present", "past", "perfect")
}
_PAST_MODALS = tuple(modal for modal in MODALS if modal.past)
_PLAIN_FRAMES = (
    ["transitive"] * 20
    + ["intransitive"] * 8
    + ["ditransitive"] * 5
    + ["prepositional"] * 6
    + ["motion"] * 4
    + ["position"] * 4
    + ["placement"] * 2
    + ["copula"] * 6
)
_ACTIVE_VERBS = {
    frame: tuple(verb for verb in verbs if verb not in STATIVE)
    for frame, verbs in VERBS_BY_FRAME.items()
}
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
_DWELLINGS = _resolve(("house", "city", "village", "castle", "hotel", "island"))
_INDOORS = NOUNS_BY_KIND["building"] + NOUNS_BY_KIND["room"] + NOUNS_BY_KIND["area"]
_CONTENTS = {
    "room": _resolve(("furniture", "device", "dish", "opening")),
    "area": _resolve(("plant", "animal", "building")),
    "building": _resolve(("furniture", "person", "image")),
    "open": _resolve(("animal", "person", "vehicle")),
    "waterside": _resolve(("person", "animal", "hotel", "restaurant", "tree")),
}
_CONTAINING = tuple(noun for noun in NOUNS if noun.kind in _CONTENTS)


@dataclass(frozen=True, slots=True)
class Setting:
    """Tense, modal, negation and the adverbials that go with them."""

    tense: str
    modal: Modal | None = None
    negated: bool = False
    circumstance: Adverbial | None = None
    frequency: Adverb | None = None
    manner: bool = False
    place: bool = False


BARE_PRESENT = Setting("present")


def setting(rng: Random, verb: Verb, tense: str | None = None, adverbials: float = 0.5) -> Setting:
    """A tense, or the given one, and at most one adverbial, never two that could clash."""
    modal = None
    if tense is None:
        tense, modal = _tense_and_modal(rng)
    if modal and verb in STATIVE:
        modal = MODAL["will"] if tense == "present" else None
    negated = rng.random() < 0.12 and (modal is None or modal.negatable)
    if verb in STATIVE or rng.random() >= adverbials:
        return Setting(tense, modal, negated)
    choice = rng.random()
    if choice < 0.4:
        return Setting(tense, modal, negated, _circumstance(rng, tense, modal))
    if negated:
        return Setting(tense, modal, negated)
    if choice < 0.6 and modal is None:
        return Setting(tense, frequency=rng.choice(_FREQUENCIES_IN[tense]))
    late = _circumstance(rng, tense, modal) if rng.random() < 0.15 else None
    manner = choice < 0.8
    return Setting(tense, modal, False, late, manner=manner, place=not manner)


def _tense_and_modal(rng: Random) -> tuple[str, Modal | None]:
    choice = rng.random()
    if choice < 0.34:
        return "present", None
    if choice < 0.62:
        return "past", None
    if choice < 0.82:
        return "perfect", None
    if choice < 0.95:
        return "present", rng.choice(MODALS)
    return "past", rng.choice(_PAST_MODALS)


def _circumstance(rng: Random, tense: str, modal: Modal | None) -> Adverbial:
    if tense != "perfect" and rng.random() < 0.35:
        return phrases.occasion(rng)
    return phrases.time(rng, "modal" if modal and tense == "present" else tense)


def plain_clause(rng: Random, tense: str | None = None, adverbials: float = 0.5) -> Clause:
    """A clause of any frame that needs no other clause."""
    frame = rng.choice(_PLAIN_FRAMES)
    if frame == "copula":
        return copula_clause(rng, tense)
    verbs = VERBS_BY_FRAME[frame]
    return verb_clause(rng, rng.choice(verbs), tense, adverbials)


def verb_clause(
    rng: Random,
    verb: Verb,
    tense: str | None = None,
    adverbials: float = 0.5,
    subject: Nominal | None = None,
    object: Nominal | None = None,
) -> Clause:
    """A clause of the verb; a subject or an object that is given is kept."""
    chosen = setting(rng, verb, tense, adverbials)
    subject = subject or phrases.participant(rng, SUBJECTS[verb], "subject")
    negated = chosen.negated and not _is_negative(subject)
    if object is None and verb.objects:
        object = _object(rng, verb, negated)
    recipient = _recipient(rng) if verb.frame == "ditransitive" else None
    complement = _complement(rng, verb)
    tense = chosen.tense
    if (
        verb.invariable
        and tense == "past"
        and not chosen.modal
        and agreement(subject) != (3, False)
    ):
        # "they read" can only be a present: the adverbials chosen for the past are dropped
        tense, chosen = "present", BARE_PRESENT
    return Clause(
        subject,
        verb,
        tense,
        chosen.modal,
        negated,
        recipient,
        object,
        complement,
        None,
        _manner(rng, verb, object) if chosen.manner else None,
        _place(rng, verb) if chosen.place else None,
        chosen.circumstance,
        chosen.frequency,
    )


def _is_negative(nominal: Nominal) -> bool:
    return isinstance(nominal, NounPhrase) and nominal.determiner is DETERMINER["no"]


def _object(rng: Random, verb: Verb, negated: bool) -> Nominal:
    nouns = OBJECTS[verb]
    if verb.preposition or verb.case == "dative":
        return phrases.participant(rng, nouns, "definite")
    if verb.english in ("love", "like", "invite", "visit", "meet"):
        return phrases.participant(rng, nouns, "definite")
    if verb.frame == "ditransitive":
        return phrases.noun_phrase(rng, rng.choice(nouns), "negatable" if negated else "object")
    return phrases.participant(rng, nouns, "negatable" if negated else "object")


def _recipient(rng: Random) -> Nominal:
    return phrases.participant(rng, _PEOPLE, "definite")


def _complement(rng: Random, verb: Verb) -> PrepositionalPhrase | None:
    if verb.frame == "motion":
        if verb.english == "climb":
            noun = NOUN[rng.choice(("tree", "roof", "table", "chair", "bench", "sofa"))]
            return PrepositionalPhrase(
                PREPOSITION["onto"], phrases.noun_phrase(rng, noun, "definite", 0.25)
            )
        return phrases.direction(rng, by_vehicle=verb.english == "drive")
    if verb.frame == "position":
        return (
            phrases.place_at(rng, rng.choice(_DWELLINGS))
            if verb.english == "live"
            else (phrases.place(rng))
        )
    if verb.frame == "placement":
        noun = rng.choice(NOUNS_BY_KIND["furniture"])
        name = rng.choice(TARGETS)
        target = phrases.noun_phrase(rng, noun, "definite", described=0.2)
        return PrepositionalPhrase(PREPOSITION[name], target, direction=True)
    return None


def _manner(rng: Random, verb: Verb, object: Nominal | None) -> Adverb | None:
    if not verb.manners or (isinstance(object, NounPhrase) and not object.definite):
        return None
    return ADVERB[rng.choice(verb.manners)]


def _place(rng: Random, verb: Verb) -> PrepositionalPhrase | None:
    """A free place, for verbs that have none yet and can happen anywhere."""
    if verb.frame not in ("intransitive", "transitive") or verb.english in _PLACELESS:
        return None
    return (
        phrases.company(rng) if rng.random() < 0.3 else phrases.place_at(rng, rng.choice(_INDOORS))
    )


_PLACELESS = ("arrive", "leave", "visit", "swim", "build", "break", "forget", "follow", "run")


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
    return Clause(subject, VERB["be"], tense, negated=negated, predicate=adjective)


_PREDICATE = {adjective.english: adjective for adjective in _PREDICATES}


def _described(rng: Random, adjective: Adjective) -> Nominal:
    nouns = NOUNS_BY_KIND[rng.choice(adjective.kinds)]
    if nouns[0].is_person:
        return phrases.participant(rng, _PEOPLE, "definite")
    return phrases.noun_phrase(rng, rng.choice(nouns), "definite", described=0)


def _comparison(rng: Random, tense: str, negated: bool) -> Clause:
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


def somebody(rng: Random) -> Nominal:
    """A short subject for a clause inside another."""
    if rng.random() < 0.6:
        return rng.choice(PRONOUNS)
    return phrases.noun_phrase(rng, rng.choice(_PEOPLE), "definite", described=0.15)
