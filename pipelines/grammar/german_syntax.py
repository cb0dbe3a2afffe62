"""German sentences from derivations.

Main clauses have the finite verb second, questions first and subordinate clauses last. Between
it and the right bracket (prefix, participle, infinitive) the middle field keeps this order:

    reflexive and personal pronouns, definite objects, time or cause, frequency, indefinite
    objects, nicht, manner, place, prepositional objects and directions, predicate

Relative clauses of objects, and clauses the verb governs, follow the right bracket.

`uses` collects (lemma, construction) pairs on the way: the cases, numbers and determiners words
occur with, which the held-out combinations are stated in.
"""

from dataclasses import dataclass, field

from pipelines.grammar import german
from pipelines.grammar.derivations import (
    Adverbial,
    Clause,
    Comparison,
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
    agreement,
)
from pipelines.grammar.entries import ACCUSATIVE, DATIVE, GENITIVE, NOMINATIVE, Adverb
from pipelines.grammar.verbs import BE, HAVE
from pipelines.grammar.words import (
    COORDINATORS,
    DETERMINER,
    QUESTION_ADVERBS,
    Name,
    Pronoun,
)

Uses = set[tuple[str, str]]
_WHO = {NOMINATIVE: "wer", ACCUSATIVE: "wen", DATIVE: "wem"}


@dataclass(slots=True)
class _Verbal:
    """The finite verb and what closes the clause: a prefix or a participle or infinitive."""

    finite: str
    prefix: str
    bracket: list[str]

    @property
    def final(self) -> list[str]:
        """Everything at the end, as in subordinate clauses: angerufen hat, anruft."""
        return [*self.bracket, self.prefix + self.finite]

    @property
    def closing(self) -> list[str]:
        """What is left at the end once the finite verb has moved to the front."""
        return [*self.bracket, self.prefix] if self.prefix else self.bracket


@dataclass(slots=True)
class _Fields:
    """The middle field and what is put after the right bracket."""

    middle: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


def realise_german(sentence: Sentence, uses: Uses) -> list[str]:
    """The words and commas of the sentence, without its capital and its end."""
    if isinstance(sentence, Coordination):
        # the comma before "und" between main clauses is optional: the corpus has none
        comma = [","] if sentence.coordinator == "but" else []
        first = _main(sentence.first, None, None, uses)
        second = _main(sentence.second, None, None, uses)
        return [*first, *comma, COORDINATORS[sentence.coordinator], *second]
    if isinstance(sentence, Question):
        return _question(sentence, uses)
    return _statement(sentence, uses)


def _statement(statement: Statement, uses: Uses) -> list[str]:
    front = statement.front
    if front is None:
        return _main(statement.clause, None, None, uses)
    if isinstance(front, Subordinate):
        opening = [*_subordinate(front, uses)[1:], ","]
    else:
        opening = [_adverbial(front, uses)]
    return _main(statement.clause, opening, None, uses)


def _question(question: Question, uses: Uses) -> list[str]:
    clause = question.clause
    uses.add((clause.verb.german.lemma, "question"))
    if question.asked == "subject":
        return _main(clause, None, None, uses)
    if question.asked == "object":
        return _main(clause, [_object(clause, uses)], clause.object, uses)
    if not question.asked:
        return _main(clause, [], None, uses)
    return _main(clause, [QUESTION_ADVERBS[question.asked]], None, uses)


def _main(
    clause: Clause, opening: list[str] | None, omitted: Nominal | None, uses: Uses
) -> list[str]:
    """A clause with its verb in second place; without an opening the subject is first."""
    verbal = _verbal(clause, uses)
    subject = _subject(clause, uses)
    fields = _fields(clause, omitted, uses)
    first = [subject, verbal.finite] if opening is None else [*opening, verbal.finite, subject]
    return [*first, *fields.middle, *verbal.closing, *fields.after]


