"""Combines the files that a caller names, in any form that `prepare` takes, into one source."""

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keras_transformer.errors import InputError, require
from pipelines.many_languages import argument_of, source_of_files, source_of_parallel_text
from pipelines.sources import FileSource
from pipelines.text_files import matching_files

AnyPath = str | os.PathLike
Paths = AnyPath | Iterable[AnyPath]
SPLITS = ("train", "validation", "test")
Files = dict[str, tuple[list[str], list[str]]]  # split -> files of source and target


@dataclasses.dataclass(frozen=True)
class FileArguments:
    """The files for a data set, plain, .gz or .zst, and their languages.

    Each argument is one path or several, possibly with patterns such as "*.en".

    Args:
        train_source, train_target: text to train on, one sentence per line. Line n of one is the
            translation of line n of the other.
        validation_source, validation_target: text to measure progress on.
        test_source, test_target: text to score the trained model on.
        train_pairs, validation_pairs, test_pairs: files that contain both sides, in addition to
            those or instead: .tsv, .jsonl, .tmx, .po, .xliff; see pipelines/pair_files.py.
        source_language, target_language: such as "en"; required with pairs, and otherwise guessed
            from the file names.
        target_languages: for one model with several directions, the language of each train_target
            file, such as ["de", "cs", "en"]. Source files have their language as suffix.
        validation_target_languages, test_target_languages: the same for those splits;
            target_languages by default.
        parallel: instead of train_source and train_target, language -> file or files, such as
            {"en": "train.en", "de": "train.de", "cs": "train.cs"}: line n of each is the
            translation of line n of the others.
        validation_parallel, test_parallel: the same for those splits.
        directions: the directions of parallel text to use, such as ["en-de", "de-cs"]; all by
            default.
    """

    train_source: Paths = ()
    train_target: Paths = ()
    validation_source: Paths = ()
    validation_target: Paths = ()
    test_source: Paths = ()
    test_target: Paths = ()
    train_pairs: Paths = ()
    validation_pairs: Paths = ()
    test_pairs: Paths = ()
    source_language: str | None = None
    target_language: str | None = None
    target_languages: Iterable[str] | None = None
    validation_target_languages: Iterable[str] | None = None
    test_target_languages: Iterable[str] | None = None
    parallel: Mapping[str, Paths] | None = None
    validation_parallel: Mapping[str, Paths] | None = None
    test_parallel: Mapping[str, Paths] | None = None
    directions: Iterable[str] | None = None

    def of_splits(self, argument: str) -> dict[str, Any]:
        """Returns split -> the value of a per-split argument, such as "pairs"."""
        return {split: getattr(self, argument_of(argument, split)) for split in SPLITS}


def file_source(arguments: FileArguments) -> FileSource:
    """Makes a source from files, for one direction or several.

    Raises:
        InputError: for arguments of wrong types, incompatible arguments, and unusable files.
    """
    pair_files = _pair_files(arguments)
    texts = _parallel_texts(arguments.of_splits("parallel"))
    languages_of_files = _languages_of_files(arguments.of_splits("target_languages"))
    languages = _both_languages(arguments.source_language, arguments.target_language)
    directions = arguments.directions
    chosen = None if directions is None else _names(directions, "directions")
    files = _text_files(arguments, needs_train="train" not in pair_files and not texts)
    received = ",".join(chosen or [])
    require(chosen is None or texts, "directions", "must be given with parallel", received)
    if not languages_of_files and not texts:
        return FileSource(files, pair_files, languages)
    kind = "parallel" if texts else "target_languages"
    _refuse({f"{split}_pairs": paths for split, paths in pair_files.items()}, kind)
    _refuse({"source_language": languages}, kind)
    if texts:
        _refuse({f"{split}_source": sources for split, (sources, _) in files.items()}, kind)
        given = {
            argument_of("target_languages", split): names
            for split, names in languages_of_files.items()
        }
        _refuse(given, kind)
        require("train" in texts, "parallel", "must be given for training", "none")
        return source_of_parallel_text(texts, chosen)
    rule = "must be given for the training files"
    require("train" in languages_of_files, "target_languages", rule, "none")
    return source_of_files(files, languages_of_files)


def paths_of(paths: Paths, argument: str) -> list[str]:
    """Makes a list from one path or several."""
    listed = [paths] if isinstance(paths, AnyPath) else paths
    is_list = isinstance(listed, Iterable)
    listed = list(listed) if is_list else []
    are_paths = is_list and all(isinstance(path, AnyPath) for path in listed)
    require(are_paths, argument, "must be a path, or a list of paths", repr(paths))
    return [os.fspath(path) for path in listed]


def _text_files(arguments: FileArguments, needs_train: bool) -> Files:
    """Returns the source and target files of each split that has any."""
    files = {}
    for split in SPLITS:
        source, target = f"{split}_source", f"{split}_target"
        source_files = _files(arguments, source)
        target_files = _files(arguments, target)
        if source_files or target_files or (split == "train" and needs_train):
            require(source_files, source, "must be given", "none")
            require(target_files, target, f"must be given with {source}", "none")
            files[split] = (source_files, target_files)
    return files


def _pair_files(arguments: FileArguments) -> dict[str, list[str]]:
    """Returns the files with both sides for each split that has any."""
    files = {split: _files(arguments, f"{split}_pairs") for split in SPLITS}
    return {split: found for split, found in files.items() if found}


def _files(arguments: FileArguments, argument: str) -> list[str]:
    return matching_files(argument, paths_of(getattr(arguments, argument), argument))


def _parallel_texts(
    given: Mapping[str, Mapping[str, Paths] | None],
) -> dict[str, dict[str, list[str]]]:
    """Returns split -> language -> files, for each given split."""
    texts = {}
    rule = 'must map languages to files, such as {"en": "train.en"}'
    for split, files in given.items():
        if files is None:
            continue
        argument = argument_of("parallel", split)
        is_by_name = isinstance(files, Mapping) and all(isinstance(name, str) for name in files)
        require(is_by_name, argument, rule, repr(files))
        texts[split] = {
            language: matching_files(argument, paths_of(paths, f"{argument}[{language!r}]"))
            for language, paths in files.items()
        }
    return texts


def _languages_of_files(given: Mapping[str, Iterable[str] | None]) -> dict[str, list[str]]:
    """Returns the target languages of the files, for each split with these."""
    return {
        split: _names(names, argument_of("target_languages", split))
        for split, names in given.items()
        if names is not None
    }


def _both_languages(source: str | None, target: str | None) -> tuple[str, str] | None:
    if source is None and target is None:
        return None
    are_texts = isinstance(source, str) and isinstance(target, str)
    rule = "must be given with target_language, both as strings"
    require(are_texts, "source_language", rule, (source, target))
    return source, target


def _names(names: Iterable[str], argument: str) -> list[str]:
    """Makes a list of names, such as languages."""
    is_list = isinstance(names, Iterable) and not isinstance(names, str)
    listed = list(names) if is_list else []
    are_names = is_list and all(isinstance(name, str) for name in listed)
    require(are_names, argument, 'must be a list of names, such as ["de", "cs"]', repr(names))
    return listed


def _refuse(given: Mapping[str, Sequence[str] | None], kind: str) -> None:
    """Rejects arguments for another kind of text."""
    for argument, values in given.items():
        if values:
            raise InputError(argument, f"must not be given with {kind}", ",".join(values))
