"""Translates and scores any number of sentences, in batches of similar length."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from absl import logging
from tqdm import tqdm

from keras_transformer.config import PAD_ID
from keras_transformer.decoding.batched import MIN_ROW_TOKENS
from keras_transformer.decoding.candidates import SamplingConfig
from keras_transformer.decoding.inference import (
    DecodingConfig,
    Tokenizer,
    check_beam_size,
    encode_text,
    output_limit,
    source_limit,
    target_log_probs,
    translate_ids,
)
from keras_transformer.decoding.inference_model import inference_model
from keras_transformer.decoding.streams import in_streams, streams
from keras_transformer.decoding.tasks import task_decoding
from keras_transformer.errors import InputError
from keras_transformer.training.checkpoints import restore_model
from keras_transformer.training.model_directory import read_description

# Sentences of fewer tokens than this are not divided among streams.
MIN_BATCH_TOKENS = 512
# Sentences encoded by one op.
ENCODING_BATCH = 2048


class Translation(NamedTuple):
    """One answer to a sentence."""

    text: str
    score: float  # log-probability / length penalty


class TargetScore(NamedTuple):
    """How probable the model finds a given translation."""

    log_prob: float  # natural logarithm, EOS included
    tokens: int  # subwords, EOS counted


class Translator:
    """Translates and scores sentences with a model, whatever their number and lengths.

    Args:
        model: any Transformer.
        tokenizer: the vocabulary it was trained with.
        config: how to translate.

    Attributes:
        truncated: number of sentences cut to the limit so far.

    Raises:
        InputError: for a beam larger than the vocabulary.
    """

    def __init__(self, model: keras.Model, tokenizer: Tokenizer, config: DecodingConfig):
        check_beam_size(model, config)
        self.model = model
        self.tokenizer = tokenizer
        self.config = config
        self.truncated = 0
        ids = tf.TensorSpec([None, None], tf.int32)  # of any shape: one trace serves all batches

        @tf.function(input_signature=[ids], autograph=False)
        def translate_batch(source):
            texts, best = translate_ids(model, tokenizer, source, config)
            return texts, best.scores

        @tf.function(input_signature=[ids, ids], autograph=False)
        def continue_batch(source, prefix):
            texts, best = translate_ids(model, tokenizer, source, config, prefix)
            return texts, best.scores

        @tf.function(input_signature=[ids, ids], autograph=False)
        def score_batch(source, target):
            return target_log_probs(model, source, target)

        self._translate_batch = translate_batch
        self._continue_batch = continue_batch
        self._score_batch = score_batch

    def translate(
        self,
        sentences: Sequence[str],
        progress: bool = False,
        target_prefixes: Sequence[str] | None = None,
    ) -> list[list[Translation]]:
        """Returns the translations of each sentence, best first, in the order of the sentences.

        There is at least one for each sentence, and at most `beam_size`.

        Args:
            sentences: texts of any length, empty ones included.
            progress: whether to draw a bar on stderr.
            target_prefixes: what the translations of each sentence are to begin with, "" for
                anything. The subwords of a prefix are kept as they are: it should end with a word.

        Raises:
            InputError: if the model's weights are not finite; if there are not as many prefixes as
                sentences, or one leaves no room for a translation's EOS.
        """
        prefixes = self._encode_prefixes(sentences, target_prefixes)
        sources = self._encode(sentences, source_limit(self.model, self.config), "source")
        answers: list[list[Translation]] = [[] for _ in sentences]
        lengths = [len(source) for source in sources]
        batches = list(length_batches(lengths, self.config.batch_tokens, streams()))

        def translate_batch(batch: list[int]) -> tuple[np.ndarray, np.ndarray]:
            source = padded([sources[i] for i in batch])
            if prefixes is None:
                texts, scores = self._translate_batch(source)
            else:
                prefix = padded([prefixes[i] or [PAD_ID] for i in batch])
                texts, scores = self._continue_batch(source, prefix)
            return texts.numpy(), scores.numpy()

        with tqdm(total=len(sentences), unit="sentence", disable=not progress) as bar:
            found = in_streams(translate_batch, batches)
            for batch, (texts, scores) in zip(batches, found, strict=True):
                for i, row, row_scores in zip(batch, texts, scores, strict=True):
                    answers[i] = translations(row, row_scores)
                bar.update(len(batch))
        return answers

    def score(
        self, sources: Sequence[str], targets: Sequence[str], progress: bool = False
    ) -> list[TargetScore]:
        """Returns how probable the model finds each target as a translation of its source.

        Raises:
            InputError: if there are not as many targets as sources.
        """
        if len(sources) != len(targets):
            rule = "there must be a target for every source"
            raise InputError(f"{rule}. Received: {len(sources)} and {len(targets)}")
        source_ids = self._encode(sources, source_limit(self.model, self.config), "source")
        target_ids = self._encode(targets, output_limit(self.model, self.config), "target")
        results = [TargetScore(0.0, 0)] * len(sources)
        longer = [max(map(len, pair)) for pair in zip(source_ids, target_ids, strict=True)]
        batches = list(length_batches(longer, self.config.batch_tokens, streams()))

        def score_batch(batch: list[int]) -> np.ndarray:
            source = padded([source_ids[i] for i in batch])
            target = padded([target_ids[i] for i in batch])
            return self._score_batch(source, target).numpy().sum(axis=1, dtype=np.float64)

        with tqdm(total=len(sources), unit="sentence", disable=not progress) as bar:
            for batch, sums in zip(batches, in_streams(score_batch, batches), strict=True):
                for i, log_prob in zip(batch, sums.tolist(), strict=True):
                    results[i] = TargetScore(log_prob, len(target_ids[i]))
                bar.update(len(batch))
        return results

    def _encode_prefixes(
        self, sentences: Sequence[str], prefixes: Sequence[str] | None
    ) -> list[list[int]] | None:
        """Encodes what translations begin with, without EOS."""
        if prefixes is None:
            return None
        if len(prefixes) != len(sentences):
            rule = "there must be a target prefix for every sentence"
            raise InputError(f"{rule}. Received: {len(prefixes)} for {len(sentences)}")
        if not prefixes:
            return []
        ids = self.tokenizer.encode_tensor(tf.constant([utf8(text) for text in prefixes])).to_list()
        # An empty sentence may become so long; a longer one longer.
        limit = min(self.config.extra_length, output_limit(self.model, self.config) - 1)
        for number, prefix in enumerate(ids, start=1):
            if len(prefix) > limit:
                rule = f"target prefix {number} must have at most {limit} subwords"
                raise InputError(f"{rule}. Received: {len(prefix)}")
        return ids

    def _encode(self, sentences: Sequence[str], limit: int, side: str) -> list[list[int]]:
        """Encodes sentences, and warns of those that had to be cut."""
        ids, total_cut = [], 0
        for start in range(0, len(sentences), ENCODING_BATCH):
            texts = [utf8(text) for text in sentences[start : start + ENCODING_BATCH]]
            encoded, cut = encode_text(self.tokenizer, tf.constant(texts), limit)
            ids += encoded.to_list()
            total_cut += int(np.sum(cut))
        self.truncated += total_cut
        if total_cut:
            logging.warning(
                "%d of %d %s sentences have more than %d subwords and were cut there",
                *(total_cut, len(sentences), side, limit),
            )
        return ids


def restore_translator(
    model_dir: str | Path,
    tokenizer: Tokenizer,
    checkpoint: str,
    beam_size: int | None,
    alpha: float | None,
    batch_tokens: int = DecodingConfig.batch_tokens,
    n_best: int | None = None,
    sampling: SamplingConfig | None = None,
) -> tuple[Translator, dict[str, Any]]:
    """Makes the translator of a model directory; sources are cut where training's were.

    Args:
        model_dir: as bin/train.py made it.
        tokenizer: the vocabulary in that directory.
        checkpoint: as of training.checkpoints.restore_model.
        beam_size, alpha: as of DecodingConfig; None for what the model's task has.
        batch_tokens, n_best, sampling: as of DecodingConfig.

    Returns:
        The translator, and what the checkpoint is: {"checkpoint", "step", ...}.

    Raises:
        InputError: where directory, checkpoint or vocabulary cannot be used.
    """
    description = read_description(model_dir)
    if tokenizer.fingerprint != description.vocabulary_fingerprint:
        path = Path(model_dir) / description.vocabulary
        rule = f"{path} must be the vocabulary that the model was trained with"
        raise InputError(f"{rule}. Received: fingerprint {tokenizer.fingerprint}")
    task = task_decoding(description.task)
    config = DecodingConfig(
        task.beam_size if beam_size is None else beam_size,
        task.alpha if alpha is None else alpha,
        task.extra_length,
        max_source_length=max(description.max_length, task.max_source_length),
        batch_tokens=batch_tokens,
        n_best=n_best,
        sampling=sampling,
    )
    model, facts = restore_model(model_dir, checkpoint)
    return Translator(inference_model(model), tokenizer, config), facts


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
        parts: how many batches there should be at least, of sentences that fill so many.

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


def padded(rows: list[list[int]]) -> tf.Tensor:
    """Makes int32 [B, longest] of lists of ids."""
    ids = np.full([len(rows), max(map(len, rows))], PAD_ID, np.int32)
    for row, values in zip(ids, rows, strict=True):
        row[: len(values)] = values
    return tf.constant(ids)


def translations(texts: Sequence[bytes], scores: Sequence[float]) -> list[Translation]:
    """Makes one sentence's answers, leaving out the beams that hold no hypothesis.

    Raises:
        InputError: where a score is NaN.
    """
    if any(math.isnan(score) for score in scores):
        raise InputError("the model's weights must be finite. Received: scores that are NaN")
    return [
        Translation(text.decode("utf-8"), float(score))
        for text, score in zip(texts, scores, strict=True)
        if score > -math.inf
    ]
