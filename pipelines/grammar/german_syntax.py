"""German sentences from trees.

The finite verb comes second in main clauses, first in questions and last in subordinate clauses.
Between it and the right bracket (prefix, participle, infinitive), the order of the middle field is

    reflexive and personal pronouns, definite objects, time or cause, frequency, indefinite
    objects, nicht, manner, place, prepositional objects and directions, predicate

Relative clauses on objects, and clauses governed by the verb, follow the right bracket.
"""

from pipelines.grammar import german, lexicon, tree
from pipelines.grammar.lexicon import ACCUSATIVE, DATIVE, GENITIVE, NOMINATIVE

_WHO = {NOMINATIVE: "wer", ACCUSATIVE: "wen", DATIVE: "wem"}


def _has_kein(clause: tree.Clause) -> bool:
    """Whether the determiner of the object or the predicate expresses the negation."""
    negated = clause.predicate or clause.object
    return (
        isinstance(negated, tree.NounPhrase) and negated.takes_kein and not clause.verb.preposition
    )


def _join(preposition: str, nominal: tree.Nominal, text: str) -> str:
    """Joins both, contracting articles only: in dem Haus becomes im Haus, in dem er wohnt stays."""
    if isinstance(nominal, tree.NounPhrase):
        return german.contract(preposition, text)
    return f"{preposition} {text}"


