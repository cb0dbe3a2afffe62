"""How many different pairs the grammar has, counted from its tables."""

from pipelines.grammar.derivations import NounPhrase
from pipelines.grammar.entries import ACCUSATIVE, Noun, Verb
from pipelines.grammar.sample_clauses import OBJECTS, SUBJECTS
from pipelines.grammar.sample_phrases import ADJECTIVES_OF, UNOWNED
from pipelines.grammar.verbs import VERBS_BY_FRAME
from pipelines.grammar.words import DETERMINER

_DETERMINERS = ("the", "this", "my", "his", "her", "our")
_VERB_FORMS = 4  # present, past, perfect and will


def counted_phrases(noun: Noun) -> list[NounPhrase]:
    """the, this, my, his, her, our, in both numbers, with each adjective of its kind or none."""
    plurals = (False, True) if noun.german_plural else (False,)
    return [
        NounPhrase(noun, DETERMINER[name], plural, adjective)
        for name in (("the", "this") if noun.kind in UNOWNED else _DETERMINERS)
        for plural in plurals
        for adjective in (None, *ADJECTIVES_OF[noun.kind])
    ]


def counted_verbs() -> tuple[Verb, ...]:
    """The transitive verbs with different presents and pasts, whose clauses are counted."""
    return tuple(
        verb
        for verb in VERBS_BY_FRAME["transitive"]
        if verb.case == ACCUSATIVE and not verb.invariable
    )


def distinct_pairs_lower_bound() -> int:
    """The plain transitive statements: subject x verb x verb form x object, all spelled unlike.

    Nothing else is counted (no other modals, adverbials, questions, clauses ...), and of the noun
    phrases only those of `counted_phrases`, without possessors, numbers and relative clauses. A
    subject and an object with the same noun are left out, as they are in the corpus.
    """
    total = 0
    for verb in counted_verbs():
        subjects = [noun for noun in SUBJECTS[verb] if noun.kind != "kin"]
        objects = [noun for noun in OBJECTS[verb] if noun.kind not in ("kin", "cause")]
        pairs = sum(
            _size(subject) * _size(object)
            for subject in subjects
            for object in objects
            if subject is not object
        )
        total += pairs * _VERB_FORMS
    return total


def _size(noun: Noun) -> int:
    return len(counted_phrases(noun))
