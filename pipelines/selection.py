"""Selects the training pairs of a text: filters for messy text, duplicates, weights of files.

It is made before all else, so that the vocabulary and all shards are of the same pairs.
"""

import dataclasses
import hashlib
import itertools
import re
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Annotated

import numpy as np
from absl import logging
from tqdm import tqdm

from keras_transformer.errors import InputError, require
from keras_transformer.fields import Count, Positive, Rule, one_of
from pipelines.sources import Pair, Source

# A pair that breaks several rules is counted under the first of them.
_RULES = ("drop_identical", "length_limits", "length_ratio", "scripts", "number_overlap", "dedupe")
# Of each rule, metadata.json shows this many pairs, with this many characters of either side.
_EXAMPLES, _EXAMPLE_CHARACTERS = 3, 100
_TWO = Rule("be two values, separated by a comma", lambda values: len(values) == 2)
_Share = Annotated[float, Rule("be from 0 to 1", lambda share: 0 <= share <= 1)]
_Weight = Annotated[float, Rule("be from 0 to 1000", lambda weight: 0 <= weight <= 1000)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SelectionConfig:
    """Which training pairs are used, and how often; other splits stay as they are."""

    drop_identical: bool = False  # leave out pairs whose sides are equal, also in another case
    length_limits: Annotated[list[Count], _TWO] | None = None  # of either side
    length_ratio: Positive | None = None  # largest, of the longer side to the shorter one
    length_unit: Annotated[str, one_of("words", "characters")] = "words"  # of these
    scripts: Annotated[list[str], _TWO] | None = None  # of each side: Unicode's names, "+" for or
    script_share: _Share = 0.5  # smallest, of the letters of a side in its script
    # Smallest 2 |A and B| / (|A| + |B|) of the numbers A and B of both sides: runs of digits.
    number_overlap: _Share | None = None
    dedupe: bool = False  # leave out pairs that have occurred before
    weights: list[_Weight] | None = None  # of each training file: how often an epoch has its pairs


class SelectedSource(Source):
    """The pairs of `source`, those of "train" as often as `times` says, uint16 [pairs of train]."""

    def __init__(self, source: Source, counts: dict[str, int], times: np.ndarray):
        self._source, self._counts, self._times = source, counts, times
        self.languages, self.task, self.keep = source.languages, source.task, source.keep
        self.symbols, self.task_options = source.symbols, source.task_options

    def counts(self) -> dict[str, int]:
        return self._counts | {"train": int(self._times.sum())}

    def pairs(self, split: str) -> Iterator[Pair]:
        pairs = self._source.pairs(split)
        if split != "train":
            return pairs
        return itertools.chain.from_iterable(map(itertools.repeat, pairs, memoryview(self._times)))

    def training_parts(self) -> list[Source]:
        parts = self._source.training_parts()
        times = np.split(self._times, np.cumsum([part.counts()["train"] for part in parts])[:-1])
        return [SelectedSource(part, {}, some) for part, some in zip(parts, times, strict=True)]


def select(
    source: Source, config: SelectionConfig
) -> tuple[Source, dict[str, int], dict[str, list[Pair]]]:
    """Applies `config` to the training pairs.

    Duplicates are found by hashes of 64 bits, in 14 bytes of memory per pair. The probability that
    any of 36 million different pairs is taken for another one is 1 in 28,000.

    Returns:
        The selected pairs, how many pairs each rule leaves out, and the first of these, shortened.

    Raises:
        InputError: if nothing is left, or a value does not suit the text.
    """
    rules = [rule for rule in _RULES if getattr(config, rule) not in (None, False)]
    if not rules and config.weights is None:
        return source, {}, {}
    counts = source.counts()
    foreign = [_foreign_letters(scripts) for scripts in config.scripts or ()]
    reasons, hashes = bytearray(), bytearray()  # of each pair: its rule, counted from 1, or 0
    for pair in tqdm(source.pairs("train"), "selecting train", counts["train"], unit=" pairs"):
        rule = broken_rule(pair, config, foreign)
        reasons.append(rules.index(rule) + 1 if rule else 0)
        if config.dedupe:
            hashes += hashlib.blake2b("\n".join(pair).encode(), digest_size=8).digest()
    reasons = np.frombuffer(reasons, np.uint8)
    if config.dedupe:  # equal pairs break equal rules
        reasons[(reasons == 0) & ~first_occurrences(np.frombuffer(hashes, np.uint64))] = len(rules)
    times = reasons == 0
    if config.weights is not None:
        sizes = [part.counts()["train"] for part in source.training_parts()]
        rule = f"--weights must be {len(sizes)} numbers, one for each training file"
        require(len(config.weights) == len(sizes), rule, config.weights)
        # Of a weight of 2.25, every fourth pair is used a third time.
        times = np.diff(np.floor(np.cumsum(np.repeat(config.weights, sizes) * times)), prepend=0)
    dropped = {rule: int(np.count_nonzero(reasons == n)) for n, rule in enumerate(rules, 1)}
    for rule, count in dropped.items():
        logging.info("--%s leaves out %d of %d training pairs", rule, count, len(reasons))
    names = ", ".join(f"--{name}" for name in [*rules, "weights"])
    require(times.any(), f"{names} must leave at least one training pair", f"{dropped} left out")
    examples = {rule: [] for rule in rules}
    numbered = zip(reasons, source.pairs("train"), strict=True)
    for reason, pair in itertools.compress(numbered, reasons):
        if len(some := examples[rules[reason - 1]]) < _EXAMPLES:
            some.append([side[:_EXAMPLE_CHARACTERS] for side in pair])
    return SelectedSource(source, counts, times.astype(np.uint16)), dropped, examples


def broken_rule(pair: Pair, config: SelectionConfig, foreign: list[frozenset]) -> str | None:
    """The first rule that a pair breaks; `foreign` are the letters of other scripts, if checked."""
    pair = (pair[0].strip(), pair[1].strip())
    if config.drop_identical and pair[0].casefold() == pair[1].casefold():
        return "drop_identical"
    if config.length_limits or config.length_ratio:
        in_words = config.length_unit == "words"
        short, long = sorted(len(side.split() if in_words else side) for side in pair)
        least, most = config.length_limits or (0, long)
        if short < least or long > most:
            return "length_limits"
        if config.length_ratio and long > config.length_ratio * short:
            return "length_ratio"
    for side, of_others in zip(pair, foreign, strict=False):
        if not of_others.isdisjoint(side):
            letters = [letter in of_others for letter in side if letter.isalpha()]
            if letters.count(False) < config.script_share * len(letters):
                return "scripts"
    if config.number_overlap:
        numbers = [Counter(map(int, re.findall(r"\d{1,18}", side))) for side in pair]
        common, total = (numbers[0] & numbers[1]).total(), (numbers[0] + numbers[1]).total()
        if 2 * common < config.number_overlap * total:
            return "number_overlap"
    return None


def _foreign_letters(scripts: str) -> frozenset[str]:
    """All letters but those of these scripts, e.g. "Han+Hiragana", and those that many share."""
    import tensorflow as tf

    pattern = "|".join(rf"\p{{{name}}}" for name in [*scripts.split("+"), "Common", "Inherited"])
    letters = [chr(code) for code in range(sys.maxunicode + 1) if chr(code).isalpha()]
    try:
        native = tf.strings.regex_full_match(letters, pattern).numpy()
    except tf.errors.InvalidArgumentError:
        rule = "--scripts must be names of Unicode scripts, as in Latin,Han+Hiragana+Katakana"
        raise InputError(f"{rule}. Received: {scripts}") from None
    return frozenset(itertools.compress(letters, ~native))


def first_occurrences(hashes: np.ndarray) -> np.ndarray:
    """Whether each of `hashes`, uint64 [N], is the first of its value: bool [N]."""
    first, lowest_bytes = np.zeros(len(hashes), bool), hashes.view(np.uint8)[::8]
    for part in range(64):  # sorting all of them at once would take four times the memory
        places = np.flatnonzero(lowest_bytes % 64 == part)
        first[places[np.unique(hashes[places], return_index=True)[1]]] = True
    return first
