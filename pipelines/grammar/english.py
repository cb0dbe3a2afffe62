"""English inflection, and English sentences from trees.

The word order is subject, verb group, objects, manner, place, time.
"""

from functools import cache

from pipelines.grammar import tree
from pipelines.grammar.entries import Adjective, Name, Pronoun
from pipelines.grammar.lexicon import NUMBER

# First person singular, third person singular, plural.
_BE = {"present": ("am", "is", "are"), "past": ("was", "was", "were")}
# The sound decides between "a" and "an", not the letter.
_VOWEL_EXCEPTIONS = {"university": "a", "honest": "an"}


@cache
def third_person(base: str) -> str:
    """Returns the third person: -es after a sibilant or o, -ies for a consonant and y, or "has"."""
    if base == "have":
        return "has"
    if base.endswith(("s", "sh", "ch", "x", "z", "o")):
        return base + "es"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + "s"


def present(base: str, person: int, plural: bool) -> str:
    """Returns the simple present of any verb except "be"."""
    return third_person(base) if person == 3 and not plural else base


def indefinite_article(following: str) -> str:
    """Returns "a" or "an", depending on the following word."""
    word = following.split(" ", 1)[0]
    return _VOWEL_EXCEPTIONS.get(word) or ("an" if word[0] in "aeiou" else "a")


@cache
def number_word(number: int) -> str:
    """Returns a cardinal from 1 to 99 in words: twenty-one."""
    if number in NUMBER:
        return NUMBER[number].english
    units = number % 10
    return f"{NUMBER[number - units].english}-{NUMBER[units].english}"


def realise_english(sentence: tree.Sentence) -> list[str]:
    """Returns the words and commas of the sentence, without initial capital and final mark."""
    if isinstance(sentence, tree.Coordination):
        first, second = _declarative(sentence.first), _declarative(sentence.second)
        return [*first, ",", sentence.coordinator, *second]
    if isinstance(sentence, tree.Question):
        return _question(sentence)
    if sentence.front is None:
        return _declarative(sentence.clause)
    if isinstance(sentence.front, tree.Subordinate):
        opening = _subordinate(sentence.front)
        opening = opening[1:] if opening[0] == "," else opening
        return [*opening, ",", *_declarative(sentence.clause)]
    return [_adverbial(sentence.front), *_declarative(sentence.clause)]


def _question(question: tree.Question) -> list[str]:
    clause = question.clause
    if question.asked == "subject":
        return _declarative(clause)
    auxiliary, verbal = _verb_group(clause, inverted=True)
    moved = clause.object if question.asked == "object" else None
    asked = [_nominal(moved, subject=False)] if moved else question.asked.split(" ")[:1]
    negation = ["not"] if clause.negated else []
    head = [*asked, auxiliary, _subject(clause), *negation]
    return [*head, *_predicate(clause, verbal, moved)]


def _declarative(clause: tree.Clause, moved: tree.Moved = None) -> list[str]:
    auxiliary, verbal = _verb_group(clause, inverted=False)
    if clause.negated:
        auxiliary = "cannot" if auxiliary == "can" else f"{auxiliary} not"
    head = [_subject(clause), auxiliary] if auxiliary else [_subject(clause)]
    return [*head, *_predicate(clause, verbal, moved)]


def _subject(clause: tree.Clause) -> str:
    if clause.verb.frame == "existential":
        return "there"
    return _nominal(clause.subject, subject=True)


