"""Sentence pairs from files."""

import copy
import dataclasses
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from absl import logging

from keras_transformer.core.vocabulary.language_codes import Direction, options_of, pattern_of
from keras_transformer.support.errors import InputError, require
from keras_transformer.support.fields import option
from keras_transformer.support.files.paths import resolved
from keras_transformer.support.files.reading import uncompressed_name
from pipelines.sources.pair_files import check_pair_file, read_pairs
from pipelines.sources.source import Pair, Source, Survey, Visitor
from pipelines.sources.text_files import TextDigest, check_files, read_lines

_PAIRS_AT_ONCE = 1024  # of which digests are computed
_MANY_IDENTICAL = 0.5  # a larger share of pairs with equal sides is likely to be a mistake


@dataclasses.dataclass(frozen=True, kw_only=True)
class LanguageOptions:
    """The languages of a source, for sources whose user names them."""

    source_language: str | None = option(
        None,
        "Source language, such as en. Required with tfds:NAME and with files that contain both "
        "sides; otherwise guessed from file names.",
    )
    target_language: str | None = option(
        None, "Target language, such as de; required whenever source_language is given."
    )


@dataclasses.dataclass(frozen=True)
class ParallelFiles:
    """A file for each side, with one sentence per line.

    Args:
        split: the files' split.
        source, target: their names.
        arguments: the names of the arguments that named the files, for errors.
        languages: the source and target languages, if there are several directions.
        target_languages: those of all directions, whose codes must not occur in the text.
    """

    split: str
    source: str
    target: str
    arguments: Pair
    languages: Direction | None = None
    target_languages: Sequence[str] = ()

    def files(self) -> list[str]:
        return [self.source, self.target]

    def settings(self, digests: Pair) -> dict[str, list[str]]:
        source_digest, target_digest = digests
        return {f"{self.split}_source": [source_digest], f"{self.split}_target": [target_digest]}

    def pairs(self) -> Iterator[Pair]:
        """Yields the pairs in order, checking them."""
        pairs = itertools.zip_longest(self._sources(), self._targets())
        for number, (source, target) in enumerate(pairs, start=1):
            if source is None or target is None:
                raise self._unequal_lengths()
            if self.target_languages:
                self._refuse_code(source, f"{self.source}:{number}")
                self._refuse_code(target, f"{self.target}:{number}")
            yield source, target

    def _refuse_code(self, line: str, place: str) -> None:
        if ">>" in line and (code := re.search(pattern_of(self.target_languages), line)):
            rule = "must be text without target language codes, which are added to it"
            raise InputError(None, rule, code[0], place)

    def _sources(self) -> Iterator[str]:
        return read_lines(self.source, self.arguments[0])

    def _targets(self) -> Iterator[str]:
        return read_lines(self.target, self.arguments[1])

    def _unequal_lengths(self) -> InputError:
        source_lines = sum(1 for _ in self._sources())
        target_lines = sum(1 for _ in self._targets())
        rule = "must have the same number of lines as the source"
        received = f"{source_lines} in {self.source}, {target_lines} in {self.target}"
        return InputError(self.arguments[1], rule, received)


@dataclasses.dataclass(frozen=True)
class PairFile:
    """A file that contains both sides; see pair_files.py."""

    split: str
    path: str
    languages: Pair

    def files(self) -> list[str]:
        return [self.path]

    def settings(self, digests: Pair) -> dict[str, list[str]]:
        return {f"{self.split}_pairs": list(digests)}

    def pairs(self) -> Iterator[Pair]:
        return read_pairs(self.path, f"{self.split}_pairs", self.languages)


_Part = ParallelFiles | PairFile


