"""English sentences from derivations: subject, verb group, objects, manner, place, time."""

from pipelines.grammar import english
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
    Subordinate,
    agreement,
)
from pipelines.grammar.entries import Adjective
from pipelines.grammar.words import Name, Pronoun


def realise_english(sentence: Sentence) -> list[str]:
    """The words and commas of the sentence, without its capital and its end."""
    if isinstance(sentence, Coordination):
        return [
            *_declarative(sentence.first),
            ",",
            sentence.coordinator,
            *_declarative(sentence.second),
        ]
    if isinstance(sentence, Question):
        return _question(sentence)
    if sentence.front is None:
        return _declarative(sentence.clause)
    if isinstance(sentence.front, Subordinate):
        opening = _subordinate(sentence.front)
        opening = opening[1:] if opening[0] == "," else opening
        return [*opening, ",", *_declarative(sentence.clause)]
    return [_adverbial(sentence.front), *_declarative(sentence.clause)]


def _question(question: Question) -> list[str]:
    clause = question.clause
    if question.asked == "subject":
        return _declarative(clause)
    auxiliary, verbal = _verb_group(clause, inverted=True)
    asked: list[str] = []
    if question.asked == "object":
        asked = [_nominal(clause.object, subject=False)]
    elif question.asked:
        asked = [question.asked.split(" ")[0]]
    omitted = clause.object if question.asked == "object" else None
    negation = ["not"] if clause.negated else []
    head = [*asked, auxiliary, _subject(clause), *negation]
    return [*head, *_predicate(clause, verbal, omitted)]


def _declarative(clause: Clause, omitted: Nominal | PrepositionalPhrase | None = None) -> list[str]:
    auxiliary, verbal = _verb_group(clause, inverted=False)
    if clause.negated:
        auxiliary = "cannot" if auxiliary == "can" else f"{auxiliary} not"
    head = [_subject(clause), auxiliary] if auxiliary else [_subject(clause)]
    return [*head, *_predicate(clause, verbal, omitted)]


def _subject(clause: Clause) -> str:
    if clause.verb.frame == "existential":
        return "there"
    return _nominal(clause.subject, subject=True)


def _verb_group(clause: Clause, inverted: bool) -> tuple[str, list[str]]:
    """The finite auxiliary ("" for none) and the words of the verb that follow it."""
    verb, tense = clause.verb, clause.tense
    existential = clause.verb.frame == "existential"
    person, plural = agreement(clause.object if existential else clause.subject)
    if clause.modal and not clause.modal.lexical:
        return (clause.modal.past if tense == "past" else clause.modal.english), [verb.base]
    if tense == "perfect":
        participle = "been" if verb.base == "be" else verb.participle
        return english.present("have", person, plural), [participle]
    if clause.modal:
        base, past, rest = clause.modal.english, clause.modal.past, [verb.base]
        base, past = base.removesuffix(" to"), past.removesuffix(" to")
        rest = ["to", *rest]
    elif verb.base == "be":
        return english.be(tense, person, plural), []
    elif verb.frame == "weather":
        return english.be(tense, person, plural), [verb.base + "ing"]
    else:
        base, past, rest = verb.base, verb.past, []
    if clause.negated or inverted:
        do = "did" if tense == "past" else english.present("do", person, plural)
        return do, [base, *rest]
    return "", [past if tense == "past" else english.present(base, person, plural), *rest]


def _predicate(
    clause: Clause, verbal: list[str], omitted: Nominal | PrepositionalPhrase | None
) -> list[str]:
    """Everything after the subject and the auxiliary."""
    words = [clause.frequency.english, *verbal] if clause.frequency else list(verbal)
    kept = None if clause.object is omitted else clause.object
    stranded = clause.verb.movable and isinstance(kept, Pronoun)
    if clause.verb.particle and not stranded:
        words.append(clause.verb.particle)
    words += [_nominal(part, subject=False) for part in (clause.recipient, kept) if part]
    if stranded:
        words.append(clause.verb.particle)
    if clause.predicate:
        words.append(_predicative(clause.predicate))
    adverbials = (clause.manner, clause.complement, clause.place, clause.circumstance)
    words += [_adverbial(part) for part in adverbials if part and part is not omitted]
    if clause.tail:
        words += _subordinate(clause.tail)
    return words


def _subordinate(subordinate: Subordinate) -> list[str]:
    conjunction, clause = subordinate.conjunction, subordinate.clause
    if conjunction.infinitive:
        return [conjunction.english, *_predicate(clause, [clause.verb.base], None)]
    # a complementiser is part of the verb that asks for it (say that)
    words = [] if conjunction.english in ("that", "whether") else [conjunction.english]
    comma = [","] if conjunction.english_comma else []
    return [*comma, *words, *_declarative(clause)]


def _predicative(predicate: Adjective | Comparison | NounPhrase) -> str:
    if isinstance(predicate, Adjective):
        return predicate.english
    if isinstance(predicate, Comparison):
        standard = _nominal(predicate.standard, subject=True)
        if predicate.equal:
            return f"as {predicate.adjective.english} as {standard}"
        return f"{predicate.adjective.english_comparative} than {standard}"
    return _nominal(predicate, subject=False)


def _adverbial(adverbial: Adverbial) -> str:
    if isinstance(adverbial, PrepositionalPhrase):
        return f"{adverbial.preposition.english} {_nominal(adverbial.nominal, subject=False)}"
    return adverbial.english


def _nominal(nominal: Nominal, subject: bool) -> str:
    if isinstance(nominal, Pronoun):
        return nominal.english if subject else nominal.english_object
    if isinstance(nominal, Name):
        return nominal.spelling
    if isinstance(nominal, Interrogative):
        return ("who" if subject else "whom") if nominal.person else "what"
    if isinstance(nominal, RelativePronoun):
        return ("who" if subject else "whom") if nominal.noun.is_person else "which"
    return _noun_phrase(nominal)


def _noun_phrase(phrase: NounPhrase) -> str:
    words = [english.number_word(phrase.number)] if phrase.number else []
    if phrase.adjective:
        words.append(phrase.adjective.english)
    words.append(english.noun_form(phrase.noun, phrase.plural))
    if phrase.possessor:
        owner = phrase.possessor
        plural = isinstance(owner, NounPhrase) and owner.plural
        words.insert(0, english.possessive(_nominal(owner, subject=True), plural))
    else:
        determiner = phrase.determiner
        article = determiner.english_plural if phrase.plural else determiner.english
        if article == "a":
            article = english.indefinite_article(words[0])
        if article:
            words.insert(0, article)
    if phrase.relative:
        words += _relative(phrase.relative)
    return " ".join(words)


def _relative(clause: Clause) -> list[str]:
    """who reads the book, whom the girl helps, in which the man lives."""
    if isinstance(clause.subject, RelativePronoun):
        return _declarative(clause)
    if isinstance(clause.object, RelativePronoun):
        return [_nominal(clause.object, subject=False), *_declarative(clause, clause.object)]
    return [_adverbial(clause.complement), *_declarative(clause, clause.complement)]
