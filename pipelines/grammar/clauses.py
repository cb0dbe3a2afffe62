"""Random clauses: a verb with suitable participants, or a state, and adverbials for its tense."""

from collections.abc import Callable
from random import Random
from typing import Any

from pipelines.grammar import lexicon, phrases, tree

# Each as often as it is drawn.
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
_PAST_MODALS = [modal for modal in lexicon.MODALS if modal.past]
_DWELLINGS = lexicon.nouns_of("house city village castle hotel island")
_SEATS = lexicon.nouns_of("chair sofa bench bed")
_LYING_PLACES = lexicon.nouns_of("furniture room")
_CLIMBED = lexicon.nouns_of("tree roof table chair bench sofa")
_INDOORS = lexicon.nouns_of("building room area")
_STATES = ("old", "tired", "ill", "rich", "famous", "nervous", "angry", "curious", "hungry", "sad")
_PREDICATES = [
    adjective for adjective in lexicon.ADJECTIVES if "attributive" not in adjective.features
]
_COMPARED = [adjective for adjective in _PREDICATES if adjective.german_comparative]
_PROFESSIONS = [
    noun for noun in lexicon.NOUNS_BY_KIND["person"] if "no-profession" not in noun.features
]


def until(accepts: Callable[[phrases.T], Any], draw: Callable[[], phrases.T]) -> phrases.T:
    """Draws until a draw is accepted."""
    while not accepts(drawn := draw()):
        pass
    return drawn


def clashes(subject: tree.Nominal, object: tree.Nominal) -> bool:
    """Whether both are one person (I see me, we help me) or share a noun (the dog, the dog)."""
    if isinstance(subject, lexicon.Pronoun) and isinstance(object, lexicon.Pronoun):
        return subject.person == object.person == 1
    with_noun = (tree.NounPhrase, tree.RelativePronoun)
    if isinstance(subject, with_noun):
        return isinstance(object, with_noun) and subject.noun is object.noun
    return subject is object


def tense_is_clear(verb: lexicon.Verb, tense: str, subject: tree.Nominal) -> bool:
    """Whether an English reader can tell the tense: "they read" could be present or past."""
    is_third_singular = subject.person == 3 and not subject.plural
    return tense != "past" or verb.past != verb.base or is_third_singular


def plain_clause(rng: Random, tense: str | None = None, adverbials: float = 0.6) -> tree.Clause:
    """Returns a clause of any frame that needs no other clause; see `verb_clause`."""
    frame = rng.choice(_PLAIN_FRAMES)
    if frame == "copula":
        return copula_clause(rng, tense)
    return verb_clause(rng, rng.choice(lexicon.VERBS_BY_FRAME[frame]), tense, adverbials)


def verb_clause(
    rng: Random,
    verb: lexicon.Verb,
    tense: str | None = None,
    adverbials: float = 0.0,
    subject: tree.Nominal | None = None,
    object: tree.Nominal | None = None,
) -> tree.Clause:
    """Returns a clause with the verb, and with the subject and object if given.

    Args:
        rng: the source of randomness.
        verb: any but a copula or a verb for the weather.
        tense: one of TENSES, for a clause without a modal; any tense or modal if None.
        adverbials: the probability of adverbials, of which there are at most two.
        subject: a subject that suits the verb.
        object: an object that suits the verb.
    """
    parts, adverbial = _setting(rng, verb, tense, adverbials)
    if subject is None:
        subject = until(
            lambda drawn: tense is None or tense_is_clear(verb, tense, drawn),
            lambda: phrases.participant(rng, verb.subjects, "subject"),
        )
    if "modal" not in parts and not tense_is_clear(verb, parts["tense"], subject):
        # callers that need a past avoid such verbs
        parts, adverbial = {"tense": "present", "negated": False}, ""
    if _is_quantified(subject) or _is_quantified(object):
        parts["negated"] = False

    def differs(drawn: tree.Nominal) -> bool:
        return not clashes(subject, drawn)

    if object is None and verb.objects:
        object = until(differs, lambda: _object(rng, verb, parts["negated"]))
    if verb.frame == "ditransitive":
        parts["recipient"] = until(
            differs, lambda: phrases.participant(rng, lexicon.PEOPLE, "definite")
        )
    parts["complement"] = _complement(rng, verb)
    if adverbial == "manner":
        is_vague = isinstance(object, tree.NounPhrase) and not object.definite
        if verb.manners and not is_vague:
            parts["manner"] = rng.choice(verb.manners)
    elif adverbial == "place":
        parts["place"] = _place(rng, verb)
    return tree.Clause(subject, verb, object=object, **parts)


