"""The tree of a sentence pair: one structure, from which both languages are written.

A tree is built from explicit choices, by a test or by the sampler. It raises ValueError for the few
choices that would make the English ambiguous or that the grammar lacks.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.grammar import entries
from pipelines.grammar.lexicon import BARE, DETERMINER


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """A noun phrase: the three old books. A possessor takes the place of the determiner."""

    noun: entries.Noun
    determiner: entries.Determiner = BARE
    plural: bool = False
    adjective: entries.Adjective | None = None
    number: int | None = None
    possessor: NounPhrase | entries.Name | None = None
    relative: Clause | None = None

    @property
    def definite(self) -> bool:
        """Whether the phrase precedes the adverbials in the German middle field."""
        return self.determiner.definite or self.possessor is not None

    @property
    def takes_kein(self) -> bool:
        """Whether negation turns its determiner into kein (a book, books, milk)."""
        indefinite = self.determiner is BARE or self.determiner is DETERMINER["a"]
        return indefinite and self.number is None and self.possessor is None


@dataclass(frozen=True, slots=True)
class Interrogative:
    """An interrogative: who or what; in English, "whom" if it is not the subject."""

    person: bool


@dataclass(frozen=True, slots=True)
class RelativePronoun:
    """The pronoun that stands for an antecedent in its relative clause."""

    noun: entries.Noun
    plural: bool


Nominal = NounPhrase | entries.Pronoun | entries.Name | Interrogative | RelativePronoun


@dataclass(frozen=True, slots=True)
class PrepositionalPhrase:
    """A preposition and its noun phrase; with `direction`, a two-way one takes the accusative."""

    preposition: entries.Preposition
    nominal: Nominal
    direction: bool = False


Adverbial = entries.Adverb | PrepositionalPhrase
# The part that a relative clause or a question moves to its front.
Moved = Nominal | PrepositionalPhrase | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison: older than, or as old as, the standard."""

    adjective: entries.Adjective
    standard: Nominal
    equal: bool = False


@dataclass(frozen=True, slots=True)
class Subordinate:
    """A conjunction and its clause; an infinitive clause repeats its implied subject."""

    conjunction: entries.Conjunction
    clause: Clause


@dataclass(frozen=True, slots=True)
class Clause:
    """A verb with everything that depends on it, unordered: each language has its own order.

    `complement` is a direction or position that the verb requires, `place` a free one, and
    `circumstance` an adverbial of time or cause; `tail` follows the whole clause.
    """

    subject: Nominal
    verb: entries.Verb
    tense: str = "present"
    modal: entries.Modal | None = None
    negated: bool = False
    recipient: Nominal | None = None
    object: Nominal | None = None
    complement: PrepositionalPhrase | None = None
    predicate: entries.Adjective | Comparison | NounPhrase | None = None
    manner: entries.Adverb | None = None
    place: PrepositionalPhrase | None = None
    circumstance: Adverbial | None = None
    frequency: entries.Adverb | None = None
    tail: Subordinate | None = None

    def __post_init__(self) -> None:
        verb, modal, object = self.verb, self.modal, self.object
        if self.tense not in entries.TENSES:
            raise ValueError(f"tense must be one of {entries.TENSES}, got {self.tense!r}")
        if modal is None and not tense_is_clear(verb, self.tense, self.subject):
            raise ValueError(
                "the simple past must differ from the present in English, "
                f"got {verb.english!r} with a subject other than the third singular"
            )
        if modal and (self.tense == "perfect" or (self.tense == "past" and not modal.past)):
            raise ValueError(
                f"a modal must have the tense it is used in, got {modal.english!r} "
                f"in the {self.tense}"
            )
        if modal and self.negated and not modal.negatable:
            raise ValueError(f"a negated modal must be negatable, got {modal.english!r}")
        phrase = object if self.negated and isinstance(object, NounPhrase) else None
        if phrase and not phrase.definite and not phrase.takes_kein:
            raise ValueError(
                "a negated clause must have a definite, indefinite or bare object, "
                f"got {phrase.determiner.english_plural!r} {phrase.number}"
            )


@dataclass(frozen=True, slots=True)
class Statement:
    """A main clause; `front` opens the sentence and moves the German subject after its verb."""

    clause: Clause
    front: Adverbial | Subordinate | None = None


@dataclass(frozen=True, slots=True)
class Coordination:
    """Two main clauses joined by "and" or "but"."""

    first: Clause
    coordinator: str
    second: Clause


@dataclass(frozen=True, slots=True)
class Question:
    """A question.

    `asked` is "" for yes or no, "subject" or "object" for the argument in question (an
    interrogative, or a phrase with which or how many), or a question adverb.
    """

    clause: Clause
    asked: str = ""


Sentence = Statement | Coordination | Question


def agreement(nominal: Nominal) -> tuple[int, bool]:
    """Returns the person of the nominal, and whether it is plural."""
    if isinstance(nominal, entries.Pronoun):
        return nominal.person, nominal.plural
    return 3, isinstance(nominal, NounPhrase | RelativePronoun) and nominal.plural


def tense_is_clear(verb: entries.Verb, tense: str, subject: Nominal) -> bool:
    """Whether an English reader can tell the tense: "they read" could be present or past."""
    return tense != "past" or not verb.invariable or agreement(subject) == (3, False)
