"""From texts to answers: one Translator for a model in this process and for an exported one.

`keras_transformer.load` makes it. Its graphs are those of decoding/answers.py, either way.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import tensorflow as tf
from absl import logging
from tqdm import tqdm

from keras_transformer.config import TransformerConfig
from keras_transformer.decoding.answers import MIN_ROW_TOKENS, OF_TRANSLATIONS
from keras_transformer.decoding.inference import (
    DecodingConfig,
    check_beam_size,
    output_limit,
    source_limit,
)
from keras_transformer.decoding.streams import in_streams, streams
from keras_transformer.errors import InputError, require

# Batches of fewer tokens than this are not divided further among streams.
MIN_BATCH_TOKENS = 512
# What the card has of the checkpoint.
OF_CHECKPOINT = ("checkpoint", "averaged", "step", "validation_loss")
# Texts whose subwords are counted by one call.
COUNTED_AT_ONCE = 2048

Result = TypeVar("Result")


class Translation(NamedTuple):
    """One answer to a sentence."""

    text: str
    score: float  # log-probability / length penalty
    log_prob: float  # natural logarithm, EOS included
    tokens: int  # subwords, EOS counted


class TargetScore(NamedTuple):
    """How probable the model finds a given translation."""

    log_prob: float  # natural logarithm, EOS included
    tokens: int  # subwords, EOS counted


class PairAttention(NamedTuple):
    """What predicting each of T target tokens attends to; see decoding/attention_maps.py."""

    source_pieces: list[str]  # S subwords, "</s>" last
    target_pieces: list[str]  # T
    encoder: np.ndarray  # float32 [N, H, S, S]
    decoder: np.ndarray  # float32 [N, H, T, T]
    memory: np.ndarray  # float32 [N, H, T, S]
    alignment: np.ndarray  # int32 [T], source positions


class Translator:
    """Translates and scores any number of texts, in batches of similar length.

    Args:
        graphs: of `answers.text_graphs`, or the signatures of an export.
        config: how the graphs translate.
        model_config: of the model whose graphs these are.
        card: what is known of the model; see export/model_card.

    Attributes:
        truncated: number of texts cut to the limit so far.

    Raises:
        InputError: for a beam larger than the vocabulary.
    """

    def __init__(
        self,
        graphs: Mapping[str, Callable[..., dict[str, tf.Tensor]]],
        config: DecodingConfig,
        model_config: TransformerConfig,
        card: Mapping[str, Any] | None = None,
    ):
        check_beam_size(model_config, config)
        self.graphs, self.config, self.card = graphs, config, card or {}
        self.source_limit = source_limit(model_config, config)
        self.output_limit = output_limit(model_config, config)
        self.truncated = 0

    def translate(
        self,
        texts: Sequence[str],
        progress: bool = False,
        target_prefixes: Sequence[str] | None = None,
    ) -> list[list[Translation]]:
        """Returns the translations of each text, best first, in the order of the texts.

        There is at least one for each text, and at most `beam_size`.

        Args:
            texts: of any length, empty ones included.
            progress: whether to draw a bar on stderr.
            target_prefixes: what the translations of each text begin with, "" for anything. The
                subwords of a prefix are kept as they are: it should end with a word. An export
                takes none.

        Raises:
            InputError: if the model's weights are not finite; if there are not as many prefixes as
                texts, or one leaves no room for a translation's EOS.
        """
        sources = [self._source(text) for text in texts]
        signature, inputs = "beams" if self.config.n_best == 1 else "n_best", {"text": sources}
        if target_prefixes is not None:
            self._check_prefixes(texts, target_prefixes)
            signature, inputs = "continuation", {"source": sources, "target": target_prefixes}
        lengths = self._lengths(sources, self.source_limit, "source")

        def rows_of(columns: dict[str, np.ndarray]) -> Iterator[list[Translation]]:
            return map(translations, *(columns[name] for name in OF_TRANSLATIONS))

        answers = self._in_batches(signature, inputs, lengths, rows_of, progress)
        return self._answers(texts, answers)

    def score(
        self, sources: Sequence[str], targets: Sequence[str], progress: bool = False
    ) -> list[TargetScore]:
        """Returns how probable the model finds each target as a translation of its source.

        Raises:
            InputError: if there are not as many targets as sources.
        """
        rule = "there must be a target for every source"
        require(len(sources) == len(targets), rule, f"{len(sources)} and {len(targets)}")
        inputs = {
            "source": [self._source(text) for text in sources],
            "target": [self._target(text) for text in targets],
        }
        limits = (self.source_limit, self.output_limit)
        sides = [
            self._lengths(texts, limit, side)
            for (side, texts), limit in zip(inputs.items(), limits, strict=True)
        ]

        def rows_of(columns: dict[str, np.ndarray]) -> Iterator[TargetScore]:
            return map(TargetScore, columns["log_prob"].tolist(), columns["length"].tolist())

        longer = [max(pair) for pair in zip(*sides, strict=True)]
        return self._in_batches("score", inputs, longer, rows_of, progress)

    def attention(self, source: str, target: str) -> PairAttention:
        """Returns the attention of all heads for a text and a translation of it."""
        found = self._run("attention", source=[self._source(source)], target=[self._target(target)])
        pieces = {
            name: [piece.decode("utf-8") for piece in found.pop(name)[0].tolist()]
            for name in ("source_pieces", "target_pieces")
        }
        return PairAttention(**pieces, **{name: array[0] for name, array in found.items()})

    def score_ids(self, source: tf.Tensor, target: tf.Tensor) -> np.ndarray:
        """Returns the log-probabilities, float32 [B], of one batch of pairs that are ids already.

        Args:
            source: int32 [B, S], each row ending in EOS and then padding.
            target: int32 [B, T], the same, without BOS.
        """
        return self.graphs["score_ids"](source=source, target=target)["log_prob"].numpy()

    def parse(self, texts: Sequence[str], progress: bool = False) -> list:
        """Returns trees; decoding/parser.py has the translator that does.

        Raises:
            InputError: as this model translates.
        """
        raise InputError(
            "parse must be asked of a parsing model. Received: a translation model, which has "
            "translate, score and attention"
        )

    @property
    def checkpoint(self) -> dict[str, Any]:
        """What the weights are, as far as that is known: {"checkpoint", "step", ...}."""
        return {name: self.card[name] for name in OF_CHECKPOINT if name in self.card}

    def counts(self) -> dict[str, Any]:
        """What else is to be reported of the answers so far: of translations, nothing."""
        return {}

    def _source(self, text: str) -> str:
        """The text as the model reads it."""
        return text

    def _target(self, text: str) -> str:
        """An answer's text as the model writes it."""
        return text

    def _answers(self, texts: Sequence[str], answers: list[list[Translation]]) -> list[list]:
        """The answers to texts, of what the model wrote."""
        return answers

    def _in_batches(
        self,
        signature: str,
        inputs: Mapping[str, Sequence[str]],
        lengths: Sequence[int],
        rows_of: Callable[[dict[str, np.ndarray]], Iterator[Result]],
        progress: bool,
    ) -> list[Result]:
        """Runs a signature over batches of similar length, in streams.

        Args:
            inputs: the texts of each input of the signature.
            lengths: in subwords, by which batches are made.
            rows_of: makes the results of a batch of the signature's outputs.

        Returns:
            A result for each text, in their order.
        """
        results: list[Any] = [None] * len(lengths)
        batches = list(length_batches(lengths, self.config.batch_tokens, streams()))

        def run(batch: list[int]) -> list[Result]:
            part = {name: [texts[i] for i in batch] for name, texts in inputs.items()}
            return list(rows_of(self._run(signature, **part)))

        with tqdm(total=len(lengths), unit="sentence", disable=not progress) as bar:
            for batch, found in zip(batches, in_streams(run, batches), strict=True):
                for i, result in zip(batch, found, strict=True):
                    results[i] = result
                bar.update(len(batch))
        return results

    def _run(self, signature: str, **texts: Sequence[str]) -> dict[str, np.ndarray]:
        inputs = {
            name: tf.constant([utf8(text) for text in part], tf.string)
            for name, part in texts.items()
        }
        outputs = self.graphs[signature](**inputs)
        return {name: tensor.numpy() for name, tensor in outputs.items()}

    def _count(self, texts: Sequence[str]) -> list[int]:
        """Counts the subwords of texts, EOS included."""
        counts: list[int] = []
        for start in range(0, len(texts), COUNTED_AT_ONCE):
            found = self._run("lengths", text=texts[start : start + COUNTED_AT_ONCE])
            counts += found["length"].tolist()
        return counts

    def _lengths(self, texts: Sequence[str], limit: int, side: str) -> list[int]:
        """Counts what the model reads of texts, and warns of those that are cut."""
        counts = self._count(texts)
        cut = sum(count > limit for count in counts)
        self.truncated += cut
        if cut:
            logging.warning(
                "%d of %d %s sentences have more than %d subwords and were cut there",
                *(cut, len(texts), side, limit),
            )
        return [min(count, limit) for count in counts]

    def _check_prefixes(self, texts: Sequence[str], prefixes: Sequence[str]) -> None:
        """Refuses prefixes that do not fit the texts, or the model."""
        rule = "target_prefixes need a model directory or a .keras file"
        require("continuation" in self.graphs, rule, "an export")
        rule = "there must be a target prefix for every sentence"
        require(len(prefixes) == len(texts), rule, f"{len(prefixes)} for {len(texts)}")
        # The translation of an empty text may have this many subwords; that of others, more.
        limit = min(self.config.extra_length, self.output_limit - 1)
        for number, count in enumerate(self._count(prefixes), start=1):
            rule = f"target prefix {number} must have at most {limit} subwords"
            require(count - 1 <= limit, rule, count - 1)


