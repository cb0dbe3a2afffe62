"""The Translator: texts in, answers out, with any engine.

`keras_transformer.load` creates it. It encodes texts once, forms batches of similar length, runs
several of them on the engine in parallel (search/engines/streams.py), and makes answers.
"""

import copy
import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.core.search.engines.engine import Engine, Rows, select
from keras_transformer.core.search.length_penalty import penalized
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.core.vocabulary.subwords import spelled
from keras_transformer.core.vocabulary.terms import has_terms
from keras_transformer.support.errors import require
from keras_transformer.use.store.calibration import Calibration, Evidence
from keras_transformer.use.store.card import ModelCard
from keras_transformer.use.translate.answer_counts import AnswerCounts
from keras_transformer.use.translate.answers import (
    AlignedPair,
    PairAttention,
    TargetScore,
    Translation,
    aligned_pairs,
)
from keras_transformer.use.translate.batches import in_batches, longer_lengths
from keras_transformer.use.translate.confidence import evidence
from keras_transformer.use.translate.encoder import TextEncoder
from keras_transformer.use.translate.language_prefix import LanguagePrefix
from keras_transformer.use.translate.recall import Memory, recalled
from keras_transformer.use.translate.search_request import SearchRequest
from keras_transformer.use.translate.terminology import check_terminology
from keras_transformer.use.translate.text_search import TextSearch
from keras_transformer.use.translate.texts import (
    as_text,
    as_text_lists,
    as_texts,
    encoded,
    rows_of,
)

if TYPE_CHECKING:
    import keras


