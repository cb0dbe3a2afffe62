"""English sentences from trees: subject, verb group, objects, manner, place, time."""

from functools import cache

from pipelines.grammar import lexicon, tree

# First person singular, third person singular, plural.
_BE = {"present": ("am", "is", "are"), "past": ("was", "was", "were")}
# The sound decides between "a" and "an", not the letter.
_ARTICLE_EXCEPTIONS = {"university": "a", "honest": "an"}
_NUMBERS = (
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def number_word(number: int) -> str:
    """Returns a cardinal from 1 to 99 in words: twenty-one."""
    if number < 20:
        return _NUMBERS[number - 1]
    tens, units = _TENS[number // 10 - 2], number % 10
    return f"{tens}-{_NUMBERS[units - 1]}" if units else tens


@cache
def present(base: str, person: int, plural: bool) -> str:
    """Returns the simple present of any verb except "be"."""
    if plural or person == 1:
        return base
    if base == "have":
        return "has"
    if base.endswith(("s", "sh", "ch", "x", "z", "o")):
        return base + "es"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + "s"


def english_words(sentence: tree.Sentence) -> list[str]:
    """Returns the words and commas of the sentence, without initial capital and final mark."""
    if isinstance(sentence, tree.Coordination):
        first, second = _declarative(sentence.first), _declarative(sentence.second)
        return [*first, ",", sentence.conjunction.english, *second]
    if isinstance(sentence, tree.Question):
        return _question(sentence)
    declarative = _declarative(sentence.clause)
    if sentence.front is None:
        return declarative
    if isinstance(sentence.front, tree.Subordinate):
        return [*_subordinate(sentence.front), ",", *declarative]
    return [_adverbial(sentence.front), *declarative]


def _question(question: tree.Question) -> list[str]:
    clause = question.clause
    if question.asked == "subject":
        return _declarative(clause)
    auxiliary, verbal = _verb_group(clause, inverted=True)
    moved = clause.object if question.asked == "object" else None
    # "where (direction)" is another word in German only
    asked = [_nominal(moved, subject=False)] if moved else question.asked.split(" ")[:1]
    negation = ["not"] if clause.negated else []
    head = [*asked, auxiliary, _subject(clause), *negation]
    return [*head, *_predicate(clause, verbal, moved)]


def _declarative(clause: tree.Clause, moved: tree.Moved = None) -> list[str]:
    auxiliary, verbal = _verb_group(clause, inverted=False)
    if clause.negated:
        auxiliary = "cannot" if auxiliary == "can" else f"{auxiliary} not"
    return [_subject(clause), auxiliary, *_predicate(clause, verbal, moved)]


def _subject(clause: tree.Clause) -> str:
    if clause.verb.frame == "existential":
        return "there"
    return _nominal(clause.subject, subject=True)


def _verb_group(clause: tree.Clause, inverted: bool) -> tuple[str, list[str]]:
    """Returns the finite auxiliary ("" for none) and the verb's words that follow it."""
    verb, tense, modal = clause.verb, clause.tense, clause.modal
    agreeing = clause.object if verb.frame == "existential" else clause.subject
    person, plural = agreeing.person, agreeing.plural
    if modal and "lexical" not in modal.features:
        return (modal.past if tense == "past" else modal.english), [verb.base]
    if tense == "perfect":
        return present("have", person, plural), [verb.participle]
    if modal:
        base, past = modal.english.removesuffix(" to"), modal.past.removesuffix(" to")
        rest = ["to", verb.base]
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
    stranded = "movable" in clause.verb.features and isinstance(kept, lexicon.Pronoun)
    if not stranded:
        words.append(clause.verb.particle)
    words += [_nominal(part, subject=False) for part in (clause.recipient, kept) if part]
    if stranded:
        words.append(clause.verb.particle)
    if clause.predicate:
        words.append(_predicative(clause.predicate))
    adverbials = (clause.manner, clause.complement, clause.place, clause.circumstance)
    words += [_adverbial(part) for part in adverbials if part and part is not moved]
    if clause.tail:
        comma = [","] if "english-comma" in clause.tail.conjunction.features else []
        words += [*comma, *_subordinate(clause.tail)]
    return words


def _subordinate(subordinate: tree.Subordinate) -> list[str]:
    conjunction, clause = subordinate.conjunction, subordinate.clause
    if "infinitive" in conjunction.features:
        return [conjunction.english, *_predicate(clause, [clause.verb.base])]
    if conjunction.english in ("that", "whether"):  # the particle of the verb that requires it
        return _declarative(clause)
    return [conjunction.english, *_declarative(clause)]


def _predicative(predicate: lexicon.Adjective | tree.Comparison | tree.NounPhrase) -> str:
    if isinstance(predicate, lexicon.Adjective):
        return predicate.english
    if isinstance(predicate, tree.NounPhrase):
        return _noun_phrase(predicate)
    standard = _noun_phrase(predicate.standard)
    if predicate.equal:
        return f"as {predicate.adjective.english} as {standard}"
    return f"{predicate.adjective.comparative} than {standard}"


def _adverbial(adverbial: tree.Adverbial) -> str:
    if isinstance(adverbial, tree.PrepositionalPhrase):
        return f"{adverbial.preposition.english} {_nominal(adverbial.nominal, subject=False)}"
    return adverbial.english


def _nominal(nominal: tree.Nominal, subject: bool) -> str:
    who = "who" if subject else "whom"
    match nominal:
        case tree.NounPhrase():
            return _noun_phrase(nominal)
        case lexicon.Pronoun():
            return nominal.english if subject else nominal.english_object
        case lexicon.Name():
            return nominal.name
        case tree.Interrogative():
            return who if nominal.is_person else "what"
        case tree.RelativePronoun():
            return who if nominal.noun.is_person else "which"


def _noun_phrase(phrase: tree.NounPhrase) -> str:
    words = [number_word(phrase.number)] if phrase.number else []
    if phrase.adjective:
        words.append(phrase.adjective.english)
    words.append(phrase.noun.english_plural if phrase.plural else phrase.noun.english)
    words.insert(0, _article(phrase, words[0]))
    if phrase.relative:
        words += _relative(phrase.relative)
    return " ".join(filter(None, words))


def _article(phrase: tree.NounPhrase, following: str) -> str:
    """Returns the determiner or the possessor: an, these, Peter's, the teachers'."""
    owner, determiner = phrase.possessor, phrase.determiner
    if owner:
        text = _nominal(owner, subject=True)
        return text + ("'" if owner.plural and text.endswith("s") else "'s")
    if determiner.english == "a":
        word = following.partition(" ")[0]
        return _ARTICLE_EXCEPTIONS.get(word) or ("an" if word[0] in "aeiou" else "a")
    return determiner.english_plural if phrase.plural else determiner.english


def _relative(clause: tree.Clause) -> list[str]:
    """Returns a relative clause: who reads the book, whom the girl helps, in which he lives."""
    if isinstance(clause.subject, tree.RelativePronoun):
        return _declarative(clause)
    if isinstance(clause.object, tree.RelativePronoun):
        return [_nominal(clause.object, subject=False), *_declarative(clause, clause.object)]
    return [_adverbial(clause.complement), *_declarative(clause, clause.complement)]
