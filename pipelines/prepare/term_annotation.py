"""Annotates words and phrases of a source with their translations in the reference.

A model that is trained on such pairs learns to use a terminology: it copies the translation that is
written into its source, and inflects it to fit (Dinu et al. 2019; Bergmanis and Pinnis 2021, who
annotate random words instead of those of a dictionary). No dictionary and no lemmatizer is needed:
IBM model 1 aligns the words of a pair, and words that begin alike count as forms of one stem.
"""

import collections
import itertools
import random
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from keras_transformer.core.vocabulary.terms import MIN_STEM, Term, have_one_stem
from pipelines.prepare.ibm_model_1 import Row, translation_table
from pipelines.prepare.word_pairs import FIRST_WORD, RARE, frequent_words, ids_of, punctuation
from pipelines.sources.source import Pair

# How many terms a pair gets, and how many words a term has, each drawn from its list.
_COUNTS = (1, 1, 1, 2, 2, 3)
_LENGTHS = (1, 1, 1, 1, 2, 3)
_MOST_TARGET_WORDS = 4  # in the translation of a term
# The most frequent words of the source, such as "the", do not begin or end a term: so many, but at
# most this share of all words.
_COMMON_WORDS = 50
_COMMON_SHARE = 0.1
_MIN_OCCURRENCES = 2  # fewer: all these words are one word for the alignment
_MIN_PROBABILITY = 0.1  # of a link, in both directions
# The probability that a target word is replaced by another of its forms, if there is one, so that a
# model learns to inflect terms as well as to copy them.
_INFLECTED_SHARE = 0.5
# The probability that a term is replaced by other words of the source language. A model then needs
# the target, which it could otherwise guess from the source, and learns to trust it (Ailem et al.
# 2021 replace terms by a mask).
_REPLACED_SHARE = 0.5

# In text, noncharacters, which Unicode reserves for such internal use, stand for TERM_MARKS.
_BEGIN, _AS, _END = "\ufdd0", "\ufdd1", "\ufdd2"
_marked = re.compile(f"{_BEGIN}([^{_BEGIN}{_AS}{_END}]+){_AS}([^{_BEGIN}{_AS}{_END}]+){_END}")
_word = re.compile(r"\S+")


class _Word(NamedTuple):
    """A word of a text, without punctuation around it."""

    text: str
    start: int
    end: int


class _Phrase(NamedTuple):
    """Words of a source and of its target that translate each other: two ranges of words."""

    source: range
    target: range


class TermLexicon:
    """A dictionary of a language pair, learned from its pairs.

    Args:
        pairs: sentence pairs; for large text a sample (`word_pairs.sample_step`).

    Languages without spaces between words have no terms.
    """

    def __init__(self, pairs: Iterable[Pair]):
        sides = [(words_of(source), words_of(target)) for source, target in pairs]
        sides = [(source, target) for source, target in sides if source and target]
        sources = [source for source, _ in sides]
        targets = [target for _, target in sides]
        source_words = frequent_words(sources, _MIN_OCCURRENCES)
        target_words = frequent_words(targets, _MIN_OCCURRENCES)
        self._source_ids = {word: id_ for id_, word in enumerate(source_words, start=FIRST_WORD)}
        self._target_ids = {word: id_ for id_, word in enumerate(target_words, start=FIRST_WORD)}
        common = min(_COMMON_WORDS, int(len(source_words) * _COMMON_SHARE))
        self._common = set(source_words[:common])
        self._other_words = source_words[common:]
        self._forms = _forms(target_words)
        self._translations: dict[int, dict[int, float]] = {}
        self._origins: dict[int, dict[int, float]] = {}
        if sides:
            source_rows = ids_of(sources, self._source_ids)
            target_rows = ids_of(targets, self._target_ids)
            numbers = [FIRST_WORD + len(source_words), FIRST_WORD + len(target_words)]
            self._translations = _likely(source_rows, target_rows, *numbers)
            self._origins = _likely(target_rows, source_rows, *reversed(numbers))

    def terms(self, pair: Pair) -> list[Term]:
        """Finds words and phrases of a source, and their translations in its target.

        They overlap: a phrase also contains shorter ones.
        """
        source, target = pair
        source_words, target_words = _words(source), _words(target)
        return [
            Term(
                start=source_words[phrase.source[0]].start,
                end=source_words[phrase.source[-1]].end,
                target=target[
                    target_words[phrase.target[0]].start : target_words[phrase.target[-1]].end
                ],
            )
            for phrase in self._phrases(source_words, target_words)
        ]

    def annotated(self, pair: Pair, generator: random.Random) -> Pair:
        """Annotates one to three terms in a source; a pair without any is returned unchanged."""
        source, target = pair
        by_length = collections.defaultdict(list)
        for term in self.terms(pair):
            by_length[len(words_of(source[term.start : term.end]))].append(term)
        chosen: list[Term] = []
        for _ in range(generator.choice(_COUNTS)):
            candidates = by_length[generator.choice(_LENGTHS)] or by_length[1]
            if candidates:
                term = generator.choice(candidates)
                if all(term.end <= other.start or term.start >= other.end for other in chosen):
                    chosen.append(term)
        chosen.sort()
        annotated = marked(
            source,
            [term._replace(target=self._inflected(term.target, generator)) for term in chosen],
        )
        return self._replaced(annotated, generator), target

    def _replaced(self, annotated: str, generator: random.Random) -> str:
        """Replaces some of the terms in an annotated source by random words."""

        def replaced(match: re.Match) -> str:
            phrase = match[1]
            if generator.random() < _REPLACED_SHARE:
                phrase = " ".join(generator.choice(self._other_words) for _ in phrase.split())
            return f"{_BEGIN}{phrase}{_AS}{match[2]}{_END}"

        return _marked.sub(replaced, annotated)

    def _inflected(self, phrase: str, generator: random.Random) -> str:
        """Replaces some of the words of a phrase by other forms."""
        parts = []
        end = 0
        for word in _words(phrase):
            forms = self._forms.get(word.text, ())
            is_inflected = forms and generator.random() < _INFLECTED_SHARE
            parts += [
                phrase[end : word.start],
                generator.choice(forms) if is_inflected else word.text,
            ]
            end = word.end
        return "".join(parts)

    def _phrases(self, sources: Sequence[_Word], targets: Sequence[_Word]) -> list[_Phrase]:
        """Finds phrases whose words are only aligned to each other, as in phrase-based models."""
        links = self._links(sources, targets)
        phrases = []
        for start, length in itertools.product(range(len(sources)), sorted(set(_LENGTHS))):
            source = range(start, start + length)
            aligned = [links[i] for i in source if i in links]
            if source[0] not in links or source[-1] not in links:
                continue
            if {sources[source[0]].text, sources[source[-1]].text} & self._common:
                continue
            target = range(min(aligned), max(aligned) + 1)
            is_closed = all(i in source for i, j in links.items() if j in target)
            if is_closed and len(target) <= _MOST_TARGET_WORDS:
                phrases.append(_Phrase(source, target))
        return phrases

    def _links(self, sources: Sequence[_Word], targets: Sequence[_Word]) -> dict[int, int]:
        """Aligns words that are each other's most probable translation in the pair."""
        source_ids = [self._source_ids.get(word.text, RARE) for word in sources]
        target_ids = [self._target_ids.get(word.text, RARE) for word in targets]
        links = {}
        for i, source_id in enumerate(source_ids):
            j = _best(self._translations.get(source_id, {}), target_ids)
            if j is not None and _best(self._origins.get(target_ids[j], {}), source_ids) == i:
                links[i] = j
        return links


