"""Encodes texts as a model reads them: within its limits, with terms, prefixes and phrases."""

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from keras_transformer.core.search.engines.engine import Rows
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.core.vocabulary.sentencepiece_models import SPACES
from keras_transformer.core.vocabulary.subwords import has_unknown
from keras_transformer.core.vocabulary.terms import encode_with_terms
from keras_transformer.support.errors import require
from keras_transformer.support.fields import shown
from keras_transformer.use.store.card import ModelCard
from keras_transformer.use.translate.search_request import SearchRequest
from keras_transformer.use.translate.texts import (
    EncodedTexts,
    as_texts,
    encoded,
    require_one_each,
    with_eos,
)


class TextEncoder:
    """Encodes the texts of a model, which may be of any length.

    Args:
        vocabularies: the source and target vocabularies.
        card: the facts about the model, with its limits.

    Attributes:
        vocabularies: the vocabularies.
        source_limit, target_limit: the most ids of a source and of a target, with EOS.
    """

    def __init__(self, vocabularies: VocabularyPair, card: ModelCard):
        self.vocabularies = vocabularies
        limits = card.decoding.limits(card.config)
        self.source_limit = limits.source
        self.target_limit = limits.target
        self._extra_length = card.decoding.extra_length

    def count_subwords(self, texts: Sequence[str]) -> list[int]:
        """Counts the subwords in sources, without EOS."""
        return [len(row) for row in encoded(self.vocabularies.source, texts)]

    def sources(self, texts: Sequence[str]) -> EncodedTexts:
        """Encodes sources as at most `source_limit` ids with EOS."""
        return with_eos(encoded(self.vocabularies.source, texts), self.source_limit)

    def sources_with_terms(self, request: SearchRequest) -> EncodedTexts:
        """Encodes the texts of a request with their terms, as far as there is room."""
        sources = self.sources(request.texts)
        if not request.terminology:
            return sources
        rows = []
        for text, ids, found in zip(request.texts, sources.ids, request.terms, strict=True):
            row = encode_with_terms(
                self.vocabularies.source, text, ids.tolist(), found, self.source_limit
            )
            rows.append(np.array(row, np.int32))
        return sources._replace(ids=rows)

    def pairs(
        self, sources: Sequence[str], targets: Iterable[str]
    ) -> tuple[EncodedTexts, EncodedTexts]:
        """Encodes sources and targets, with EOS."""
        targets = as_texts(targets, "targets")
        require_one_each(sources, targets, "targets", "sources")
        target_rows = encoded(self.vocabularies.target, targets)
        return self.sources(sources), with_eos(target_rows, self.target_limit)

    def prefixes(self, sources: Rows, prefixes: Sequence[str] | None) -> Rows | None:
        """Encodes the prefixes of translations, without EOS; None if not given."""
        if prefixes is None:
            return None
        # A space at the end would be a subword: "a " does not begin "a dog".
        rows = encoded(self.vocabularies.target, [prefix.strip(SPACES) for prefix in prefixes])
        for source, prefix, row in zip(sources, prefixes, rows, strict=True):
            self._require_room(source, len(row), prefix, "target_prefixes")
        return rows

    def phrases(
        self, sources: Rows, required_phrases: Sequence[Sequence[str]] | None
    ) -> list[Rows] | None:
        """Encodes required phrases, without EOS; None if not given."""
        if required_phrases is None:
            return None
        every_phrase = list(itertools.chain(*required_phrases))
        remaining = iter(self.phrase_ids(every_phrase, "required_phrases"))
        phrase_ids = []
        for source, phrases in zip(sources, required_phrases, strict=True):
            phrase_ids.append([next(remaining) for _ in phrases])
            count = sum(len(ids) for ids in phrase_ids[-1])
            self._require_room(source, count, " ".join(phrases), "required_phrases")
        return phrase_ids

    def phrase_ids(self, phrases: Sequence[str], argument: str) -> Rows:
        """Encodes phrases that translations must contain.

        Args:
            phrases: any number of phrases.
            argument: the caller's name for them, for errors.

        Raises:
            InputError: for a phrase without subwords, or with characters missing from the
                vocabulary.
        """
        rows = encoded(self.vocabularies.target, [phrase.strip(SPACES) for phrase in phrases])
        wrong = [
            phrase
            for phrase, ids in zip(phrases, rows, strict=True)
            if len(ids) == 0 or has_unknown(ids)
        ]
        rule = "must have subwords, and only characters in the vocabulary"
        require(not wrong, argument, rule, shown(wrong))
        return rows

    def _require_room(self, source: np.ndarray, count: int, text: str, argument: str) -> None:
        """Rejects text that leaves no room for a translation's EOS."""
        room = self._room(source)
        rule = f"must have at most {room} subwords for the sentence"
        require(count <= room, argument, rule, f"{count}: {shown(text)}")

    def _room(self, source: np.ndarray) -> int:
        """Returns how many subwords a translation may have, without EOS."""
        return min(len(source) + self._extra_length, self.target_limit) - 1

    def has_room(self, text: str, phrases: Sequence[str]) -> bool:
        """Whether a translation of a text has room for phrases."""
        (ids,) = self.sources([text]).ids
        return sum(map(len, self.phrase_ids(phrases, "terminology"))) <= self._room(ids)