def _verb_group(clause: tree.Clause, inverted: bool) -> tuple[str, list[str]]:
    """Returns the finite auxiliary ("" for none) and the verb's words that follow it."""
    verb, tense = clause.verb, clause.tense
    existential = clause.verb.frame == "existential"
    person, plural = tree.agreement(clause.object if existential else clause.subject)
    if clause.modal and not clause.modal.lexical:
        return (clause.modal.past if tense == "past" else clause.modal.english), [verb.base]
    if tense == "perfect":
        return present("have", person, plural), [verb.participle]
    if clause.modal:
        base, past, rest = clause.modal.english, clause.modal.past, [verb.base]
        base, past = base.removesuffix(" to"), past.removesuffix(" to")
        rest = ["to", *rest]
    elif verb.base == "be" or verb.frame == "weather":
        finite = _BE[tense][2 if plural else person // 2]
        return finite, [] if verb.base == "be" else [verb.base + "ing"]
    else:
        base, past, rest = verb.base, verb.past, []
    if clause.negated or inverted:
        do = "did" if tense == "past" else present("do", person, plural)
        return do, [base, *rest]
    return "", [past if tense == "past" else present(base, person, plural), *rest]


def _predicate(clause: tree.Clause, verbal: list[str], moved: tree.Moved = None) -> list[str]:
    """Returns everything after the subject and the auxiliary."""
    words = [clause.frequency.english, *verbal] if clause.frequency else list(verbal)
    kept = None if clause.object is moved else clause.object
    stranded = "movable" in clause.verb.features and isinstance(kept, Pronoun)
    if clause.verb.particle and not stranded:
        words.append(clause.verb.particle)
    words += [_nominal(part, subject=False) for part in (clause.recipient, kept) if part]
    if stranded:
        words.append(clause.verb.particle)
    if clause.predicate:
        words.append(_predicative(clause.predicate))
    adverbials = (clause.manner, clause.complement, clause.place, clause.circumstance)
    words += [_adverbial(part) for part in adverbials if part and part is not moved]
    if clause.tail:
        words += _subordinate(clause.tail)
    return words


def _subordinate(subordinate: tree.Subordinate) -> list[str]:
    conjunction, clause = subordinate.conjunction, subordinate.clause
    if conjunction.infinitive:
        return [conjunction.english, *_predicate(clause, [clause.verb.base])]
    # a complementiser is part of the verb that requires it (say that)
    words = [] if conjunction.english in ("that", "whether") else [conjunction.english]
    comma = [","] if "english-comma" in conjunction.features else []
    return [*comma, *words, *_declarative(clause)]


def _predicative(predicate: Adjective | tree.Comparison | tree.NounPhrase) -> str:
    if isinstance(predicate, Adjective):
        return predicate.english
    if isinstance(predicate, tree.Comparison):
        standard = _nominal(predicate.standard, subject=True)
        if predicate.equal:
            return f"as {predicate.adjective.english} as {standard}"
        return f"{predicate.adjective.english_comparative} than {standard}"
    return _nominal(predicate, subject=False)


def _adverbial(adverbial: tree.Adverbial) -> str:
    if isinstance(adverbial, tree.PrepositionalPhrase):
        return f"{adverbial.preposition.english} {_nominal(adverbial.nominal, subject=False)}"
    return adverbial.english


def _nominal(nominal: tree.Nominal, subject: bool) -> str:
    if isinstance(nominal, Pronoun):
        return nominal.english if subject else nominal.english_object
    if isinstance(nominal, Name):
        return nominal.english
    if isinstance(nominal, tree.Interrogative):
        return ("who" if subject else "whom") if nominal.person else "what"
    if isinstance(nominal, tree.RelativePronoun):
        return ("who" if subject else "whom") if nominal.noun.is_person else "which"
    return _noun_phrase(nominal)


def _noun_phrase(phrase: tree.NounPhrase) -> str:
    words = [number_word(phrase.number)] if phrase.number else []
    if phrase.adjective:
        words.append(phrase.adjective.english)
    words.append(phrase.noun.english_plural if phrase.plural else phrase.noun.english)
    if phrase.possessor:
        owner = _nominal(phrase.possessor, subject=True)
        plural = isinstance(phrase.possessor, tree.NounPhrase) and phrase.possessor.plural
        # the teacher's, the teachers', the children's
        words.insert(0, owner + ("'" if plural and owner.endswith("s") else "'s"))
    else:
        determiner = phrase.determiner
        article = determiner.english_plural if phrase.plural else determiner.english
        if article == "a":
            article = indefinite_article(words[0])
        if article:
            words.insert(0, article)
    if phrase.relative:
        words += _relative(phrase.relative)
    return " ".join(words)


def _relative(clause: tree.Clause) -> list[str]:
    """Returns a relative clause: who reads the book, whom the girl helps, in which he lives."""
    if isinstance(clause.subject, tree.RelativePronoun):
        return _declarative(clause)
    if isinstance(clause.object, tree.RelativePronoun):
        return [_nominal(clause.object, subject=False), *_declarative(clause, clause.object)]
    return [_adverbial(clause.complement), *_declarative(clause, clause.complement)]
