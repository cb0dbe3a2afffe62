"""Random sentences: the constructions, and how often each is used."""

from dataclasses import replace
from random import Random

from pipelines.grammar import lexicon, tree
from pipelines.grammar.entries import ACCUSATIVE, TENSES, Noun, Verb
from pipelines.grammar.lexicon import CONJUNCTION, NOUNS_BY_KIND, PRONOUN, VERB, VERBS_BY_FRAME
from pipelines.grammar.sample_clauses import ClauseSampler, clashes, until
from pipelines.grammar.sample_phrases import LOCATIVES, weighted

_TRANSITIVE = VERBS_BY_FRAME["transitive"]
_WITH_OBJECT = _TRANSITIVE + VERBS_BY_FRAME["prepositional"]
_EVENTFUL = tuple(
    verb for verb in VERBS_BY_FRAME["intransitive"] + _WITH_OBJECT if "stative" not in verb.features
)
_OF_PEOPLE = tuple(verb for verb in _WITH_OBJECT if any(noun.is_person for noun in verb.objects))
_OF_THINGS = tuple(
    verb for verb in _TRANSITIVE if verb.case == ACCUSATIVE and verb not in _OF_PEOPLE
)
# The verbs that take a noun as their subject, and those that take it as their object.
_DOES = {noun: [verb for verb in _EVENTFUL if noun in verb.subjects] for noun in lexicon.NOUNS}
_DONE_TO = {noun: [verb for verb in _WITH_OBJECT if noun in verb.objects] for noun in lexicon.NOUNS}
_STAYING = tuple(VERB[name] for name in ("live", "work", "sleep", "wait", "sit", "stay"))
_PUTTING = tuple(VERB[name] for name in ("go", "drive", "put", "place"))
_LOCATED = (*_STAYING, *(VERB[name] for name in ("read", "buy", "meet", "rest")))
_PURPOSEFUL = tuple(VERB[name] for name in ("go", "drive", "hurry", "get up", "wait"))
# The nouns found in a place, by the kind of the place.
_CONTENTS = {
    "room": lexicon.nouns_of(("furniture", "device", "dish", "opening")),
    "area": lexicon.nouns_of(("plant", "animal", "building")),
    "building": lexicon.nouns_of(("furniture", "image", "instrument")),
    "open": lexicon.nouns_of(("plant", "animal")),
    "waterside": lexicon.nouns_of(("plant", "hotel", "restaurant")),
}
_CONTAINING = tuple(
    noun
    for noun in lexicon.NOUNS
    if noun.kind in _CONTENTS and noun.english not in ("roof", "bridge", "station")
)
_REASONS, _REASON_WEIGHTS = weighted(
    "because 30, although 15, when 20, if 8, while 10, before 9, as soon as 8"
)
# Only causes and conditions: nobody comes "before it is raining".
_WEATHER_REASONS = ("because", "although", "when", "while")
# The conjunctions used with a state: "because he is ill", but not "while he is ill".
_STATE_REASONS = ("because", "although")


def _for_people(verb: Verb) -> bool:
    """Whether any person can be the subject of the verb."""
    return verb.subjects[0].kind == "person"


def _question(clause: tree.Clause, asked: str = "") -> tree.Question:
    """Returns an affirmative question; nobody asks about their own actions."""
    subject = clause.subject
    if subject is PRONOUN["I"]:
        subject = PRONOUN["he"]
    elif subject is PRONOUN["we"]:
        subject = PRONOUN["they"]
    return tree.Question(replace(clause, subject=subject, negated=False), asked)


