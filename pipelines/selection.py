"""Selects the training pairs of a text: filters for messy text, duplicates, weights of files.

Pairs are selected before all else, so that the vocabulary and all shards are of the same pairs.
"""

import dataclasses
import hashlib
import itertools
import re
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, NamedTuple

import numpy as np
import regex
from absl import logging
from tqdm import tqdm

from keras_transformer.errors import require
from keras_transformer.fields import Count, Positive, Rule, one_of
from pipelines.sources import DerivedSource, Pair, Source

# Of each rule, metadata.json shows this many pairs, with this many characters of either side.
_EXAMPLES, _EXAMPLE_CHARACTERS = 3, 100
_TWO = Rule("be two values, separated by a comma", lambda values: len(values) == 2)
_RANGE = Rule(
    "be two values, separated by a comma, the first not above the second",
    lambda values: len(values) == 2 and values[0] <= values[1],
)
_SOME = Rule("have a number above 0", any)


def _is_script(name: str) -> bool:
    """Whether Unicode has a script of this name."""
    if not name.replace("_", "").isalpha():
        return False
    try:
        regex.compile(rf"\p{{Script={name}}}")
    except (regex.error, OverflowError, ValueError):  # the last two for inf and nan
        return False
    return True


_Scripts = Annotated[
    str,
    Rule(
        "be names of Unicode scripts, as Latin or Han+Hiragana+Katakana",
        lambda names: all(map(_is_script, names.split("+"))),
    ),
]
_Share = Annotated[float, Rule("be from 0 to 1", lambda share: 0 <= share <= 1)]
_Temperature = Annotated[float, Rule("be from 1 to 1000", lambda value: 1 <= value <= 1000)]
_LARGEST_WEIGHT = 1000
_Weight = Annotated[
    float, Rule(f"be from 0 to {_LARGEST_WEIGHT}", lambda weight: 0 <= weight <= _LARGEST_WEIGHT)
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SelectionConfig:
    """Which training pairs are used, and how often; other splits stay as they are.

    Args:
        drop_identical: leave out pairs whose sides are equal, also in another case.
        length_limits: the fewest and the most words of a side; None for any.
        length_ratio: the largest ratio of the longer side to the shorter one; None for any.
        length_unit: what these lengths count: "words" or "characters".
        scripts: the scripts of source and target, by Unicode's names, with "+" between those of one
            side, e.g. ["Latin", "Han+Hiragana+Katakana"]; None for any.
        script_share: the smallest share of a side's letters that are in its scripts.
        number_overlap: the smallest 2 |A and B| / (|A| + |B|) of the numbers A and B of both sides,
            which are runs of digits; None for any.
        dedupe: leave out pairs that have occurred before.
        weights: of each training file, how often an epoch has its pairs; None for once.
        temperature: T, in place of `weights`: a training file of n pairs has a share of an epoch
            that is proportional to n^(1/T) (Arivazhagan et al. 2019, arXiv 1907.05019), and the
            largest one is in it once. 1 is for every file once, and 5 is their value; None for 1.
    """

    drop_identical: bool = False
    length_limits: Annotated[list[Count], _RANGE] | None = None
    length_ratio: Positive | None = None
    length_unit: Annotated[str, one_of("words", "characters")] = "words"
    scripts: Annotated[list[_Scripts], _TWO] | None = None
    script_share: _Share = 0.5
    number_overlap: _Share | None = None
    dedupe: bool = False
    weights: Annotated[list[_Weight], _SOME] | None = None
    temperature: _Temperature | None = None

    @property
    def rules(self) -> list[str]:
        """The rules in use. A pair that breaks several rules is counted under the first of them."""
        in_use = {
            "drop_identical": self.drop_identical,
            "length_limits": self.length_limits is not None,
            "length_ratio": self.length_ratio is not None,
            "scripts": self.scripts is not None,
            "number_overlap": self.number_overlap is not None and self.number_overlap > 0,
            "dedupe": self.dedupe,
        }
        return [rule for rule, is_used in in_use.items() if is_used]


class SelectedSource(DerivedSource):
    """A source with some of its training pairs, each as often as it was selected.

    Args:
        source: the source.
        counts: its split -> number of pairs.
        times: how often each training pair is used, uint16 [pairs of train].
    """

    def __init__(self, source: Source, counts: dict[str, int], times: np.ndarray):
        super().__init__(source)
        self._counts = counts
        self._times = times

    def counts(self) -> dict[str, int]:
        return self._counts | {"train": int(self._times.sum())}

    def pairs(self, split: str) -> Iterator[Pair]:
        pairs = self._source.pairs(split)
        return self._selected(pairs) if split == "train" else pairs

    def _selected(self, pairs: Iterator[Pair]) -> Iterator[Pair]:
        for pair, times in zip(pairs, memoryview(self._times), strict=False):
            for _ in range(times):
                yield pair

    def parts(self, split: str) -> list[Source]:
        parts = self._source.parts(split)
        if split != "train":
            return parts
        # A single part need not be counted.
        ends = np.cumsum([part.counts()["train"] for part in parts[:-1]], dtype=int)
        times = np.split(self._times, ends)
        return [SelectedSource(part, {}, own) for part, own in zip(parts, times, strict=True)]


class Selection(NamedTuple):
    """What was selected of a source, and what was not."""

    source: Source  # its training pairs are the selected ones
    dropped: dict[str, int]  # rule -> training pairs that it leaves out
    examples: dict[str, list[list[str]]]  # rule -> the first of these pairs, shortened


def select(source: Source, config: SelectionConfig) -> Selection:
    """Applies `config` to the training pairs.

    Duplicates are found by hashes of 64 bits, in 14 bytes of memory per pair. The probability that
    any of 36 million different pairs is taken for another one is 1 in 28,000.

    Raises:
        InputError: if nothing is left, or a value does not suit the text.
    """
    rules = config.rules
    rule = "must not be given with temperature, which sets them"
    require(config.weights is None or config.temperature is None, "weights", rule, config.weights)
    if not rules and config.weights is None and config.temperature is None:
        return Selection(source, {}, {})
    files = len(source.parts("train"))
    rule = f"must be {files} numbers, one for each training file"
    fits = config.weights is None or len(config.weights) == files
    require(fits, "weights", rule, config.weights)
    counts = source.counts()
    broken = _broken_rules(source, counts["train"], config)
    times = broken == 0
    if config.weights is not None or config.temperature is not None:
        times = _weighted(times, source, config)
    dropped = {}
    for number, rule in enumerate(rules, start=1):
        dropped[rule] = int(np.count_nonzero(broken == number))
        logging.info("%s leaves out %d of %d training pairs", rule, dropped[rule], len(broken))
    strictest = max(dropped, key=dropped.get, default="weights") if broken.all() else "weights"
    require(times.any(), strictest, "must leave at least one training pair", f"{dropped} left out")
    selected = SelectedSource(source, counts, times.astype(np.uint16))
    return Selection(selected, dropped, _examples(source, broken, rules))


def _broken_rules(source: Source, count: int, config: SelectionConfig) -> np.ndarray:
    """The first rule that each of `count` training pairs breaks, uint8 [count].

    Rules are counted from 1; 0 is for a pair that breaks none.
    """
    numbers = {rule: number for number, rule in enumerate(config.rules, start=1)}
    foreign_letters = [_foreign_letters(scripts) for scripts in config.scripts or ()]
    broken = bytearray()
    hashes = bytearray()
    pairs = ((pair, part) for part in source.parts("train") for pair in part.pairs("train"))
    for pair, part in tqdm(pairs, "selecting train", count, unit=" pairs"):
        rule = broken_rule(pair, config, foreign_letters)
        broken.append(0 if rule is None else numbers[rule])
        if config.dedupe:  # equal texts of two directions are two pairs
            content = "\n".join([*pair, *part.languages]).encode()
            hashes += hashlib.blake2b(content, digest_size=8).digest()
    broken = np.frombuffer(broken, np.uint8)
    if config.dedupe:
        # Equal pairs break equal rules, so the first of them is not left out by another rule.
        is_repeated = ~first_occurrences(np.frombuffer(hashes, np.uint64))
        broken[(broken == 0) & is_repeated] = numbers["dedupe"]
    return broken


def _weighted(is_used: np.ndarray, source: Source, config: SelectionConfig) -> np.ndarray:
    """How often each training pair is used, float64 [N], by the weight of its file.

    With a weight of 2.25, every fourth pair is used a third time.
    """
    sizes = [part.counts()["train"] for part in source.parts("train")]
    weights = config.weights
    if weights is None:
        parts = np.split(is_used, np.cumsum(sizes)[:-1])
        weights = temperature_weights([int(part.sum()) for part in parts], config.temperature)
    totals = np.cumsum(np.repeat(weights, sizes) * is_used)
    return np.diff(np.floor(totals), prepend=0)


def temperature_weights(sizes: list[int], temperature: float) -> list[float]:
    """The weights of files of these numbers of pairs; see SelectionConfig.

    A file of n pairs with weight w has n w pairs of an epoch. That n w is proportional to n^(1/T),
    and w is 1 for the largest file, is w = (largest / n)^(1 - 1/T).

    Raises:
        InputError: if a weight would be larger than weights may be.
    """
    largest = max(sizes)
    weights = [(largest / max(size, 1)) ** (1 - 1 / temperature) for size in sizes]
    rule = f"must repeat no training file more than {_LARGEST_WEIGHT} times"
    received = f"{temperature:g}, for files of {largest} and {min(sizes)} pairs"
    require(max(weights) <= _LARGEST_WEIGHT, "temperature", rule, received)
    logging.info("temperature=%g gives the training files weights %s", temperature, weights)
    return weights


def _examples(source: Source, broken: np.ndarray, rules: list[str]) -> dict[str, list[list[str]]]:
    """The first pairs that each rule leaves out, shortened."""
    examples = {rule: [] for rule in rules}
    for number, pair in zip(broken, source.pairs("train"), strict=True):
        if number == 0:
            continue
        shown = examples[rules[number - 1]]
        if len(shown) < _EXAMPLES:
            shown.append([side[:_EXAMPLE_CHARACTERS] for side in pair])
    return examples


def broken_rule(
    pair: Pair, config: SelectionConfig, foreign_letters: list[frozenset[str]]
) -> str | None:
    """The first rule that a pair breaks by itself; None if it breaks none.

    Args:
        pair: source and target.
        config: the rules.
        foreign_letters: of source and target, the letters of other scripts; none if scripts are not
            restricted.
    """
    source, target = pair[0].strip(), pair[1].strip()
    if config.drop_identical and source.casefold() == target.casefold():
        return "drop_identical"
    if config.length_limits or config.length_ratio:
        shorter, longer = sorted([_length(source, config), _length(target, config)])
        if config.length_limits:
            fewest, most = config.length_limits
            if shorter < fewest or longer > most:
                return "length_limits"
        if config.length_ratio and longer > config.length_ratio * shorter:
            return "length_ratio"
    if foreign_letters:
        foreign_to_source, foreign_to_target = foreign_letters
        source_fits = _is_in_script(source, foreign_to_source, config.script_share)
        if not source_fits or not _is_in_script(target, foreign_to_target, config.script_share):
            return "scripts"
    if config.number_overlap and not _numbers_agree(source, target, config.number_overlap):
        return "number_overlap"
    return None


def _length(side: str, config: SelectionConfig) -> int:
    return len(side.split() if config.length_unit == "words" else side)


def _is_in_script(side: str, foreign_letters: frozenset[str], script_share: float) -> bool:
    """Whether at least `script_share` of the letters of a side are in its scripts."""
    if foreign_letters.isdisjoint(side):
        return True
    is_foreign = [letter in foreign_letters for letter in side if letter.isalpha()]
    return is_foreign.count(False) >= script_share * len(is_foreign)


def _numbers_agree(source: str, target: str, number_overlap: float) -> bool:
    """Whether 2 |A and B| / (|A| + |B|) of the numbers A and B of both sides is large enough."""
    source_numbers = Counter(map(int, re.findall(r"\d{1,18}", source)))
    target_numbers = Counter(map(int, re.findall(r"\d{1,18}", target)))
    common = (source_numbers & target_numbers).total()
    total = source_numbers.total() + target_numbers.total()
    return 2 * common >= number_overlap * total


def _foreign_letters(scripts: str) -> frozenset[str]:
    """All letters but those of these scripts, e.g. "Han+Hiragana", and those that many share."""
    names = [*scripts.split("+"), "Common", "Inherited"]
    is_native = regex.compile("|".join(rf"\p{{Script={name}}}" for name in names)).match
    letters = filter(str.isalpha, map(chr, range(sys.maxunicode + 1)))
    return frozenset(itertools.filterfalse(is_native, letters))


def first_occurrences(hashes: np.ndarray) -> np.ndarray:
    """Whether each of `hashes`, uint64 [N], is the first of its value: bool [N]."""
    is_first = np.zeros(len(hashes), bool)
    lowest_bytes = hashes.view(np.uint8)[::8]
    for part in range(64):  # sorting all of them at once would take four times the memory
        places = np.flatnonzero(lowest_bytes % 64 == part)
        _, first_of_equal = np.unique(hashes[places], return_index=True)
        is_first[places[first_of_equal]] = True
    return is_first
