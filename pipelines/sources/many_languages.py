"""Data for models with several directions: each source begins with its target language's code.

With source_codes, its own language's code follows. The files of each direction are those of a
FileSource with directions. Codes are added last, after everything that inspects or changes text:
filters, copies in capitals, and vocabulary learning do not see codes.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence

from keras_transformer.core.vocabulary.language_codes import (
    Direction,
    coded,
    is_language,
    source_languages_of,
)
from keras_transformer.support.errors import require
from pipelines.sources.files import FileSource, language_of
from pipelines.sources.source import DerivedSource, Pair, Source

Files = tuple[list[str], list[str]]  # of source and target


def with_codes(source: Source) -> Source:
    """Returns the source itself or, with several directions, one whose pairs begin with codes."""
    return CodedSource(source) if source.target_languages else source


def code_languages(source: Source) -> list[str]:
    """Returns the languages whose codes the sources begin with, each once."""
    of_sources = source_languages_of(source.task_options())
    return list(dict.fromkeys([*source.target_languages, *of_sources]))


class CodedSource(DerivedSource):
    """A source with several directions, whose pairs begin with their target language's code."""

    def pairs(self, split: str) -> Iterator[Pair]:
        for part in self._source.parts(split):
            for source, target in part.pairs(split):
                yield self._coded(source, part), target

    def rows(self, split: str) -> Iterator[Sequence[str]]:
        for part in self._source.parts(split):
            for source, *others in part.rows(split):
                yield (self._coded(source, part), *others)

    def parts(self, split: str) -> list[Source]:
        return [CodedSource(part) for part in self._source.parts(split)]

    def _coded(self, text: str, part: Source) -> str:
        """Prepends the codes of a part's languages to a source text; a blank text stays blank."""
        source_language, target_language = part.languages
        languages = [target_language]
        if source_languages_of(self._source.task_options()):
            languages.append(source_language)
        return coded(text, languages)


def source_of_files(
    files: Mapping[str, Files],
    target_languages: Mapping[str, Sequence[str]],
    source_codes: bool = False,
) -> FileSource:
    """Makes a source from parallel files for several directions.

    Args:
        files: split -> (source files, target files), as for a FileSource. The name of a source file
            ends in its language, as in train.en.
        target_languages: split -> the language of each target file; those of "train" are the
            default for other splits.
        source_codes: whether sources have the codes of their own languages, too.

    Raises:
        InputError: if languages do not match the files.
    """
    directions = {}
    known = set(itertools.chain.from_iterable(target_languages.values()))
    for split, (source_files, target_files) in files.items():
        argument = argument_of("target_languages", split)
        languages = target_languages.get(split) or target_languages["train"]
        _check_codes(languages, argument)
        rule = f"must have a language for each {split}_target file"
        received = f"{','.join(languages)} for {len(target_files)} files"
        require(len(languages) == len(target_files), argument, rule, received)
        for path, language in zip(target_files, languages, strict=True):
            is_other = language_of(path) in known - {language}
            require(
                not is_other,
                argument,
                "must be the languages of the files",
                f"{language} of {path}",
            )
        sources = [language_of(path) for path in source_files]
        rule = "must be files whose names end in their language, such as train.en"
        require(all(sources), f"{split}_source", rule, ",".join(source_files))
        directions[split] = _directions(sources, languages, argument)
    return FileSource(dict(files), directions=directions, source_codes=source_codes)


def source_of_parallel_text(
    parallel: Mapping[str, Mapping[str, Sequence[str]]],
    names: Sequence[str] | None = None,
    source_codes: bool = False,
) -> FileSource:
    """Makes a source from text in several languages.

    Args:
        parallel: split -> language -> its files; line n of a file has the same meaning as line n of
            the corresponding file in another language. Other splits may have fewer languages than
            "train".
        names: the directions, such as "en-de"; by default all, in the order of the languages.
        source_codes: whether sources have the codes of their own languages, too.

    Raises:
        InputError: if the files or directions are invalid.
    """
    known = list(parallel["train"])
    _check_codes(known, "parallel")
    require(
        len(known) >= 2, "parallel", "must have at least two languages", ",".join(known) or "none"
    )
    all_directions = {str(each): each for each in _all_directions(known)}
    chosen = list(all_directions) if names is None else list(dict.fromkeys(names))
    require(chosen, "directions", "must name at least one direction", "none")
    for name in chosen:
        rule = f"must be SOURCE-TARGET with the languages {', '.join(known)}"
        require(name in all_directions, "directions", rule, name)
    files, directions, arguments = {}, {}, {}
    for split, files_of in parallel.items():
        argument = argument_of("parallel", split)
        for language in files_of:
            rule = f"must only have languages of parallel: {', '.join(known)}"
            require(language in known, argument, rule, language)
        counts = {language: len(paths) for language, paths in files_of.items()}
        rule = "must have the same number of files for each language"
        require(len(set(counts.values())) == 1, argument, rule, counts)
        of_split = [
            all_directions[name] for name in chosen if set(all_directions[name]) <= set(files_of)
        ]
        rule = f"must have both languages of a direction: {', '.join(chosen)}"
        require(of_split, argument, rule, ", ".join(files_of))
        sources = [path for each in of_split for path in files_of[each.source]]
        targets = [path for each in of_split for path in files_of[each.target]]
        files[split] = (sources, targets)
        directions[split] = [each for each in of_split for _ in files_of[each.source]]
        arguments[split] = (argument, argument)
    return FileSource(files, directions=directions, arguments=arguments, source_codes=source_codes)


def argument_of(name: str, split: str) -> str:
    """Returns the name of a split's argument: "parallel", "test_parallel"."""
    return name if split == "train" else f"{split}_{name}"


def _all_directions(languages: Sequence[str]) -> Iterator[Direction]:
    for pair in itertools.permutations(languages, 2):
        yield Direction(*pair)


def _check_codes(languages: Sequence[str], argument: str) -> None:
    for language in languages:
        rule = "must be language codes: letters, digits, - and _, such as pt-BR"
        require(is_language(language), argument, rule, repr(language))


def _directions(sources: Sequence[str], targets: Sequence[str], argument: str) -> list[Direction]:
    directions = [Direction(*pair) for pair in zip(sources, targets, strict=True)]
    for direction in directions:
        rule = "must differ from the languages of the source files"
        require(direction.source != direction.target, argument, rule, direction)
    return directions
