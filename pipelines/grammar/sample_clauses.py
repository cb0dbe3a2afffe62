"""Random clauses: a verb, the participants its tables allow, and what suits its tense."""

from dataclasses import dataclass
from random import Random

from pipelines.grammar import sample_phrases as phrases
from pipelines.grammar import sample_states as states
from pipelines.grammar.derivations import (
    Adverbial,
    Clause,
    Interrogative,
    Nominal,
    NounPhrase,
    PrepositionalPhrase,
    RelativePronoun,
    agreement,
)
from pipelines.grammar.entries import Adverb, Modal, Verb
from pipelines.grammar.nouns import NOUN, NOUNS_BY_KIND, nouns_of
from pipelines.grammar.verbs import MODAL, MODALS, VERB, VERBS, VERBS_BY_FRAME
from pipelines.grammar.words import (
    ADVERB,
    DETERMINER,
    FREQUENCIES,
    PREPOSITION,
    PRONOUNS,
    TARGETS,
    Pronoun,
)

_PEOPLE = NOUNS_BY_KIND["person"] + NOUNS_BY_KIND["kin"]
SUBJECTS = {verb: nouns_of(verb.subjects) for verb in VERBS}
OBJECTS = {verb: nouns_of(verb.objects) for verb in VERBS}
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
_DWELLINGS = nouns_of(("house", "city", "village", "castle", "hotel", "island"))
_SEATS = nouns_of(("chair", "sofa", "bench", "bed"))
_LYING_PLACES = nouns_of(("furniture", "room"))
_QUANTIFIERS = frozenset(
    DETERMINER[name]
    for name in ("no", "every", "all", "many", "some", "several", "which", "how many")
)
_INDOORS = NOUNS_BY_KIND["building"] + NOUNS_BY_KIND["room"] + NOUNS_BY_KIND["area"]


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


def setting(rng: Random, verb: Verb, tense: str | None = None, adverbials: float = 0.6) -> Setting:
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


def plain_clause(rng: Random, tense: str | None = None, adverbials: float = 0.6) -> Clause:
    """A clause of any frame that needs no other clause."""
    frame = rng.choice(_PLAIN_FRAMES)
    if frame == "copula":
        return states.copula_clause(rng, tense)
    verbs = VERBS_BY_FRAME[frame]
    return verb_clause(rng, rng.choice(verbs), tense, adverbials)


def verb_clause(
    rng: Random,
    verb: Verb,
    tense: str | None = None,
    adverbials: float = 0.6,
    subject: Nominal | None = None,
    object: Nominal | None = None,
) -> Clause:
    """A clause of the verb; a subject or an object that is given is kept."""
    chosen = setting(rng, verb, tense, adverbials)
    subject = subject or _subject(rng, verb, tense)
    if not chosen.modal and not has_past(verb, chosen.tense, subject):
        # "they read" is always a present; where a past is asked for, callers avoid such verbs
        chosen = BARE_PRESENT
    negated = chosen.negated and not _is_quantified(subject) and not _is_quantified(object)
    if object is None and verb.objects:
        object = _object(rng, verb, negated)
        while clashes(subject, object):
            object = _object(rng, verb, negated)
    return Clause(
        subject,
        verb,
        chosen.tense,
        chosen.modal,
        negated,
        _recipient(rng, subject) if verb.frame == "ditransitive" else None,
        object,
        _complement(rng, verb),
        None,
        _manner(rng, verb, object) if chosen.manner else None,
        _place(rng, verb) if chosen.place else None,
        chosen.circumstance,
        chosen.frequency,
    )


def has_past(verb: Verb, tense: str, subject: Nominal) -> bool:
    """False for the past of read and put, unless the subject is a third person singular."""
    return not (verb.invariable and tense == "past" and agreement(subject) != (3, False))


