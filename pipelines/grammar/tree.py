"""The tree of a sentence pair: one structure, from which both languages are written."""

from __future__ import annotations

from typing import NamedTuple

from pipelines.grammar import lexicon


class NounPhrase(NamedTuple):
    """A noun phrase: the three old books. A possessor takes the place of the determiner."""

    noun: lexicon.Noun
    determiner: lexicon.Determiner = lexicon.BARE
    plural: bool = False
    adjective: lexicon.Adjective | None = None
    number: int | None = None
    possessor: NounPhrase | lexicon.Name | None = None
    relative: Clause | None = None
    person = 3

    @property
    def definite(self) -> bool:
        """Whether the phrase precedes the adverbials in the German middle field."""
        return "definite" in self.determiner.features or self.possessor is not None

    @property
    def takes_kein(self) -> bool:
        """Whether negation turns its determiner into kein (a book, books, milk)."""
        indefinite = self.determiner is lexicon.BARE or self.determiner is lexicon.DETERMINER["a"]
        return indefinite and self.number is None and self.possessor is None


class Interrogative(NamedTuple):
    """An interrogative: who or what; in English, "whom" if it is not the subject."""

    is_person: bool
    person = 3
    plural = False


class RelativePronoun(NamedTuple):
    """The pronoun that stands for an antecedent in its relative clause."""

    noun: lexicon.Noun
    plural: bool
    person = 3


Nominal = NounPhrase | lexicon.Pronoun | lexicon.Name | Interrogative | RelativePronoun


class PrepositionalPhrase(NamedTuple):
    """A preposition and its noun phrase; with `direction`, a two-way one takes the accusative."""

    preposition: lexicon.Preposition
    nominal: Nominal
    direction: bool = False


Adverbial = lexicon.Adverb | PrepositionalPhrase
# The part that a relative clause or a question moves to its front.
Moved = Nominal | PrepositionalPhrase | None


class Comparison(NamedTuple):
    """A comparison: older than, or as old as, the standard."""

    adjective: lexicon.Adjective
    standard: NounPhrase
    equal: bool = False


class Subordinate(NamedTuple):
    """A conjunction and its clause; an infinitive clause repeats its implied subject."""

    conjunction: lexicon.Conjunction
    clause: Clause


class Clause(NamedTuple):
    """A verb with everything that depends on it, unordered: each language has its own order.

    `complement` is a direction or position that the verb requires, `place` a free one, and
    `circumstance` an adverbial of time or cause; `tail` follows the whole clause.
    """

    subject: Nominal
    verb: lexicon.Verb
    tense: str = "present"
    modal: lexicon.Modal | None = None
    negated: bool = False
    recipient: Nominal | None = None
    object: Nominal | None = None
    complement: PrepositionalPhrase | None = None
    predicate: lexicon.Adjective | Comparison | NounPhrase | None = None
    manner: lexicon.Adverb | None = None
    place: PrepositionalPhrase | None = None
    circumstance: Adverbial | None = None
    frequency: lexicon.Adverb | None = None
    tail: Subordinate | None = None


class Statement(NamedTuple):
    """A main clause; `front` opens the sentence and moves the German subject after its verb."""

    clause: Clause
    front: Adverbial | Subordinate | None = None


class Coordination(NamedTuple):
    """Two main clauses joined by "and" or "but"."""

    first: Clause
    conjunction: lexicon.Conjunction
    second: Clause


class Question(NamedTuple):
    """A question.

    `asked` is "" for yes or no, "subject" or "object" for the argument in question (an
    interrogative, or a phrase with which or how many), or a question adverb.
    """

    clause: Clause
    asked: str = ""


Sentence = Statement | Coordination | Question
