"""Random clauses: a verb with suitable participants, or a state, and adverbials for its tense."""

from collections.abc import Callable
from typing import Any

from pipelines.grammar import lexicon, tree
from pipelines.grammar import sample_phrases as phrases
from pipelines.grammar.entries import DATIVE, Modal, Pronoun, Verb

_WITH_NOUN = tree.NounPhrase | tree.RelativePronoun
_PAST_MODALS = tuple(modal for modal in lexicon.MODALS if modal.past)
_PLAIN_FRAMES = (
    ["transitive"] * 20 + ["intransitive"] * 8 + ["ditransitive"] * 5 + ["prepositional"] * 6
) + (["motion"] * 4 + ["position"] * 4 + ["placement"] * 2 + ["copula"] * 6)
_DWELLINGS = lexicon.nouns_of(("house", "city", "village", "castle", "hotel", "island"))
_SEATS = lexicon.nouns_of(("chair", "sofa", "bench", "bed"))
_LYING_PLACES = lexicon.nouns_of(("furniture", "room"))
_CLIMBED = lexicon.nouns_of(("tree", "roof", "table", "chair", "bench", "sofa"))
_INDOORS = lexicon.nouns_of(("building", "room", "area"))

_STATES = ("old", "tired", "ill", "rich", "famous", "nervous", "angry", "curious", "hungry", "sad")
_PREDICATES = tuple(word for word in lexicon.ADJECTIVES if "attributive" not in word.features)
_COMPARED = tuple(adjective for adjective in _PREDICATES if adjective.german_comparative)
_PROFESSIONS = tuple(
    noun for noun in lexicon.NOUNS_BY_KIND["person"] if "no-profession" not in noun.features
)


def until(accepts: Callable[[Any], bool], draw: Callable[[], Any]) -> Any:
    """Draws until a draw is accepted."""
    while not accepts(drawn := draw()):
        pass
    return drawn


def clashes(subject: tree.Nominal, object: tree.Nominal) -> bool:
    """Whether both are one person (I see me, we help me) or share a noun (the dog, the dog)."""
    if isinstance(subject, Pronoun) and isinstance(object, Pronoun):
        return subject.person == object.person == 1
    if isinstance(subject, _WITH_NOUN):
        return isinstance(object, _WITH_NOUN) and subject.noun is object.noun
    return subject is object


def _is_quantified(nominal: tree.Nominal | None) -> bool:
    """Whether "not" would be ambiguous or wrong with it (all children do not ...)."""
    if isinstance(nominal, tree.NounPhrase):
        return nominal.number is not None or "quantifier" in nominal.determiner.features
    return isinstance(nominal, tree.Interrogative)


