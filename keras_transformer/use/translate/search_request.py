"""A request for a search: texts, and requirements for their translations."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence

from keras_transformer.core.search.engines.engine import select
from keras_transformer.core.vocabulary.terms import Term
from keras_transformer.use.translate.terminology import phrases_of, terms_in
from keras_transformer.use.translate.texts import require_one_each


@dataclasses.dataclass(frozen=True)
class SearchRequest:
    """Texts to translate, and what their translations must have.

    Raises:
        InputError: if there are not as many prefixes, or lists of phrases, as texts.
    """

    texts: Sequence[str]  # with language codes, if the model needs them
    guaranteed: int  # how many of the translations must be the best ones
    target_prefixes: Sequence[str] | None = None  # for each text, "" for none
    required_phrases: Sequence[Sequence[str]] | None = None  # for each text
    aligned: Sequence[bool] = ()  # which texts need alignments; none if empty
    scores: bool = True  # whether scores are needed
    terminology: Mapping[str, str] = dataclasses.field(default_factory=dict)  # for all texts
    confidence: bool = False  # whether the guaranteed translations are judged, if the model can

    def __post_init__(self):
        if self.target_prefixes is not None:
            require_one_each(self.texts, self.target_prefixes, "target_prefixes")
        if self.required_phrases is not None:
            require_one_each(self.texts, self.required_phrases, "required_phrases")

    @functools.cached_property
    def terms(self) -> list[list[Term]]:
        """The terms of the terminology that occur in each text."""
        return terms_in(self.texts, self.terminology)

    def all_phrases(self) -> list[list[str]]:
        """Returns for each text the phrases that are required, and those of its terms."""
        return self.phrases_with(self.terms)

    def phrases_with(self, terms: Sequence[Sequence[Term]]) -> list[list[str]]:
        """Returns for each text the phrases that are required, and those of some terms."""
        required = self.required_phrases or [()] * len(self.texts)
        return [
            list(dict.fromkeys([*phrases, *phrases_of(found)]))
            for phrases, found in zip(required, terms, strict=True)
        ]

    def select(self, indices: Sequence[int]) -> "SearchRequest":
        """Returns the request for some of the texts."""
        return dataclasses.replace(
            self,
            texts=select(self.texts, indices),
            target_prefixes=select(self.target_prefixes, indices),
            required_phrases=select(self.required_phrases, indices),
            aligned=select(self.aligned, indices),
        )
