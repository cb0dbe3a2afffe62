"""Sources of sentence pairs: what every source can do, parallel text files, the embedded grammar.

A source gives the number of pairs in each split and streams them, as often as it is asked to.
"""

import hashlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from keras_transformer.errors import require
from pipelines.text_files import COMPRESSED, check_files, content_digests, read_lines

_GRAMMAR_EVALUATION_PAIRS = 1000
_GRAMMAR_SAMPLE_PAIRS = 100  # of each split; they tell one version of the grammar from another

Pair = tuple[str, str]


class Source(Protocol):
    """What the preparation of data uses of a source. The defaults are those of translation.

    Attributes:
        languages: names of the source and the target language.
        task: what a model learns from the pairs.
    """

    languages: Pair
    task: str = "translation"

    def files(self) -> list[str]:
        """The files that the pairs are read from, as far as the caller has named them."""
        return []

    def settings(self) -> dict[str, Any]:
        """Argument or property -> JSON value; equal settings give equal pairs."""

    def counts(self) -> dict[str, int]:
        """Split -> number of pairs, "train" among them."""

    def pairs(self, split: str) -> Iterator[Pair]:
        """The pairs of one split, in order."""

    def training_parts(self) -> list["Source"]:
        """Sources of consecutive pairs of "train", which can be read at the same time."""
        return [self]

    def symbols(self) -> list[str]:
        """Words that get one id each in the vocabulary; called after `counts`."""
        return []

    def task_options(self) -> dict[str, Any]:
        """Options of the task that a user of the trained model needs."""
        return {}

    def keep(self, data_dir: Path, split: str) -> None:
        """Writes files that scoring a split needs beside its pairs."""


class FileSource(Source):
    """Sentence pairs of local files, plain, .gz or .zst, with one sentence per line.

    Errors name a side of a split as "train_source" or "test_target".

    Args:
        files: split -> (source files, target files). The n-th files of both lists are parallel.
            "train" is required.

    Raises:
        InputError: for a missing or empty list or file, or lists of different lengths.

    Example:
        FileSource({"train": (["train.en"], ["train.de"]), "test": (["test.en"], ["test.de"])})
    """

    def __init__(self, files: dict[str, tuple[list[str], list[str]]]):
        self._files = files
        for split, (source_files, target_files) in files.items():
            check_files(f"{split}_source", source_files)
            check_files(f"{split}_target", target_files)
            require(
                len(source_files) == len(target_files),
                f"{split}_source and {split}_target must name the same number of files",
                f"{len(source_files)} and {len(target_files)}",
            )
        source_files, target_files = files["train"]
        self.languages = (_language(source_files), _language(target_files))

    def files(self) -> list[str]:
        return [path for sides in self._files.values() for paths in sides for path in paths]

    def settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"dataset": "files"}
        for split, (source_files, target_files) in self._files.items():
            settings[f"{split}_source"] = content_digests(source_files)
            settings[f"{split}_target"] = content_digests(target_files)
        return settings

    def counts(self) -> dict[str, int]:
        """Reads every file once, which also finds everything that is wrong with them.

        Raises:
            InputError: for a file that is not UTF-8 text, or parallel files of unequal length.
        """
        return {split: self._count(split) for split in self._files}

    def _count(self, split: str) -> int:
        total = 0
        for source_file, target_file in zip(*self._files[split], strict=True):
            source_lines = _count_lines(source_file, f"{split}_source")
            target_lines = _count_lines(target_file, f"{split}_target")
            require(
                source_lines == target_lines,
                f"{split}_source and {split}_target must have the same number of lines",
                f"{source_lines} in {source_file}, {target_lines} in {target_file}",
            )
            total += source_lines
        return total

    def pairs(self, split: str) -> Iterator[Pair]:
        for source_file, target_file in zip(*self._files[split], strict=True):
            source_lines = read_lines(source_file, f"{split}_source")
            target_lines = read_lines(target_file, f"{split}_target")
            yield from zip(source_lines, target_lines, strict=True)

    def training_parts(self) -> list[Source]:
        parallel_files = zip(*self._files["train"], strict=True)
        return [FileSource({"train": ([source], [target])}) for source, target in parallel_files]


class GrammarSource(Source):
    """English-German pairs of the embedded grammar.

    Args:
        grammar_pairs: size of the training split; the others have 1,000 pairs each.
        seed: determines the sentences.

    Raises:
        InputError: if there is to be no training pair.

    Example:
        GrammarSource(20_000, seed=1)
    """

    languages = ("en", "de")

    def __init__(self, grammar_pairs: int, seed: int):
        require(grammar_pairs >= 1, "grammar_pairs must be at least 1", grammar_pairs)
        self._grammar_pairs = grammar_pairs
        self._seed = seed

    def settings(self) -> dict[str, Any]:
        lines = []
        for split in self.counts():
            for pair in itertools.islice(self.pairs(split), _GRAMMAR_SAMPLE_PAIRS):
                lines.append("\t".join(pair))
        return {
            "dataset": "grammar",
            "grammar_pairs": self._grammar_pairs,
            "grammar_sentences": hashlib.sha256("\n".join(lines).encode()).hexdigest(),
        }

    def counts(self) -> dict[str, int]:
        from pipelines import grammar

        counts = dict.fromkeys(grammar.SPLITS, _GRAMMAR_EVALUATION_PAIRS)
        counts["train"] = self._grammar_pairs
        return counts

    def pairs(self, split: str) -> Iterator[Pair]:
        from pipelines import grammar

        return grammar.sentence_pairs(split, self.counts()[split], self._seed)


def _count_lines(path: str, argument: str) -> int:
    return sum(1 for _ in read_lines(path, argument))


def _language(paths: list[str]) -> str:
    """Guesses a language from a file name such as train.de.gz; it is only shown to users."""
    name = Path(paths[0])
    if name.suffix in COMPRESSED.values():
        name = Path(name.stem)
    return name.suffix.removeprefix(".")
