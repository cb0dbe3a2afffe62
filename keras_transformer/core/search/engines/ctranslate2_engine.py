"""CTranslate2's engine, for directories written by exchange/ctranslate2.py.

Does not import TensorFlow or Keras. Where CTranslate2 differs from beam_search.py, this file
compensates as far as possible from outside:

- Hypotheses are ranked by our length penalty (section 6.1). CTranslate2 ends a sentence's search
  when as many hypotheses as beams have ended, including the best one in its beam, even if an
  unfinished one could be better. That is earlier than with `early_stopping`, which has no effect
  here. An EOS counts only among the K best extensions.
- A batch has a single length limit. Sentences without a hypothesis within their own limit are
  searched again with that limit.
- Log probabilities are the model's own. CTranslate2 counts none for the tokens of a prefix, and
  removes restricted tokens before normalizing: such hypotheses are rescored afterwards.
- Required phrases are not supported, nor attention other than for alignment.
- A code that the decoder reads becomes the first token of a target, and is removed from results.
  CTranslate2 counts no log probability for it.
- The random state continues from call to call: a seed reproduces only the first call after opening
  a model.
- A GPU computes in float16, log probabilities included.
"""

import collections
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from absl import logging

from keras_transformer.core.config import EOS_ID, PAD_ID, UNK_ID, TransformerConfig
from keras_transformer.core.search.config import SearchSettings
from keras_transformer.core.search.engines.engine import Explained, Request, Rows
from keras_transformer.core.search.engines.streams import processor_streams, threads_of_stream
from keras_transformer.core.search.hypotheses import Hypotheses, is_suspicious
from keras_transformer.core.search.length_penalty import penalized
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.support.errors import InputError, reason, require

if TYPE_CHECKING:  # an extra
    from ctranslate2 import Translator

# Hypotheses searched at a time. More take longer, as their keys and values overflow the processor's
# caches.
BATCH_HYPOTHESES = 128
BATCH_PAIRS = 32  # scored at a time: all of their logits are in memory
NONE = -3e4  # CTranslate2's value for missing hypotheses is below this; -65504 in float16
OTHER_ENGINE = "must be used with a model that runs in TensorFlow"


class Hypothesis(NamedTuple):
    """A target found by a search."""

    tokens: list[str]  # with EOS, unless it reached its limit first
    log_prob: float  # natural logarithm
    attention: list[list[float]]  # for each token, the weights of the source's; [] if not needed