def _subject(rng: Random, verb: Verb, tense: str | None) -> Nominal:
    subject = phrases.participant(rng, SUBJECTS[verb], "subject")
    while tense and not has_past(verb, tense, subject):
        subject = phrases.participant(rng, SUBJECTS[verb], "subject")
    return subject


def _recipient(rng: Random, subject: Nominal) -> Nominal:
    recipient = phrases.participant(rng, _PEOPLE, "definite")
    while clashes(subject, recipient):
        recipient = phrases.participant(rng, _PEOPLE, "definite")
    return recipient


def clashes(subject: Nominal, object: Nominal) -> bool:
    """Whether both are one person (I see me, we help me) or use one noun (the dog, the dog)."""
    if subject is object:
        return not isinstance(subject, Pronoun) or subject.person == 1
    if isinstance(subject, Pronoun) and isinstance(object, Pronoun):
        return subject.person == object.person == 1
    if isinstance(subject, NounPhrase | RelativePronoun):
        return isinstance(object, NounPhrase | RelativePronoun) and subject.noun is object.noun
    return False


def _is_quantified(nominal: Nominal | None) -> bool:
    """Whether "not" would be ambiguous or wrong beside it (all children do not ...)."""
    if isinstance(nominal, NounPhrase):
        return nominal.number is not None or nominal.determiner in _QUANTIFIERS
    return isinstance(nominal, Interrogative)


def _object(rng: Random, verb: Verb, negated: bool) -> Nominal:
    nouns = OBJECTS[verb]
    if verb.preposition or verb.case == "dative":
        return phrases.participant(rng, nouns, "definite")
    if verb.english in ("love", "like", "invite", "visit", "meet"):
        return phrases.participant(rng, nouns, "definite")
    if verb.frame == "ditransitive":
        return phrases.noun_phrase(rng, rng.choice(nouns), "negatable" if negated else "object")
    return phrases.participant(rng, nouns, "negatable" if negated else "object")


def _complement(rng: Random, verb: Verb) -> PrepositionalPhrase | None:
    if verb.frame == "motion":
        if verb.english == "climb":
            noun = NOUN[rng.choice(("tree", "roof", "table", "chair", "bench", "sofa"))]
            return PrepositionalPhrase(
                PREPOSITION["onto"], phrases.noun_phrase(rng, noun, "definite", 0.25)
            )
        return phrases.direction(rng, by_vehicle=verb.english == "drive")
    if verb.frame == "position":
        return _position(rng, verb)
    if verb.frame == "placement":
        noun = rng.choice(NOUNS_BY_KIND["furniture"])
        name = rng.choice(TARGETS)
        target = phrases.noun_phrase(rng, noun, "definite", described=0.2)
        return PrepositionalPhrase(PREPOSITION[name], target, direction=True)
    return None


def _position(rng: Random, verb: Verb) -> PrepositionalPhrase:
    if verb.english == "live":
        noun = rng.choice(_DWELLINGS)
        landmark = phrases.noun_phrase(rng, noun, "definite", described=0.25)
        return PrepositionalPhrase(PREPOSITION["on" if noun.kind == "open" else "in"], landmark)
    if verb.english == "lie":
        return phrases.place_at(rng, rng.choice(_LYING_PLACES))
    if verb.english == "sit" and rng.random() < 0.5:
        landmark = phrases.noun_phrase(rng, rng.choice(_SEATS), "definite", described=0.25)
        return PrepositionalPhrase(PREPOSITION["on"], landmark)
    return phrases.place(rng)


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


_PLACELESS = (
    "arrive",
    "leave",
    "visit",
    "swim",
    "build",
    "break",
    "forget",
    "follow",
    "run",
    "wear",
    "put on",
)


def somebody(rng: Random) -> Nominal:
    """A short subject for a clause inside another."""
    if rng.random() < 0.6:
        return rng.choice(PRONOUNS)
    return phrases.noun_phrase(rng, rng.choice(_PEOPLE), "definite", described=0.15)