class GermanWriter:
    """Writes sentences in German, and collects the (lemma, construction) pairs they use.

    Only the constructions that splits.py names are collected.
    """

    def __init__(self) -> None:
        self.uses: set[tuple[str, str]] = set()

    def words(self, sentence: tree.Sentence) -> list[str]:
        """Returns the words and commas of the sentence, without initial capital and final mark."""
        if isinstance(sentence, tree.Coordination):
            # the comma before "und" between main clauses is optional; the corpus omits it
            comma = [","] if sentence.conjunction.english == "but" else []
            first, second = self._main(sentence.first), self._main(sentence.second)
            return [*first, *comma, sentence.conjunction.german, *second]
        if isinstance(sentence, tree.Question):
            return self._question(sentence)
        front = sentence.front
        if front is None:
            return self._main(sentence.clause)
        if isinstance(front, tree.Subordinate):
            return self._main(sentence.clause, [*self._subordinate(front), ","])
        return self._main(sentence.clause, [self._adverbial(front)])

    def _question(self, question: tree.Question) -> list[str]:
        clause, asked = question.clause, question.asked
        self.uses.add((clause.verb.german, "question"))
        if asked == "subject":
            return self._main(clause)
        if asked == "object":
            return self._main(clause, [self._object(clause)], clause.object)
        return self._main(clause, [lexicon.ADVERB[asked].german] if asked else [])

    def _main(
        self, clause: tree.Clause, opening: list[str] | None = None, moved: tree.Moved = None
    ) -> list[str]:
        """Returns a verb-second clause; without an opening, the subject comes first."""
        finite, prefix, bracket = self._verbal(clause)
        subject = self._subject(clause)
        first = [subject, finite] if opening is None else [*opening, finite, subject]
        middle, after = self._fields(clause, moved)
        return [*first, *middle, bracket, prefix, *after]

    def _subordinate(self, subordinate: tree.Subordinate) -> list[str]:
        """Returns the conjunction, and a clause with its verb at the end."""
        conjunction, clause = subordinate.conjunction, subordinate.clause
        if "infinitive" in conjunction.features:
            middle, after = self._fields(clause)
            return [conjunction.german, *middle, german.zu_infinitive(clause.verb), *after]
        in_past = clause.tense == "past" and conjunction.german_past
        return [in_past or conjunction.german, *self._verb_last(clause)]

    def _relative(self, clause: tree.Clause) -> list[str]:
        """Returns a comma, the relative pronoun in its case, and a clause with its verb last."""
        if isinstance(clause.subject, tree.RelativePronoun):
            return [",", *self._verb_last(clause)]
        if isinstance(clause.object, tree.RelativePronoun):
            return [",", self._object(clause), *self._verb_last(clause, clause.object)]
        pronoun = self._adverbial(clause.complement)
        return [",", pronoun, *self._verb_last(clause, clause.complement)]

    def _verb_last(self, clause: tree.Clause, moved: tree.Moved = None) -> list[str]:
        """Returns the clause with its finite verb after the bracket: angerufen hat, anruft."""
        self.uses.add((clause.verb.german, "subordinate"))
        finite, prefix, bracket = self._verbal(clause)
        middle, after = self._fields(clause, moved)
        return [self._subject(clause), *middle, bracket, prefix + finite, *after]

    def _verbal(self, clause: tree.Clause) -> tuple[str, str, str]:
        """Returns the finite verb, its prefix, and the bracket's participle or infinitive."""
        verb, modal, tense = clause.verb, clause.modal, clause.tense
        agreement = clause.subject.person, clause.subject.plural
        if modal:
            self.uses.add((verb.german, "modal"))
            return german.finite(modal, tense, *agreement), "", verb.german
        if tense == "perfect":
            self.uses.add((verb.german, "perfect"))
            auxiliary = lexicon.BE if "sein" in verb.features else lexicon.HAVE
            participle = verb.prefix + verb.german_participle
            return german.finite(auxiliary, "present", *agreement), "", participle
        return german.finite(verb, tense, *agreement), verb.prefix, ""

    def _subject(self, clause: tree.Clause) -> str:
        subject = clause.subject
        text = self._nominal(subject, NOMINATIVE)
        if isinstance(subject, tree.NounPhrase) and subject.relative:
            text = " ".join(filter(None, [text, *self._relative(subject.relative), ","]))
        return text

    def _object(self, clause: tree.Clause) -> str:
        case, preposition = clause.verb.case, clause.verb.preposition
        if preposition:
            return _join(preposition, clause.object, self._nominal(clause.object, case))
        return self._nominal(clause.object, case, clause.negated)

    def _fields(self, clause: tree.Clause, moved: tree.Moved = None) -> tuple[list[str], list[str]]:
        """Returns the middle field and the words after the right bracket, without `moved`."""
        verb, object = clause.verb, clause.object
        pronouns, definite, indefinite, prepositional, after = [], [], [], [], []

        def slot(nominal: tree.Nominal) -> list[str]:
            if isinstance(nominal, lexicon.Pronoun):
                return pronouns
            is_indefinite = isinstance(nominal, tree.NounPhrase) and not nominal.definite
            return indefinite if is_indefinite else definite

        if "reflexive" in verb.features:
            is_pronoun = isinstance(clause.subject, lexicon.Pronoun)
            pronouns.append(clause.subject.reflexive if is_pronoun else "sich")
        if clause.recipient:
            slot(clause.recipient).append(self._nominal(clause.recipient, DATIVE))
        if object and object is not moved:
            objects = prepositional if verb.preposition else slot(object)
            objects.append(self._object(clause))
            if isinstance(object, tree.NounPhrase) and object.relative:
                after = [*self._relative(object.relative), ","]
        complement = None if clause.complement is moved else clause.complement
        middle = [
            *pronouns,
            *definite,
            self._adverbial(clause.circumstance),
            self._adverbial(clause.frequency),
            *indefinite,
            "nicht" if clause.negated and not _has_kein(clause) else "",
            self._adverbial(clause.manner),
            self._adverbial(clause.place),
            *prepositional,
            self._adverbial(complement),
            self._predicative(clause),
        ]
        if clause.tail:
            after += [",", *self._subordinate(clause.tail)]
        return middle, after

    def _predicative(self, clause: tree.Clause) -> str:
        predicate = clause.predicate
        if predicate is None:
            return ""
        if isinstance(predicate, tree.NounPhrase):
            return self._nominal(predicate, NOMINATIVE, clause.negated)
        if isinstance(predicate, lexicon.Adjective):
            return predicate.german
        adjective = predicate.adjective
        standard = self._nominal(predicate.standard, NOMINATIVE)
        if predicate.equal:
            return f"so {adjective.german} wie {standard}"
        self.uses.add((adjective.german, "comparative"))
        return f"{adjective.german_comparative} als {standard}"

    def _adverbial(self, adverbial: tree.Adverbial | None) -> str:
        if adverbial is None:
            return ""
        if isinstance(adverbial, lexicon.Adverb):
            return adverbial.german
        preposition = adverbial.preposition
        towards = adverbial.direction and "two-way" in preposition.features
        case = ACCUSATIVE if towards else preposition.case
        text = self._nominal(adverbial.nominal, case)
        return _join(preposition.german, adverbial.nominal, text)

    def _nominal(self, nominal: tree.Nominal, case: str, negated: bool = False) -> str:
        match nominal:
            case tree.NounPhrase():
                return self._noun_phrase(nominal, case, negated and nominal.takes_kein)
            case lexicon.Pronoun():
                return {
                    NOMINATIVE: nominal.german,
                    ACCUSATIVE: nominal.accusative,
                    DATIVE: nominal.dative,
                }[case]
            case lexicon.Name():
                return nominal.name
            case tree.Interrogative():
                return _WHO[case] if nominal.is_person else "was"
            case tree.RelativePronoun():
                column = german.PLURAL if nominal.plural else nominal.noun.gender
                return german.RELATIVE_PRONOUNS[case, column]

    def _noun_phrase(self, phrase: tree.NounPhrase, case: str, kein: bool) -> str:
        noun, owner, adjective = phrase.noun, phrase.possessor, phrase.adjective
        column = german.PLURAL if phrase.plural else noun.gender
        determiner = lexicon.DETERMINER["no"] if kein else phrase.determiner
        if isinstance(owner, tree.NounPhrase):
            determiner = lexicon.DETERMINER["the"]  # das alte Haus des Lehrers
        words = [german.article(determiner, case, column)]
        if isinstance(owner, lexicon.Name):
            words = [owner.name + "s"]  # Peters altes Haus
        if phrase.number:
            words.append(german.number_word(phrase.number))
            self.uses.add((noun.german, "number"))
        if adjective:
            words.append(german.attributive(adjective, determiner.endings, case, column))
            if determiner.english == "no":
                self.uses.add((adjective.german, "kein"))
        words.append(german.decline(noun, case, phrase.plural))
        if case == DATIVE:
            self.uses.add((noun.german, "dative"))
        if isinstance(owner, tree.NounPhrase):
            words.append(self._nominal(owner, GENITIVE))
        return " ".join(filter(None, words))
