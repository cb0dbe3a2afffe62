"""German sentences from trees.

The finite verb comes second in main clauses, first in questions and last in subordinate clauses.
Between it and the right bracket (prefix, participle, infinitive), the order of the middle field is

    reflexive and personal pronouns, definite objects, time or cause, frequency, indefinite
    objects, nicht, manner, place, prepositional objects and directions, predicate

Relative clauses on objects, and clauses governed by the verb, follow the right bracket.

`GermanWriter.uses` collects the (lemma, construction) pairs in the text, such as a noun and its
case. The held-out combinations are such pairs.
"""

from collections import defaultdict

from pipelines.grammar import entries, german, lexicon, tree
from pipelines.grammar.entries import ACCUSATIVE, DATIVE, GENITIVE, NOMINATIVE, Name, Pronoun

_WHO = {NOMINATIVE: "wer", ACCUSATIVE: "wen", DATIVE: "wem"}


def _slot(nominal: tree.Nominal) -> str:
    """Returns the slot in the middle field for an object without a preposition."""
    if isinstance(nominal, Pronoun):
        return "pronoun"
    definite = not isinstance(nominal, tree.NounPhrase) or nominal.definite
    return "definite" if definite else "indefinite"


def _has_kein(clause: tree.Clause) -> bool:
    """Whether the determiner of the object or the predicate expresses the negation."""
    if isinstance(clause.predicate, tree.NounPhrase):
        return clause.predicate.takes_kein
    if clause.verb.preposition or not isinstance(clause.object, tree.NounPhrase):
        return False
    return clause.object.takes_kein


def _join(preposition: str, nominal: tree.Nominal, text: str) -> str:
    """Joins both, contracting articles only: in dem Haus becomes im Haus, in dem er wohnt stays."""
    if isinstance(nominal, tree.NounPhrase):
        return german.contract(preposition, text)
    return f"{preposition} {text}"