class CTranslate2Engine:
    """The engine that calls CTranslate2; see engine.Engine for its functions.

    Args:
        folder: a local directory, checked by `store.card.read_card`.
        vocabularies: the model's vocabularies.
        settings: the search options, and the forbidden phrases.
        limit: the maximum number of target tokens, EOS included.
        config: the model's configuration.
        device: as in store.model_path.ModelPath.

    Raises:
        InputError: if CTranslate2 is not installed, cannot read the directory or has no such
            device; from any function for unsupported requests.
    """

    name = "ctranslate2"
    functions = ("align_ids", "greedy_ids", "score_ids", "search_ids")

    def __init__(
        self,
        folder: Path,
        vocabularies: VocabularyPair,
        settings: SearchSettings,
        limit: int,
        config: TransformerConfig,
        device: str = "auto",
    ):
        ctranslate2 = load_ctranslate2()
        sampling = settings.options.sampling
        self.streams = processor_streams()
        if sampling is not None:
            self.streams = 1  # random numbers are drawn in the order of the batches
            ctranslate2.set_random_seed(sampling.seed)
        self._options = settings.options
        self._is_restricted = settings.is_restricted
        self._limit = limit
        self._codes = int(
            config.decoder_reads_code
        )  # the number of ids that the encoder does not read
        self._source_tokens = source_tokens(vocabularies)
        self._target_tokens = vocabularies.target.pieces
        self._target_ids = {token: id_ for id_, token in enumerate(self._target_tokens)}
        forbidden = [self._target(phrase) for phrase in settings.forbidden]
        self._search_options = search_options(settings, len(self._target_tokens))
        self._search_options["suppress_sequences"] = forbidden or None
        self._translator = None
        if device == "cuda" or (device == "auto" and ctranslate2.get_cuda_device_count() > 0):
            self._translator = self._opened_on_gpu(folder, is_required=device == "cuda")
        if self._translator is None:
            self._translator = self._opened_on_cpu(folder)

    def _opened_on_cpu(self, folder: Path) -> "Translator":
        try:
            return load_ctranslate2().Translator(
                str(folder), inter_threads=self.streams, intra_threads=threads_of_stream()
            )
        except Exception as error:  # damaged bytes can raise any error
            rule = "must be a directory written by an export"
            raise InputError("path", rule, f"{str(folder)!r}: {reason(error)}") from None

    def _opened_on_gpu(self, folder: Path, is_required: bool) -> "Translator | None":
        """Opens the model on a GPU; without one that works, returns None, unless it is required."""
        ctranslate2 = load_ctranslate2()
        try:
            has_float16 = "float16" in ctranslate2.get_supported_compute_types("cuda")
            compute_type = "float16" if has_float16 else "default"
            translator = ctranslate2.Translator(
                str(folder), device="cuda", compute_type=compute_type
            )
            # CUDA's libraries are loaded by the first search, which also checks its options.
            token = self._target_tokens[UNK_ID]
            translator.translate_batch([[token]], max_decoding_length=1, **self._search_options)
        except (RuntimeError, ValueError) as error:
            if is_required:
                rule = "must not be cuda without a GPU that CTranslate2 can use"
                raise InputError("device", rule, reason(error)) from None
            logging.warning("CTranslate2 cannot use the GPU: %s", reason(error))
            return None
        self.streams = 1
        self._search_options["max_batch_size"] = 0  # a batch is as large as batch_tokens allows
        return translator

    def search(self, request: Request) -> Hypotheses:
        received = "CTranslate2, which does not support required phrases"
        require(request.phrases is None, "required_phrases", OTHER_ENGINE, received)
        rows = self._searched(request, return_scores=True)
        if self._is_restricted or has_prefix(request):
            rows = self._scored(request.ids, rows)
        for row in rows:
            row.sort(key=lambda each: score_of(each, request.alpha), reverse=True)
        result = self._result(request, rows, request.guaranteed)
        log_probs = np.full(result.length.shape, -math.inf, np.float32)
        scores = log_probs.copy()
        for sentence, row in enumerate(rows):
            for rank, each in enumerate(row[: request.guaranteed]):
                log_probs[sentence, rank] = each.log_prob
                scores[sentence, rank] = score_of(each, request.alpha)
        result = result._replace(score=scores, log_prob=log_probs)
        by_token = request.token_scores or request.evidence
        if by_token and result.alignment is not None:
            return result._replace(token_log_prob=self._token_scores(request, result))
        return result

    def search_greedily(self, request: Request) -> Hypotheses:
        return self._result(request, self._searched(request), 1)

    def score(self, source: Rows, target: Rows) -> np.ndarray:
        return np.array([sum(row) for row in self._token_log_probs(source, target)], np.float32)

    def explain(self, source: Rows, target: Rows, attention: bool = False) -> Explained:
        received = "CTranslate2, which does not return the attention of all heads"
        require(not attention, "attention", OTHER_ENGINE, received)
        longest = max([1, *map(len, target)])
        log_probs = np.zeros([len(target), longest], np.float32)
        for sentence, row in enumerate(self._token_log_probs(source, target)):
            log_probs[sentence, : len(row)] = row
        alignment = np.zeros([len(target), longest], np.int32)
        by_length = collections.defaultdict(list)
        for sentence, (ids, targets) in enumerate(zip(source, target, strict=True)):
            if self._has_text(ids) and len(targets) > 0:  # all tokens are aligned to a lone EOS
                by_length[len(targets)].append(sentence)
        for length, sentences in by_length.items():
            # With alternatives, CTranslate2 processes a prefix at once, as in training.
            alignment[sentences, :length] = self._aligned(
                [source[sentence] for sentence in sentences],
                length,
                [[self._target_tokens[id_] for id_ in target[i]] for i in sentences],
                return_alternatives=True,
            )
        return Explained(log_probs, alignment)

    def _searched(self, request: Request, **options: Any) -> list[list[Hypothesis]]:
        """Returns each sentence's hypotheses, unordered; an empty one for an empty sentence."""
        extra_length = self._options.extra_length - self._codes
        limits = [min(len(ids) + extra_length, self._limit) for ids in request.ids]
        eos = self._target_tokens[EOS_ID]
        hypotheses = [[Hypothesis([], 0.0, [])] for _ in request.ids]
        sentences = [sentence for sentence, ids in enumerate(request.ids) if self._has_text(ids)]
        longest = max((limits[sentence] for sentence in sentences), default=0)
        by_limit = collections.defaultdict(list)
        for sentence, row in self._translated(request, sentences, longest, **options):
            hypotheses[sentence] = within(row, limits[sentence], eos)
            if not hypotheses[sentence]:
                by_limit[limits[sentence]].append(sentence)
        for limit, remaining in by_limit.items():
            for sentence, row in self._translated(request, remaining, limit, **options):
                hypotheses[sentence] = within(row, limit, eos)
        return hypotheses

    def _translated(
        self, request: Request, sentences: Sequence[int], limit: int, **options: Any
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        """Yields the indices of some sentences, and CTranslate2's hypotheses for them.

        Args:
            limit: the maximum number of tokens in a hypothesis.
            options: further options of `translate_batch`.
        """
        if not sentences:
            return
        sources = [request.ids[sentence] for sentence in sentences]
        prefix = None
        if has_prefix(request):
            prefix = [self._target(request.prefix[sentence]) for sentence in sentences]
        shortest = min(max(self._options.min_length - 1, 0), limit - 1)
        results = self._translator.translate_batch(
            [self._source(ids) for ids in sources],
            target_prefix=self._with_codes(sources, prefix),
            max_decoding_length=limit + self._codes,
            min_decoding_length=shortest + self._codes if shortest else 0,
            return_attention=any(request.needs_alignment),
            **self._search_options,
            **options,
        )
        aligned = request.needs_alignment or [False] * len(request.ids)
        for sentence, result in zip(sentences, results, strict=True):
            hypotheses = [tokens[self._codes :] for tokens in result.hypotheses]
            scores = result.scores or [0.0] * len(hypotheses)
            # Each access to this property makes lists of all weights.
            attention = result.attention if aligned[sentence] else [[]] * len(hypotheses)
            attention = [weights[self._codes :] for weights in attention]
            rows = zip(hypotheses, scores, attention, strict=True)
            yield sentence, [Hypothesis(*row) for row in rows if row[1] > NONE]

    def _result(
        self, request: Request, rows: Sequence[Sequence[Hypothesis]], count: int
    ) -> Hypotheses:
        """Returns each sentence's first `count` hypotheses, without scores."""
        longest = max([1, *(len(each.tokens) for row in rows for each in row[:count])])
        ids = np.full([len(rows), count, longest], PAD_ID, np.int32)
        aligned = _indices_of(request.needs_alignment)
        alignment = np.zeros_like(ids) if aligned else None
        lengths = np.zeros([len(rows), count], np.int32)
        for sentence, row in enumerate(rows):
            for rank, each in enumerate(row[:count]):
                length = len(each.tokens)
                ids[sentence, rank, :length] = [self._target_ids[token] for token in each.tokens]
                if sentence in aligned and length > 0:
                    positions = np.argmax(each.attention, axis=1)
                    alignment[sentence, rank, :length] = self._codes + positions
                lengths[sentence, rank] = length
        exactly = sorted(_indices_of(request.aligned))
        sentences = [sentence for sentence in exactly if self._has_text(request.ids[sentence])]
        if self._search_options["beam_size"] > 1 and sentences:
            # A beam search returns the attention of another sentence for the first token.
            first = self._aligned([request.ids[sentence] for sentence in sentences], 1)
            alignment[sentences, :, 0] = first
        return Hypotheses(ids, lengths, alignment=alignment)

    def _token_scores(self, request: Request, result: Hypotheses) -> np.ndarray:
        """Scores the tokens of hypotheses, of aligned sources or as evidence: float32 [B, K, T]."""
        scores = np.zeros(result.ids.shape, np.float32)
        exactly = _indices_of(request.aligned) if request.token_scores else set()
        indices, target = [], []
        for index in map(tuple, np.argwhere(result.length > 0).tolist()):
            log_prob, length = result.log_prob[index], result.length[index]
            ids = result.ids[index][:length]
            if index[0] in exactly or (request.evidence and is_suspicious(log_prob, ids.tolist())):
                indices.append(index)
                target.append(ids)
            scores[index][:length] = log_prob / length
        source = [request.ids[sentence] for sentence, _ in indices]
        for index, log_probs in zip(indices, self._token_log_probs(source, target), strict=True):
            scores[index][: len(log_probs)] = log_probs
        return scores

    def _scored(self, sources: Rows, rows: list[list[Hypothesis]]) -> list[list[Hypothesis]]:
        """Replaces the hypotheses' log probabilities by the model's own."""
        source = [ids for ids, row in zip(sources, rows, strict=True) for _ in row]
        target = [
            [self._target_ids[token] for token in each.tokens] for row in rows for each in row
        ]
        log_probs = iter(self._token_log_probs(source, target))
        return [[each._replace(log_prob=sum(next(log_probs))) for each in row] for row in rows]

    def _token_log_probs(self, source: Rows, target: Rows) -> list[list[float]]:
        """Returns the log probability of each token in targets, which may be padded."""
        results = self._translator.score_batch(
            [self._source(ids) for ids in source],
            self._with_codes(source, [self._target(ids) for ids in target]),
            max_batch_size=BATCH_PAIRS,
            max_input_length=0,
        )
        lengths = [np.count_nonzero(np.asarray(ids) != PAD_ID) for ids in target]
        # CTranslate2 scores an EOS after each target.
        return [
            row.log_probs[self._codes : self._codes + length]
            for row, length in zip(results, lengths, strict=True)
        ]

    def _aligned(
        self,
        source: Rows,
        length: int,
        targets: Sequence[list[str]] | None = None,
        **options: Any,
    ) -> np.ndarray:
        """Aligns the first `length` tokens of greedy targets, or of given ones: int [B, length]."""
        results = self._translator.translate_batch(
            [self._source(ids) for ids in source],
            target_prefix=self._with_codes(source, targets),
            beam_size=1,
            max_batch_size=BATCH_HYPOTHESES,
            max_input_length=0,
            max_decoding_length=length + self._codes,
            min_decoding_length=0,
            return_attention=True,
            return_end_token=True,
            **options,
        )
        attention = [result.attention[0][self._codes :] for result in results]
        return np.array([self._codes + np.argmax(weights, axis=1) for weights in attention])

    def _has_text(self, ids: Sequence[int]) -> bool:
        """Whether the encoder reads more than EOS."""
        return len(ids) > 1 + self._codes

    def _with_codes(
        self, source: Rows, targets: Sequence[list[str]] | None
    ) -> Sequence[list[str]] | None:
        """Prepends to targets the code of each source, if the decoder reads it; None for none."""
        if self._codes == 0:
            return targets
        if targets is None:
            targets = [[]] * len(source)
        codes = [self._source_tokens[ids[0]] for ids in source]
        return [[code, *target] for code, target in zip(codes, targets, strict=True)]

    def _source(self, ids: Sequence[int]) -> list[str]:
        """Returns the tokens that the encoder reads, without special ones."""
        return [self._source_tokens[id_] for id_ in ids[self._codes :] if id_ > EOS_ID]

    def _target(self, ids: Sequence[int]) -> list[str]:
        """Returns a target's tokens, without special ones."""
        return [self._target_tokens[id_] for id_ in ids if id_ > EOS_ID]


def load_ctranslate2() -> ModuleType:
    """Imports the package, which is an extra.

    Raises:
        InputError: if it is not installed.
    """
    try:
        import ctranslate2
    except ImportError:
        rule = "must be installed (pip install ctranslate2)"
        raise InputError("ctranslate2", rule, "none installed") from None
    return ctranslate2


def source_tokens(vocabularies: VocabularyPair) -> list[str]:
    """Returns the source tokens. CTranslate2 uses one name for a special id on both sides."""
    special = vocabularies.target.pieces[: UNK_ID + 1]
    return [*special, *vocabularies.source.pieces[UNK_ID + 1 :]]


def search_options(settings: SearchSettings, vocab_size: int) -> dict[str, Any]:
    """Returns the options of `translate_batch` that are fixed for all searches."""
    options = settings.options
    sampling = options.sampling
    arguments: dict[str, Any] = {
        "max_batch_size": max(BATCH_HYPOTHESES // options.beam_size, 1),
        "max_input_length": 0,
        "length_penalty": 0,  # so that scores are log probabilities
        "no_repeat_ngram_size": options.no_repeat_ngram_size,
        "return_end_token": True,
        "beam_size": options.beam_size,
        "num_hypotheses": options.beam_size,
    }
    if sampling is not None:
        arguments["beam_size"] = 1
        if sampling.top_k == 1:
            arguments["num_hypotheses"] = 1  # otherwise all would be the same
        arguments["sampling_topk"] = min(sampling.top_k, vocab_size)
        arguments["sampling_topp"] = sampling.top_p
        arguments["sampling_temperature"] = sampling.temperature
    return arguments


def _indices_of(are_needed: Sequence[bool]) -> set[int]:
    """Returns the indices of the sentences that need something."""
    return {sentence for sentence, is_needed in enumerate(are_needed) if is_needed}


def has_prefix(request: Request) -> bool:
    """Whether a target begins with the given tokens."""
    return request.prefix is not None and any(len(ids) > 0 for ids in request.prefix)


def within(row: Sequence[Hypothesis], limit: int, eos: str) -> list[Hypothesis]:
    """Returns the hypotheses that ended within a limit, or else those that reached it."""
    ended = [each for each in row if len(each.tokens) <= limit and each.tokens[-1] == eos]
    return ended or [each for each in row if len(each.tokens) == limit]


def score_of(hypothesis: Hypothesis, alpha: float) -> float:
    """Returns log probability / length penalty."""
    return penalized(hypothesis.log_prob, len(hypothesis.tokens), alpha)
