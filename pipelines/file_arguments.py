"""The files that a caller names, in any of the ways that `prepare` takes, as one source."""

import os
from collections.abc import Iterable, Mapping, Sequence

from keras_transformer.errors import InputError, require
from pipelines.many_languages import argument_of, source_of_files, source_of_parallel_text
from pipelines.sources import FileSource
from pipelines.text_files import matching_files

AnyPath = str | os.PathLike
Paths = AnyPath | Iterable[AnyPath]
Files = dict[str, tuple[list[str], list[str]]]  # split -> files of source and target


def file_source(
    train_source: Paths = (),
    train_target: Paths = (),
    validation_source: Paths = (),
    validation_target: Paths = (),
    test_source: Paths = (),
    test_target: Paths = (),
    train_pairs: Paths = (),
    validation_pairs: Paths = (),
    test_pairs: Paths = (),
    source_language: str | None = None,
    target_language: str | None = None,
    target_languages: Iterable[str] | None = None,
    validation_target_languages: Iterable[str] | None = None,
    test_target_languages: Iterable[str] | None = None,
    parallel: Mapping[str, Paths] | None = None,
    validation_parallel: Mapping[str, Paths] | None = None,
    test_parallel: Mapping[str, Paths] | None = None,
    directions: Iterable[str] | None = None,
) -> FileSource:
    """Makes a source of files, of one direction or of several.

    Args: as of `keras_transformer.prepare`.

    Raises:
        InputError: for arguments of other types, arguments that do not go together, and files that
            cannot be used.
    """
    pair_files = _pair_files(
        {"train": train_pairs, "validation": validation_pairs, "test": test_pairs}
    )
    texts = _parallel_texts(
        {"train": parallel, "validation": validation_parallel, "test": test_parallel}
    )
    languages_of_files = _languages_of_files(
        {
            "train": target_languages,
            "validation": validation_target_languages,
            "test": test_target_languages,
        }
    )
    languages = _both_languages(source_language, target_language)
    chosen = None if directions is None else _names(directions, "directions")
    files = _parallel_files(
        {
            "train": (train_source, train_target),
            "validation": (validation_source, validation_target),
            "test": (test_source, test_target),
        },
        needs_train="train" not in pair_files and not texts,
    )
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
        require("train" in texts, "parallel", "must be given, for training", "none")
        return source_of_parallel_text(texts, chosen)
    rule = "must be given, for the training files"
    require("train" in languages_of_files, "target_languages", rule, "none")
    return source_of_files(files, languages_of_files)


def paths_of(paths: Paths, argument: str) -> list[str]:
    """Makes a list of one path, or of several."""
    listed = [paths] if isinstance(paths, AnyPath) else paths
    is_list = isinstance(listed, Iterable)
    listed = list(listed) if is_list else []
    are_paths = is_list and all(isinstance(path, AnyPath) for path in listed)
    require(are_paths, argument, "must be a path, or a list of paths", repr(paths))
    return [os.fspath(path) for path in listed]


def _parallel_files(given: Mapping[str, tuple[Paths, Paths]], needs_train: bool) -> Files:
    """The files of each split that has any."""
    files = {}
    for split, (source, target) in given.items():
        source_argument, target_argument = f"{split}_source", f"{split}_target"
        source_files = matching_files(source_argument, paths_of(source, source_argument))
        target_files = matching_files(target_argument, paths_of(target, target_argument))
        if source_files or target_files or (split == "train" and needs_train):
            require(source_files, source_argument, "must be given", "none")
            require(target_files, target_argument, f"must be given with {source_argument}", "none")
            files[split] = (source_files, target_files)
    return files


def _pair_files(given: Mapping[str, Paths]) -> dict[str, list[str]]:
    """The files that hold both sides, of each split that has any."""
    files = {}
    for split, paths in given.items():
        argument = f"{split}_pairs"
        found = matching_files(argument, paths_of(paths, argument))
        if found:
            files[split] = found
    return files


def _parallel_texts(
    given: Mapping[str, Mapping[str, Paths] | None],
) -> dict[str, dict[str, list[str]]]:
    """Split -> language -> files, of each split that is given."""
    texts = {}
    rule = 'must be files by their languages, as {"en": "train.en"}'
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
    """The target languages of the files of each split for which they are given."""
    return {
        split: _names(names, argument_of("target_languages", split))
        for split, names in given.items()
        if names is not None
    }


def _both_languages(source: str | None, target: str | None) -> tuple[str, str] | None:
    if source is None and target is None:
        return None
    are_texts = isinstance(source, str) and isinstance(target, str)
    rule = "must be given with target_language, both as texts"
    require(are_texts, "source_language", rule, (source, target))
    return source, target


def _names(names: Iterable[str], argument: str) -> list[str]:
    """Makes a list of names, such as those of languages."""
    is_list = isinstance(names, Iterable) and not isinstance(names, str)
    listed = list(names) if is_list else []
    are_names = is_list and all(isinstance(name, str) for name in listed)
    require(are_names, argument, 'must be a list of names, as ["de", "cs"]', repr(names))
    return listed


def _refuse(given: Mapping[str, Sequence[str] | None], kind: str) -> None:
    """Refuses arguments that say something of another kind of text."""
    for argument, values in given.items():
        if values:
            raise InputError(argument, f"must not be given with {kind}", ",".join(values))
