"""From texts to answers: one Translator for a model in this process and for an exported one.

`keras_transformer.load` makes it. Its graphs are those of decoding/graphs.py, either way. Texts are
cut into subwords once, batches of similar length are made of the ids, and several batches are
computed at a time (streams.py).
"""

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike
from tqdm import tqdm

from keras_transformer.config import EOS_ID
from keras_transformer.decoding.answer_counts import AnswerCounts
from keras_transformer.decoding.answers import (
    AlignedPair,
    AlignedTranslation,
    PairAttention,
    TargetScore,
    Translation,
    aligned_pair,
    require_finite,
    translations,
)
from keras_transformer.decoding.batches import (
    as_ids,
    length_batches,
    longer_lengths,
    padded,
    padded_phrases,
    string_tensor,
)
from keras_transformer.decoding.graphs import Graphs
from keras_transformer.decoding.minimum_risk import by_utility
from keras_transformer.decoding.sentence_search import SentenceSearch
from keras_transformer.decoding.streams import in_streams, streams
from keras_transformer.decoding.terminology import check_terminology, required_terms
from keras_transformer.decoding.texts import as_text, as_text_lists, as_texts
from keras_transformer.documents.formats import read_document
from keras_transformer.documents.translation import DocumentTranslator, Model
from keras_transformer.errors import InputError, require
from keras_transformer.fields import shown
from keras_transformer.language_codes import code_of, pattern_of, target_languages_of
from keras_transformer.model_card import ModelCard

SPACES = " \t\n\v\f\r"  # those of ASCII


class EncodedTexts(NamedTuple):
    """Texts as ids, with EOS, and at most as long as the limit."""

    ids: list[np.ndarray]
    truncated: list[bool]  # whether a text was longer and its end is missing


