"""The languages of a model, as far as they are known."""

import functools
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from keras_transformer.core.training.model_directory import ModelDescription
from keras_transformer.core.vocabulary.language_codes import (
    Direction,
    coded,
    directions_of,
    source_languages_of,
    target_languages_of,
)

AUTO = "auto"  # instead of the source's code: any language


class ModelLanguages(NamedTuple):
    """The languages of a model, as codes."""

    # None if an imported model's source languages are unknown, or if it has all of them.
    directions: tuple[Direction, ...]
    targets: tuple[str, ...]
    has_codes: bool = False  # whether texts must select a target
    coded_sources: tuple[str, ...] = ()  # the source languages, if texts must select one, too

    @property
    def sources(self) -> list[str]:
        """The source languages, each once; none if they are unknown."""
        known = [*self.coded_sources, *(direction.source for direction in self.directions)]
        return list(dict.fromkeys(known))

    def coded(self, text: str, direction: Direction) -> str:
        """Returns a text as the model reads it in a direction, with the codes that it needs."""
        languages = [direction.target] if self.has_codes else []
        if self.coded_sources:
            languages.append(direction.source)
        return coded(text, languages)

    def targets_of(self, source: str) -> list[str]:
        """Returns the target languages for a source language."""
        if self.directions or source not in self.coded_sources:
            return [each.target for each in self.directions if each.source == source]
        return [target for target in self.targets if target != source]


def model_languages(
    description: ModelDescription, evaluated: Sequence[str] | None = None
) -> ModelLanguages | None:
    """Finds the languages of a model.

    Args:
        description: the model.
        evaluated: the languages of the data that it was evaluated on, if they are known; used for a
            model whose training data is unknown.

    Returns:
        None for a parsing model, and if no languages are known, or only file suffixes that are not
        languages.
    """
    if description.task != "translation":
        return None
    task_options = description.task_options
    targets = target_languages_of(task_options)
    if targets:
        return ModelLanguages(
            tuple(directions_of(task_options)),
            tuple(targets),
            has_codes=True,
            coded_sources=tuple(source_languages_of(task_options)),
        )
    codes = description.languages or evaluated or ()
    if len(codes) != 2 or not all(map(is_language_code, codes)):
        return None
    direction = Direction(*codes)
    return ModelLanguages((direction,), (direction.target,))


def name_of(code: str) -> str:
    """Returns the English name of a language, or its code if the name is unknown."""
    short = short_code(code)
    name = _names().get(short.replace("-", "_")) or _names().get(primary(short))
    if name is None:
        return code
    # Two scripts of a language are two languages of a model; regions are not.
    script = re.search("-([A-Z][a-z]{3})$", short)
    is_named = short.replace("-", "_") in _names()
    return name if script is None or is_named else f"{name} ({script[1]})"


def find_language(codes: Collection[str], name: str) -> str | None:
    """Finds a language among a model's, whose codes may be longer: "deu_Latn" for "de".

    Args:
        codes: the model's.
        name: one of the codes; or a shorter one, if only one of `codes` has this short code.

    Returns:
        One of `codes`, or None.
    """
    if name in codes or all(len(primary(code)) == 2 for code in codes):
        return name if name in codes else None
    same = [code for code in codes if short_code(code) == short_code(name)]
    return same[0] if len(same) == 1 else None


def short_code(code: str) -> str:
    """Returns a code with two letters where there is one, and without the language's usual script.

    Examples:
        "de" for "deu_Latn", "zh" for "zho_Hans", "zh-Hant" for "zho_Hant", "ace-Arab" for
        "ace_Arab"; a two-letter code stays as it is.
    """
    language, *others = re.split("[-_]", code)
    if len(language) == 2:
        return code
    from babel.core import get_global

    language = get_global("language_aliases").get(language, language)
    likely = get_global("likely_subtags").get(language, "").split("_")  # "de_Latn_DE" for "de"
    return "-".join([language, *(other for other in others if other not in likely[1:2])])


def primary(code: str) -> str:
    """Returns a code without its region or script: "pt" for "pt-BR" and "pt_BR"."""
    return re.split("[-_]", code.lower())[0]


def is_same(code: str, asked: str) -> bool:
    """Whether the requested language matches `code`; "en-US" matches "en"."""
    return code.lower() in (asked.lower().replace("_", "-"), asked.lower(), primary(asked))


def is_language_code(code: str) -> bool:
    """Whether this is the code of a language: two letters, or one that CLDR names."""
    return re.fullmatch("[a-z]{2}", primary(code)) is not None or primary(code) in _names()


@functools.cache
def _names() -> dict[str, str]:
    """English names by code."""
    from babel import Locale  # not needed for two-letter codes

    return Locale("en").languages
