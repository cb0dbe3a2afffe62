"""How many different pairs the grammar has, counted from its tables."""

from pipelines.grammar import lexicon, tree
from pipelines.grammar.entries import ACCUSATIVE, Noun, Verb
from pipelines.grammar.sample_phrases import UNOWNED

_DETERMINERS = ("the", "this", "my", "his", "her", "our")
_VERB_FORMS = 4  # present, past, perfect and will


def counted_phrases(noun: Noun) -> list[tree.NounPhrase]:
    """the, this, my, his, her, our, in both numbers, with each adjective of its kind or none."""
    plurals = (False, True) if noun.german_plural else (False,)
    return [
        tree.NounPhrase(noun, lexicon.DETERMINER[name], plural, adjective)
        for name in (("the", "this") if noun.kind in UNOWNED else _DETERMINERS)
        for plural in plurals
        for adjective in (None, *lexicon.ADJECTIVES_OF[noun.kind])
    ]


def counted_verbs() -> tuple[Verb, ...]:
    """The transitive verbs with different presents and pasts, whose clauses are counted."""
    verbs = lexicon.VERBS_BY_FRAME["transitive"]
    return tuple(verb for verb in verbs if verb.case == ACCUSATIVE and not verb.invariable)


def distinct_pairs_lower_bound() -> int:
    """The plain transitive statements: subject x verb x verb form x object, all spelled unlike.

    Nothing else is counted (no other modals, adverbials, questions, clauses ...), and of the noun
    phrases only those of `counted_phrases`, without possessors, numbers and relative clauses. A
    subject and an object with the same noun are left out, as they are in the corpus.
    """
    phrases = {noun: len(counted_phrases(noun)) for noun in lexicon.NOUNS}
    total = 0
    for verb in counted_verbs():
        subjects = [noun for noun in verb.subjects if noun.kind != "kin"]
        objects = [noun for noun in verb.objects if noun.kind not in ("kin", "cause")]
        pairs = sum(
            phrases[subject] * phrases[object]
            for subject in subjects
            for object in objects
            if subject is not object
        )
        total += pairs * _VERB_FORMS
    return total
