"""The languages of a model, as far as they are known."""

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

from keras_transformer.language_codes import Direction, directions_of, target_languages_of
from keras_transformer.training.model_directory import ModelDescription

AUTO = "auto"  # instead of the source's code: any language


class ModelLanguages(NamedTuple):
    """The languages of a model, as codes."""

    directions: tuple[Direction, ...]  # none if an imported model's source languages are unknown
    targets: tuple[str, ...]
    has_codes: bool = False  # whether texts must select a target

    @property
    def sources(self) -> list[str]:
        """The source languages, each once."""
        return list(dict.fromkeys(direction.source for direction in self.directions))

    def targets_of(self, source: str) -> list[str]:
        """Returns the target languages for a source language."""
        return [each.target for each in self.directions if each.source == source]


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
        return ModelLanguages(tuple(directions_of(task_options)), tuple(targets), has_codes=True)
    codes = description.languages or evaluated or ()
    if len(codes) != 2 or not all(map(is_language_code, codes)):
        return None
    direction = Direction(*codes)
    return ModelLanguages((direction,), (direction.target,))


def name_of(code: str) -> str:
    """Returns the English name of a language, or its code if the name is unknown."""
    return _names().get(code) or _names().get(primary(code), code)


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
