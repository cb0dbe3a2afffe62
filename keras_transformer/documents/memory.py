"""A translation memory: known translations, used instead of the model's.

Sentences match regardless of white space and placeholders (placeholders.py). The translation gets
the placeholders of the sentence:

    Delete  {name}?     finds     Delete {file}?  ->  {file} löschen?     {name} löschen?
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from keras_transformer.documents.marked import UNSEEN
from keras_transformer.documents.placeholders import PLACEHOLDER
from keras_transformer.language_codes import CODE_PATTERN

_CODE = re.compile(rf"(?:{CODE_PATTERN} ?)?")


class _Form(NamedTuple):
    """A normalized text, and its distinct placeholders in order."""

    text: str
    placeholders: tuple[str, ...]


class TranslationMemory:
    """Looks up translations by their sources.

    Args:
        translations: source -> translation, both one line. The source may begin with the code of a
            target language.
    """

    def __init__(self, translations: Mapping[str, str]):
        self._found: dict[str, tuple[tuple[str, ...], str]] = {}
        for source, target in translations.items():
            form = _form(source)
            if form.text and target.strip():
                self._found[form.text] = form.placeholders, " ".join(target.split())

    def __len__(self) -> int:
        return len(self._found)

    def find(self, text: str, phrases: Iterable[str] = ()) -> str | None:
        """Finds the translation of a text, which has a language code if the sources do.

        Returns None if the text is not in the memory, or its translation lacks one of `phrases`.
        """
        form = _form(text)
        if form.text not in self._found:
            return None
        placeholders, target = self._found[form.text]
        replaced = dict(zip(placeholders, form.placeholders, strict=True))
        found = PLACEHOLDER.sub(lambda match: replaced.get(match[0], match[0]), target)
        return found if all(phrase in found for phrase in phrases) else None


def _form(text: str) -> _Form:
    start = _CODE.match(text).end()
    numbers: dict[str, int] = {}

    def number(match: re.Match) -> str:
        return f"\0{numbers.setdefault(match[0], len(numbers))}\0"

    words = PLACEHOLDER.sub(number, " ".join(UNSEEN.sub("", text[start:]).split()))
    return _Form(" ".join([*text[:start].split(), words]).strip(), tuple(numbers))