class Translator:
    """Translates and scores any number of texts, in batches of similar length.

    Args:
        engine: the engine, with the model.
        vocabularies: the source and target vocabularies.
        card: the facts about the model, and its decoding options.
        make_model: builds the Keras model; None if there is none.

    Attributes:
        card: the ModelCard.
        encoder: encodes texts for the model.
        target_languages: a multi-directional model's target languages, as `translate` takes them;
            empty for other models.
        knows_terms: whether the model was trained with terms in its source.
        memories: the translation memories; the first one that has a sentence counts.

    Raises:
        InputError: if the beam size exceeds the vocabulary size.
    """

    def __init__(
        self,
        engine: Engine,
        vocabularies: VocabularyPair,
        card: ModelCard,
        make_model: "Callable[[], keras.Model] | None" = None,
    ):
        vocab_size = card.config.vocab_size
        rule = f"must not exceed the model's vocabulary of {vocab_size}"
        require(card.decoding.beam_size <= vocab_size, "beam_size", rule, card.decoding.beam_size)
        self.engine = engine
        self.vocabularies = vocabularies
        self.card = card
        self.encoder = TextEncoder(vocabularies, card)
        self._make_model = make_model
        self.language_prefix = LanguagePrefix(card.languages)
        self.target_languages = self.language_prefix.targets
        is_trained = has_terms(card.description.task_options)
        self.knows_terms = is_trained and len(vocabularies.source.term_ids) > 0
        self.memories: tuple[Memory, ...] = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({facts_of(self.card, self.engine)})"

    @property
    def config(self) -> DecodingConfig:
        """The search options, `card.decoding`."""
        return self.card.decoding

    @functools.cached_property
    def model(self) -> "keras.Model":
        """The Transformer, a keras.Model that is compiled for `fit`.

        It is read on first access and is a copy: changing it does not change this translator. Save
        it with `model.save` next to its vocabulary files, and load that.

        Raises:
            InputError: for an ensemble, and for an export with int8 weights.
        """
        rule = "must be read from a translator loaded by keras_transformer.load"
        require(self._make_model is not None, "model", rule, "another translator")
        return self._make_model()

    def with_alpha(self, alpha: float) -> Self:
        """Returns the same model with another length penalty (section 6.1)."""
        changed = copy.copy(self)
        decoding = dataclasses.replace(self.config, alpha=alpha)
        changed.card = dataclasses.replace(self.card, decoding=decoding)
        return changed

    def with_calibration(self, calibration: Calibration) -> Self:
        """Returns the same model with another calibration of its confidence."""
        changed = copy.copy(self)
        changed.card = dataclasses.replace(self.card, calibration=calibration)
        return changed

    def require_calibration(self, argument: str, value: Any) -> None:
        """Raises an InputError that names the argument if the model has no calibration."""
        rule = "must be used with a model that has a calibration: run evaluate with calibrate"
        require(self.card.calibration is not None, argument, rule, value)

    @property
    def checkpoint(self) -> dict[str, Any]:
        """Which weights the model has, if known: {"checkpoint", "step", ...}."""
        return {} if self.card.checkpoint is None else self.card.checkpoint.to_json()

    def new_counts(self, review_below: float = 0.0) -> AnswerCounts:
        """Returns empty counts for this translator's answers; see AnswerCounts."""
        return AnswerCounts(review_below)

    def translate(
        self,
        texts: Iterable[str],
        progress: bool = False,
        target_prefixes: Iterable[str] | None = None,
        aligned: bool = False,
        required_phrases: Iterable[Iterable[str]] | None = None,
        scores: bool = True,
        to: str | None = None,
        confidence: bool = False,
        terminology: Mapping[str, str] | None = None,
    ) -> list[list[Translation]]:
        """Returns one to `beam_size` translations of each text, best first.

        Args:
            texts: texts of any length, possibly empty.
            progress: whether to show a progress bar on stderr.
            target_prefixes: a prefix for the translations of each text, "" for none. A prefix
                should end at a word boundary, as its subwords are kept. Spaces around it are
                ignored. The translation of a blank text is always empty.
            aligned: whether to return only the guaranteed translations (`n_best` of `load`), with
                their alignments (`pair`).
            required_phrases: phrases that the translations of each text must contain, encoded like
                forbidden ones.
            scores: whether to compute scores. Greedy search is faster without them; they are None.
            to: the target language, such as "de", if the model has several; see `with_codes`, also
                for directions.
            confidence: whether to return only the guaranteed translations, with the probability
                that each is good; None without a calibration (evaluate/calibration.py).
            terminology: source phrase -> how to translate it, where it occurs as whole words. A
                model that was trained with terms inflects them as the sentence requires. With other
                models, translations contain them as they are, but for sentences that they would
                spoil; see `search`.

        Raises:
            InputError: if the model's weights are not finite, prefixes or phrases do not fit,
                `texts` is a single string, the language is missing or unknown, or the model cannot
                use a terminology.
        """
        self.check_terms(terminology)
        texts = self.with_codes(texts, to)
        if target_prefixes is not None:
            target_prefixes = as_texts(target_prefixes, "target_prefixes")
        if required_phrases is not None:
            required_phrases = as_text_lists(required_phrases, "required_phrases")
        request = SearchRequest(
            texts,
            self.config.guaranteed,
            target_prefixes,
            required_phrases,
            aligned=[aligned] * len(texts),
            terminology=terminology or {},
            scores=scores,
            confidence=confidence,
        )
        return self.search(request, progress)

    def translate_by_alpha(
        self, texts: Iterable[str], alphas: Sequence[float], progress: bool = False
    ) -> list[list[Translation]]:
        """Returns the best translation of each text for each of several length penalties.

        One search finds all of them; see search/alphas.py.

        Args:
            texts: any number of texts, with codes if the model expects them.
            alphas: the length penalties.
            progress: whether to show a progress bar on stderr.

        Raises:
            InputError: for an export, which has no such search.
        """
        rule = "must be used with a model directory or a .keras file"
        is_possible = "alpha_ids" in self.engine.functions
        require(is_possible, "choose_alpha", rule, "an export")
        search = self._text_search()
        return search.search_alphas(as_texts(texts, "texts"), alphas, progress)

    def check_terms(self, terminology: Mapping[str, str] | None) -> None:
        """Checks a terminology; None and an empty one mean no terminology.

        Raises:
            InputError: if the model cannot use any, or its vocabulary cannot spell a target phrase.
        """
        if not terminology:
            return
        check_terminology(terminology)
        can_force = "constrain_ids" in self.engine.functions
        rule = (
            "must be used with a model of data that was prepared with augment=terms:0.5, or, with "
            "TensorFlow's engine, with a model directory or an export made with constraints"
        )
        require(self.knows_terms or can_force, "terminology", rule, "another model")
        self.encoder.phrase_ids(list(terminology.values()), "terminology")

    def with_codes(self, texts: Iterable[str], to: str | None = None) -> list[str]:
        """Prepends language codes to texts, as models with several languages expect.

        Args:
            texts: any number of texts. Blank ones stay unchanged.
            to: the language, one of `target_languages`; or the direction, such as "en-de", for a
                model that needs the source language, too (M2M-100). It can be omitted if there is
                only one, or if the texts have codes, as in ">>de<< A dog."

        Returns:
            The texts, as `translate` and the graphs of an export take them; unchanged for a model
            without codes.

        Raises:
            InputError: for a language that the model does not know, for a missing language if a
                text has no code, and for a text with a code if a language is given.
        """
        return self.language_prefix.prepended(as_texts(texts, "texts"), to)

    def search(self, request: SearchRequest, progress: bool = False) -> list[list[Translation]]:
        """Returns the translations of a SearchRequest's texts, best first; see `translate`.

        Texts that are aligned or judged only have the guaranteed translations. One that is in a
        memory only has that translation.

        A model that was trained with terms reads those of a terminology in its source; a term that
        it leaves out is forced, if the engine can. With any other model, all are forced. A forced
        term may spoil a sentence: one that becomes much less probable is translated without it.
        `without_terms` names the terms that a translation lacks in any form.
        """
        targets = recalled(self.memories, request)
        known = [index for index, target in enumerate(targets) if target is not None]
        others = [index for index, target in enumerate(targets) if target is None]
        remembered = self._remembered(request.select(known), select(targets, known))
        searched = self._text_search().search(request.select(others), progress)
        answers = dict(zip([*known, *others], [*remembered, *searched], strict=True))
        return [answers[index] for index in range(len(request.texts))]

    def _remembered(
        self, request: SearchRequest, targets: Sequence[str]
    ) -> list[list[Translation]]:
        """Makes answers from translations in the memories; the model scores and aligns them."""
        if not targets:
            return []
        rows = encoded(self.vocabularies.target, targets)
        answers = [
            Translation(target, None, None, tokens=len(ids) + 1, from_memory=True)
            for target, ids in zip(targets, rows, strict=True)
        ]
        if request.scores:
            for index, (log_prob, tokens, _) in enumerate(self.score(request.texts, targets)):
                score = penalized(log_prob, tokens, self.config.alpha)
                answers[index] = dataclasses.replace(answers[index], score=score, log_prob=log_prob)
        indices = [index for index, is_aligned in enumerate(request.aligned) if is_aligned]
        pairs = self.align(select(request.texts, indices), select(targets, indices))
        for index, pair in zip(indices, pairs, strict=True):
            answers[index] = dataclasses.replace(answers[index], pair=pair)
        return [[answer] for answer in answers]

    def _text_search(self) -> TextSearch:
        return TextSearch(
            self.engine, self.encoder, self.card, self.language_prefix, self.knows_terms
        )

    def score(
        self,
        sources: Iterable[str],
        targets: Iterable[str],
        progress: bool = False,
        to: str | None = None,
    ) -> list[TargetScore]:
        """Scores each target as a translation of its source; see `with_codes` for `to`.

        Raises:
            InputError: if the numbers of sources and targets differ, a language is missing, or the
                model's weights are not finite.
        """
        sources = self.with_codes(as_texts(sources, "sources"), to)
        (source_ids, source_cut), (target_ids, target_cut) = self.encoder.pairs(sources, targets)

        def score_batch(batch: list[int]) -> list[float]:
            return self.engine.score(select(source_ids, batch), select(target_ids, batch)).tolist()

        log_probs = self._in_batches(score_batch, source_ids, target_ids, progress)
        return [
            TargetScore(log_prob, len(target), source_is_cut or target_is_cut)
            for log_prob, target, source_is_cut, target_is_cut in zip(
                log_probs, target_ids, source_cut, target_cut, strict=True
            )
        ]

    def align(
        self,
        sources: Iterable[str],
        targets: Iterable[str],
        progress: bool = False,
        to: str | None = None,
    ) -> list[AlignedPair]:
        """Aligns each target with its source; see `with_codes` for `to`.

        Raises:
            InputError: if the numbers of sources and targets differ, or a language is missing.
        """
        sources = self.with_codes(as_texts(sources, "sources"), to)
        (source_ids, _), (target_ids, _) = self.encoder.pairs(sources, targets)

        def align_batch(batch: list[int]) -> list[AlignedPair]:
            sources, targets = select(source_ids, batch), select(target_ids, batch)
            explained = self.engine.explain(sources, targets)
            return aligned_pairs(explained, self.vocabularies, sources, targets)

        return self._in_batches(align_batch, source_ids, target_ids, progress)

    def attention(self, source: str, target: str, to: str | None = None) -> PairAttention:
        """Returns the attention of all heads for a text and its translation.

        Raises:
            InputError: for an ensemble, or if the language is missing; see `with_codes`.
        """
        as_text(source, "source")
        as_text(target, "target")
        received = f"an ensemble of {len(self.card.ensemble)}"
        require(not self.card.ensemble, "attention", "must be used with a single model", received)
        (sources, _), (targets, _) = self.encoder.pairs(self.with_codes([source], to), [target])
        explained = self.engine.explain(sources, targets, attention=True)
        return PairAttention(
            source_pieces=spelled(self.vocabularies.source, sources[0].tolist()),
            target_pieces=spelled(self.vocabularies.target, targets[0].tolist()),
            encoder=explained.encoder[0],
            decoder=explained.decoder[0],
            memory=explained.memory[0],
            alignment=explained.alignment[0],
        )

    def score_ids(self, source: ArrayLike, target: ArrayLike) -> np.ndarray:
        """Scores one batch of pairs of ids.

        Args:
            source: int [B, S]; each row ends in EOS and then padding.
            target: int [B, T]; the same.

        Returns:
            float32 [B], log probabilities, EOS included; 0 for a target that is all padding.

        Raises:
            InputError: if they are not such ids, the numbers of rows differ, they exceed the
                model's learned positions, or the model's weights are not finite.
        """
        config = self.card.config
        source_ids = rows_of(source, config.source_vocab_size or config.vocab_size, "source")
        target_ids = rows_of(target, config.vocab_size, "target")
        received = f"{len(target_ids)} for {len(source_ids)}"
        is_same = len(source_ids) == len(target_ids)
        require(is_same, "target", "must have as many rows as source", received)
        for name, ids in (("source", source_ids), ("target", target_ids)):
            has_positions = config.longest_text is None or ids.shape[1] <= config.longest_text
            rule = f"must have at most {config.longest_text} ids, the model's max_positions"
            require(has_positions, name, rule, ids.shape[1])
        return self.engine.score(source_ids, target_ids)

    def count_subwords(self, texts: Sequence[str]) -> list[int]:
        """Counts the subwords in sources, without EOS."""
        return self.encoder.count_subwords(texts)

    def evidence(self, text: str, translation: str, pair: AlignedPair) -> Evidence:
        """Collects the evidence for a translation of a text, which may have a language code."""
        return evidence(self.language_prefix.removed(text), translation, pair)

    def _in_batches(
        self,
        function: Callable[[list[int]], Sequence],
        sources: Rows,
        targets: Rows,
        progress: bool,
    ) -> list:
        """Calls a function for batches of pairs of similar length; see `in_batches`."""
        lengths = longer_lengths(sources, targets)
        return in_batches(
            function, lengths, self.config.batch_tokens, self.engine.streams, progress
        )


def facts_of(card: ModelCard, engine: Engine) -> str:
    """Returns what tells models apart: the languages, the checkpoint and the engine."""
    facts = []
    languages = card.languages
    if languages is not None and languages.directions:
        facts.append(",".join(map(str, languages.directions)))
    if card.checkpoint is not None:
        facts.append(card.checkpoint.checkpoint)
    facts.append(engine.name)
    return ", ".join(facts)
