"""Puts the codes of languages before texts, as models with several languages expect."""

import re
from collections.abc import Sequence

from keras_transformer.core.vocabulary.language_codes import Direction, coded, pattern_of
from keras_transformer.support.errors import require
from keras_transformer.support.fields import shown
from keras_transformer.use.store.languages import ModelLanguages, find_language


class LanguagePrefix:
    """The codes before the texts of a model: the target's, and the source's if it is needed.

    Args:
        languages: the model's languages; None if they are unknown.

    Attributes:
        targets: the target languages; none if texts have no codes.
        count: the number of codes before a text.
    """

    def __init__(self, languages: ModelLanguages | None):
        has_codes = languages is not None and languages.has_codes
        self.targets = languages.targets if has_codes else ()
        self._sources = languages.coded_sources if has_codes else ()
        self.count = bool(self.targets) + bool(self._sources)
        pattern = pattern_of(dict.fromkeys([*self.targets, *self._sources]))
        self._code = re.compile(pattern)
        self._all_codes = re.compile(rf"(?:{pattern} ?){{{self.count}}}")

    def direction(self, to: str | None) -> Direction | None:
        """Finds the languages that a caller means.

        Args:
            to: a target language, or a direction such as "en-de" if sources have a code. Both may
                be omitted if there is only one.

        Returns:
            The direction by the model's names; its source is "" if sources have no code. None if no
            language is given, and there is more than one.

        Raises:
            InputError: for unknown languages, and for a missing source language.
        """
        if to is None:
            is_clear = len(self.targets) == 1 and len(self._sources) <= 1
            return Direction("".join(self._sources), self.targets[0]) if is_clear else None
        if not self._sources:
            return Direction("", self._target(to))
        name, _, target = to.rpartition("-")
        if not name and len(self._sources) == 1:
            (name,) = self._sources
        source = find_language(self._sources, name)
        rule = f"must be SOURCE-TARGET, such as en-de, with a source of {', '.join(self._sources)}"
        require(source is not None, "to", rule, shown(to))
        return Direction(source, self._target(target))

    def _target(self, name: str) -> str:
        target = find_language(self.targets, name)
        known = ", ".join(self.targets) or "none, as the model has one target language"
        rule = f"must be one of the model's target languages: {known}"
        require(target is not None, "to", rule, shown(name))
        return target

    def prepended(self, texts: Sequence[str], to: str | None) -> list[str]:
        """Returns texts with codes; see Translator.with_codes."""
        direction = self.direction(to)
        if not self.targets:
            return list(texts)
        if to is None and any(map(self._codes_in, texts)):
            direction = None
        for text in texts:
            codes = self._codes_in(text)
            if direction is not None:
                rule = "must not contain language codes if `to` is given"
                require(not codes, "texts", rule, shown(text))
            elif text.strip():
                begins_with_codes = self._all_codes.match(text) is not None
                rule = f"must be given for texts without {self._described()}"
                require(begins_with_codes, "to", rule, shown(text))
                rule = f"must only have {self._described()}, at the beginning"
                require(len(codes) == self.count, "texts", rule, shown(text))
        if direction is None:
            return list(texts)
        languages = (direction.target, direction.source)[: self.count]
        return [coded(text, languages) for text in texts]

    def _described(self) -> str:
        target = f"a language code, one of {', '.join(self.targets)}"
        return "the codes of both languages, as in >>de<< >>en<<" if self._sources else target

    def removed(self, text: str) -> str:
        """Returns a text without codes."""
        return self._code.sub("", text) if self.targets else text

    def _codes_in(self, text: str) -> list[str]:
        """Returns the codes anywhere in a text."""
        return self._code.findall(text) if ">>" in text else []
