"""Random noun phrases, places and adverbials that make sense."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from random import Random

from pipelines.grammar import lexicon, tree
from pipelines.grammar.entries import Noun, Preposition

# Nobody says "my forest" or "the baker's rain".
UNOWNED = ("person", "open", "waterside", "area", "cause", "opening", "plant", "event")
POSSESSIVES = ("my", "his", "her", "our", "their")
_MASS = ("stuff", "drink", "cause")
_SINGULAR_ONLY, _PLURAL_ONLY = ("a", "every"), ("all", "many", "some", "several", "", "number")


def weighted(listing: str) -> tuple[list[str], list[int]]:
    """Returns the names ("" for "bare") and their cumulative weights, for rng.choices."""
    fields = [field.rsplit(" ", 1) for field in listing.split(", ")]
    names = [name.replace("bare", "") for name, _ in fields]
    return names, list(accumulate(int(weight) for _, weight in fields))


# How often each determiner is drawn, by the phrase's role.
_DETERMINERS = {
    "subject": weighted(
        "the 46, a 12, this 8, owned 14, every 4, no 2, all 3, many 3, some 2, several 2, "
        "number 3, bare 3"
    ),
    "object": weighted(
        "the 36, a 26, this 6, owned 12, possessor 5, many 2, some 2, several 2, number 5, bare 4"
    ),
    "definite": weighted("the 62, this 10, owned 18, possessor 10"),
    "negatable": weighted("the 38, this 6, owned 12, a 34, bare 10"),
    "indefinite": weighted("a 50, many 8, some 5, several 5, number 15, no 12"),
    "antecedent": weighted("the 75, a 20, all 5"),
    "kin": weighted("owned 85, possessor 15"),
    "mass": weighted("the 45, bare 40, this 7, owned 8"),
    "which": weighted("which 75, how many 25"),
}
_NUMBERS = tuple(range(2, 13)) * 8 + tuple(range(13, 100))


def _before_nouns(kind: str) -> list[tuple[Preposition, Noun]]:
    """Returns the nouns of the lexicon, in order, each with its prepositions of this kind."""
    prepositions = lexicon.PREPOSITIONS_BY_KIND[kind]
    return [
        (entry, noun) for noun in lexicon.NOUNS for entry in prepositions if noun in entry.nouns
    ]


# Pairs of a preposition and a noun: places, directions, directions for vehicles, and occasions.
LOCATED = [pair for pair in _before_nouns("place") if pair[1].kind != "furniture"]
DIRECTED = _before_nouns("direction")
DRIVEN = [
    (entry, noun)
    for entry, noun in DIRECTED
    if entry.english in ("to", "through", "around", "onto")
    and noun.kind not in ("room", "plant")
    and noun.english != "roof"
]
_DATED = [
    (entry, noun) for entry in lexicon.PREPOSITIONS_BY_KIND["occasion"] for noun in entry.nouns
]
# The prepositions of place for each noun.
LOCATIVES = {
    noun: [entry for entry in lexicon.PREPOSITIONS_BY_KIND["place"] if noun in entry.nouns]
    for noun in lexicon.NOUNS
}


class PhraseSampler:
    """Draws noun phrases and phrases with a preposition."""

    def __init__(self, rng: Random) -> None:
        self.rng, self.choice, self.random = rng, rng.choice, rng.random

    def noun_phrase(self, noun: Noun, role: str, described: float = 0.43) -> tree.NounPhrase:
        """Returns a phrase with the noun, and a determiner that suits its role in the sentence."""
        choice = self._determiner_name(noun, role)
        plural = self._is_plural(noun, choice)
        adjectives = lexicon.ADJECTIVES_OF[noun.kind]
        adjective = self.choice(adjectives) if adjectives and self.random() < described else None
        bare = lexicon.BARE
        if choice == "possessor":
            return tree.NounPhrase(noun, bare, plural, adjective, None, self._possessor(noun))
        if choice == "number":
            return tree.NounPhrase(noun, bare, plural, adjective, self.choice(_NUMBERS))
        if choice == "owned":
            choice = self.choice(POSSESSIVES)
        return tree.NounPhrase(noun, lexicon.DETERMINER[choice], plural, adjective)

    def _determiner_name(self, noun: Noun, role: str) -> str:
        role = "kin" if noun.kind == "kin" else "mass" if noun.kind in _MASS else role
        names, cumulative = _DETERMINERS[role]
        choice = self.rng.choices(names, cum_weights=cumulative)[0]
        if choice in ("owned", "possessor") and noun.kind in UNOWNED:
            return "the"
        singular = noun.kind == "cause" or (role != "mass" and not noun.german_plural)
        return "the" if singular and choice in _PLURAL_ONLY else choice

    def _is_plural(self, noun: Noun, choice: str) -> bool:
        if not noun.german_plural or choice in _SINGULAR_ONLY:
            return False
        return choice in _PLURAL_ONLY or choice == "how many" or self.random() < 0.22

    def _possessor(self, owned: Noun) -> tree.Nominal:
        if owned.kind == "kin" or self.random() < 0.35:
            return self.choice(lexicon.NAMES)
        if self.random() < 0.4:
            noun = self.choice(lexicon.NOUNS_BY_KIND["kin"])
            return tree.NounPhrase(noun, lexicon.DETERMINER[self.choice(POSSESSIVES)])
        noun = self.choice(lexicon.NOUNS_BY_KIND["person"])
        return tree.NounPhrase(noun, lexicon.DETERMINER["the"], self.random() < 0.2)

    def participant(self, nouns: Sequence[Noun], role: str) -> tree.Nominal:
        """Returns a subject or object; people may also be a pronoun or a name."""
        noun = self.choice(nouns)
        if noun.is_person and lexicon.NOUN["teacher"] in nouns:
            chance = self.random()
            if chance < 0.28:
                return self.choice(lexicon.PRONOUNS)
            if chance < 0.38:
                return self.choice(lexicon.NAMES)
        return self.noun_phrase(noun, role)

    def somebody(self) -> tree.Nominal:
        """Returns a short subject for an embedded clause."""
        if self.random() < 0.6:
            return self.choice(lexicon.PRONOUNS)
        return self.noun_phrase(self.choice(lexicon.PEOPLE), "definite", described=0.15)

    def landmark(
        self, preposition: Preposition, noun: Noun, described: float = 0.25, direction: bool = False
    ) -> tree.PrepositionalPhrase:
        """Returns the preposition with a definite phrase for the noun: in the old house."""
        phrase = self.noun_phrase(noun, "definite", described)
        return tree.PrepositionalPhrase(preposition, phrase, direction)

    def place_at(self, noun: Noun) -> tree.PrepositionalPhrase:
        """Returns a phrase for being at a given place."""
        return self.landmark(self.choice(LOCATIVES[noun]), noun)

    def company(self) -> tree.PrepositionalPhrase:
        """Returns a phrase for being with or without somebody."""
        preposition = lexicon.PREPOSITION["with" if self.random() < 0.7 else "without"]
        noun = self.choice(preposition.nouns + lexicon.NOUNS_BY_KIND["kin"])
        return self.landmark(preposition, noun, described=0.2)

    def occasion(self) -> tree.PrepositionalPhrase:
        """Returns a time or cause: before the wedding, despite the rain."""
        preposition, noun = self.choice(_DATED)
        phrase = self.noun_phrase(noun, "definite", described=0.15)
        return tree.PrepositionalPhrase(preposition, replace(phrase, plural=False))
