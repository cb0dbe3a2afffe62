"""The codes with which the sources of a model of several target languages begin.

">>de<< A man rides a bike." is to be translated into German. A code is one id of the vocabulary
(Johnson et al. 2017, arXiv 1611.04558), and such a model reads it as the first one of a sentence.
Models of Marian have the same codes.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, NamedTuple

from keras_transformer.fields import Rule, from_json

_is_language = re.compile(r"[A-Za-z0-9]+([-_][A-Za-z0-9]+)*").fullmatch
# A piece of a vocabulary that is a code. RE2, which TensorFlow uses, reads it, too.
CODE_PATTERN = r">>[^<>\s]+<<"


class Direction(NamedTuple):
    """The languages of sources and targets."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"


def is_language(name: str) -> bool:
    """Whether a language may have this name: letters and digits, with - and _ between them."""
    return _is_language(name) is not None


def code_of(language: str) -> str:
    """The code of a target language: ">>de<<" of "de"."""
    return f">>{language}<<"


def is_code(piece: str) -> bool:
    """Whether a piece of a vocabulary is the code of a language."""
    return re.fullmatch(CODE_PATTERN, piece) is not None


def pattern_of(languages: Iterable[str]) -> str:
    """A regular expression, also for RE2, that matches the codes of these languages."""
    return f">>(?:{'|'.join(map(re.escape, languages))})<<"


def options_of(directions: Iterable[Direction]) -> dict[str, Any]:
    """The task options of a model of several directions, from which the next two read."""
    directions = list(dict.fromkeys(directions))
    targets = list(dict.fromkeys(direction.target for direction in directions))
    return {"target_languages": targets, "directions": [list(each) for each in directions]}


def target_languages_of(task_options: Mapping[str, Any]) -> list[str]:
    """The languages that a model translates into as codes say; none if its sources have no codes.

    Raises:
        InputError: if the options are not those of such a model.
    """
    return _checked(task_options).get("target_languages") or []


def directions_of(task_options: Mapping[str, Any]) -> list[Direction]:
    """The directions that a model of several ones was trained for, as far as they are known.

    Raises:
        InputError: if the options are not those of such a model.
    """
    return [Direction(*pair) for pair in _checked(task_options).get("directions") or []]


def _checked(task_options: Mapping[str, Any]) -> Mapping[str, Any]:
    pair = Annotated[list[str], Rule("be two languages", lambda names: len(names) == 2)]
    kinds = {"target_languages?": list[str], "directions?": list[pair]}
    return from_json(kinds, task_options, "task_options")
