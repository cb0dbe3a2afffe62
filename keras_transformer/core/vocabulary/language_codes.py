"""Codes at the beginning of sources, for models with several target languages.

">>de<< A man rides a bike." is to be translated into German. A code is one id in the vocabulary
(Johnson et al. 2017, arXiv 1611.04558), and the model reads it as the first id of a sentence.
Marian models use the same codes.

M2M-100 and NLLB-200 need the source's code, too, as the second id: ">>de<< >>en<< A man rides a
bike." There, the decoder reads the target's code (TransformerConfig.decoder_reads_code).

A code is a control symbol of a SentencePiece model, and in WordPiece a line that matches no word,
so a code inside a text never becomes this id.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, NamedTuple

from keras_transformer.support.fields import Rule, from_json

_is_language = re.compile(r"[A-Za-z0-9]+([-_][A-Za-z0-9]+)*").fullmatch
# A vocabulary piece that is a code. Also valid in RE2, which TensorFlow uses.
CODE_PATTERN = r">>[^<>\s]+<<"


class Direction(NamedTuple):
    """A source language and a target language."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"


def is_language(name: str) -> bool:
    """Whether this is a valid language name: letters and digits, with - and _ between them."""
    return _is_language(name) is not None


def code_of(language: str) -> str:
    """Returns the code for a target language: ">>de<<" for "de"."""
    return f">>{language}<<"


def coded(text: str, languages: Iterable[str]) -> str:
    """Puts the codes of languages before a text, in order; a blank text stays as it is."""
    return " ".join([*map(code_of, languages), text]) if text.strip() else text


def is_code(piece: str) -> bool:
    """Whether a vocabulary piece is a language code."""
    return re.fullmatch(CODE_PATTERN, piece) is not None


def pattern_of(languages: Iterable[str]) -> str:
    """Returns a regular expression, also valid in RE2, that matches these languages' codes."""
    return f">>(?:{'|'.join(map(re.escape, languages))})<<"


def options_of(directions: Iterable[Direction], source_codes: bool = False) -> dict[str, Any]:
    """Returns the task options of a model with several directions, for the next functions.

    Args:
        directions: the directions.
        source_codes: whether texts have the codes of their sources, too.
    """
    directions = list(dict.fromkeys(directions))
    targets = list(dict.fromkeys(direction.target for direction in directions))
    options = {"target_languages": targets, "directions": [list(each) for each in directions]}
    if source_codes:
        options["source_languages"] = list(dict.fromkeys(each.source for each in directions))
    return options


def target_languages_of(task_options: Mapping[str, Any]) -> list[str]:
    """Returns the target languages that codes select; none if sources have no codes.

    Raises:
        InputError: if the options are invalid for such a model.
    """
    return _checked(task_options).get("target_languages") or []


def source_languages_of(task_options: Mapping[str, Any]) -> list[str]:
    """Returns the source languages whose codes follow the target's; none if sources have none.

    Raises:
        InputError: if the options are invalid for such a model.
    """
    return _checked(task_options).get("source_languages") or []


def directions_of(task_options: Mapping[str, Any]) -> list[Direction]:
    """Returns the directions that a model was trained for, if it has several and they are known.

    Raises:
        InputError: if the options are invalid for such a model.
    """
    return [Direction(*pair) for pair in _checked(task_options).get("directions") or []]


def _checked(task_options: Mapping[str, Any]) -> Mapping[str, Any]:
    pair = Annotated[list[str], Rule("be two languages", lambda names: len(names) == 2)]
    languages = ("target_languages?", "source_languages?")
    kinds = {**dict.fromkeys(languages, list[str]), "directions?": list[pair]}
    return from_json(kinds, task_options, "task_options")
