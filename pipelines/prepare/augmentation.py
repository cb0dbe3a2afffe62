"""Adds modified copies of training pairs, so that a model learns text as users write it.

Training text mostly consists of whole, clean sentences. A model that has seen nothing else fails on
capitals, titles, typos, sentences without a full stop and single words. A small share of such pairs
helps (Bogoychev et al. 2023, arXiv 2311.14838). In the same way, a model learns to use a
terminology from copies with terms in their source (term_annotation.py).

Copies are records, the same in every epoch, so that an epoch is a function of the files.
(OpusTrainer, Bogoychev et al. 2023, arXiv 2311.14838, samples new ones in each epoch.)
"""

import dataclasses
import hashlib
import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Annotated, NamedTuple

from absl import logging

from keras_transformer.support.errors import require
from keras_transformer.support.fields import Rule
from keras_transformer.support.progress import progress_bar
from keras_transformer.support.text_changes import (
    in_capitals,
    in_title_case,
    with_typos,
    without_final_stop,
)
from pipelines.prepare.term_annotation import TermLexicon
from pipelines.prepare.word_pairs import frequent_word_pairs, sample_step
from pipelines.sources.source import DerivedSource, Pair, Source, Survey

# Copies of pairs in this order, then one with terms; after all pairs, pairs of single words.
_COPIES = ("upper", "title", "typos", "no_stop")
KINDS = (*_COPIES, "terms", "words")
_Share = Annotated[float, Rule("be above 0 and at most 1", lambda share: 0 < share <= 1)]
AugmentShares = Annotated[
    dict[str, _Share],
    Rule(f"be shares of {', '.join(KINDS)}", lambda shares: set(shares) <= set(KINDS)),
]
_DRAWN_BYTES = 8


class Augmentation(NamedTuple):
    """A source with further training pairs."""

    source: Source
    survey: Survey  # the source's survey
    added: dict[str, int]  # kind -> number of further pairs


def augment(
    source: Source,
    survey: Survey,
    shares: dict[str, float],
    seed: int,
    visit: Callable[[Pair], None] | None = None,
) -> Augmentation:
    """Adds pairs to a source's training pairs, which are read once, or twice to find terms.

    The choice of copies and their typos depends only on the pairs and the seed, so the result is
    the same for any division of the work. Equal pairs have equal copies.

    Args:
        source: sentence pairs.
        survey: the source's survey.
        shares: kind -> the number of further pairs, as a share of the training pairs:

            - "upper": copies in capitals;
            - "title": copies with a capital at the beginning of each word;
            - "typos": copies whose source has typos, see `text_changes.with_typos`;
            - "no_stop": copies without the full stop at the end;
            - "terms": copies whose source contains translations of one to three of its words or
              phrases, see term_annotation.py;
            - "words": pairs of single words that translate each other in the training pairs, the
              most frequent first; see `word_pairs.frequent_word_pairs`.

            Copies with an unchanged source are left out, so there may be fewer, also of words.
        seed: determines the copies.
        visit: called with each training pair in the result, in order, but not with copies with
            terms, whose text is known.

    Raises:
        InputError: for trees, which are not text.
    """
    rule = "must not be given for trees"
    require(source.task == "translation", "augment", rule, ",".join(shares))
    count = survey.counts["train"]
    reading = _Reading(shares, seed, visit)
    with progress_bar(
        desc="augmenting train", total=count, unit=" pairs", mininterval=1
    ) as reading.bar:
        if source.target_languages:
            for part, size in zip(source.parts("train"), survey.part_sizes, strict=True):
                reading.read_parts([part], size)
        else:
            reading.read_parts(source.parts("train"), count)
    added = {kind: reading.added[kind] for kind in shares}
    for kind, number in added.items():
        logging.info("augment=%s adds %d pairs to %d", kind, number, count)
    counts = survey.counts | {"train": sum(reading.part_sizes)}
    survey = dataclasses.replace(survey, counts=counts, part_sizes=reading.part_sizes)
    return Augmentation(AugmentedSource(source, shares, seed, reading.additions), survey, added)


class _PartAdditions(NamedTuple):
    """What is added to a part of the training text, besides changed copies."""

    lexicon: TermLexicon  # finds terms in its pairs
    words: list[Pair]  # pairs of words that follow it


