"""What a sentence pair is made from: one structure, from which both languages are realised.

A derivation is built from explicit choices, by a test as well as by the sampler. It raises
ValueError for the few choices that would make English ambiguous or that the grammar lacks.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.grammar.entries import (
    Adjective,
    Adverb,
    Conjunction,
    Determiner,
    Modal,
    Noun,
    Preposition,
    Verb,
)
from pipelines.grammar.words import BARE, DETERMINER, Name, Pronoun

TENSES = ("present", "past", "perfect")


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """the three old books; a possessor stands in the place of the determiner."""

    noun: Noun
    determiner: Determiner = BARE
    plural: bool = False
    adjective: Adjective | None = None
    number: int | None = None
    possessor: NounPhrase | Name | None = None
    relative: Clause | None = None

    @property
    def definite(self) -> bool:
        """Whether the phrase stands before the adverbials of the German middle field."""
        return self.determiner.definite or self.possessor is not None

    @property
    def takes_kein(self) -> bool:
        """Whether negation turns its determiner into kein (a book, books, milk)."""
        indefinite = self.determiner is BARE or self.determiner is DETERMINER["a"]
        return indefinite and self.number is None and self.possessor is None


@dataclass(frozen=True, slots=True)
class Interrogative:
    """who or what; English "whom" where it is not the subject."""

    person: bool


@dataclass(frozen=True, slots=True)
class RelativePronoun:
    """The pronoun that stands for an antecedent inside its relative clause."""

    noun: Noun
    plural: bool


Nominal = NounPhrase | Pronoun | Name | Interrogative | RelativePronoun


@dataclass(frozen=True, slots=True)
class PrepositionalPhrase:
    """A preposition and its noun phrase; `direction` turns a two-way one to the accusative."""

    preposition: Preposition
    nominal: Nominal
    direction: bool = False


Adverbial = Adverb | PrepositionalPhrase


@dataclass(frozen=True, slots=True)
class Comparison:
    """older than, or as old as, the standard."""

    adjective: Adjective
    standard: Nominal
    equal: bool = False


@dataclass(frozen=True, slots=True)
class Subordinate:
    """A conjunction and its clause; an infinitive clause repeats the subject it understands."""

    conjunction: Conjunction
    clause: Clause


@dataclass(frozen=True, slots=True)
class Clause:
    """A verb with everything that depends on it, in no order: the order is each language's own.

    `complement` is a direction or position the verb calls for, `place` a free one, and
    `circumstance` an adverbial of time or cause; `tail` follows the whole clause.
    """

    subject: Nominal
    verb: Verb
    tense: str = "present"
    modal: Modal | None = None
    negated: bool = False
    recipient: Nominal | None = None
    object: Nominal | None = None
    complement: PrepositionalPhrase | None = None
    predicate: Adjective | Comparison | NounPhrase | None = None
    manner: Adverb | None = None
    place: PrepositionalPhrase | None = None
    circumstance: Adverbial | None = None
    frequency: Adverb | None = None
    tail: Subordinate | None = None

    def __post_init__(self) -> None:
        if self.tense not in TENSES:
            raise ValueError(f"tense must be one of {TENSES}, got {self.tense!r}")
        self._check_modal()
        if self.invariable_past:
            raise ValueError(
                "the simple past must differ from the present in English, "
                f"got {self.verb.english!r} with a subject other than the third singular"
            )
        if self.negated and isinstance(self.object, NounPhrase):
            vague = not self.object.definite and not self.object.takes_kein
            if vague:
                raise ValueError(
                    "a negated clause must have a definite, indefinite or bare object, "
                    f"got {self.object.determiner.english_plural!r} {self.object.number}"
                )

    def _check_modal(self) -> None:
        if self.modal is None:
            return
        if self.tense == "perfect" or (self.tense == "past" and not self.modal.past):
            raise ValueError(
                f"a modal must have the tense it is used in, got {self.modal.english!r} "
                f"in the {self.tense}"
            )
        if self.negated and not self.modal.negatable:
            raise ValueError(f"a negated modal must be negatable, got {self.modal.english!r}")

    @property
    def invariable_past(self) -> bool:
        """Whether an English reader could not tell this past from a present (they read)."""
        return (
            self.verb.invariable
            and self.tense == "past"
            and self.modal is None
            and agreement(self.subject) != (3, False)
        )


@dataclass(frozen=True, slots=True)
class Statement:
    """A main clause; `front` opens the sentence and moves the German subject behind its verb."""

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
    """A question. `asked` is "" for yes or no, "subject" or "object" for the argument that is
    asked for (an interrogative or a phrase with which or how many), or a question adverb."""

    clause: Clause
    asked: str = ""


Sentence = Statement | Coordination | Question


def agreement(nominal: Nominal) -> tuple[int, bool]:
    """Person of the nominal, and whether it is a plural."""
    if isinstance(nominal, Pronoun):
        return nominal.person, nominal.plural
    return 3, isinstance(nominal, NounPhrase | RelativePronoun) and nominal.plural