class Translator:
    """Translates and scores any number of texts, in batches of similar length.

    Args:
        graphs: Graphs, or the signatures of an export.
        card: what is known of the model, and how it translates.
        make_model: makes the Keras model; None where there is none to make.

    Attributes:
        graphs: the graphs by name.
        card: the ModelCard.
        config: the DecodingConfig, `card.decoding`.
        target_languages: those of a model of several directions, as `translate` takes them; none
            of other models.

    Raises:
        InputError: if there are more beams than subwords.
    """

    def __init__(
        self,
        graphs: Mapping[str, Callable[..., dict[str, tf.Tensor]]],
        card: ModelCard,
        make_model: Callable[[], keras.Model] | None = None,
    ):
        vocab_size = card.config.vocab_size
        rule = f"must not exceed the model's vocabulary of {vocab_size}"
        require(card.decoding.beam_size <= vocab_size, "beam_size", rule, card.decoding.beam_size)
        self.graphs = graphs
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
    def model(self) -> keras.Model:
        """The Transformer, a keras.Model that is compiled for `fit`.

        It is read when it is first asked for, and is a copy: what is done with it does not change
        this translator. `model.save` it beside the files of its vocabulary, and load that.

        Raises:
            InputError: of an ensemble, and of an export of int8 weights.
        """
        rule = "must be asked of what keras_transformer.load has loaded"
        require(self._make_model is not None, "model", rule, "another translator")
        return self._make_model()

    def with_alpha(self, alpha: float) -> "Translator":
        """The same model with another length penalty (section 6.1).

        Raises:
            InputError: of an export, whose length penalty is fixed.
        """
        rule = "must be chosen of a model directory or a .keras file"
        require(isinstance(self.graphs, Graphs), "alpha", rule, "an export, which has a fixed one")
        config = dataclasses.replace(self.config, alpha=alpha)
        card = dataclasses.replace(self.card, decoding=config)
        return type(self)(self.graphs.with_options(config), card, self._make_model)

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
            texts: of any length, empty ones included.
            progress: whether to draw a bar on stderr.
            target_prefixes: what the translations of each text begin with, "" for anything. A
                prefix should end with a word, as its subwords are kept. Spaces around it do not
                count. The translation of a blank text is empty in any case.
            aligned: whether to return AlignedTranslations, of the exact ones (`n_best` of `load`).
            required_phrases: what the translations of each text contain, cut as forbidden ones.
            scores: whether scores are wanted. Greedy search is faster without, and gives None.
            to: the language to translate into, as "de", of a model of several; see `with_codes`.

        Raises:
            InputError: if the model's weights are not finite, prefixes or phrases do not fit, there
                is one text and not a list of texts, or the language is missing or unknown.
        """
        exact = self.config.exact
        texts = self.with_codes(texts, to)
        return self._translate(
            texts, progress, target_prefixes, aligned, required_phrases, exact, scores
        )

    def with_codes(self, texts: Iterable[str], to: str | None = None) -> list[str]:
        """Puts the code of a language before texts, as a model of several languages reads them.

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

    def translate_document(
        self,
        text: str,
        format: str = "text",
        language: str | None = None,
        case: str = "auto",
        terminology: dict[str, str] | None = None,
        columns: Sequence[str] | None = None,
        progress: bool = False,
        to: str | None = None,
    ) -> str:
        """Returns a document with its sentences translated, and all else as it is.

        Args:
            text: all of the document.
            format: a name of documents.formats.FORMATS; in "text", each line is a paragraph.
            language: of the text, as "en"; if not given, that of the model's data, or English. It
                says where sentences end.
            case: "auto" translates sentences in capitals, and titles, as if they were none;
                "keep" gives the model what is written.
            terminology: source phrases, and what the translations of sentences with them contain.
            columns: of a table (tsv, csv, jsonl), those that are translated: their names or, from
                1, their numbers, both as strings: ["text", "3"].
            progress: whether to draw a bar on stderr.
            to: the language to translate into, of a model of several; see `with_codes`.

        Raises:
            InputError: for another format, one whose packages are not installed, text that the
                format cannot be, or a language that is missing or unknown.
        """
        translator = self.document_translator(language, case, terminology, to=to)
        document = read_document(text, format, translator.language, columns)
        parts = translator.translate(document.parts)
        bar = tqdm(parts, total=len(document.parts), unit="part", disable=not progress)
        return "".join(bar)

    def document_translator(
        self,
        language: str | None = None,
        case: str = "auto",
        terminology: dict[str, str] | None = None,
        to: str | None = None,
        counts: AnswerCounts | None = None,
    ) -> DocumentTranslator:
        """Returns what `translate_document` translates the parts of documents with.

        `counts` are added to.
        """
        (documents,) = self.document_translators(1, language, case, terminology, to, counts)
        return documents

    def document_translators(
        self,
        count: int,
        language: str | None = None,
        case: str = "auto",
        terminology: dict[str, str] | None = None,
        to: str | None = None,
        counts: AnswerCounts | None = None,
    ) -> list[DocumentTranslator]:
        """Returns one for each of the best `count` translations of a document, the best first.

        Sentences become their best translation in the first one, their second best in the next one;
        the last one of a sentence that has no more. All of them together search once for each
        sentence, and keep what they find: they are for documents that fit into memory.

        Args:
            count: up to `beam_size`.
            language, case, terminology, to: as `translate_document` takes them.
            counts: are added to.
        """
        rule = f"must be from 1 to the beam size, {self.config.beam_size}"
        require(1 <= count <= self.config.beam_size, "count", rule, count)
        check_terminology(terminology)
        self.with_codes([], to)  # refuses a language at once
        # Of all translations if the best one is that which is most like the others.
        exact = count if self.config.mbr is None else self.config.exact

        def search(texts: Sequence[str], aligned: bool) -> list[list]:
            phrases = None
            if terminology:
                phrases = [required_terms(text, terminology) for text in texts]
            coded = self.with_codes(texts, to)
            return self._translate(coded, False, None, aligned, phrases, exact, scores=False)

        def count_subwords(texts: Sequence[str]) -> list[int]:
            rows, _ = self._encode("encode_source", texts)
            return [len(row) for row in rows]

        sentences = SentenceSearch(search, keeps_answers=count > 1, counts=counts)
        languages = (self.card.origin.data or {}).get("languages") or ["en"]
        limit = self.source_limit - 1 - self._has_codes  # EOS and a code are among its subwords
        models = [
            Model(
                functools.partial(sentences.translate, rank),
                functools.partial(sentences.align, rank),
                count_subwords,
                limit,
            )
            for rank in range(count)
        ]
        return [DocumentTranslator(model, language or languages[0], case) for model in models]

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

        def score_batch(batch: list[int]) -> list[TargetScore]:
            log_probs = self.score_ids(
                padded([source_ids[i] for i in batch]), padded([target_ids[i] for i in batch])
            )
            return [
                TargetScore(log_prob, len(target_ids[i]), source_cut[i] or target_cut[i])
                for i, log_prob in zip(batch, log_probs.tolist(), strict=True)
            ]

        return self._in_batches(score_batch, longer_lengths(source_ids, target_ids), progress)

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

        def align_batch(batch: list[int]) -> list[AlignedPair]:
            return self._align_ids(
                padded([source_ids[i] for i in batch]), padded([target_ids[i] for i in batch])
            )

        return self._in_batches(align_batch, longer_lengths(source_ids, target_ids), progress)

    def attention(self, source: str, target: str, to: str | None = None) -> PairAttention:
        """Returns the attention of all heads for a text and a translation of it.

        Raises:
            InputError: of an ensemble, or for a language that is missing; see `with_codes`.
        """
        as_text(source, "source")
        as_text(target, "target")
        (source,) = self.with_codes([source], to)
        received = f"an ensemble of {len(self.card.ensemble)}"
        require(not self.card.ensemble, "attention", "must be asked of a single model", received)
        graph = self._graph("attention")
        found = graph(source=string_tensor([source]), target=string_tensor([target]))
        values = {name: tensor.numpy()[0] for name, tensor in found.items()}
        for name in ("source_pieces", "target_pieces"):
            values[name] = [piece.decode("utf-8") for piece in values[name].tolist()]
        return PairAttention(**values)

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
        source_size = config.source_vocab_size or config.vocab_size
        source_ids = as_ids(source, source_size, "source")
        target_ids = as_ids(target, config.vocab_size, "target")
        received = f"{len(target_ids)} for {len(source_ids)}"
        is_same = len(source_ids) == len(target_ids)
        require(is_same, "target", "must have as many rows as source", received)
        for name, ids in (("source", source_ids), ("target", target_ids)):
            has_positions = config.longest_text is None or ids.shape[1] <= config.longest_text
            rule = f"must be at most {config.longest_text} ids, the model's max_positions"
            require(has_positions, name, rule, ids.shape[1])
        graph = self._graph("score_ids")
        log_probs = graph(source=source_ids, target=target_ids)["log_prob"].numpy()
        require_finite(~np.isnan(log_probs), "log-probabilities")
        return log_probs

    def parse(self, texts: Iterable[str], progress: bool = False) -> list:
        """Returns the trees of a Parser; any other translator raises an InputError."""
        received = "a translation model, which has translate, score and attention"
        raise InputError("parse", "must be asked of a parsing model", received)

    @property
    def checkpoint(self) -> dict[str, Any]:
        """Which weights the model has, as far as that is known: {"checkpoint", "step", ...}."""
        return {} if self.card.checkpoint is None else self.card.checkpoint.to_json()

    def new_counts(self) -> AnswerCounts:
        """Returns counts of no answers yet, to which those of this translator can be added."""
        return AnswerCounts()

    def _translate(
        self,
        texts: Iterable[str],
        progress: bool,
        target_prefixes: Iterable[str] | None,
        aligned: bool,
        required_phrases: Iterable[Iterable[str]] | None,
        exact: int,
        scores: bool,
    ) -> list[list[Translation]] | list[list[AlignedTranslation]]:
        """Does what `translate` does; `exact` of the translations are the best ones."""
        sources, truncated = self._encode_sources(as_texts(texts, "texts"))
        prefixes = self._encode_prefixes(sources, target_prefixes)
        phrases = None
        if required_phrases is not None:
            phrases = self._encode_phrases(sources, required_phrases)

        def translate_batch(batch: list[int]) -> list:
            found = self._search_batch(
                [sources[i] for i in batch],
                [prefixes[i] for i in batch],
                None if phrases is None else [phrases[i] for i in batch],
                exact,
                scores or self.config.mbr is not None,
            )
            rows = translations(found, [truncated[i] for i in batch])
            if not aligned:
                return rows
            return self._align_batch([sources[i] for i in batch], found["ids"], rows, exact)

        lengths = [len(ids) for ids in sources]
        answers = self._in_batches(translate_batch, lengths, progress)
        if self.config.mbr is None:
            return answers
        is_sample = self.config.sampling is not None
        return [by_utility(row, self.config.mbr, is_sample) for row in answers]

    def _encode_sources(self, texts: Sequence[str]) -> EncodedTexts:
        """Cuts sources into ids, at most `source_limit` with EOS."""
        rows, _ = self._encode("encode_source", texts)
        return self._with_eos(rows, self.source_limit)

    def _encode_pairs(
        self, sources: Iterable[str], targets: Iterable[str]
    ) -> tuple[EncodedTexts, EncodedTexts]:
        """Cuts sources and targets into ids, with EOS."""
        sources, targets = as_texts(sources, "sources"), as_texts(targets, "targets")
        self._require_one_each(sources, targets, "targets", "sources")
        target_rows, _ = self._encode("encode_target", targets)
        return self._encode_sources(sources), self._with_eos(target_rows, self.target_limit)

    def _encode_prefixes(
        self, sources: list[np.ndarray], prefixes: Iterable[str] | None
    ) -> list[np.ndarray]:
        """Cuts what translations begin with into ids, without EOS; none if not given."""
        if prefixes is None:
            return [np.zeros(0, np.int32)] * len(sources)
        prefixes = as_texts(prefixes, "target_prefixes")
        self._require_one_each(sources, prefixes, "target_prefixes")
        # A space at the end would be a subword: "a " does not begin "a dog".
        rows, _ = self._encode("encode_target", [prefix.strip(SPACES) for prefix in prefixes])
        for source, prefix, row in zip(sources, prefixes, rows, strict=True):
            self._require_room(source, len(row), prefix, "target_prefixes")
        return rows

    def _encode_phrases(
        self, sources: list[np.ndarray], required_phrases: Iterable[Iterable[str]]
    ) -> list[list[np.ndarray]]:
        """Cuts what translations contain into ids, without EOS."""
        required_phrases = as_text_lists(required_phrases, "required_phrases")
        rule = "must be asked of a search"
        require(self.config.sampling is None, "required_phrases", rule, "random draws")
        rule = "must be asked of an export that was made with constraints"
        require("constrain_ids" in self.graphs, "required_phrases", rule, "one without them")
        self._require_one_each(sources, required_phrases, "required_phrases")
        every_phrase = list(itertools.chain(*required_phrases))
        stripped = [phrase.strip(SPACES) for phrase in every_phrase]
        rows, has_unknown = self._encode("encode_target", stripped)
        wrong = [
            phrase
            for phrase, ids, unknown in zip(every_phrase, rows, has_unknown, strict=True)
            if unknown or len(ids) == 0
        ]
        rule = "must have subwords, and characters that the vocabulary has"
        require(not wrong, "required_phrases", rule, shown(wrong))
        remaining, phrase_ids = iter(rows), []
        for source, phrases in zip(sources, required_phrases, strict=True):
            phrase_ids.append([next(remaining) for _ in phrases])
            count = sum(len(ids) for ids in phrase_ids[-1])
            self._require_room(source, count, " ".join(phrases), "required_phrases")
        return phrase_ids

    def _require_one_each(
        self, sources: Sequence, rows: Sequence, argument: str, of: str = "texts"
    ) -> None:
        """Refuses other than one row for each source; `of` is the argument that has the sources."""
        received = f"{len(rows)} for {len(sources)}"
        require(len(rows) == len(sources), argument, f"must be as many as the {of}", received)

    def _require_room(self, source: np.ndarray, count: int, text: str, argument: str) -> None:
        """Refuses what leaves no room for the EOS of a translation."""
        room = min(len(source) + self.config.extra_length, self.target_limit) - 1
        rule = f"must have at most {room} subwords for the sentence"
        require(count <= room, argument, rule, f"{count}: {shown(text)}")

    def _encode(self, name: str, texts: Sequence[str]) -> tuple[list[np.ndarray], list[bool]]:
        """Cuts texts into ids, without EOS; also says which have characters of no subword."""
        found = self._graph(name)(text=string_tensor(texts))
        ends = np.cumsum(found["length"].numpy())
        rows = np.split(found["ids"].numpy(), ends[:-1]) if len(texts) else []
        return rows, found["unknown"].numpy().tolist()

    def _with_eos(self, rows: list[np.ndarray], limit: int) -> EncodedTexts:
        """Ends rows in EOS, cuts them at the limit, and says which are cut."""
        truncated = [len(row) > limit - 1 for row in rows]
        ids = [np.append(row[: limit - 1], np.int32(EOS_ID)) for row in rows]
        return EncodedTexts(ids, truncated)

    def _search_batch(
        self,
        sources: list[np.ndarray],
        prefixes: list[np.ndarray],
        phrases: list[list[np.ndarray]] | None,
        exact: int,
        scores: bool,
    ) -> dict[str, np.ndarray]:
        """Translates one batch: the outputs of graphs.Graphs.search_ids, or of greedy_ids."""
        inputs = {"source": padded(sources), "target_prefix": padded(prefixes)}
        n_best = tf.constant(exact)
        if phrases is not None:
            search = self._graph("constrain_ids")
            outputs = search(**inputs, phrases=padded_phrases(phrases), n_best=n_best)
        elif "greedy_ids" in self.graphs and not scores:
            outputs = self.graphs["greedy_ids"](**inputs)
        else:
            outputs = self._graph("search_ids")(**inputs, n_best=n_best)
        return {name: tensor.numpy() for name, tensor in outputs.items()}

    def _align_batch(
        self,
        sources: list[np.ndarray],
        ids: np.ndarray,
        rows: list[list[Translation]],
        exact: int,
    ) -> list[list[AlignedTranslation]]:
        """Aligns the translations of a batch that are exact; ids are int32 [B, K, T]."""
        source = padded(sources)
        pairs = [self._align_ids(source, ids[:, rank]) for rank in range(exact)]
        return [
            [AlignedTranslation(*best, pairs[rank][place]) for rank, best in enumerate(row[:exact])]
            for place, row in enumerate(rows)
        ]

    def _align_ids(self, source: np.ndarray, target: np.ndarray) -> list[AlignedPair]:
        # Where all texts are blank, so are their translations; the graph needs one position.
        rows = (np.pad(ids, [(0, 0), (0, ids.shape[1] == 0)]) for ids in (source, target))
        source, target = map(tf.constant, rows)
        found = self._graph("align_ids")(source=source, target=target)
        columns = [found[name].numpy().tolist() for name in AlignedPair._fields]
        return [aligned_pair(*values) for values in zip(*columns, strict=True)]

    def _in_batches(
        self, run_batch: Callable[[list[int]], list], lengths: Sequence[int], progress: bool
    ) -> list:
        """Runs a function over batches of similar length, and returns its results in order.

        Args:
            run_batch: maps places of a batch to as many results.
            lengths: of all rows, in tokens.
            progress: whether to draw a bar on stderr.
        """
        results: list[Any] = [None] * len(lengths)
        batches = list(length_batches(lengths, self.config.batch_tokens, streams()))
        with tqdm(total=len(lengths), unit="sentence", disable=not progress) as bar:
            for batch, found in zip(batches, in_streams(run_batch, batches), strict=True):
                for place, result in zip(batch, found, strict=True):
                    results[place] = result
                bar.update(len(batch))
        return results

    def _graph(self, name: str) -> Callable[..., dict[str, tf.Tensor]]:
        rule = "must be among the signatures of the export; export the model again with it"
        require(name in self.graphs, name, rule, ", ".join(self.graphs))
        return self.graphs[name]
