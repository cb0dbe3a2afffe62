"""A lower bound on the number of distinct pairs, counted from the grammar's tables."""

from pipelines.grammar import lexicon, tree
from pipelines.grammar.entries import ACCUSATIVE, Noun, Verb
from pipelines.grammar.sample_phrases import UNOWNED

_DETERMINERS = ("the", "this", "my", "his", "her", "our")
_VERB_FORMS = 4  # present, past, perfect and will


def counted_phrases(noun: Noun) -> list[tree.NounPhrase]:
    """Returns phrases with the, this, my, his, her and our, in both numbers.

    Each comes without an adjective, and with each adjective for nouns of this kind.
    """
    plurals = (False, True) if noun.german_plural else (False,)
    return [
        tree.NounPhrase(noun, lexicon.DETERMINER[name], plural, adjective)
        for name in (("the", "this") if noun.kind in UNOWNED else _DETERMINERS)
        for plural in plurals
        for adjective in (None, *lexicon.ADJECTIVES_OF[noun.kind])
    ]


def counted_verbs() -> tuple[Verb, ...]:
    """Returns the verbs whose clauses are counted: transitive, with distinct present and past."""
    verbs = lexicon.VERBS_BY_FRAME["transitive"]
    return tuple(verb for verb in verbs if verb.case == ACCUSATIVE and not verb.invariable)


def distinct_pairs_lower_bound() -> int:
    """Counts plain transitive statements: subject x verb x verb form x object, all distinct.

    Nothing else is counted (no other modals, adverbials, questions, clauses, ...), and the only
    noun phrases are those of `counted_phrases`, without possessors, numbers and relative clauses.
    Pairs of a subject and an object with the same noun are excluded, as in the corpus.
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