class _Reading:
    """Reads the parts of a source, and determines what to add to them."""

    def __init__(self, shares: dict[str, float], seed: int, visit: Callable[[Pair], None] | None):
        self.bar = None  # shows the progress
        self.added = Counter()
        self.part_sizes: list[int] = []
        self.additions: list[_PartAdditions] = []
        self._shares = shares
        self._seed = seed
        self._visit = visit

    def read_parts(self, parts: list[Source], count: int) -> None:
        """Reads parts with `count` pairs in total, followed by their words."""
        words_share = self._shares.get("words", 0)
        step = sample_step(count)
        lexicon = self._learned_lexicon(parts, step)
        sample = []
        number = 0
        for part in parts:
            size = 0
            for pair in part.pairs("train"):
                self.bar.update()
                if words_share > 0 and number % step == 0:
                    sample.append(pair)
                number += 1
                size += 1
                self._pass_on(pair)
                for kind, copy in changed_copies(pair, self._shares, self._seed):
                    self.added[kind] += 1
                    size += 1
                    self._pass_on(copy)
                for _ in copies_with_terms(pair, self._shares, self._seed, lexicon):
                    self.added["terms"] += 1
                    size += 1
            self.part_sizes.append(size)
            self.additions.append(_PartAdditions(lexicon, []))
        if sample:
            words = frequent_word_pairs(sample, most=int(words_share * count))
            self.added["words"] += len(words)
            self.part_sizes[-1] += len(words)
            self.additions[-1] = _PartAdditions(lexicon, words)
            for pair in words:
                self._pass_on(pair)

    def _learned_lexicon(self, parts: list[Source], step: int) -> TermLexicon:
        """Reads every `step`-th pair of parts to learn which words translate each other."""
        if "terms" not in self._shares:
            return TermLexicon([])
        pairs = itertools.chain.from_iterable(part.pairs("train") for part in parts)
        return TermLexicon(itertools.islice(pairs, 0, None, step))

    def _pass_on(self, pair: Pair) -> None:
        if self._visit is not None:
            self._visit(pair)


def changed_copies(pair: Pair, shares: dict[str, float], seed: int) -> Iterator[tuple[str, Pair]]:
    """Yields the kinds and the copies drawn for a pair."""
    drawn = _drawn(pair, seed)
    for kind in _COPIES:
        if drawn[kind] < shares.get(kind, 0):
            copy = changed(pair, kind, seed)
            if copy[0] != pair[0]:
                yield kind, copy


def copies_with_terms(
    pair: Pair, shares: dict[str, float], seed: int, lexicon: TermLexicon
) -> Iterator[Pair]:
    """Yields the copy with terms that is drawn for a pair, if any."""
    share = shares.get("terms", 0)
    if share == 0:
        return
    content = "\n".join(["terms", str(seed), *pair]).encode()
    drawn = int.from_bytes(hashlib.blake2b(content, digest_size=_DRAWN_BYTES).digest(), "big")
    if drawn / 256**_DRAWN_BYTES < share:
        copy = lexicon.annotated(pair, random.Random(drawn))
        if copy != pair:
            yield copy


def changed(pair: Pair, kind: str, seed: int) -> Pair:
    """Returns a pair in capitals, in title case, with source typos, or without full stops."""
    source, target = pair
    if kind == "typos":
        return with_typos(source, seed), target
    change = {"upper": in_capitals, "title": in_title_case, "no_stop": without_final_stop}[kind]
    return change(source), change(target)


def _drawn(pair: Pair, seed: int) -> dict[str, float]:
    """Returns a number in [0, 1) for each kind of copy. Hashes are faster than generators."""
    content = "\n".join([str(seed), *pair]).encode()
    digest = hashlib.blake2b(content, digest_size=_DRAWN_BYTES * len(_COPIES)).digest()
    numbers = {}
    for number, kind in enumerate(_COPIES):
        part = digest[number * _DRAWN_BYTES : (number + 1) * _DRAWN_BYTES]
        numbers[kind] = int.from_bytes(part, "big") / 256**_DRAWN_BYTES
    return numbers


class AugmentedSource(DerivedSource):
    """A source with modified copies after each training pair, and words after each part.

    Args:
        source: the source.
        shares, seed: as for `augment`.
        additions: for each training part, what else is added to it.
    """

    def __init__(
        self,
        source: Source,
        shares: dict[str, float],
        seed: int,
        additions: list[_PartAdditions],
    ):
        super().__init__(source)
        self._shares = shares
        self._seed = seed
        self._additions = additions

    def pairs(self, split: str) -> Iterator[Pair]:
        return self._augmented() if split == "train" else self._source.pairs(split)

    def _augmented(self) -> Iterator[Pair]:
        for part, additions in zip(self._source.parts("train"), self._additions, strict=True):
            for pair in part.pairs("train"):
                yield pair
                for _, copy in changed_copies(pair, self._shares, self._seed):
                    yield copy
                yield from copies_with_terms(pair, self._shares, self._seed, additions.lexicon)
            yield from additions.words

    def parts(self, split: str) -> list[Source]:
        parts = self._source.parts(split)
        if split != "train":
            return parts
        return [
            AugmentedSource(part, self._shares, self._seed, [additions])
            for part, additions in zip(parts, self._additions, strict=True)
        ]
