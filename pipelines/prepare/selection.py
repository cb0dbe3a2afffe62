"""Selects training pairs: filters for noisy text, duplicates, weights of files.

Pairs are selected first, so that the vocabulary and all shards are based on the same pairs.

Selection comes before everything else and gives each pair a number, how often it occurs in an
epoch. So vocabulary and shards are byte for byte those of text that other tools have cleaned.
Weights repeat records: reading a shard several times would mix a small corpus unevenly.
"""

import dataclasses
import hashlib
import itertools
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

import numpy as np
import regex
from absl import logging

from keras_transformer.support.errors import require
from keras_transformer.support.fields import Count, Positive, Rule, check_fields, one_of, option
from keras_transformer.support.progress import progress_bar
from pipelines.sources.source import DerivedSource, Pair, Source, Survey

# For each rule, metadata.json shows this many pairs, with this many characters of either side.
_EXAMPLES, _EXAMPLE_CHARACTERS = 3, 100
# Examples of duplicates are sought among this many pairs: a set takes a hundred bytes for each.
_SEARCHED_PAIRS = 100_000
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
        "be names of Unicode scripts, such as Latin or Han+Hiragana+Katakana",
        lambda names: all(map(_is_script, names.split("+"))),
    ),
]
_DEFAULT_SCRIPT_SHARE = 0.5
_Share = Annotated[float, Rule("be from 0 to 1", lambda share: 0 <= share <= 1)]
_Temperature = Annotated[float, Rule("be from 1 to 1000", lambda value: 1 <= value <= 1000)]
_LARGEST_WEIGHT = 1000
_Weight = Annotated[
    float, Rule(f"be from 0 to {_LARGEST_WEIGHT}", lambda weight: 0 <= weight <= _LARGEST_WEIGHT)
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SelectionConfig:
    """Which training pairs are used, and how often; other splits are unchanged.

    See the `help` of each field.
    """

    drop_identical: bool = option(False, "Drop pairs whose sides are equal, ignoring case.")
    length_limits: Annotated[list[Count], _RANGE] | None = option(
        None, "FEWEST,MOST words per side: drop pairs with a shorter or longer side."
    )
    length_ratio: Positive | None = option(
        None,
        "Drop pairs whose longer side has more than this many times the words of the shorter.",
    )
    length_unit: Annotated[str, one_of("words", "characters")] = option(
        "words",
        "Unit for length limits and length ratio; characters suit languages without spaces.",
    )
    scripts: Annotated[list[_Scripts], _TWO] | None = option(
        None,
        "SOURCE,TARGET Unicode script names, e.g. Latin,Han+Hiragana+Katakana: drop pairs in "
        "which a side is not mainly in these scripts.",
    )
    script_share: _Share = option(
        _DEFAULT_SCRIPT_SHARE, "Minimum share of a side's letters that must be in its scripts."
    )
    number_overlap: _Share | None = option(
        None,
        "Drop pairs whose sides share less than this fraction of their numbers (runs of "
        "digits); 1: drop pairs whose numbers differ.",
    )
    dedupe: bool = option(False, "Drop repeated pairs.")
    weights: Annotated[list[_Weight], _SOME] | None = option(
        None,
        "Repetitions per epoch, one value per train_source file, e.g. 1,2.5; default: 1 each.",
    )
    temperature: _Temperature | None = option(
        None,
        "Instead of weights: temperature T of the sampling of training files; a file of n "
        "pairs gets a share proportional to n^(1/T), and the largest file is used once per "
        "epoch (arXiv 1907.05019). 1 uses every file once; 5 is usual for languages with "
        "little text.",
    )

    def __post_init__(self):
        check_fields(self)
        has_length_rule = self.length_limits is not None or self.length_ratio is not None
        rule = "must be given with length_limits or length_ratio"
        is_used = self.length_unit == "words" or has_length_rule
        require(is_used, "length_unit", rule, self.length_unit)
        rule = "must be given with scripts"
        is_used = self.script_share == _DEFAULT_SCRIPT_SHARE or self.scripts is not None
        require(is_used, "script_share", rule, self.script_share)

    @property
    def rules(self) -> list[str]:
        """The active rules. A pair that breaks several rules counts under the first of them."""
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
    """A source with each training pair repeated as often as it was selected.

    Args:
        source: the source.
        part_sizes: the number of training pairs in each part.
        times: how often each training pair is used, uint16 [training pairs].
    """

    def __init__(self, source: Source, part_sizes: list[int], times: np.ndarray):
        super().__init__(source)
        self._part_sizes = part_sizes
        self._times = times

    def pairs(self, split: str) -> Iterator[Pair]:
        pairs = self._source.pairs(split)
        return self._selected(pairs) if split == "train" else pairs

    def _selected(self, pairs: Iterator[Pair]) -> Iterator[Pair]:
        for pair, times in zip(pairs, memoryview(self._times), strict=True):
            for _ in range(times):
                yield pair

    def parts(self, split: str) -> list[Source]:
        parts = self._source.parts(split)
        if split != "train":
            return parts
        times_of_parts = _by_part(self._times, self._part_sizes)
        return [
            SelectedSource(part, [size], times)
            for part, size, times in zip(parts, self._part_sizes, times_of_parts, strict=True)
        ]


class Selection(NamedTuple):
    """The selected and the dropped pairs of a source."""

    source: Source  # with only the selected training pairs
    survey: Survey  # of that source
    dropped: dict[str, int]  # rule -> number of dropped training pairs
    examples: dict[str, list[list[str]]]  # rule -> the first of these pairs, shortened


def select(source: Source, config: SelectionConfig) -> Selection:
    """Surveys a source, and applies `config` to its training pairs, reading the text once.

    Duplicates are found by 64-bit hashes, in 14 bytes of memory per pair. The probability of any
    collision among 36 million different pairs is 1 in 28,000.

    Raises:
        InputError: if no pair is left, or a value does not suit the text.
    """
    rules = config.rules
    rule = "must not be given with temperature, which sets them"
    require(config.weights is None or config.temperature is None, "weights", rule, config.weights)
    parts = len(source.parts("train"))
    rule = f"must be {parts} numbers, one for each training file"
    fits = config.weights is None or len(config.weights) == parts
    require(fits, "weights", rule, config.weights)
    if not rules:
        survey = source.survey()
        broken = np.zeros(survey.counts["train"], np.uint8)
        examples = {}
    else:
        check = _RuleCheck(config)
        with progress_bar(desc="selecting train", unit=" pairs", mininterval=1) as check.bar:
            survey = source.survey(check.visit)
        broken = check.broken_rules()
        examples = check.examples
    if not rules and config.weights is None and config.temperature is None:
        return Selection(source, survey, {}, {})
    times = _weighted(broken == 0, survey.part_sizes, config)
    dropped = {}
    for number, rule in enumerate(rules, start=1):
        dropped[rule] = int(np.count_nonzero(broken == number))
        logging.info("%s drops %d of %d training pairs", rule, dropped[rule], len(broken))
    strictest = max(dropped, key=dropped.get, default="weights") if broken.all() else "weights"
    require(times.any(), strictest, "must leave at least one training pair", f"{dropped} dropped")
    sizes = [int(part.sum()) for part in _by_part(times, survey.part_sizes)]
    selected = SelectedSource(source, survey.part_sizes, times)
    counts = survey.counts | {"train": sum(sizes)}
    survey = dataclasses.replace(survey, counts=counts, part_sizes=sizes)
    return Selection(selected, survey, dropped, examples)


class _RuleCheck:
    """Finds the first rule that each training pair breaks, in a single pass."""

    def __init__(self, config: SelectionConfig):
        self.bar = None  # shows the progress
        self.examples: dict[str, list[list[str]]] = {rule: [] for rule in config.rules}
        self._config = config
        self._numbers = {rule: number for number, rule in enumerate(config.rules, start=1)}
        self._foreign_letters = [_foreign_letters(scripts) for scripts in config.scripts or ()]
        self._broken = bytearray()  # the broken rule's number for each pair, 0 for none
        self._hashes = bytearray()
        self._seen: set[bytes] = set()  # hashes, until there are examples of duplicates

    def visit(self, pair: Pair, languages: Sequence[str]) -> None:
        self.bar.update()
        rule = broken_rule(pair, self._config, self._foreign_letters)
        self._broken.append(0 if rule is None else self._numbers[rule])
        if rule is not None:
            self._show(rule, pair)
        if not self._config.dedupe:
            return
        content = "\n".join(
            [*pair, *languages]
        ).encode()  # in two directions, it counts as two pairs
        digest = hashlib.blake2b(content, digest_size=8).digest()
        self._hashes += digest
        is_searched = len(self.examples["dedupe"]) < _EXAMPLES
        if rule is None and is_searched and digest in self._seen:
            self._show("dedupe", pair)
        elif rule is None and is_searched and len(self._seen) < _SEARCHED_PAIRS:
            self._seen.add(digest)

    def broken_rules(self) -> np.ndarray:
        """The number of the first rule that each pair breaks, uint8 [N], from 1; 0 for none."""
        broken = np.frombuffer(self._broken, np.uint8)
        if self._config.dedupe:
            # Equal pairs break the same rules, so the first of them is not dropped by another rule.
            is_repeated = ~first_occurrences(np.frombuffer(self._hashes, np.uint64))
            broken[(broken == 0) & is_repeated] = self._numbers["dedupe"]
        return broken

    def _show(self, rule: str, pair: Pair) -> None:
        shown = self.examples[rule]
        if len(shown) < _EXAMPLES:
            shown.append([side[:_EXAMPLE_CHARACTERS] for side in pair])


def _by_part(values: np.ndarray, part_sizes: list[int]) -> list[np.ndarray]:
    """Splits values of all training pairs into those of each part."""
    return np.split(values, np.cumsum(part_sizes)[:-1])


def _weighted(is_used: np.ndarray, part_sizes: list[int], config: SelectionConfig) -> np.ndarray:
    """Returns how often each training pair is used, uint16 [N], from its file's weight.

    With a weight of 2.25, every fourth pair is used a third time.
    """
    weights = config.weights
    if config.temperature is not None:
        used = [int(part.sum()) for part in _by_part(is_used, part_sizes)]
        weights = temperature_weights(used, config.temperature)
    if weights is None:
        return is_used.astype(np.uint16)
    totals = np.cumsum(np.repeat(weights, part_sizes) * is_used)
    return np.diff(np.floor(totals), prepend=0).astype(np.uint16)


def temperature_weights(sizes: list[int], temperature: float) -> list[float]:
    """Returns the weights of files with these numbers of pairs; see SelectionConfig.

    A file with n pairs and weight w contributes n w pairs to an epoch. With n w proportional to
    n^(1/T), and w = 1 for the largest file, w = (largest / n)^(1 - 1/T).

    Raises:
        InputError: if a weight would exceed the largest allowed one.
    """
    largest = max(sizes)
    weights = [(largest / max(size, 1)) ** (1 - 1 / temperature) for size in sizes]
    rule = f"must not repeat a training file more than {_LARGEST_WEIGHT} times"
    received = f"{temperature:g}, for files of {largest} and {min(sizes)} pairs"
    require(max(weights) <= _LARGEST_WEIGHT, "temperature", rule, received)
    logging.info("temperature=%g gives the training files weights %s", temperature, weights)
    return weights


def broken_rule(
    pair: Pair, config: SelectionConfig, foreign_letters: list[frozenset[str]]
) -> str | None:
    """Returns the first rule that a pair breaks by itself; None if it breaks none.

    Args:
        pair: source and target.
        config: the rules.
        foreign_letters: the letters of other scripts, for source and target; none if scripts are
            not restricted.
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
    """Whether 2 |A and B| / (|A| + |B|) is large enough for the numbers A and B on both sides."""
    source_numbers = Counter(map(int, re.findall(r"\d{1,18}", source)))
    target_numbers = Counter(map(int, re.findall(r"\d{1,18}", target)))
    common = (source_numbers & target_numbers).total()
    total = source_numbers.total() + target_numbers.total()
    return 2 * common >= number_overlap * total


def _foreign_letters(scripts: str) -> frozenset[str]:
    """Returns all letters except those of these scripts, e.g. "Han+Hiragana", and shared ones."""
    names = [*scripts.split("+"), "Common", "Inherited"]
    is_native = regex.compile("|".join(rf"\p{{Script={name}}}" for name in names)).match
    letters = filter(str.isalpha, map(chr, range(sys.maxunicode + 1)))
    return frozenset(itertools.filterfalse(is_native, letters))


def first_occurrences(hashes: np.ndarray) -> np.ndarray:
    """Whether each of `hashes`, uint64 [N], is the first occurrence of its value: bool [N]."""
    is_first = np.zeros(len(hashes), bool)
    lowest_bytes = hashes.view(np.uint8)[::8]
    for part in range(64):  # sorting all of them at once would take four times the memory
        indices = np.flatnonzero(lowest_bytes % 64 == part)
        _, first_of_equal = np.unique(hashes[indices], return_index=True)
        is_first[indices[first_of_equal]] = True
    return is_first