def utf8(text: str) -> bytes:
    """Encodes text; lone surrogates, which UTF-8 cannot hold, become "?"."""
    return text.encode("utf-8", errors="replace")


def length_batches(
    lengths: Sequence[int], batch_tokens: int, parts: int = 1
) -> Iterator[list[int]]:
    """Cuts sentences into batches of similar length, longest first.

    Longest first, so that a batch too large for memory fails at once and the time left is not
    underestimated.

    Args:
        lengths: of the sentences, in tokens.
        batch_tokens: bounds sentences x longest of a batch, except for a sentence longer itself.
        parts: how many batches there should be at least, where there are enough tokens.

    Yields:
        Indices into `lengths`.
    """
    share = sum(max(length, MIN_ROW_TOKENS) for length in lengths) // parts
    batch_tokens = min(batch_tokens, max(share, MIN_BATCH_TOKENS))
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        longest = max(lengths[batch[0] if batch else index], MIN_ROW_TOKENS)
        if batch and longest * (len(batch) + 1) > batch_tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def translations(
    texts: Sequence[bytes],
    scores: Sequence[float],
    log_probs: Sequence[float],
    lengths: Sequence[int],
) -> list[Translation]:
    """Makes one sentence's answers, leaving out the beams that hold no hypothesis.

    Raises:
        InputError: where a score is NaN.
    """
    finite = not any(math.isnan(score) for score in scores)
    require(finite, "the model's weights must be finite", "scores that are NaN")
    return [
        Translation(text.decode("utf-8"), float(score), float(log_prob), int(length))
        for text, score, log_prob, length in zip(texts, scores, log_probs, lengths, strict=True)
        if score > -math.inf
    ]