def _setting(
    rng: Random, verb: lexicon.Verb, tense: str | None, adverbials: float
) -> tuple[dict[str, Any], str]:
    """Draws tense, modal, negation, and adverbials of time, cause and frequency.

    Returns:
        These parts of a clause, and the adverbial to add to it: "manner", "place" or "".
    """
    modal = None
    if tense is None:
        tense, modal = _tense_and_modal(rng)
    is_state = "stative" in verb.features
    if modal and is_state:
        modal = lexicon.MODAL["will"] if tense == "present" else None
    negated = rng.random() < 0.12 and modal is not lexicon.MODAL["must"]
    parts: dict[str, Any] = {"tense": tense, "negated": negated}
    if modal:
        parts["modal"] = modal
    if is_state or rng.random() >= adverbials:
        return parts, ""
    choice = rng.random()
    if choice < 0.4:
        parts["circumstance"] = _circumstance(rng, tense, modal)
    elif choice < 0.6 and modal is None and not negated:
        parts["frequency"] = rng.choice(lexicon.ADVERBS_IN["frequency", tense])
    elif not negated:
        if rng.random() < 0.15:
            parts["circumstance"] = _circumstance(rng, tense, modal)
        return parts, "manner" if choice < 0.8 else "place"
    return parts, ""


def _tense_and_modal(rng: Random) -> tuple[str, lexicon.Modal | None]:
    choice = rng.random()
    if choice < 0.34:
        return "present", None
    if choice < 0.62:
        return "past", None
    if choice < 0.82:
        return "perfect", None
    if choice < 0.95:
        return "present", rng.choice(lexicon.MODALS)
    return "past", rng.choice(_PAST_MODALS)


def _circumstance(rng: Random, tense: str, modal: lexicon.Modal | None) -> tree.Adverbial:
    if tense != "perfect" and rng.random() < 0.35:
        return phrases.occasion(rng)
    return rng.choice(
        lexicon.ADVERBS_IN["time", "modal" if modal and tense == "present" else tense]
    )


def _is_quantified(nominal: tree.Nominal | None) -> bool:
    """Whether "not" would be ambiguous or wrong with it (all children do not ...)."""
    if isinstance(nominal, tree.NounPhrase):
        return nominal.number is not None or "quantifier" in nominal.determiner.features
    return isinstance(nominal, tree.Interrogative)


def _object(rng: Random, verb: lexicon.Verb, negated: bool) -> tree.Nominal:
    role = "negatable" if negated else "object"
    if verb.preposition or verb.case == lexicon.DATIVE or "definite-object" in verb.features:
        role = "definite"
    return phrases.participant(rng, verb.objects, role)


def _complement(rng: Random, verb: lexicon.Verb) -> tree.PrepositionalPhrase | None:
    """Returns the direction or position that the verb requires, if any."""
    if verb.base == "climb":
        return phrases.landmark(rng, lexicon.PREPOSITION["onto"], rng.choice(_CLIMBED))
    if verb.frame == "motion":
        return phrases.landmark(
            rng, *rng.choice(phrases.DRIVEN if verb.base == "drive" else phrases.DIRECTED)
        )
    if verb.frame == "placement":
        noun = rng.choice(lexicon.NOUNS_BY_KIND["furniture"])
        preposition = rng.choice(phrases.LOCATIVES[noun])
        return phrases.landmark(rng, preposition, noun, described=0.2, direction=True)
    if verb.frame != "position":
        return None
    if verb.base == "live":
        noun = rng.choice(_DWELLINGS)
        return phrases.landmark(
            rng, lexicon.PREPOSITION["on" if noun.kind == "open" else "in"], noun
        )
    if verb.base == "lie":
        return phrases.place_at(rng, rng.choice(_LYING_PLACES))
    if verb.base == "sit" and rng.random() < 0.5:
        return phrases.landmark(rng, lexicon.PREPOSITION["on"], rng.choice(_SEATS))
    return phrases.landmark(rng, *rng.choice(phrases.LOCATED))


