"""Texts in, answers out: one Translator, whatever engine holds the model.

`keras_transformer.load` makes it. It cuts texts into subwords once, makes batches of similar
length, has the engine compute several of them at a time (search/streams.py), and makes answers.
"""

import copy
import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from tqdm import tqdm

from keras_transformer.errors import require
from keras_transformer.fields import shown
from keras_transformer.language_codes import code_of, pattern_of, target_languages_of
from keras_transformer.model_card import ModelCard
from keras_transformer.search.engine import Engine, Found, Request, Rows
from keras_transformer.search.streams import in_streams
from keras_transformer.translate.answer_counts import AnswerCounts
from keras_transformer.translate.answers import (
    AlignedPair,
    AlignedTranslation,
    PairAttention,
    TargetScore,
    Translation,
    aligned_pairs,
    translations,
)
from keras_transformer.translate.batches import length_batches, longer_lengths
from keras_transformer.translate.minimum_risk import by_utility
from keras_transformer.translate.texts import (
    EncodedTexts,
    as_text,
    as_text_lists,
    as_texts,
    encoded,
    rows_of,
    with_eos,
)
from keras_transformer.vocabulary.pair import VocabularyPair
from keras_transformer.vocabulary.sentencepiece_models import SPACES
from keras_transformer.vocabulary.subwords import has_unknown, spelled

if TYPE_CHECKING:
    import keras