class ClauseSampler(phrases.PhraseSampler):
    """Draws clauses."""

    def _setting(self, verb: Verb, tense: str | None, adverbials: float) -> dict[str, Any]:
        """Draws tense, modal, negation and at most two adverbials, as the arguments of a clause.

        A manner or place of True is to be replaced by a draw.
        """
        modal = None
        if tense is None:
            tense, modal = self._tense_and_modal()
        stative = "stative" in verb.features
        if modal and stative:
            modal = lexicon.MODAL["will"] if tense == "present" else None
        negated = self.random() < 0.12 and (modal is None or modal.negatable)
        setting = {"tense": tense, "modal": modal, "negated": negated}
        if stative or self.random() >= adverbials:
            return setting
        choice = self.random()
        if choice < 0.4:
            setting["circumstance"] = self._circumstance(tense, modal)
        elif choice < 0.6 and modal is None and not negated:
            setting["frequency"] = self.choice(lexicon.ADVERBS_IN["frequency", tense])
        elif not negated:
            if self.random() < 0.15:
                setting["circumstance"] = self._circumstance(tense, modal)
            setting["manner" if choice < 0.8 else "place"] = True
        return setting

    def _tense_and_modal(self) -> tuple[str, Modal | None]:
        choice = self.random()
        if choice < 0.82:
            return "present" if choice < 0.34 else "past" if choice < 0.62 else "perfect", None
        if choice < 0.95:
            return "present", self.choice(lexicon.MODALS)
        return "past", self.choice(_PAST_MODALS)

    def _circumstance(self, tense: str, modal: Modal | None) -> tree.Adverbial:
        if tense != "perfect" and self.random() < 0.35:
            return self.occasion()
        tense = "modal" if modal and tense == "present" else tense
        return self.choice(lexicon.ADVERBS_IN["time", tense])

    def plain_clause(self, tense: str | None = None, adverbials: float = 0.6) -> tree.Clause:
        """Returns a clause of any frame that needs no other clause."""
        frame = self.choice(_PLAIN_FRAMES)
        if frame == "copula":
            return self.copula_clause(tense)
        return self.verb_clause(self.choice(lexicon.VERBS_BY_FRAME[frame]), tense, adverbials)

    def verb_clause(
        self,
        verb: Verb,
        tense: str | None = None,
        adverbials: float = 0.0,
        subject: tree.Nominal | None = None,
        object: tree.Nominal | None = None,
    ) -> tree.Clause:
        """Returns a clause with the verb, and with the subject and object if given."""
        setting = self._setting(verb, tense, adverbials)
        subject = subject or until(
            lambda drawn: not tense or tree.tense_is_clear(verb, tense, drawn),
            lambda: self.participant(verb.subjects, "subject"),
        )
        if not setting["modal"] and not tree.tense_is_clear(verb, setting["tense"], subject):
            # "they read" is always in the present; callers that need a past avoid such verbs
            setting = {"tense": "present", "negated": False}
        if _is_quantified(subject) or _is_quantified(object):
            setting["negated"] = False

        def differs(drawn: tree.Nominal) -> bool:
            return not clashes(subject, drawn)

        if object is None and verb.objects:
            object = until(differs, lambda: self._object(verb, setting["negated"]))
        if verb.frame == "ditransitive":
            people = lexicon.PEOPLE
            setting["recipient"] = until(differs, lambda: self.participant(people, "definite"))
        setting["complement"] = self._complement(verb)
        if "manner" in setting:
            vague = isinstance(object, tree.NounPhrase) and not object.definite
            manners = () if vague else verb.manners
            setting["manner"] = self.choice(manners) if manners else None
        elif "place" in setting:
            setting["place"] = self._place(verb)
        return tree.Clause(subject, verb, object=object, **setting)

    def _object(self, verb: Verb, negated: bool) -> tree.Nominal:
        role = "negatable" if negated else "object"
        if verb.preposition or verb.case == DATIVE or "definite-object" in verb.features:
            role = "definite"
        return self.participant(verb.objects, role)

    def _complement(self, verb: Verb) -> tree.PrepositionalPhrase | None:
        """Returns the direction or position that the verb requires, if any."""
        if verb.english == "climb":
            return self.landmark(lexicon.PREPOSITION["onto"], self.choice(_CLIMBED))
        if verb.frame == "motion":
            pairs = phrases.DRIVEN if verb.english == "drive" else phrases.DIRECTED
            return self.landmark(*self.choice(pairs))
        if verb.frame == "placement":
            noun = self.choice(lexicon.NOUNS_BY_KIND["furniture"])
            preposition = self.choice(phrases.LOCATIVES[noun])
            return self.landmark(preposition, noun, described=0.2, direction=True)
        if verb.frame != "position":
            return None
        if verb.english == "live":
            noun = self.choice(_DWELLINGS)
            preposition = lexicon.PREPOSITION["on" if noun.kind == "open" else "in"]
            return self.landmark(preposition, noun)
        if verb.english == "lie":
            return self.place_at(self.choice(_LYING_PLACES))
        if verb.english == "sit" and self.random() < 0.5:
            return self.landmark(lexicon.PREPOSITION["on"], self.choice(_SEATS))
        return self.landmark(*self.choice(phrases.LOCATED))

    def _place(self, verb: Verb) -> tree.PrepositionalPhrase | None:
        """Returns a free place, for verbs that have no place yet and can happen anywhere."""
        if verb.frame not in ("intransitive", "transitive") or "no-place" in verb.features:
            return None
        if self.random() < 0.3:
            return self.company()
        return self.place_at(self.choice(_INDOORS))

    def copula_clause(self, tense: str | None = None) -> tree.Clause:
        """Returns a clause with be or become, and an adjective, a comparison or a profession."""
        tense = tense or self.choice(("present", "present", "past", "perfect"))
        negated = self.random() < 0.15
        verb, choice = lexicon.VERB["be"], self.random()
        if choice < 0.2:
            verb, predicate = lexicon.VERB["become"], lexicon.ADJECTIVE[self.choice(_STATES)]
            subject = self.participant(lexicon.PEOPLE, "definite")
        elif choice < 0.32:
            subject, predicate = self._profession()
        elif choice < 0.55:
            subject, predicate = self._comparison()
            tense = "past" if tense == "perfect" else tense
        else:
            predicate = self.choice(_PREDICATES)
            nouns = lexicon.NOUNS_BY_KIND[self.choice(predicate.kinds)]
            if nouns[0].is_person:
                subject = self.participant(lexicon.PEOPLE, "definite")
            else:
                subject = self.noun_phrase(self.choice(nouns), "definite", described=0)
            if tense == "perfect" and "person" not in predicate.kinds:
                tense = "past"  # nobody says "the car has been red"
        return tree.Clause(subject, verb, tense, negated=negated, predicate=predicate)

    def _comparison(self) -> tuple[tree.Nominal, tree.Comparison]:
        adjective = self.choice(_COMPARED)
        nouns = lexicon.NOUNS_BY_KIND[self.choice(adjective.kinds)]
        if len(nouns) < 2:
            nouns = lexicon.NOUNS_BY_KIND["vehicle"]
        first, second = self.rng.sample(nouns, 2)
        standard = self.noun_phrase(second, "definite", described=0)
        comparison = tree.Comparison(adjective, standard, equal=self.random() < 0.3)
        return self.noun_phrase(first, "definite", described=0), comparison

    def _profession(self) -> tuple[tree.Nominal, tree.NounPhrase]:
        gender = "m" if self.random() < 0.7 else "f"
        chance = self.random()
        if chance < 0.3:
            subject: tree.Nominal = lexicon.PRONOUN["he" if gender == "m" else "she"]
        elif chance < 0.6:
            subject = self.choice([name for name in lexicon.NAMES if name.kind == gender])
        else:
            owner = lexicon.DETERMINER[self.choice(phrases.POSSESSIVES)]
            kin = [noun for noun in lexicon.NOUNS_BY_KIND["kin"] if noun.gender == gender]
            subject = tree.NounPhrase(self.choice(kin), owner)
        adjective = self.choice(lexicon.ADJECTIVES_OF["person"])
        noun = self.choice([noun for noun in _PROFESSIONS if noun.gender == gender])
        return subject, tree.NounPhrase(noun, lexicon.DETERMINER["a"], False, adjective)

    def weather_clause(self, tense: str) -> tree.Clause:
        """Returns a clause about the weather: it is raining."""
        verb = self.choice(lexicon.VERBS_BY_FRAME["weather"])
        return tree.Clause(lexicon.EXPLETIVE, verb, tense)
