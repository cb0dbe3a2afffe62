"""The files that a caller names, in any form that `prepare` takes, as one source."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keras_transformer.support.errors import InputError, require
from keras_transformer.support.fields import option
from pipelines.sources.files import FileSource, LanguageOptions
from pipelines.sources.many_languages import argument_of, source_of_files, source_of_parallel_text
from pipelines.sources.pair_files import READERS
from pipelines.sources.source import SPLITS
from pipelines.sources.text_files import Paths, matching_files

Files = dict[str, tuple[list[str], list[str]]]  # split -> files of source and target


@dataclasses.dataclass(frozen=True, kw_only=True)
class FileOptions(LanguageOptions):
    """The files for a data set, and their languages.

    Files are one path or several, possibly with patterns such as "*.en". Languages and directions
    are lists, such as ["de", "cs", "en"]. Text in several languages maps each language to its file
    or files, such as {"en": "train.en", "de": "train.de", "cs": "train.cs"}.
    """

    train_source: Paths = option(
        (), "Source text to train on, one sentence per line, plain, .gz or .zst: paths or patterns."
    )
    train_target: Paths = option(
        (), "Target text to train on: line n is the translation of line n of train_source."
    )
    train_pairs: Paths = option(
        (),
        "Files to train on that contain both sides, in addition to train_source and train_target "
        f"or instead: {', '.join(READERS)}.",
    )
    validation_source: Paths = option((), "Source text to measure progress on.")
    validation_target: Paths = option((), "Target text to measure progress on.")
    validation_pairs: Paths = option((), "Files with both sides to measure progress on.")
    test_source: Paths = option((), "Source text to score the trained model on.")
    test_target: Paths = option((), "Target text to score the trained model on.")
    test_pairs: Paths = option((), "Files with both sides to score the trained model on.")
    target_languages: Iterable[str] | None = option(
        None,
        "For one model with several directions: language of each train_target file, such as "
        "de,cs,en. Source files have their language as suffix.",
    )
    validation_target_languages: Iterable[str] | None = option(
        None, "Language of each validation_target file; target_languages by default."
    )
    test_target_languages: Iterable[str] | None = option(
        None, "Language of each test_target file; target_languages by default."
    )
    parallel: Mapping[str, Paths] | None = option(
        None,
        "For one model with several directions: the same text in each language, in place of "
        "train_source and train_target, such as en:train.en,de:train.de,cs:train.cs. Line n of "
        "each file is the translation of line n of the others.",
    )
    validation_parallel: Mapping[str, Paths] | None = option(
        None, "Like parallel, for the validation split."
    )
    test_parallel: Mapping[str, Paths] | None = option(None, "Like parallel, for the test split.")
    directions: Iterable[str] | None = option(
        None, "Directions of parallel to train, such as en-de,de-cs; all by default."
    )

    source_codes: bool = option(
        False,
        "With several directions: begin sources with the codes of both languages, as M2M-100 and "
        "NLLB-200 read them.",
    )

    def source(self) -> FileSource:
        return file_source(self)

    def of_splits(self, argument: str) -> dict[str, Any]:
        """Returns split -> the value of a per-split argument, such as "pairs"."""
        return {split: getattr(self, argument_of(argument, split)) for split in SPLITS}


def file_source(arguments: FileOptions) -> FileSource:
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
    source_codes = arguments.source_codes
    if not languages_of_files and not texts:
        rule = "must be given with target_languages or parallel"
        require(not source_codes, "source_codes", rule, "neither")
        return FileSource(files, pair_files, languages)
    kind = "parallel" if texts else "target_languages"
    _refuse({f"{split}_pairs": paths for split, paths in pair_files.items()}, kind)
    _refuse({"source_language": languages}, kind)
    if texts:
        _refuse({f"{split}_source": sources for split, (sources, _) in files.items()}, kind)
        target_languages = {
            argument_of("target_languages", split): names
            for split, names in languages_of_files.items()
        }
        _refuse(target_languages, kind)
        require("train" in texts, "parallel", "must be given for training", "none")
        return source_of_parallel_text(texts, chosen, source_codes)
    rule = "must be given for the training files"
    require("train" in languages_of_files, "target_languages", rule, "none")
    return source_of_files(files, languages_of_files, source_codes)


def _text_files(arguments: FileOptions, needs_train: bool) -> Files:
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


def _pair_files(arguments: FileOptions) -> dict[str, list[str]]:
    """Returns the files with both sides for each split that has any."""
    files = {split: _files(arguments, f"{split}_pairs") for split in SPLITS}
    return {split: paths for split, paths in files.items() if paths}


def _files(arguments: FileOptions, argument: str) -> list[str]:
    return matching_files(argument, getattr(arguments, argument))


def _parallel_texts(
    by_split: Mapping[str, Mapping[str, Paths] | None],
) -> dict[str, dict[str, list[str]]]:
    """Returns split -> language -> files, for each split that has any."""
    texts = {}
    rule = 'must map languages to files, such as {"en": "train.en"}'
    for split, by_language in by_split.items():
        if by_language is None:
            continue
        argument = argument_of("parallel", split)
        is_by_name = isinstance(by_language, Mapping) and all(
            isinstance(name, str) for name in by_language
        )
        require(is_by_name, argument, rule, repr(by_language))
        texts[split] = {
            language: matching_files(f"{argument}[{language!r}]", paths)
            for language, paths in by_language.items()
        }
    return texts


def _languages_of_files(names_by_split: Mapping[str, Iterable[str] | None]) -> dict[str, list[str]]:
    """Returns the target languages of the files, for each split with these."""
    return {
        split: _names(names, argument_of("target_languages", split))
        for split, names in names_by_split.items()
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


def _refuse(arguments: Mapping[str, Sequence[str] | None], kind: str) -> None:
    """Rejects arguments for another kind of text."""
    for argument, values in arguments.items():
        if values:
            raise InputError(argument, f"must not be given with {kind}", ",".join(values))