def _subordinate(subordinate: Subordinate, uses: Uses) -> list[str]:
    """A comma, the conjunction and a clause with its verb at the end."""
    conjunction, clause = subordinate.conjunction, subordinate.clause
    fields = _fields(clause, None, uses)
    if conjunction.infinitive:
        opening = [conjunction.german] if conjunction.german else []
        uses.add((clause.verb.german.lemma, "infinitive"))
        end = german.zu_infinitive(clause.verb.german)
        return [",", *opening, *fields.middle, end, *fields.after]
    word = conjunction.german_past if clause.tense == "past" else conjunction.german
    uses.add((clause.verb.german.lemma, "subordinate"))
    end = _verbal(clause, uses).final
    return [",", word, _subject(clause, uses), *fields.middle, *end, *fields.after]


def _relative(clause: Clause, uses: Uses) -> list[str]:
    """A comma, the relative pronoun in its case, and a clause with its verb at the end."""
    uses.add((clause.verb.german.lemma, "subordinate"))
    opening: list[str] = []
    omitted: Nominal | PrepositionalPhrase | None = None
    if isinstance(clause.object, RelativePronoun):
        omitted = clause.object
        opening = [_object(clause, uses)]
    elif not isinstance(clause.subject, RelativePronoun):
        omitted = clause.complement
        opening = [_adverbial(clause.complement, uses)]
    fields = _fields(clause, omitted, uses)
    end = _verbal(clause, uses).final
    return [",", *opening, _subject(clause, uses), *fields.middle, *end, *fields.after]


def _verbal(clause: Clause, uses: Uses) -> _Verbal:
    verb = clause.verb.german
    person, plural = agreement(clause.subject)
    if clause.modal:
        uses.add((verb.lemma, "modal"))
        modal = german.finite(clause.modal.german, clause.tense, person, plural)
        return _Verbal(modal, "", [verb.lemma])
    uses.add((verb.lemma, clause.tense))
    if clause.tense == "perfect":
        auxiliary = german.finite(
            BE if verb.auxiliary == "sein" else HAVE, "present", person, plural
        )
        return _Verbal(auxiliary, "", [german.participle(verb)])
    return _Verbal(german.finite(verb, clause.tense, person, plural), verb.prefix, [])


def _subject(clause: Clause, uses: Uses) -> str:
    subject = clause.subject
    text = _nominal(subject, NOMINATIVE, uses)
    if isinstance(subject, NounPhrase) and subject.relative:
        text = " ".join([text, *_relative(subject.relative, uses), ","])
    return text


def _object(clause: Clause, uses: Uses) -> str:
    case, preposition = clause.verb.case, clause.verb.preposition
    text = _nominal(clause.object, case, uses, kein=clause.negated and not preposition)
    if not preposition:
        return text
    return _join(preposition, clause.object, text)


def _fields(clause: Clause, omitted: Nominal | PrepositionalPhrase | None, uses: Uses) -> _Fields:
    """Distributes what is not the subject, the verb or the omitted part."""
    objects = _Objects(clause, omitted, uses)
    fields = _Fields()
    fields.middle = [*objects.pronouns, *objects.definite]
    fields.middle += _texts((clause.circumstance, clause.frequency), uses)
    fields.middle += objects.indefinite
    if clause.negated and not _has_kein(clause):
        fields.middle.append("nicht")
        uses.add((clause.verb.german.lemma, "nicht"))
    fields.middle += _texts((clause.manner, clause.place), uses)
    fields.middle += objects.prepositional
    if clause.complement and clause.complement is not omitted:
        fields.middle.append(_adverbial(clause.complement, uses))
    if clause.predicate:
        fields.middle.append(_predicative(clause, uses))
    fields.after = objects.relative
    if clause.tail:
        fields.after += _subordinate(clause.tail, uses)
    return fields


class _Objects:
    """The objects of a clause, sorted by the place they take in the middle field."""

    def __init__(self, clause: Clause, omitted: object, uses: Uses) -> None:
        self.pronouns: list[str] = []
        self.definite: list[str] = []
        self.indefinite: list[str] = []
        self.prepositional: list[str] = []
        self.relative: list[str] = []
        if clause.verb.german.reflexive:
            self.pronouns.append(_reflexive(clause.subject))
        if clause.recipient:
            self._place(clause.recipient, _nominal(clause.recipient, DATIVE, uses))
        if clause.object and clause.object is not omitted:
            text = _object(clause, uses)
            if clause.verb.preposition:
                self.prepositional.append(text)
            else:
                self._place(clause.object, text)
            if isinstance(clause.object, NounPhrase) and clause.object.relative:
                self.relative = [*_relative(clause.object.relative, uses), ","]

    def _place(self, nominal: Nominal, text: str) -> None:
        if isinstance(nominal, Pronoun):
            self.pronouns.append(text)
        elif isinstance(nominal, NounPhrase) and not nominal.definite:
            self.indefinite.append(text)
        else:
            self.definite.append(text)