class SentenceSampler(ClauseSampler):
    """Draws sentences."""

    def simple(self) -> tree.Sentence:
        """Returns one main clause with its subject first."""
        return tree.Statement(self.plain_clause())

    def fronted(self) -> tree.Sentence:
        """Returns one main clause that begins with an adverbial of time or cause."""
        clause = until(lambda drawn: drawn.circumstance, lambda: self.plain_clause(adverbials=1.0))
        return tree.Statement(replace(clause, circumstance=None), clause.circumstance)

    def coordinated(self) -> tree.Sentence:
        """Returns two main clauses in the same tense."""
        tense = self.choice(TENSES)
        first = self.plain_clause(tense, adverbials=0.15)
        second = until(
            lambda drawn: drawn.verb is not first.verb,
            lambda: self.plain_clause(tense, adverbials=0.15),
        )
        return tree.Coordination(first, self.choice(("and", "but")), second)

    def existential(self) -> tree.Sentence:
        """Returns "There are three trees in the garden", or sometimes "Are there ...?"."""
        container = self.choice(_CONTAINING)
        noun = self.choice(_CONTENTS[container.kind])
        object = self.noun_phrase(noun, "indefinite", described=0.45)
        preposition = lexicon.PREPOSITION["in"]
        if container.kind != "building":
            preposition = self.choice(LOCATIVES[container])
        place = self.landmark(preposition, container, described=0.2)
        tense = "present" if self.random() < 0.6 else "past"
        it, verb = lexicon.EXPLETIVE, lexicon.EXISTENTIAL
        clause = tree.Clause(it, verb, tense, object=object, place=place)
        return tree.Statement(clause) if self.random() < 0.85 else tree.Question(clause)

    def weather(self) -> tree.Sentence:
        """Returns "It was raining yesterday", with the time in front or at the end."""
        tense = self.choice(TENSES)
        times = lexicon.ADVERBS_IN["time", tense]
        time = self.choice(times) if tense != "present" else None
        clause = self.weather_clause(tense)
        if time and self.random() < 0.5:
            return tree.Statement(clause, time)
        return tree.Statement(replace(clause, circumstance=time))

    def with_reason(self) -> tree.Sentence:
        """Returns a main clause, and an adverbial clause before or after it in the same tense."""
        tense = self.choice(("present", "past"))
        if self.random() < 0.25:
            name = self.choice(_WEATHER_REASONS)
            inner = self.weather_clause(tense)
        else:
            name = self.rng.choices(_REASONS, cum_weights=_REASON_WEIGHTS)[0]
            inner = self._inner(tense, with_state=name in _STATE_REASONS)
        if name in ("if", "as soon as") and tense == "past":
            name = "when"
        clause = until(
            lambda drawn: drawn.verb.frame != "copula" or name in _STATE_REASONS,
            lambda: self.plain_clause(tense, adverbials=0.1),
        )
        subordinate = tree.Subordinate(CONJUNCTION[name], inner)
        if self.random() < 0.35:
            return tree.Statement(clause, subordinate)
        return tree.Statement(replace(clause, tail=subordinate))

    def _inner(self, tense: str, with_state: bool) -> tree.Clause:
        """Returns a short clause about somebody, to be embedded in another."""
        if with_state and self.random() < 0.25:
            return self.copula_clause(tense)
        subject = self.somebody()
        verb = until(lambda drawn: tree.tense_is_clear(drawn, tense, subject), self._done_by_people)
        return self.verb_clause(verb, tense, 0.1, subject=subject)

    def _done_by_people(self) -> Verb:
        return until(_for_people, lambda: self.choice(_EVENTFUL))

    def reported(self) -> tree.Sentence:
        """Returns a sentence whose verb has a clause as its content: say that, ask whether."""
        verb = self.choice(VERBS_BY_FRAME["clausal"])
        tense = self.choice(("present", "past"))
        inner_tense = self.choice(("present", "perfect")) if tense == "present" else "past"
        inner = self.plain_clause(inner_tense, adverbials=0.15)
        subject = self.participant(NOUNS_BY_KIND["person"], "definite")
        negated = verb.english in ("believe that", "say that") and self.random() < 0.15
        tail = tree.Subordinate(CONJUNCTION[verb.particle], inner)
        return tree.Statement(tree.Clause(subject, verb, tense, negated=negated, tail=tail))

    def infinitive(self) -> tree.Sentence:
        """Returns "tries to open the door" or "goes to the station in order to help him"."""
        subject = self.participant(NOUNS_BY_KIND["person"], "subject")
        verb = until(lambda drawn: "unplanned" not in drawn.features, self._done_by_people)
        inner = replace(self.verb_clause(verb, "present", subject=subject), negated=False)
        if self.random() < 0.6:
            tense = self.choice(TENSES)
            control = self.choice(VERBS_BY_FRAME["control"])
            tail = tree.Subordinate(CONJUNCTION["to"], inner)
            return tree.Statement(tree.Clause(subject, control, tense, tail=tail))
        clause = self.verb_clause(self.choice(_PURPOSEFUL), subject=subject)
        tail = tree.Subordinate(CONJUNCTION["in order to"], inner)
        return tree.Statement(replace(clause, negated=False, tail=tail))

    def with_relative(self) -> tree.Sentence:
        """Returns a sentence with a relative clause on its subject or its final object."""
        for _ in range(100):
            tense = self.choice(TENSES)
            verb = self.choice(_EVENTFUL)
            on_object = bool(verb.objects) and self.random() < 0.5
            noun = self.choice(verb.objects if on_object else verb.subjects)
            if noun.kind in ("kin", "cause", "stuff", "drink"):
                continue
            antecedent = self._antecedent(noun, "present" if tense == "perfect" else tense)
            if antecedent is None or antecedent.relative.verb is verb:
                continue
            if on_object:
                clause = self.verb_clause(verb, tense, object=antecedent)
                negated = clause.negated and antecedent.definite
                return tree.Statement(replace(clause, negated=negated))
            if tree.tense_is_clear(verb, tense, antecedent):
                return tree.Statement(self.verb_clause(verb, tense, subject=antecedent))
        raise RuntimeError("no antecedent was found for a relative clause in 100 verbs")

    def _antecedent(self, noun: Noun, tense: str) -> tree.NounPhrase | None:
        """Returns the noun with a relative clause, or None if the draws do not make a good one."""
        phrase = self.noun_phrase(noun, "antecedent", described=0.2)
        pronoun = tree.RelativePronoun(noun, phrase.plural)
        if noun.kind in ("building", "area") and self.random() < 0.5:
            inside = tree.PrepositionalPhrase(lexicon.PREPOSITION["in"], pronoun)
            verb = self.choice(_STAYING)
            clause = tree.Clause(self.somebody(), verb, tense, complement=inside)
            return replace(phrase, relative=clause)
        does, done_to = _DOES[noun], _DONE_TO[noun]
        if does and (not done_to or self.random() < 0.5):
            verb = self.choice(does)
            if not tree.tense_is_clear(verb, tense, pronoun):
                return None
            clause = self.verb_clause(verb, tense, 0.2, subject=pronoun)
        elif done_to:
            verb = self.choice(done_to)
            subject = self.somebody()
            clear = tree.tense_is_clear(verb, tense, subject)
            if not _for_people(verb) or not clear or clashes(subject, pronoun):
                return None
            clause = self.verb_clause(verb, tense, subject=subject, object=pronoun)
        else:
            return None
        return replace(phrase, relative=replace(clause, circumstance=None, negated=False))

    def yes_no(self) -> tree.Sentence:
        """Returns a yes/no question: Does the man read the book?"""
        return _question(self.plain_clause(adverbials=0.2))

    def asking_who(self) -> tree.Sentence:
        """Returns a question about the subject.

        Who reads the book? Which student ...? How many children ...?
        """
        verb = self._done_by_people()
        subject: tree.Nominal = tree.Interrogative(person=True)
        if self.random() < 0.5:
            subject = self.noun_phrase(self.choice(NOUNS_BY_KIND["person"]), "which", 0.1)
        return _question(self.verb_clause(verb, None, 0.15, subject=subject), "subject")

    def asking_for_object(self) -> tree.Sentence:
        """Returns a question about the object.

        What does he read? Whom does she help? Which book ...? How many apples ...?
        """
        choice = self.random()
        if choice < 0.35:
            verb, asked = self.choice(_OF_THINGS), tree.Interrogative(person=False)
        elif choice < 0.65:
            verb, asked = self.choice(_OF_PEOPLE), tree.Interrogative(person=True)
        else:
            verb = self.choice(_WITH_OBJECT)
            nouns = [noun for noun in verb.objects if noun.german_plural]
            if not nouns or any(noun.kind == "kin" for noun in nouns):
                return self.asking_for_object()
            asked = self.noun_phrase(self.choice(nouns), "which", described=0.15)
        return _question(self.verb_clause(verb, object=asked), "object")

    def asking_adverb(self) -> tree.Sentence:
        """Returns a question with where, when or why."""
        choice = self.random()
        if choice < 0.6:
            towards = choice < 0.3
            clause = self.verb_clause(self.choice(_PUTTING if towards else _LOCATED))
            asked = "where (direction)" if towards else "where"
            return _question(replace(clause, complement=None), asked)
        if choice < 0.8:
            verb = self.choice(_EVENTFUL)
            clause = self.verb_clause(verb, self.choice(("present", "past")))
            return _question(clause, "when")
        clause = self.plain_clause(self.choice(("present", "past")), adverbials=0.0)
        return _question(clause, "why")


# How often each construction is drawn.
_CONSTRUCTIONS, _WEIGHTS = weighted(
    "simple 33, fronted 10, with_reason 14, reported 8, infinitive 6, with_relative 10, "
    "coordinated 4, existential 4, weather 1, yes_no 5, asking_who 2, asking_for_object 4, "
    "asking_adverb 3"
)


def random_sentence(rng: Random) -> tree.Sentence:
    """Returns a tree drawn from all constructions."""
    construction = rng.choices(_CONSTRUCTIONS, cum_weights=_WEIGHTS)[0]
    return getattr(SentenceSampler(rng), construction)()