def _best(probabilities: dict[int, float], ids: Sequence[int]) -> int | None:
    """Returns the position of the most probable id, the first if it occurs twice; None if none."""
    known = [position for position, id_ in enumerate(ids) if id_ in probabilities]
    return max(known, key=lambda position: probabilities[ids[position]], default=None)


def _likely(
    sources: list[np.ndarray], targets: list[np.ndarray], num_sources: int, num_targets: int
) -> dict[int, dict[int, float]]:
    """Returns source word -> its probable target words and their probabilities."""
    targets = [target[1:] for target in targets]  # nothing has to explain an empty word
    table = translation_table(sources, targets, num_sources, num_targets)
    return {id_: _probable(row) for id_, row in table.items() if id_ >= RARE}


def _probable(row: Row) -> dict[int, float]:
    pairs = zip(row.target_ids.tolist(), row.probabilities.tolist(), strict=True)
    return {id_: probability for id_, probability in pairs if probability >= _MIN_PROBABILITY}


def _forms(words: Iterable[str]) -> dict[str, list[str]]:
    """Returns word -> the other words that share its stem, if there are any."""
    by_stem = collections.defaultdict(list)
    for word in words:
        by_stem[word[:MIN_STEM]].append(word)
    forms = {}
    for group in by_stem.values():
        for word in group:
            others = [other for other in group if other != word and have_one_stem(word, other)]
            if others:
                forms[word] = others
    return forms


def words_of(text: str) -> list[str]:
    """Returns the words of a text, without punctuation around them."""
    return [word.text for word in _words(text)]


def _words(text: str) -> list[_Word]:
    """Splits a text at spaces, and drops punctuation around words."""
    words = []
    for match in _word.finditer(text):
        left = match[0].lstrip(punctuation())
        word = left.rstrip(punctuation())
        if any(map(str.isalpha, word)):
            start = match.end() - len(left)
            words.append(_Word(word, start, start + len(word)))
    return words


def marked(text: str, terms: Sequence[Term]) -> str:
    """Writes terms, which are in order, into a text; `unmarked` reads them."""
    parts = []
    end = 0
    for term in terms:
        parts += [
            text[end : term.start],
            _BEGIN,
            text[term.start : term.end],
            _AS,
            term.target,
            _END,
        ]
        end = term.end
    return "".join([*parts, text[end:]])


def unmarked(text: str) -> tuple[str, list[Term]]:
    """Returns a text without the terms that `marked` wrote, and the terms."""
    if _BEGIN not in text:
        return text, []
    parts = []
    terms = []
    length = end = 0
    for match in _marked.finditer(text):
        before, phrase = text[end : match.start()], match[1]
        start = length + len(before)
        length = start + len(phrase)
        terms.append(Term(start, length, match[2]))
        parts += [before, phrase]
        end = match.end()
    return "".join([*parts, text[end:]]), terms