class Translator:
    """Translates and scores any number of texts, in batches of similar length.

    Args:
        engine: holds the model.
        vocabularies: of the source and the target.
        card: what is known of the model, and how it translates.
        make_model: makes the Keras model; None where there is none to make.

    Attributes:
        card: the ModelCard.
        config: the DecodingConfig, `card.decoding`.
        target_languages: those of a model of several directions, as `translate` takes them; none
            for other models.

    Raises:
        InputError: if there are more beams than subwords.
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
        self.config = card.decoding
        limits = card.decoding.limits(card.config)
        self.source_limit = limits.source
        self.target_limit = limits.target
        self._make_model = make_model
        self.target_languages = tuple(target_languages_of(card.origin.task_options))
        self._has_codes = len(self.target_languages) > 0
        self._code_pattern = re.compile(pattern_of(self.target_languages))

    @functools.cached_property
    def model(self) -> "keras.Model":
        """The Transformer, a keras.Model that is compiled for `fit`.

        It is read when it is first asked for, and is a copy: changing it does not change this
        translator. `model.save` it beside the files of its vocabulary, and load that.

        Raises:
            InputError: for an ensemble, and for an export with int8 weights.
        """
        rule = "must be asked of a translator that keras_transformer.load has loaded"
        require(self._make_model is not None, "model", rule, "another translator")
        return self._make_model()

    def with_alpha(self, alpha: float) -> "Translator":
        """The same model with another length penalty (section 6.1)."""
        changed = copy.copy(self)
        changed.config = dataclasses.replace(self.config, alpha=alpha)
        changed.card = dataclasses.replace(self.card, decoding=changed.config)
        return changed

    @property
    def checkpoint(self) -> dict[str, Any]:
        """Which weights the model has, as far as that is known: {"checkpoint", "step", ...}."""
        return {} if self.card.checkpoint is None else self.card.checkpoint.to_json()

    def new_counts(self) -> AnswerCounts:
        """Returns counts of no answers yet, to which those of this translator can be added."""
        return AnswerCounts()

    def translate(
        self,
        texts: Iterable[str],
        progress: bool = False,
        target_prefixes: Iterable[str] | None = None,
        aligned: bool = False,
        required_phrases: Iterable[Iterable[str]] | None = None,
        scores: bool = True,
        to: str | None = None,
    ) -> list[list[Translation]] | list[list[AlignedTranslation]]:
        """Returns the translations of each text, best first: from one to `beam_size`.

        Args:
            texts: of any length; they may be empty.
            progress: whether to draw a bar on stderr.
            target_prefixes: what the translations of each text begin with, "" for anything. A
                prefix should end with a word, as its subwords are kept. Spaces around it do not
                count. The translation of a blank text is empty in any case.
            aligned: whether to return AlignedTranslations, of the exact ones (`n_best` of `load`).
            required_phrases: what the translations of each text contain, cut as forbidden ones.
            scores: whether scores are wanted. Greedy search is faster without them; they are None.
            to: the target language, such as "de", for a model of several; see `with_codes`.

        Raises:
            InputError: if the model's weights are not finite, prefixes or phrases do not fit,
                `texts` is one text and not a list, or the language is missing or unknown.
        """
        texts = self.with_codes(texts, to)
        return self.translate_coded(
            texts,
            progress=progress,
            target_prefixes=target_prefixes,
            aligned=aligned,
            required_phrases=required_phrases,
            scores=scores,
        )

    def with_codes(self, texts: Iterable[str], to: str | None = None) -> list[str]:
        """Puts the code of a language before texts, as a model of several languages reads it.

        Args:
            texts: of any number. Blank ones stay as they are.
            to: the language, one of `target_languages`. It can be left out of a model that
                translates into one language, and for texts that have a code, as ">>de<< A dog."

        Returns:
            The texts, as `translate` and the graphs of an export take them. Those for a model whose
            texts have no codes stay as they are.

        Raises:
            InputError: for a language that the model does not know, for none where a text has no
                code, and for a text with a code where there is a language.
        """
        texts = as_texts(texts, "texts")
        known = ", ".join(self.target_languages) or "none, as the model has one target language"
        rule = f"must be one of the model's target languages: {known}"
        require(to is None or to in self.target_languages, "to", rule, shown(to))
        if not self._has_codes:
            return texts
        if len(self.target_languages) == 1 and not any(map(self._codes_in, texts)):
            (to,) = self.target_languages
        for text in texts:
            codes = self._codes_in(text)
            if to is not None:
                rule = "must be without the code of a language, which to puts before them"
                require(not codes, "texts", rule, shown(text))
            elif text.strip():
                begins_with_code = codes and text.startswith(codes[0])
                rule = f"must be given for texts that begin with no code, one of {known}"
                require(begins_with_code, "to", rule, shown(text))
                rule = "must have no code of a language but at the beginning"
                require(len(codes) == 1, "texts", rule, shown(text))
        if to is None:
            return texts
        return [f"{code_of(to)} {text}" if text.strip() else text for text in texts]

    def _codes_in(self, text: str) -> list[str]:
        """The codes of target languages that a text has anywhere."""
        return self._code_pattern.findall(text) if ">>" in text else []

    def translate_coded(
        self,
        texts: Sequence[str],
        progress: bool = False,
        target_prefixes: Iterable[str] | None = None,
        aligned: bool = False,
        required_phrases: Iterable[Iterable[str]] | None = None,
        scores: bool = True,
        exact: int | None = None,
    ) -> list[list[Translation]] | list[list[AlignedTranslation]]:
        """Like `translate`, for texts that have their codes; see `with_codes`.

        Args:
            exact: how many of the translations must be the best ones; those of `config` if None.
        """
        sources, truncated = self._encode_sources(texts)
        prefixes = self._encode_prefixes(sources, target_prefixes)
        phrases = self._encode_phrases(sources, required_phrases)
        exact = self.config.exact if exact is None else exact
        batches = self._batches([len(ids) for ids in sources])
        requests = [
            Request(
                ids=_chosen(sources, batch),
                prefix=_chosen(prefixes, batch),
                phrases=None if phrases is None else _chosen(phrases, batch),
                exact=exact,
                alpha=self.config.alpha,
            )
            for batch in batches
        ]
        needs_scores = scores or phrases is not None or self.config.mbr is not None
        is_greedy = self.config.is_greedy and not needs_scores
        search = self.engine.search_greedily if is_greedy else self.engine.search
        found = list(self._in_streams(search, requests, batches, progress))
        rows = [
            translations(hypotheses, self.vocabularies, _chosen(truncated, batch))
            for hypotheses, batch in zip(found, batches, strict=True)
        ]
        if aligned:
            rows = self._aligned(requests, found, rows, scores)
        answers = _in_order(rows, batches)
        if self.config.mbr is None:
            return answers
        is_sample = self.config.sampling is not None
        return [by_utility(row, self.config.mbr, is_sample) for row in answers]

    def score(
        self,
        sources: Iterable[str],
        targets: Iterable[str],
        progress: bool = False,
        to: str | None = None,
    ) -> list[TargetScore]:
        """Scores each target as a translation of its source; see `with_codes` for `to`.

        Raises:
            InputError: if there are not as many targets as sources, a language is missing, or the
                model's weights are not finite.
        """
        sources = self.with_codes(as_texts(sources, "sources"), to)
        (source_ids, source_cut), (target_ids, target_cut) = self._encode_pairs(sources, targets)

        batches = self._batches(longer_lengths(source_ids, target_ids))
        pairs = [(_chosen(source_ids, batch), _chosen(target_ids, batch)) for batch in batches]
        scored = self._in_streams(self._score_pair, pairs, batches, progress)
        log_probs = _in_order([row.tolist() for row in scored], batches)
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
            InputError: if there are not as many targets as sources, or a language is missing.
        """
        sources = self.with_codes(as_texts(sources, "sources"), to)
        (source_ids, _), (target_ids, _) = self._encode_pairs(sources, targets)

        batches = self._batches(longer_lengths(source_ids, target_ids))
        pairs = [(_chosen(source_ids, batch), _chosen(target_ids, batch)) for batch in batches]
        return _in_order(
            list(self._in_streams(self._align_pair, pairs, batches, progress)), batches
        )

    def attention(self, source: str, target: str, to: str | None = None) -> PairAttention:
        """Returns the attention of all heads for a text and a translation of it.

        Raises:
            InputError: for an ensemble, or if the language is missing; see `with_codes`.
        """
        as_text(source, "source")
        as_text(target, "target")
        received = f"an ensemble of {len(self.card.ensemble)}"
        require(not self.card.ensemble, "attention", "must be asked of a single model", received)
        (sources, _), (targets, _) = self._encode_pairs(self.with_codes([source], to), [target])
        found = self.engine.explain(sources, targets, attention=True)
        return PairAttention(
            source_pieces=spelled(self.vocabularies.source, sources[0].tolist()),
            target_pieces=spelled(self.vocabularies.target, targets[0].tolist()),
            encoder=found.encoder[0],
            decoder=found.decoder[0],
            memory=found.memory[0],
            alignment=found.alignment[0],
        )

    def score_ids(self, source: ArrayLike, target: ArrayLike) -> np.ndarray:
        """Scores one batch of pairs that are ids already.

        Args:
            source: int [B, S]; each row ends in EOS and then padding.
            target: int [B, T]; the same.

        Returns:
            float32 [B], log-probabilities, EOS included; 0 for a target of padding alone.

        Raises:
            InputError: if they are not such ids, not as many rows, or longer than the model has
                learned positions; or if the model's weights are not finite.
        """
        config = self.card.config
        source_ids = rows_of(source, config.source_vocab_size or config.vocab_size, "source")
        target_ids = rows_of(target, config.vocab_size, "target")
        received = f"{len(target_ids)} for {len(source_ids)}"
        is_same = len(source_ids) == len(target_ids)
        require(is_same, "target", "must have as many rows as source", received)
        for name, ids in (("source", source_ids), ("target", target_ids)):
            has_positions = config.longest_text is None or ids.shape[1] <= config.longest_text
            rule = f"must be at most {config.longest_text} ids, the model's max_positions"
            require(has_positions, name, rule, ids.shape[1])
        return self.engine.score(source_ids, target_ids)

    def count_subwords(self, texts: Sequence[str]) -> list[int]:
        """Counts the subwords of sources, without EOS."""
        return [len(row) for row in encoded(self.vocabularies.source, texts)]

    def _encode_sources(self, texts: Iterable[str]) -> EncodedTexts:
        """Cuts sources into ids, at most `source_limit` with EOS."""
        rows = encoded(self.vocabularies.source, as_texts(texts, "texts"))
        return with_eos(rows, self.source_limit)

    def _encode_pairs(
        self, sources: Iterable[str], targets: Iterable[str]
    ) -> tuple[EncodedTexts, EncodedTexts]:
        """Cuts sources and targets into ids, with EOS."""
        sources, targets = as_texts(sources, "sources"), as_texts(targets, "targets")
        require_one_each(sources, targets, "targets", "sources")
        target_rows = encoded(self.vocabularies.target, targets)
        return self._encode_sources(sources), with_eos(target_rows, self.target_limit)

    def _encode_prefixes(self, sources: Rows, prefixes: Iterable[str] | None) -> Rows:
        """Cuts the beginnings of translations into ids, without EOS; none if not given."""
        if prefixes is None:
            return [np.zeros(0, np.int32)] * len(sources)
        prefixes = as_texts(prefixes, "target_prefixes")
        require_one_each(sources, prefixes, "target_prefixes")
        # A space at the end would be a subword: "a " does not begin "a dog".
        rows = encoded(self.vocabularies.target, [prefix.strip(SPACES) for prefix in prefixes])
        for source, prefix, row in zip(sources, prefixes, rows, strict=True):
            self._require_room(source, len(row), prefix, "target_prefixes")
        return rows

    def _encode_phrases(
        self, sources: Rows, required_phrases: Iterable[Iterable[str]] | None
    ) -> list[Rows] | None:
        """Cuts required phrases into ids, without EOS; None if not given."""
        if required_phrases is None:
            return None
        required_phrases = as_text_lists(required_phrases, "required_phrases")
        rule = "must be asked of a search"
        require(self.config.sampling is None, "required_phrases", rule, "random draws")
        require_one_each(sources, required_phrases, "required_phrases")
        every_phrase = list(itertools.chain(*required_phrases))
        remaining = iter(self.phrase_ids(every_phrase, "required_phrases"))
        phrase_ids = []
        for source, phrases in zip(sources, required_phrases, strict=True):
            phrase_ids.append([next(remaining) for _ in phrases])
            count = sum(len(ids) for ids in phrase_ids[-1])
            self._require_room(source, count, " ".join(phrases), "required_phrases")
        return phrase_ids

    def phrase_ids(self, phrases: Sequence[str], argument: str) -> Rows:
        """Cuts phrases that translations must contain into ids.

        Args:
            phrases: any number.
            argument: what the caller calls them, for errors.

        Raises:
            InputError: for a phrase that has no subwords, or characters that the vocabulary lacks.
        """
        rows = encoded(self.vocabularies.target, [phrase.strip(SPACES) for phrase in phrases])
        wrong = [
            phrase
            for phrase, ids in zip(phrases, rows, strict=True)
            if len(ids) == 0 or has_unknown(ids)
        ]
        rule = "must have subwords, and characters that the vocabulary has"
        require(not wrong, argument, rule, shown(wrong))
        return rows

    def _require_room(self, source: np.ndarray, count: int, text: str, argument: str) -> None:
        """Refuses text that leaves no room for the EOS of a translation."""
        room = min(len(source) + self.config.extra_length, self.target_limit) - 1
        rule = f"must have at most {room} subwords for the sentence"
        require(count <= room, argument, rule, f"{count}: {shown(text)}")

    def _aligned(
        self,
        requests: Sequence[Request],
        found: Sequence[Found],
        rows: Sequence[list[list[Translation]]],
        scores: bool,
    ) -> list[list[list[AlignedTranslation]]]:
        """Aligns the exact translations of all batches, one rank after the other."""
        answers = [[[] for _ in batch] for batch in rows]
        for rank in range(requests[0].exact if requests else 0):
            pairs = []
            for request, hypotheses in zip(requests, found, strict=True):
                ids, lengths = hypotheses.ids[:, rank], hypotheses.lengths[:, rank]
                targets = [row[:end] for row, end in zip(ids, lengths, strict=True)]
                pairs.append((request.ids, targets))
            align = functools.partial(self._align_pair, log_probs=scores)
            aligned = in_streams(align, pairs, self.engine.streams)
            for batch_answers, batch_rows, batch_pairs in zip(answers, rows, aligned, strict=True):
                for answer, row, pair in zip(batch_answers, batch_rows, batch_pairs, strict=True):
                    if rank < len(row):
                        answer.append(AlignedTranslation(*row[rank], pair))
        return answers

    def _align_pair(self, pair: tuple[Rows, Rows], log_probs: bool = True) -> list[AlignedPair]:
        """Aligns the targets of a batch with its sources."""
        sources, targets = pair
        explained = self.engine.explain(sources, targets, log_probs=log_probs)
        return aligned_pairs(explained, self.vocabularies, sources, targets)

    def _score_pair(self, pair: tuple[Rows, Rows]) -> np.ndarray:
        """Scores the targets of a batch: float32 [B]."""
        sources, targets = pair
        return self.engine.score(sources, targets)

    def _batches(self, lengths: Sequence[int]) -> list[list[int]]:
        """Cuts rows into batches of similar length, as places of `lengths`."""
        return list(length_batches(lengths, self.config.batch_tokens, self.engine.streams))

    def _in_streams(
        self,
        function: Callable[[Any], Any],
        inputs: Sequence,
        batches: Sequence[list[int]],
        progress: bool,
    ) -> Iterator:
        """Yields the results for the input of each batch, and draws a bar on stderr if asked to."""
        total = sum(map(len, batches))
        with tqdm(total=total, unit="sentence", disable=not progress) as bar:
            results = in_streams(function, inputs, self.engine.streams)
            for batch, result in zip(batches, results, strict=True):
                bar.update(len(batch))
                yield result


def _chosen(rows: Sequence, places: Sequence[int]) -> list:
    return [rows[place] for place in places]


def _in_order(results: Sequence[Sequence], batches: Sequence[list[int]]) -> list:
    """The results of all batches in the order of the rows that the batches were made of."""
    ordered: list[Any] = [None] * sum(map(len, batches))
    for batch, found in zip(batches, results, strict=True):
        for place, result in zip(batch, found, strict=True):
            ordered[place] = result
    return ordered


def require_one_each(sources: Sequence, rows: Sequence, argument: str, of: str = "texts") -> None:
    """Refuses other than one row for each source; `of` is the argument that has the sources."""
    received = f"{len(rows)} for {len(sources)}"
    require(len(rows) == len(sources), argument, f"must be as many as the {of}", received)
