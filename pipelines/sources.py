"""Sources of sentence pairs: parallel text files, a TFDS translation set, or the embedded grammar.

A source gives the number of pairs in each split and streams them, as often as it is asked to.
"""

import contextlib
import gzip
import hashlib
import itertools
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from absl import logging

from keras_transformer.errors import InputError, reason, require
from keras_transformer.files import opened, text_lines, to_path

_COMPRESSED = {b"\x1f\x8b": ".gz", b"\x28\xb5": ".zst"}  # by their first bytes
_TFDS_SPLITS = ("train", "validation", "test")
_TFDS_BATCH = 1024
_TFDS_SECONDS = 10  # for an answer of a server
_GRAMMAR_EVALUATION_PAIRS = 1000
_FINGERPRINT_PAIRS = 100

Pair = tuple[str, str]


class Source(Protocol):
    """What the preparation of data uses of a source. The defaults are those of translation.

    Attributes:
        languages: names of the source and the target language.
        task: what a model learns from the pairs.
    """

    languages: Pair
    task: str = "translation"

    def settings(self) -> dict[str, Any]:
        """Flag or property -> JSON value; equal settings give equal pairs."""

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

    Args:
        files: split -> (source files, target files). The n-th files of both lists are parallel.
            "train" is required.

    Raises:
        InputError: for a missing or empty list or file, or lists of different lengths.
    """

    def __init__(self, files: dict[str, tuple[list[str], list[str]]]):
        self._files = files
        for split, sides in files.items():
            for side, paths in zip(("source", "target"), sides, strict=True):
                check_files(_flag(split, side), paths)
            require(
                len(sides[0]) == len(sides[1]),
                f"{_flags(split)} must name the same number of files",
                f"{len(sides[0])} and {len(sides[1])}",
            )
        self.languages = tuple(_language(paths) for paths in files["train"])

    def settings(self) -> dict[str, Any]:
        contents = {
            _flag(split, side): ["sha256:" + sha256(path)[:16] for path in paths]
            for split, sides in self._files.items()
            for side, paths in zip(("source", "target"), sides, strict=True)
        }
        return {"--dataset": "files", **contents}

    def counts(self) -> dict[str, int]:
        """Reads every file once, which also finds everything that is wrong with them.

        Raises:
            InputError: for a file that is not UTF-8 text, or parallel files of unequal length.
        """
        return {split: self._count(split) for split in self._files}

    def _count(self, split: str) -> int:
        total = 0
        for source, target in zip(*self._files[split], strict=True):
            lines = [
                sum(1 for _ in read_lines(path, _flag(split, side)))
                for side, path in (("source", source), ("target", target))
            ]
            require(
                lines[0] == lines[1],
                f"{_flags(split)} must have the same number of lines",
                f"{lines[0]} in {source}, {lines[1]} in {target}",
            )
            total += lines[0]
        return total

    def pairs(self, split: str) -> Iterator[Pair]:
        for source, target in zip(*self._files[split], strict=True):
            yield from zip(
                read_lines(source, _flag(split, "source")),
                read_lines(target, _flag(split, "target")),
                strict=True,
            )

    def training_parts(self) -> list[Source]:
        pairs = zip(*self._files["train"], strict=True)
        return [FileSource({"train": ([source], [target])}) for source, target in pairs]


class TfdsSource(Source):
    """Sentence pairs of any TFDS data set with a Translation feature.

    Args:
        name: TFDS's name of the data set, e.g. "wmt14_translate/de-en".
        source_language: a language of the data set.
        target_language: another language of the data set.
        data_dir: TFDS's folder of data sets, on disk or to download to; None for its default.

    Raises:
        InputError: for a name, configuration or language that TFDS does not know, and for data that
            are not on disk and cannot be downloaded.
    """

    def __init__(
        self, name: str, source_language: str, target_language: str, data_dir: str | None = None
    ):
        self.languages = (source_language, target_language)
        self._builder = _tfds_builder(name, data_dir)
        _check_languages(name, self._builder.info.features, self.languages)
        _ensure_prepared(name, self._builder)
        splits = self._builder.info.splits
        self._splits = [split for split in _TFDS_SPLITS if split in splits]
        known = ", ".join(splits) or "none"
        rule = f"--dataset=tfds:{name} must have a split train"
        require("train" in self._splits, rule, f"splits {known}")

    def settings(self) -> dict[str, Any]:
        return {
            "--dataset": f"tfds:{self._builder.info.full_name}",
            "--source_language": self.languages[0],
            "--target_language": self.languages[1],
            "the split sizes of --dataset": self.counts(),
        }

    def counts(self) -> dict[str, int]:
        return {split: self._builder.info.splits[split].num_examples for split in self._splits}

    def pairs(self, split: str) -> Iterator[Pair]:
        dataset = self._builder.as_dataset(split=split, shuffle_files=False)
        for batch in dataset.batch(_TFDS_BATCH).as_numpy_iterator():
            sides = (batch[language].tolist() for language in self.languages)
            for source, target in zip(*sides, strict=True):
                yield _one_line(source), _one_line(target)


class GrammarSource(Source):
    """English-German pairs of the embedded grammar.

    Args:
        train_pairs: size of the training split; the others have 1,000 pairs each.
        seed: determines the sentences.
    """

    languages = ("en", "de")

    def __init__(self, train_pairs: int, seed: int):
        require(train_pairs >= 1, "--grammar_pairs must be at least 1", train_pairs)
        self._train_pairs = train_pairs
        self._seed = seed

    def settings(self) -> dict[str, Any]:
        sample = (
            "\t".join(pair)
            for split in self.counts()
            for pair in itertools.islice(self.pairs(split), _FINGERPRINT_PAIRS)
        )
        return {
            "--dataset": "grammar",
            "--grammar_pairs": self._train_pairs,
            "the grammar's sentences": hashlib.sha256("\n".join(sample).encode()).hexdigest(),
        }

    def counts(self) -> dict[str, int]:
        from pipelines import grammar

        return {
            split: self._train_pairs if split == "train" else _GRAMMAR_EVALUATION_PAIRS
            for split in grammar.SPLITS
        }

    def pairs(self, split: str) -> Iterator[Pair]:
        from pipelines import grammar

        return grammar.sentence_pairs(split, self.counts()[split], self._seed)


def _tfds_builder(name: str, data_dir: str | None):
    import tensorflow_datasets as tfds

    try:
        return tfds.builder(name, data_dir=data_dir, try_gcs=False)
    except tfds.core.registered.DatasetNotFoundError:
        rule = "must be a data set that TFDS knows or that is in --tfds_data_dir"
    except Exception as error:  # TFDS raises many types, including AssertionError
        rule = f"must name a configuration and version that TFDS knows ({_brief(error)})"
    raise InputError(f"--dataset {rule}. Received: tfds:{name}")


def _check_languages(name: str, features, languages: Pair) -> None:
    import tensorflow_datasets as tfds

    # Translation is a FeaturesDict; the features of some other data sets are not.
    features = dict(features) if isinstance(features, tfds.features.FeaturesDict) else {}
    texts = [key for key, feature in features.items() if isinstance(feature, tfds.features.Text)]
    rule = "--dataset must be a translation set, with a Translation feature"
    require(len(texts) >= 2, rule, f"tfds:{name}, which has the features {', '.join(features)}")
    for flag, language in zip(("source", "target"), languages, strict=True):
        rule = f"--{flag}_language must be one of {', '.join(texts)} for tfds:{name}"
        require(language in texts, rule, repr(language))
    rule = "--target_language must differ from --source_language"
    require(languages[0] != languages[1], rule, repr(languages[1]))


def _ensure_prepared(name: str, builder) -> None:
    """Downloads a data set that is not on disk, or says how to copy it there."""
    if builder.is_prepared():
        return
    logging.info("downloading tfds:%s to %s", name, builder.data_dir)
    try:
        _check_network(builder)
        with contextlib.redirect_stdout(sys.stderr):  # stdout is for results
            builder.download_and_prepare()
    except ImportError as error:
        raise InputError(
            f"--dataset=tfds:{name} must have the Python packages that TFDS needs for it. "
            f"Received: {error}"
        ) from error
    except Exception as error:  # TFDS passes on all errors of the download and of parsing
        raise InputError(
            f"--tfds_data_dir must hold tfds:{name} where it cannot be downloaded: run `tfds build "
            f"{name}` on a machine with a network, and copy its ~/tensorflow_datasets here. "
            f"Received: {builder.data_dir}, without it ({_brief(error)})"
        ) from error


def _check_network(builder) -> None:
    """Raises a ConnectionError where no server answers: TFDS would try for minutes."""
    import requests  # what TFDS downloads with

    urls = {urlsplit(url).netloc: url for url in builder.url_infos or {}}
    logging.info("waiting for an answer of %s", " or ".join(urls))
    for url in list(urls.values())[:2]:
        with contextlib.suppress(requests.RequestException):
            return requests.head(url, timeout=_TFDS_SECONDS).close()
    if urls:
        raise ConnectionError(f"no answer of {' or '.join(urls)}")


def _brief(error: Exception) -> str:
    """The type and first line of an error."""
    return f"{type(error).__name__}: {reason(error)[:200]}"


def read_lines(path: str, flag: str) -> Iterator[str]:
    """Streams the lines of a UTF-8 text file, plain, .gz or .zst; see `files.text_lines`.

    Raises:
        InputError: naming `flag` and the file, or the file and the line, where it is not text.
    """
    number = 0
    try:
        with _open(path, flag) as file:
            for number, line in enumerate(text_lines(file, path), start=1):
                if "\0" in line:
                    raise InputError(f"{path}:{number} must be text. Received: a NUL character")
                yield line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(
            f"{flag} must be a whole compressed file. Received: {path}, broken after line {number} "
            f"({error})"
        ) from None
    require(number, f"{flag} must not be empty", path)


def _open(path: str, flag: str):
    if not path.endswith(tuple(_COMPRESSED.values())):
        with opened(path) as file:
            kind = _COMPRESSED.get(file.read(2))
        require(kind is None, f"{flag} must end in {kind} if it is compressed", path)
    return opened(path)


def matching_files(flag: str, paths: list[str]) -> list[str]:
    """The files that paths name, where those with *, ? or [ may name several, in order of names."""
    found = []
    for path in paths:
        files = [path]
        if set("*?[") & set(path) and not to_path(path).exists():
            pattern = to_path(path)
            files = sorted(map(str, pattern.parent.glob(pattern.name)))
            require(files, f"{flag} must match a file", path)
        found += files
    return found


def check_files(flag: str, paths: list[str]) -> None:
    """Raises an InputError for a missing or empty list or file."""
    require(paths, f"{flag} must name at least one file", "none")
    for path in paths:
        rule = f"{flag} must be a file, which is read several times"
        require(not Path(path).is_fifo(), rule, f"{path}, a pipe")
        try:
            with to_path(path).open("rb") as file:
                require(file.read(1), f"{flag} must not be empty", path)
        except OSError as error:
            raise InputError(
                f"{flag} must be a readable file. Received: {path} ({error.strerror})"
            ) from None


def _flags(split: str) -> str:
    return f"{_flag(split, 'source')} and {_flag(split, 'target')}"


def _flag(split: str, side: str) -> str:
    return f"--{split}_{side}"


def _language(paths: list[str]) -> str:
    """Guesses a language from a file name such as train.de.gz; it is only shown to users."""
    name = Path(paths[0])
    return Path(name.stem if name.suffix in _COMPRESSED.values() else name).suffix[1:]


def sha256(path: str) -> str:
    digest = hashlib.sha256()
    with to_path(path).open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _one_line(text: bytes) -> str:
    """A sentence without line breaks, which would break it in text files."""
    return " ".join(text.decode("utf-8", errors="replace").split("\n"))