class GermanWriter:
    """Writes sentences in German, and collects the (lemma, construction) pairs they use."""

    def __init__(self) -> None:
        self.uses: set[tuple[str, str]] = set()

    def sentence(self, sentence: tree.Sentence) -> list[str]:
        """Returns the words and commas of the sentence, without initial capital and final mark."""
        if isinstance(sentence, tree.Coordination):
            # the comma before "und" between main clauses is optional; the corpus omits it
            comma = [","] if sentence.coordinator == "but" else []
            first = self._main(sentence.first, None)
            second = self._main(sentence.second, None)
            return [*first, *comma, lexicon.CONJUNCTION[sentence.coordinator].german, *second]
        if isinstance(sentence, tree.Question):
            return self._question(sentence)
        return self._statement(sentence)

    def _statement(self, statement: tree.Statement) -> list[str]:
        front = statement.front
        if front is None:
            return self._main(statement.clause, None)
        if isinstance(front, tree.Subordinate):
            opening = [*self._subordinate(front)[1:], ","]
        else:
            opening = [self._adverbial(front)]
        return self._main(statement.clause, opening)

    def _question(self, question: tree.Question) -> list[str]:
        clause, asked = question.clause, question.asked
        self.uses.add((clause.verb.german.lemma, "question"))
        if asked == "subject":
            return self._main(clause, None)
        if asked == "object":
            return self._main(clause, [self._object(clause)], clause.object)
        return self._main(clause, [lexicon.ADVERB[asked].german] if asked else [])

    def _main(
        self, clause: tree.Clause, opening: list[str] | None, moved: tree.Moved = None
    ) -> list[str]:
        """Returns a verb-second clause; without an opening, the subject comes first."""
        finite, prefix, bracket = self._verbal(clause)
        subject = self._subject(clause)
        first = [subject, finite] if opening is None else [*opening, finite, subject]
        middle, after = self._fields(clause, moved)
        return [*first, *middle, *bracket, prefix, *after]

    def _subordinate(self, subordinate: tree.Subordinate) -> list[str]:
        """Returns a comma, the conjunction, and a clause with its verb at the end."""
        conjunction, clause = subordinate.conjunction, subordinate.clause
        if conjunction.infinitive:
            self.uses.add((clause.verb.german.lemma, "infinitive"))
            middle, after = self._fields(clause, None)
            end = german.zu_infinitive(clause.verb.german)
            return [",", conjunction.german, *middle, end, *after]
        word = conjunction.german_past if clause.tense == "past" else conjunction.german
        return [",", word, *self._verb_last(clause, None)]

    def _relative(self, clause: tree.Clause) -> list[str]:
        """Returns a comma, the relative pronoun in its case, and a clause with its verb last."""
        if isinstance(clause.subject, tree.RelativePronoun):
            return [",", *self._verb_last(clause, None)]
        if isinstance(clause.object, tree.RelativePronoun):
            return [",", self._object(clause), *self._verb_last(clause, clause.object)]
        pronoun = self._adverbial(clause.complement)
        return [",", pronoun, *self._verb_last(clause, clause.complement)]

    def _verb_last(self, clause: tree.Clause, moved: tree.Moved) -> list[str]:
        """Returns the clause with its finite verb after the bracket: angerufen hat, anruft."""
        self.uses.add((clause.verb.german.lemma, "subordinate"))
        finite, prefix, bracket = self._verbal(clause)
        middle, after = self._fields(clause, moved)
        return [self._subject(clause), *middle, *bracket, prefix + finite, *after]

    def _verbal(self, clause: tree.Clause) -> tuple[str, str, list[str]]:
        """Returns the finite verb, its prefix, and the bracket's participle or infinitive."""
        verb = clause.verb.german
        person, plural = tree.agreement(clause.subject)
        if clause.modal:
            self.uses.add((verb.lemma, "modal"))
            modal = german.finite(clause.modal.german, clause.tense, person, plural)
            return modal, "", [verb.lemma]
        self.uses.add((verb.lemma, clause.tense))
        if clause.tense == "perfect":
            auxiliary = lexicon.BE if verb.auxiliary == "sein" else lexicon.HAVE
            finite = german.finite(auxiliary, "present", person, plural)
            return finite, "", [german.participle(verb)]
        return german.finite(verb, clause.tense, person, plural), verb.prefix, []

    def _subject(self, clause: tree.Clause) -> str:
        subject = clause.subject
        text = self._nominal(subject, NOMINATIVE)
        if isinstance(subject, tree.NounPhrase) and subject.relative:
            text = " ".join([text, *self._relative(subject.relative), ","])
        return text

    def _object(self, clause: tree.Clause) -> str:
        case, preposition = clause.verb.case, clause.verb.preposition
        text = self._nominal(clause.object, case, kein=clause.negated and not preposition)
        if not preposition:
            return text
        return _join(preposition, clause.object, text)

    def _fields(self, clause: tree.Clause, moved: tree.Moved) -> tuple[list[str], list[str]]:
        """Returns the middle field and the words after the right bracket, without `moved`."""
        verb, object = clause.verb, clause.object
        slots: dict[str, list[str]] = defaultdict(list)
        if verb.german.reflexive:
            by_pronoun = isinstance(clause.subject, Pronoun)
            slots["pronoun"].append(clause.subject.reflexive if by_pronoun else "sich")
        if clause.recipient:
            slots[_slot(clause.recipient)].append(self._nominal(clause.recipient, DATIVE))
        after: list[str] = []
        if object and object is not moved:
            slot = "prepositional" if verb.preposition else _slot(object)
            slots[slot].append(self._object(clause))
            if isinstance(object, tree.NounPhrase) and object.relative:
                after = [*self._relative(object.relative), ","]
        negation = ["nicht"] if clause.negated and not _has_kein(clause) else []
        if negation:
            self.uses.add((verb.german.lemma, "nicht"))
        complement = None if clause.complement is moved else clause.complement
        middle = [
            *slots["pronoun"],
            *slots["definite"],
            *self._texts((clause.circumstance, clause.frequency)),
            *slots["indefinite"],
            *negation,
            *self._texts((clause.manner, clause.place)),
            *slots["prepositional"],
            *self._texts((complement,)),
        ]
        if clause.predicate:
            middle.append(self._predicative(clause))
        if clause.tail:
            after += self._subordinate(clause.tail)
        return middle, after

    def _predicative(self, clause: tree.Clause) -> str:
        predicate = clause.predicate
        if isinstance(predicate, tree.NounPhrase):
            return self._nominal(predicate, NOMINATIVE, kein=clause.negated)
        if isinstance(predicate, tree.Comparison):
            adjective = predicate.adjective
            standard = self._nominal(predicate.standard, NOMINATIVE)
            self.uses.add((adjective.german, "equal" if predicate.equal else "comparative"))
            if predicate.equal:
                return f"so {adjective.german} wie {standard}"
            return f"{adjective.german_comparative} als {standard}"
        self.uses.add((predicate.german, "predicate"))
        return predicate.german

    def _texts(self, adverbials: tuple[tree.Adverbial | None, ...]) -> list[str]:
        return [self._adverbial(adverbial) for adverbial in adverbials if adverbial]

    def _adverbial(self, adverbial: tree.Adverbial) -> str:
        if isinstance(adverbial, entries.Adverb):
            return adverbial.german
        preposition = adverbial.preposition
        towards = adverbial.direction and "two-way" in preposition.features
        case = ACCUSATIVE if towards else preposition.case
        text = self._nominal(adverbial.nominal, case)
        return _join(preposition.german, adverbial.nominal, text)

    def _nominal(self, nominal: tree.Nominal, case: str, kein: bool = False) -> str:
        if isinstance(nominal, tree.NounPhrase):
            return self._noun_phrase(nominal, case, kein and nominal.takes_kein)
        if isinstance(nominal, Name):
            return nominal.german
        if isinstance(nominal, tree.Interrogative):
            return _WHO[case] if nominal.person else "was"
        if isinstance(nominal, tree.RelativePronoun):
            column = german.agreement_column(nominal.noun.gender, nominal.plural)
            return german.RELATIVE_PRONOUNS[case, column]
        forms = {NOMINATIVE: nominal.german, ACCUSATIVE: nominal.accusative, DATIVE: nominal.dative}
        return forms[case]

    def _noun_phrase(self, phrase: tree.NounPhrase, case: str, kein: bool) -> str:
        noun, owner = phrase.noun, phrase.possessor
        column = german.agreement_column(noun.gender, phrase.plural)
        determiner = lexicon.DETERMINER["no"] if kein else phrase.determiner
        if owner:
            # Peters altes Haus has no article, das alte Haus des Lehrers does
            determiner = lexicon.DETERMINER["" if isinstance(owner, Name) else "the"]
        words = [german.article(determiner, case, column)]
        if isinstance(owner, Name):
            words = [owner.german + "s"]
        if phrase.number:
            words.append(german.number_word(phrase.number))
            self.uses.add((noun.german, "number"))
        if phrase.adjective:
            words.append(german.attributive(phrase.adjective, determiner.endings, case, column))
            if determiner is lexicon.DETERMINER["no"]:
                self.uses.add((phrase.adjective.german, "kein"))
        words.append(german.decline(noun, case, phrase.plural))
        self.uses.add((noun.german, case))
        if isinstance(owner, tree.NounPhrase):
            words.append(self._nominal(owner, GENITIVE))
        return " ".join(word for word in words if word)
