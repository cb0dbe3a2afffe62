"""The split of each sentence pair, and the stream of pairs in a split.

The hold-out rule: HELD_OUT lists (German lemma, construction) combinations. A pair that uses at
least one of them belongs to "test_compositional" and to no other split; the other splits have the
word in other constructions, and the construction with other words. The words are inflected
regularly, so that the held-out forms follow from those in training. The constructions are

    perfect      the verb as the participle of a perfect
    subordinate  the verb as the finite verb at the end of a subordinate or relative clause
    question     the verb in a main-clause question
    modal        the verb as the infinitive after a modal
    dative       the noun in the dative, singular or plural
    number       the noun after a cardinal number
    kein         the adjective after kein
    comparative  the adjective compared with "als"

The other pairs are assigned by a digest of the German sentence. English determines German, so equal
English sentences share a split as well, and any two splits are disjoint in both languages.
"""

from collections.abc import Iterator
from hashlib import blake2b
from random import Random
from typing import NamedTuple

from pipelines.grammar.english import english_words
from pipelines.grammar.german_syntax import GermanWriter
from pipelines.grammar.sentences import random_sentence
from pipelines.grammar.tree import Question, Sentence

SPLITS = ("train", "validation", "test", "test_compositional")

_HELD_OUT = {
    "perfect": "kochen putzen tanzen besuchen danken",
    "subordinate": "trinken arbeiten bauen abholen zeigen kaufen",
    "question": "schlafen hören grüßen brauchen",
    "modal": "lachen schreiben schicken",
    "dative": "Lehrer Schwester Hund Bibliothek Park Freund",
    "number": "Lampe Brief Frau",
    "kein": "rot neu frisch interessant klein",
    "comparative": "klein reich billig",
}
HELD_OUT = frozenset(
    (lemma, construction) for construction, lemmas in _HELD_OUT.items() for lemma in lemmas.split()
)
MIN_WORDS, MAX_WORDS = 4, 18  # of an English sentence


class Pair(NamedTuple):
    """Both sentences, and the (German lemma, construction) combinations they use."""

    english: str
    german: str
    uses: set[tuple[str, str]]


def realise(sentence: Sentence) -> Pair:
    """Writes the tree's sentence in both languages."""
    writer = GermanWriter()
    end = "?" if isinstance(sentence, Question) else "."
    english = _punctuate(english_words(sentence), end)
    german = _punctuate(writer.words(sentence), end)
    return Pair(english, german, writer.uses)


def _punctuate(words: list[str], end: str) -> str:
    """Joins words and commas, without double commas or a comma at the end."""
    text = " ".join(filter(None, words)).replace(" ,", ",").replace(",,", ",").removesuffix(",")
    return text[0].upper() + text[1:] + end


def split_of(pair: Pair) -> str:
    """Returns the only split in which the pair may occur: one pair in ten is in "test"."""
    if not HELD_OUT.isdisjoint(pair.uses):
        return "test_compositional"
    return {0: "validation", 1: "test"}.get(_digest(pair.german) % 10, "train")


def sentence_pairs(split: str, count: int, seed: int = 1) -> Iterator[tuple[str, str]]:
    """Yields `count` distinct (English, German) pairs of the split, always the same for a seed.

    A shorter stream is the beginning of a longer one. One integer per pair is kept in memory.
    """
    rng = Random(f"{seed} {split}")
    seen: set[int] = set()
    while len(seen) < count:
        pair = realise(random_sentence(rng))
        words = pair.english.count(" ") + 1
        if MIN_WORDS <= words <= MAX_WORDS and split_of(pair) == split:
            digest = _digest(pair.english)
            if digest not in seen:
                seen.add(digest)
                yield pair.english, pair.german


def _digest(sentence: str) -> int:
    """Returns an eight-byte number that is the same in every process and Python version."""
    return int.from_bytes(blake2b(sentence.encode(), digest_size=8).digest(), "big")
