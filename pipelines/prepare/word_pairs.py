"""Finds words that translate each other in parallel text, without a dictionary.

IBM model 1 is learned in both directions. Two words form a pair if each is the most probable
translation of the other.
"""

import functools
import itertools
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable

import numpy as np

from pipelines.prepare.ibm_model_1 import translation_table
from pipelines.sources.source import Pair

# From a larger corpus, every n-th pair is read, for at most this many.
_MAX_PAIRS = 200_000
# Words on either side: the most frequent ones, with at least this many occurrences.
_MAX_WORDS = 10_000
_MIN_OCCURRENCES = 5
# Minimum probability, for each of two words, of being translated by the other.
_MIN_PROBABILITY = 0.3
# Ids of the empty word, the source of words without a translation, and of rare words.
EMPTY, RARE, FIRST_WORD = 0, 1, 2


def sample_step(count: int) -> int:
    """Returns n such that every n-th of `count` pairs is enough to find words."""
    return 1 + (count - 1) // _MAX_PAIRS


def frequent_word_pairs(pairs: Iterable[Pair], most: int) -> list[Pair]:
    """Finds words that translate each other among the frequent words in parallel text.

    Words are separated by spaces, without surrounding punctuation, in their original case.
    Languages without spaces between words have none.

    Args:
        pairs: sentence pairs; for large text a sample (`sample_step`).
        most: maximum number of pairs of words.

    Returns:
        Pairs of words, the most frequent source words first.
    """
    source_sentences, target_sentences = [], []
    for source, target in pairs:
        words_of_source, words_of_target = _words(source), _words(target)
        if words_of_source and words_of_target:
            source_sentences.append(words_of_source)
            target_sentences.append(words_of_target)
    source_words = frequent_words(source_sentences, _MIN_OCCURRENCES)
    target_words = frequent_words(target_sentences, _MIN_OCCURRENCES)
    if not source_words or not target_words:
        return []
    sources = ids_of(source_sentences, _numbered(source_words))
    targets = ids_of(target_sentences, _numbered(target_words))
    best_targets = _best(sources, targets, len(source_words), len(target_words))
    best_sources = _best(targets, sources, len(target_words), len(source_words))
    word_pairs = []
    for index, word in enumerate(source_words):
        best = best_targets.get(index)
        if best is not None and best_sources.get(best) == index:
            word_pairs.append((word, target_words[best]))
    return word_pairs[:most]


@functools.cache
def punctuation() -> str:
    """Returns all Unicode punctuation marks and symbols."""
    characters = map(chr, range(sys.maxunicode + 1))
    return "".join(mark for mark in characters if unicodedata.category(mark)[0] in "PS")


def _words(text: str) -> list[str]:
    words = (part.strip(punctuation()) for part in text.split())
    return [word for word in words if any(map(str.isalpha, word))]


def frequent_words(sentences: list[list[str]], min_occurrences: int) -> list[str]:
    """Returns the most frequent words in order, ties alphabetically."""
    counts = Counter(itertools.chain.from_iterable(sentences))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return [word for word in ranked[:_MAX_WORDS] if counts[word] >= min_occurrences]


def _numbered(words: list[str]) -> dict[str, int]:
    return {word: number for number, word in enumerate(words, start=FIRST_WORD)}


def ids_of(sentences: list[list[str]], ids: dict[str, int]) -> list[np.ndarray]:
    """Returns each sentence's words as ids, after the empty word's id."""
    return [
        np.array([EMPTY, *(ids.get(word, RARE) for word in sentence)], np.int64)
        for sentence in sentences
    ]


def _best(
    sources: list[np.ndarray], targets: list[np.ndarray], num_sources: int, num_targets: int
) -> dict[int, int]:
    """Returns source word index -> index of its most probable target word."""
    table = translation_table(
        sources,
        [target[1:] for target in targets],  # nothing has to explain an empty word
        FIRST_WORD + num_sources,
        FIRST_WORD + num_targets,
    )
    best = {}
    for source_id, row in table.items():
        target_id = int(row.target_ids[0])
        is_sure = row.probabilities[0] >= _MIN_PROBABILITY
        if is_sure and source_id >= FIRST_WORD and target_id >= FIRST_WORD:
            best[source_id - FIRST_WORD] = target_id - FIRST_WORD
    return best
