"""Adds changed copies of training pairs, so that a model learns text as its users write it.

Training text mostly consists of whole, clean sentences. A model that has seen nothing else fails at
capitals, titles, typos, sentences without a full stop and single words. A small share of such pairs
among the others helps (Bogoychev et al. 2023, arXiv 2311.14838).
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, NamedTuple

from absl import logging
from tqdm import tqdm

from keras_transformer.errors import require
from keras_transformer.fields import Rule
from keras_transformer.text_changes import (
    in_capitals,
    in_title_case,
    with_typos,
    without_final_stop,
)
from pipelines.sources import DerivedSource, Pair, Source

# Copies of pairs in this order, and then pairs of single words.
_COPIES = ("upper", "title", "typos", "no_stop")
KINDS = (*_COPIES, "words")
_Share = Annotated[float, Rule("be above 0 and at most 1", lambda share: 0 < share <= 1)]
AugmentShares = Annotated[
    dict[str, _Share],
    Rule(f"be shares of {', '.join(KINDS)}", lambda shares: set(shares) <= set(KINDS)),
]
_DRAWN_BYTES = 8


class Augmentation(NamedTuple):
    """A source with further training pairs."""

    source: Source
    added: dict[str, int]  # kind -> number of further pairs


def augment(source: Source, shares: dict[str, float] | None, seed: int) -> Augmentation:
    """Adds pairs to the training pairs of a source.

    Which pairs are copied, and with what typos, depends on the pairs and the seed alone, so the
    result is the same for any division of the work. Equal pairs have equal copies.

    Args:
        source: sentence pairs.
        shares: kind -> the number of further pairs, as a share of the training pairs:

            - "upper": copies in capitals;
            - "title": copies with a capital at the beginning of each word;
            - "typos": copies whose source has typos, see `text_changes.with_typos`;
            - "no_stop": copies without the full stop at the end;
            - "words": pairs of one word each, which the training pairs were found to translate by
              each other, the most frequent first; see `word_pairs.frequent_word_pairs`.

            A copy whose source is as it was is left out, and so may be words. None for no pairs.
        seed: determines the copies.

    Raises:
        InputError: for trees, which are no text.
    """
    if not shares:
        return Augmentation(source, {})
    rule = "must not be given for trees, which are no text"
    require(source.task == "translation", "augment", rule, ",".join(shares))
    counts = source.counts()
    added = Counter()
    sizes = []
    with tqdm(desc="augmenting train", total=counts["train"], unit=" pairs", mininterval=1) as bar:
        for part in source.parts("train"):
            size = 0
            for pair in part.pairs("train"):
                kinds = [kind for kind, _ in changed_copies(pair, shares, seed)]
                added.update(kinds)
                size += 1 + len(kinds)
                bar.update()
            sizes.append(size)
    words = _word_pairs(source, counts["train"], shares.get("words", 0))
    added["words"] = sum(map(len, words))
    numbers = {kind: added[kind] for kind in shares}
    for kind, number in numbers.items():
        logging.info("augment=%s adds %d pairs to %d", kind, number, counts["train"])
    return Augmentation(AugmentedSource(source, shares, seed, counts, sizes, words), numbers)


def changed_copies(pair: Pair, shares: dict[str, float], seed: int) -> Iterator[tuple[str, Pair]]:
    """Yields the kinds and the copies of those kinds that are drawn for a pair."""
    drawn = _drawn(pair, seed)
    for kind in _COPIES:
        if drawn[kind] < shares.get(kind, 0):
            copy = changed(pair, kind, seed)
            if copy[0] != pair[0]:
                yield kind, copy


def changed(pair: Pair, kind: str, seed: int) -> Pair:
    """A pair in capitals, in title case, with typos in its source, or without full stops."""
    source, target = pair
    if kind == "typos":
        return with_typos(source, seed), target
    change = {"upper": in_capitals, "title": in_title_case, "no_stop": without_final_stop}[kind]
    return change(source), change(target)


def _drawn(pair: Pair, seed: int) -> dict[str, float]:
    """A number in [0, 1) for each kind of copy. Hashes are faster than generators."""
    content = "\n".join([str(seed), *pair]).encode()
    digest = hashlib.blake2b(content, digest_size=_DRAWN_BYTES * len(_COPIES)).digest()
    numbers = {}
    for place, kind in enumerate(_COPIES):
        part = digest[place * _DRAWN_BYTES : (place + 1) * _DRAWN_BYTES]
        numbers[kind] = int.from_bytes(part, "big") / 256**_DRAWN_BYTES
    return numbers


def _word_pairs(source: Source, count: int, share: float) -> list[list[Pair]]:
    """Of each training part, the pairs of words that follow it.

    They are found in all parts together, and follow the last one; where there are several
    directions, in each part by itself.
    """
    parts = source.parts("train")
    if share == 0:
        return [[] for _ in parts]
    from pipelines.word_pairs import frequent_word_pairs  # imports TensorFlow

    if not source.target_languages:
        found = frequent_word_pairs(source.pairs("train"), count, most=int(share * count))
        return [[] for _ in parts[:-1]] + [found]
    words = []
    for part in parts:
        size = sum(1 for _ in part.pairs("train"))
        pairs = part.pairs("train")
        words.append(frequent_word_pairs(pairs, size, most=int(share * size)) if size else [])
    return words


class AugmentedSource(DerivedSource):
    """A source whose training pairs are followed each by its changed copies, and parts by words.

    Args:
        source: the source.
        shares, seed: as of `augment`.
        counts: split -> number of pairs of the source.
        sizes: of each of the source's training parts, the number of its pairs and their copies.
        words: of each of these parts, pairs of words that follow them.
    """

    def __init__(
        self,
        source: Source,
        shares: dict[str, float],
        seed: int,
        counts: dict[str, int],
        sizes: list[int],
        words: list[list[Pair]],
    ):
        super().__init__(source)
        self._shares = shares
        self._seed = seed
        self._counts = counts
        self._sizes = sizes
        self._words = words

    def counts(self) -> dict[str, int]:
        return self._counts | {"train": sum(self._sizes) + sum(map(len, self._words))}

    def pairs(self, split: str) -> Iterator[Pair]:
        return self._augmented() if split == "train" else self._source.pairs(split)

    def _augmented(self) -> Iterator[Pair]:
        for part, words in zip(self._source.parts("train"), self._words, strict=True):
            for pair in part.pairs("train"):
                yield pair
                for _, copy in changed_copies(pair, self._shares, self._seed):
                    yield copy
            yield from words

    def parts(self, split: str) -> list[Source]:
        parts = self._source.parts(split)
        if split != "train":
            return parts
        return [
            AugmentedSource(part, self._shares, self._seed, {}, [size], [words])
            for part, size, words in zip(parts, self._sizes, self._words, strict=True)
        ]