def _has_kein(clause: Clause) -> bool:
    """Whether the negation is in a determiner of the object or the predicate."""
    if isinstance(clause.predicate, NounPhrase):
        return clause.predicate.takes_kein
    if clause.verb.preposition or not isinstance(clause.object, NounPhrase):
        return False
    return clause.object.takes_kein


def _reflexive(subject: Nominal) -> str:
    return subject.reflexive if isinstance(subject, Pronoun) else "sich"


def _predicative(clause: Clause, uses: Uses) -> str:
    predicate = clause.predicate
    if isinstance(predicate, NounPhrase):
        return _nominal(predicate, NOMINATIVE, uses, kein=clause.negated)
    if isinstance(predicate, Comparison):
        adjective = predicate.adjective
        standard = _nominal(predicate.standard, NOMINATIVE, uses)
        uses.add((adjective.german, "equal" if predicate.equal else "comparative"))
        if predicate.equal:
            return f"so {adjective.german} wie {standard}"
        return f"{adjective.german_comparative} als {standard}"
    uses.add((predicate.german, "predicate"))
    return predicate.german


def _texts(adverbials: tuple[Adverbial | None, ...], uses: Uses) -> list[str]:
    return [_adverbial(adverbial, uses) for adverbial in adverbials if adverbial]


def _adverbial(adverbial: Adverbial, uses: Uses) -> str:
    if isinstance(adverbial, Adverb):
        return adverbial.german
    preposition = adverbial.preposition
    towards = adverbial.direction and preposition.two_way
    case = ACCUSATIVE if towards else preposition.case
    text = _nominal(adverbial.nominal, case, uses)
    return _join(preposition.german, adverbial.nominal, text)


def _join(preposition: str, nominal: Nominal, text: str) -> str:
    """Contracts with an article only: in dem Haus becomes im Haus, in dem er wohnt stays."""
    if isinstance(nominal, NounPhrase):
        return german.contract(preposition, text)
    return f"{preposition} {text}"


def _nominal(nominal: Nominal, case: str, uses: Uses, kein: bool = False) -> str:
    if isinstance(nominal, NounPhrase):
        return _noun_phrase(nominal, case, uses, kein and nominal.takes_kein)
    if isinstance(nominal, Name):
        return nominal.spelling
    if isinstance(nominal, Interrogative):
        return _WHO[case] if nominal.person else "was"
    if isinstance(nominal, RelativePronoun):
        column = german.agreement_column(nominal.noun.gender, nominal.plural)
        return german.relative_pronoun(case, column)
    forms = {NOMINATIVE: nominal.german, ACCUSATIVE: nominal.accusative, DATIVE: nominal.dative}
    return forms[case]


def _noun_phrase(phrase: NounPhrase, case: str, uses: Uses, kein: bool) -> str:
    noun, owner = phrase.noun, phrase.possessor
    column = german.agreement_column(noun.gender, phrase.plural)
    determiner = DETERMINER["no"] if kein else phrase.determiner
    if owner:
        # Peters altes Haus has no article, das alte Haus des Lehrers has one
        determiner = DETERMINER[""] if isinstance(owner, Name) else DETERMINER["the"]
    words = [german.article(determiner, case, column)]
    if isinstance(owner, Name):
        words = [owner.spelling + "s"]
    if phrase.number:
        words.append(german.number_word(phrase.number))
        uses.add((noun.german, "number"))
    if phrase.adjective:
        words.append(german.attributive(phrase.adjective, determiner.endings, case, column))
        if determiner is DETERMINER["no"]:
            uses.add((phrase.adjective.german, "kein"))
    words.append(german.decline(noun, case, phrase.plural))
    uses.add((noun.german, case))
    if isinstance(owner, NounPhrase):
        words.append(_nominal(owner, GENITIVE, uses))
    return " ".join(word for word in words if word)