class FileSource(Source):
    """Sentence pairs from local files, plain, .gz or .zst.

    Errors name a side of a split as "train_source" or "test_target", and files with both sides as
    "train_pairs".

    Args:
        files: split -> (source files, target files), with one sentence per line. The n-th files of
            both lists are parallel.
        pair_files: split -> files that contain both sides (pair_files.py): their pairs follow those
            of `files`.
        languages: the source and target languages, such as "en". With `pair_files`, they select the
            texts to read; otherwise they are guessed from file names if not given.
        directions: split -> languages of each of its `files`, for a model with several directions,
            whose sources begin with codes; not with `pair_files` or `languages`. They must be among
            those of "train".
        arguments: split -> the names of the arguments that named its source and target files, for
            errors; ("train_source", "train_target") if not given.
        source_codes: with `directions`, whether sources begin with the codes of both languages.

    Raises:
        InputError: for a missing or empty list or file, or lists of different lengths; or if there
            is no split "train", or files for a direction that it lacks.

    Example:
        FileSource({"train": (["train.en"], ["train.de"]), "test": (["test.en"], ["test.de"])})
    """

    def __init__(
        self,
        files: dict[str, tuple[list[str], list[str]]],
        pair_files: dict[str, list[str]] | None = None,
        languages: Pair | None = None,
        directions: dict[str, list[Direction]] | None = None,
        arguments: dict[str, Pair] | None = None,
        source_codes: bool = False,
    ):
        trained = list(dict.fromkeys((directions or {}).get("train", [])))
        options = options_of(trained, source_codes) if trained else {}
        self.target_languages = options.get("target_languages", ())
        parts: dict[str, list[_Part]] = {}
        for split, (source_files, target_files) in files.items():
            names = (arguments or {}).get(split, (f"{split}_source", f"{split}_target"))
            source_argument, target_argument = names
            check_files(source_argument, source_files)
            check_files(target_argument, target_files)
            rule = f"must name the same number of files as {source_argument}"
            received = f"{len(target_files)} for {len(source_files)}"
            require(len(source_files) == len(target_files), target_argument, rule, received)
            of_files = directions[split] if trained else [None] * len(source_files)
            for direction in of_files:
                known = ", ".join(map(str, trained))
                rule = f"must be directions in the training files: {known}"
                is_known = direction is None or direction in trained
                require(is_known, source_argument, rule, direction)
            _warn_of_equal_sides(split, source_files, target_files)
            parts[split] = [
                ParallelFiles(split, source, target, names, direction, self.target_languages)
                for source, target, direction in zip(
                    source_files, target_files, of_files, strict=True
                )
            ]
        for split, paths in (pair_files or {}).items():
            argument = f"{split}_pairs"
            check_files(argument, paths)
            rule = f"must be given with {argument}, and so must target_language"
            are_given = languages is not None and all(languages)
            require(are_given, "source_language", rule, languages or "none")
            for path in paths:
                check_pair_file(path, argument)
                parts.setdefault(split, []).append(PairFile(split, path, languages))
        require("train" in parts, "train_source", "must be given, or train_pairs", "neither")
        if trained:
            languages = tuple(dict.fromkeys(itertools.chain.from_iterable(trained)))
            self.kept_texts = (*self.kept_texts, "directions")
        elif languages is None:
            source_files, target_files = files["train"]
            languages = (language_of(source_files[0]), language_of(target_files[0]))
        self._parts = parts
        self._task_options = options
        self.languages = languages

    def files(self) -> list[str]:
        return [path for parts in self._parts.values() for part in parts for path in part.files()]

    def survey(self, visit: Visitor | None = None) -> Survey:
        counts = {}
        part_sizes = []
        settings: dict[str, Any] = {"dataset": "files"}
        if any(isinstance(part, PairFile) for parts in self._parts.values() for part in parts):
            settings["languages"] = list(self.languages)
        if self.target_languages:
            settings["directions"] = {
                split: [str(part.languages) for part in parts]
                for split, parts in self._parts.items()
            }
        for split, parts in self._parts.items():
            counts[split] = identical = 0
            for part in parts:
                languages = part.languages or self.languages
                is_visited = visit is not None and split == "train"
                read = _read_once(part, languages, visit if is_visited else None)
                counts[split] += read.pairs
                identical += read.identical
                if split == "train":
                    part_sizes.append(read.pairs)
                for name, values in part.settings(read.digests).items():
                    settings.setdefault(name, []).extend(values)
            if identical > counts[split] * _MANY_IDENTICAL:
                message = "source and target of %s are identical in %d of %d pairs"
                logging.warning(message, split, identical, counts[split])
        return Survey(counts, part_sizes, settings)

    def pairs(self, split: str) -> Iterator[Pair]:
        for part in self._parts[split]:
            yield from part.pairs()

    def parts(self, split: str) -> list[Source]:
        return [self._with_part(split, part) for part in self._parts[split]]

    def _with_part(self, split: str, part: _Part) -> "FileSource":
        """Returns a source with this part only."""
        source = copy.copy(self)
        source._parts = {split: [part]}
        source.languages = part.languages or self.languages
        return source

    def rows(self, split: str) -> Iterator[Sequence[str]]:
        """Yields the pairs, with their directions if there are several."""
        for part in self._parts[split]:
            for pair in part.pairs():
                yield (*pair, str(part.languages)) if self.target_languages else pair

    def task_options(self) -> dict[str, Any]:
        return self._task_options


class _Read(NamedTuple):
    """What was found by reading a part."""

    pairs: int
    identical: int  # pairs with equal sides that are not blank
    digests: Pair  # of each side


def _read_once(part: _Part, languages: Sequence[str], visit: Visitor | None) -> _Read:
    """Reads a part."""
    source_digest, target_digest = TextDigest(), TextDigest()
    count = identical = 0
    pairs = part.pairs()
    while block := list(itertools.islice(pairs, _PAIRS_AT_ONCE)):
        count += len(block)
        identical += sum(source == target != "" for source, target in block)
        sources, targets = zip(*block, strict=True)
        source_digest.add(sources)
        target_digest.add(targets)
        if visit is not None:
            for pair in block:
                visit(pair, languages)
    return _Read(count, identical, (source_digest.value(), target_digest.value()))


def _warn_of_equal_sides(split: str, source_files: list[str], target_files: list[str]) -> None:
    """Warns if source and target are the same, as after a mistake in a command."""
    for source, target in zip(source_files, target_files, strict=True):
        if resolved(source) == resolved(target):
            logging.warning("source and target of %s are the same file: %s", split, source)


def language_of(path: str) -> str:
    """Guesses a language from a file name such as train.de.gz."""
    return uncompressed_name(path).suffix.removeprefix(".")
