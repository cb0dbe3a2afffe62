"""The interface of all sources of sentence pairs.

A source is surveyed once, which counts its pairs and finds all errors in them. After that it
streams its pairs any number of times.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

SPLITS = ("train", "validation", "test")

Pair = tuple[str, str]
# Called with each training pair, and the names of its two languages.
Visitor = Callable[[Pair, Sequence[str]], None]


@dataclasses.dataclass(frozen=True)
class Survey:
    """The facts about a source's pairs, known after reading them."""

    counts: dict[str, int]  # split -> number of pairs, "train" among them
    part_sizes: list[int]  # number of training pairs in each part
    settings: dict[str, Any]  # argument or property -> JSON value; equal values give equal pairs
    symbols: Sequence[str] = ()  # words that get one id each in the vocabulary


class Source(Protocol):
    """Sentence pairs for data preparation. The defaults are for translation.

    Attributes:
        languages: the source and target languages; with several directions, all languages.
        task: the task that a model learns from the pairs.
        target_languages: the languages whose codes the sources will begin with (many_languages.py),
            if there are several directions. A source's pairs have no codes yet.
        kept_texts: the names of the texts that are kept for evaluation.
    """

    languages: Sequence[str]
    task: str = "translation"
    target_languages: Sequence[str] = ()
    kept_texts: Sequence[str] = ("source", "target")

    def files(self) -> list[str]:
        """Returns the files that the pairs are read from, if the caller named any."""
        return []

    def survey(self, visit: Visitor | None = None) -> Survey:
        """Reads everything once.

        Args:
            visit: called with each training pair, in order.

        Raises:
            InputError: for any error in the pairs.
        """

    def pairs(self, split: str) -> Iterator[Pair]:
        """Yields the pairs of one split, in order."""

    def parts(self, split: str) -> list["Source"]:
        """Returns sources of consecutive pairs in a split, which can be read in parallel.

        Each has a single direction: its `languages` are those of source and target.
        """
        return [self]

    def rows(self, split: str) -> Iterator[Sequence[str]]:
        """Yields the `kept_texts` of each pair in a split, the first two being the pair."""
        return self.pairs(split)

    def task_options(self) -> dict[str, Any]:
        """Returns task options that a user of the trained model needs."""
        return {}


class DerivedSource(Source):
    """A source derived from another one, from which it only differs in its pairs.

    It needs no survey: its creator knows its pairs.
    """

    def __init__(self, source: Source):
        self._source = source
        self.languages = source.languages
        self.task = source.task
        self.target_languages = source.target_languages
        self.kept_texts = source.kept_texts

    def rows(self, split: str) -> Iterator[Sequence[str]]:
        return self._source.rows(split)

    def task_options(self) -> dict[str, Any]:
        return self._source.task_options()
