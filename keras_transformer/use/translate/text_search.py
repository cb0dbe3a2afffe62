"""Searches the translations of texts, with terms, alignments and confidence, by any engine."""

import dataclasses
from collections.abc import Sequence

from keras_transformer.core.search.engines.engine import Engine, Explained, Request, select
from keras_transformer.core.search.hypotheses import Hypotheses
from keras_transformer.core.vocabulary.terms import Term
from keras_transformer.support.errors import require
from keras_transformer.use.store.card import ModelCard
from keras_transformer.use.translate.answers import Translation, aligned_pairs, translations
from keras_transformer.use.translate.batches import in_batches
from keras_transformer.use.translate.confidence import evidence
from keras_transformer.use.translate.encoder import TextEncoder
from keras_transformer.use.translate.language_prefix import LanguagePrefix
from keras_transformer.use.translate.minimum_risk import by_utility
from keras_transformer.use.translate.search_request import SearchRequest
from keras_transformer.use.translate.terminology import (
    lacking_terms,
    spoils,
    with_lacking_terms,
)


class TextSearch:
    """Searches with a model.

    Args:
        engine: the engine, with the model.
        encoder: encodes texts for the model.
        card: the facts about the model, with its search options and calibration.
        language_prefix: the codes before the model's texts.
        knows_terms: whether the model was trained with terms in its source.
    """

    def __init__(
        self,
        engine: Engine,
        encoder: TextEncoder,
        card: ModelCard,
        language_prefix: LanguagePrefix,
        knows_terms: bool,
    ):
        self._engine = engine
        self._encoder = encoder
        self._config = card.decoding
        self._calibration = card.calibration
        self._language_prefix = language_prefix
        self._knows_terms = knows_terms

    def search(self, request: SearchRequest, progress: bool = False) -> list[list[Translation]]:
        """Returns the translations of each text; see Translator.search."""
        if not request.terminology:
            return self._search(request, progress)
        if not self._knows_terms:
            return self._search_with_forced_terms(request, progress)
        answers = self._search_with_learned_terms(request, progress)
        return [
            with_lacking_terms(row, found)
            for row, found in zip(answers, request.terms, strict=True)
        ]

    def search_alphas(
        self, texts: Sequence[str], alphas: Sequence[float], progress: bool
    ) -> list[list[Translation]]:
        """Returns the best translation of each text for each alpha; see Translator."""
        sources = self._encoder.sources_with_terms(SearchRequest(texts, guaranteed=1))

        def search_batch(batch: list[int]) -> list[list[Translation]]:
            hypotheses = self._engine.search_alphas(select(sources.ids, batch), alphas)
            truncated = select(sources.truncated, batch)
            return translations(hypotheses, self._encoder.vocabularies, truncated)

        lengths = [len(ids) for ids in sources.ids]
        batch_tokens, streams = self._config.batch_tokens, self._engine.streams
        return in_batches(search_batch, lengths, batch_tokens, streams, progress)

    def _search_with_learned_terms(
        self, request: SearchRequest, progress: bool
    ) -> list[list[Translation]]:
        """Searches with terms in the sources, and again for texts whose translation lacks some."""
        can_force = "constrain_ids" in self._engine.functions and self._config.sampling is None
        if not can_force or not any(request.terms):
            return self._search(request, progress)
        request = dataclasses.replace(request, scores=True)
        answers = self._search(request, progress)
        missing = [
            lacking_terms(row[0], found) for row, found in zip(answers, request.terms, strict=True)
        ]
        forced = self._forced(request, missing, progress)
        for index, row in forced.items():
            if not spoils(row[0], answers[index][0]):
                answers[index] = row
        return answers

    def _search_with_forced_terms(
        self, request: SearchRequest, progress: bool
    ) -> list[list[Translation]]:
        """Searches without terms, and again for texts that have some."""
        scores = request.scores or any(request.terms)
        free_request = dataclasses.replace(request, terminology={}, scores=scores)
        answers = self._search(free_request, progress)
        forced = self._forced(free_request, request.terms, progress)
        for index, found in enumerate(request.terms):
            if index in forced and not spoils(forced[index][0], answers[index][0]):
                answers[index] = forced[index]
            else:
                answers[index] = with_lacking_terms(answers[index], found)
        return answers

    def _forced(
        self, request: SearchRequest, terms: Sequence[Sequence[Term]], progress: bool
    ) -> dict[int, list[Translation]]:
        """Searches translations that must contain terms.

        Args:
            request: the texts, without these terms as required phrases.
            terms: the terms of each text.

        Returns:
            The translations by the index of the text, for those with terms and room for them.
        """
        phrases = request.phrases_with(terms)
        fitting = [
            index
            for index, found in enumerate(terms)
            if found and self._encoder.has_room(request.texts[index], phrases[index])
        ]
        forced_request = dataclasses.replace(request, required_phrases=phrases)
        rows = self._search(forced_request.select(fitting), progress)
        return dict(zip(fitting, rows, strict=True))

    def _search(self, request: SearchRequest, progress: bool) -> list[list[Translation]]:
        sources = self._encoder.sources_with_terms(request)
        if request.required_phrases is not None:
            rule = "must be used with a search"
            require(self._config.sampling is None, "required_phrases", rule, "random draws")
        is_judged = request.confidence and self._calibration is not None
        id_request = Request(
            ids=sources.ids,
            prefix=self._encoder.prefixes(sources.ids, request.target_prefixes),
            phrases=self._encoder.phrases(sources.ids, request.required_phrases),
            guaranteed=request.guaranteed,
            alpha=self._config.alpha,
            aligned=request.aligned,
            token_scores=request.scores,
            evidence=is_judged,
        )
        is_constrained = request.required_phrases is not None
        needs_scores = request.scores or is_judged or is_constrained or self._config.mbr is not None
        is_greedy = self._config.is_greedy and not needs_scores
        find = self._engine.search_greedily if is_greedy else self._engine.search

        def search_batch(batch: list[int]) -> list[list[Translation]]:
            batch_request = id_request.select(batch)
            hypotheses = find(batch_request)
            truncated = select(sources.truncated, batch)
            rows = translations(hypotheses, self._encoder.vocabularies, truncated)
            if any(batch_request.needs_alignment):
                self._align_guaranteed(batch_request, hypotheses, rows)
            return rows

        answers = in_batches(
            search_batch,
            [len(ids) for ids in sources.ids],
            self._config.batch_tokens,
            self._engine.streams,
            progress,
        )
        if is_judged:
            aligned = request.aligned or [False] * len(answers)
            answers = [
                [self._judged(text, answer, is_aligned, request.scores) for answer in row]
                for text, row, is_aligned in zip(request.texts, answers, aligned, strict=True)
            ]
        if self._config.mbr is None:
            return answers
        is_sample = self._config.sampling is not None
        return [by_utility(row, self._config.mbr, is_sample) for row in answers]

    def _align_guaranteed(
        self,
        request: Request,
        hypotheses: Hypotheses,
        answers: list[list[Translation]],
    ) -> None:
        """Replaces a batch's answers that need alignments by the guaranteed ones, aligned."""
        indices = [index for index, is_needed in enumerate(request.needs_alignment) if is_needed]
        by_token = request.token_scores or request.evidence
        sources = select(request.ids, indices)
        aligned: list[list[Translation]] = [[] for _ in indices]
        for rank in range(request.guaranteed):
            ids, lengths = hypotheses.ids[indices, rank], hypotheses.length[indices, rank]
            targets = [row[:length] for row, length in zip(ids, lengths, strict=True)]
            log_probs = hypotheses.token_log_prob if by_token else None
            lacks_scores = by_token and log_probs is None
            if lacks_scores or hypotheses.alignment is None:
                explained = self._engine.explain(sources, targets)
            else:
                log_probs = None if log_probs is None else log_probs[indices, rank]
                explained = Explained(log_probs, hypotheses.alignment[indices, rank])
            pairs = aligned_pairs(explained, self._encoder.vocabularies, sources, targets)
            for index, pair, row in zip(indices, pairs, aligned, strict=True):
                if rank < len(answers[index]):
                    row.append(dataclasses.replace(answers[index][rank], pair=pair))
        for index, row in zip(indices, aligned, strict=True):
            answers[index] = row

    def _judged(
        self, text: str, answer: Translation, is_aligned: bool, scores: bool
    ) -> Translation:
        """Adds the confidence to an answer, and removes alignment and scores if not requested."""
        confidence = None
        if text.strip():
            facts = evidence(self._language_prefix.removed(text), answer.text, answer.pair)
            confidence = self._calibration.confidence(facts)
        pair = answer.pair if is_aligned else None
        if pair is not None and not scores:
            pair = pair._replace(log_probs=None)
        return dataclasses.replace(answer, confidence=confidence, pair=pair)