def _place(rng: Random, verb: lexicon.Verb) -> tree.PrepositionalPhrase | None:
    """Returns a free place, for verbs that have no place yet and can happen anywhere."""
    if verb.frame not in ("intransitive", "transitive") or "no-place" in verb.features:
        return None
    if rng.random() < 0.3:
        return phrases.company(rng)
    return phrases.place_at(rng, rng.choice(_INDOORS))


def copula_clause(rng: Random, tense: str | None = None) -> tree.Clause:
    """Returns a clause with be or become, and an adjective, a comparison or a profession."""
    tense = tense or rng.choice(("present", "present", "past", "perfect"))
    negated = rng.random() < 0.15
    verb, choice = lexicon.VERB["be"], rng.random()
    if choice < 0.2:
        verb, predicate = lexicon.VERB["become"], lexicon.ADJECTIVE[rng.choice(_STATES)]
        subject = phrases.participant(rng, lexicon.PEOPLE, "definite")
    elif choice < 0.32:
        subject, predicate = _profession(rng)
    elif choice < 0.55:
        subject, predicate = _comparison(rng)
        tense = "past" if tense == "perfect" else tense
    else:
        predicate = rng.choice(_PREDICATES)
        nouns = lexicon.NOUNS_BY_KIND[rng.choice(predicate.kinds)]
        if nouns[0].is_person:
            subject = phrases.participant(rng, lexicon.PEOPLE, "definite")
        else:
            subject = phrases.noun_phrase(rng, rng.choice(nouns), "definite", described=0)
        if tense == "perfect" and "person" not in predicate.kinds:
            tense = "past"  # nobody says "the car has been red"
    return tree.Clause(subject, verb, tense, negated=negated, predicate=predicate)


def _comparison(rng: Random) -> tuple[tree.Nominal, tree.Comparison]:
    adjective = rng.choice(_COMPARED)
    first, second = rng.sample(lexicon.NOUNS_BY_KIND[rng.choice(adjective.kinds)], 2)
    standard = phrases.noun_phrase(rng, second, "definite", described=0)
    comparison = tree.Comparison(adjective, standard, equal=rng.random() < 0.3)
    return phrases.noun_phrase(rng, first, "definite", described=0), comparison


def _profession(rng: Random) -> tuple[tree.Nominal, tree.NounPhrase]:
    gender = "m" if rng.random() < 0.7 else "f"

    def of_gender(nouns: list[lexicon.Noun]) -> lexicon.Noun:
        return rng.choice([noun for noun in nouns if noun.gender == gender])

    chance = rng.random()
    if chance < 0.3:
        subject: tree.Nominal = lexicon.PRONOUN["he" if gender == "m" else "she"]
    elif chance < 0.6:
        subject = of_gender(lexicon.NAMES)
    else:
        owner = lexicon.DETERMINER[rng.choice(phrases.POSSESSIVES)]
        subject = tree.NounPhrase(of_gender(lexicon.NOUNS_BY_KIND["kin"]), owner)
    adjective = rng.choice(lexicon.ADJECTIVES_OF["person"])
    noun = of_gender(_PROFESSIONS)
    return subject, tree.NounPhrase(noun, lexicon.DETERMINER["a"], adjective=adjective)


def weather_clause(rng: Random, tense: str) -> tree.Clause:
    """Returns a clause about the weather: it is raining."""
    return tree.Clause(lexicon.EXPLETIVE, rng.choice(lexicon.VERBS_BY_FRAME["weather"]), tense)
