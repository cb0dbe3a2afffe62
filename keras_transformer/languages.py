"""The languages of a model, as far as its card names them."""

import functools
import re
from typing import Any, NamedTuple

from keras_transformer.language_codes import Direction, directions_of, target_languages_of

AUTO = "auto"  # in place of the source's code: whatever language the text is in


class ModelLanguages(NamedTuple):
    """The languages of a model, as codes."""

    directions: tuple[Direction, ...]  # none where the sources of an imported model are not known
    targets: tuple[str, ...]
    has_codes: bool = False  # whether texts must say which of the targets they are for

    @property
    def sources(self) -> list[str]:
        """The languages of sources, each once."""
        return list(dict.fromkeys(direction.source for direction in self.directions))

    def targets_of(self, source: str) -> list[str]:
        """The languages that a source is translated into."""
        return [each.target for each in self.directions if each.source == source]


def model_languages(card: dict[str, Any]) -> ModelLanguages | None:
    """Finds the languages of a model.

    Args:
        card: of the model, as JSON has it.

    Returns:
        None for a parsing model, and where the card names endings of files that are no languages,
        or nothing: a model whose data is not known to it has no languages.
    """
    if card.get("task") != "translation":
        return None
    task_options = card.get("task_options") or {}
    targets = target_languages_of(task_options)
    if targets:
        return ModelLanguages(tuple(directions_of(task_options)), tuple(targets), has_codes=True)
    data, evaluation = card.get("data") or {}, card.get("evaluation") or {}
    codes = data.get("languages") or evaluation.get("languages") or ()
    if len(codes) != 2 or not all(map(is_language_code, codes)):
        return None
    direction = Direction(*codes)
    return ModelLanguages((direction,), (direction.target,))


def name_of(code: str) -> str:
    """The English name of a language, or its code where the name is not known."""
    return _names().get(code) or _names().get(primary(code), code)


def primary(code: str) -> str:
    """The language of a code with a region or a script: "pt" of "pt-BR" and "pt_BR"."""
    return re.split("[-_]", code.lower())[0]


def is_same(code: str, asked: str) -> bool:
    """Whether the language asked for is that of `code`; "en-US" is, of "en"."""
    return code.lower() in (asked.lower().replace("_", "-"), asked.lower(), primary(asked))


def is_language_code(code: str) -> bool:
    """Whether this is the code of a language: two letters, or one that CLDR names."""
    return re.fullmatch("[a-z]{2}", primary(code)) is not None or primary(code) in _names()


@functools.cache
def _names() -> dict[str, str]:
    """English names by code."""
    from babel import Locale  # not needed for codes of two letters

    return Locale("en").languages
