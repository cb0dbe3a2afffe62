"""Text in, text out: binds the beam search to a model and a vocabulary (section 6.1).

Pure graph functions: translator.py runs them over any number of sentences, and an exported model
holds the same ones (export/saved_model).

A source is its subwords and EOS, like the sources of training. Its translation has at most
`extra_length` tokens more. A line without any visible character translates to the empty string,
with score 0; a line longer than `max_source_length` is cut there.
"""

import dataclasses
from typing import Protocol

import tensorflow as tf

from keras_transformer.config import EOS_ID, PAD_ID, TransformerConfig
from keras_transformer.decoding import in_place
from keras_transformer.decoding.beam_search import beam_search
from keras_transformer.decoding.candidates import SamplingConfig, log_sum_exp
from keras_transformer.decoding.search_state import BeamSearchConfig, Cache, Hypotheses
from keras_transformer.errors import InputError
from keras_transformer.model.decoder_cache import DecoderCache
from keras_transformer.model.transformer import Transformer, shift_right

# Spaces, line ends and control characters of any script: nothing that could be translated.
BLANK_PATTERN = r"[\s\p{Z}\p{Cc}]*"


class Tokenizer(Protocol):
    """What is needed of a vocabulary; keras_transformer/vocabulary/subwords has one."""

    fingerprint: str  # sha256 of its file

    def encode_tensor(self, sentences: tf.Tensor) -> tf.RaggedTensor:
        """Maps string [B] to int32 [B, None], without special ids."""

    def decode_tensor(self, ids: tf.Tensor) -> tf.Tensor:
        """Maps int32 [B, T] to string [B], up to the first EOS."""

    def pieces_tensor(self, ids: tf.Tensor) -> tf.Tensor:
        """Maps int32 [B, T] to string [B, T], the vocabulary's spelling of each."""


@dataclasses.dataclass(frozen=True)
class DecodingConfig:
    """How sentences are translated."""

    beam_size: int = 4  # section 6.1; 1 is greedy search
    alpha: float = 0.6  # length penalty, section 6.1
    extra_length: int = 50  # maximum output length = input length + 50, section 6.1
    max_source_length: int = 256  # subwords of a source, EOS included; the rest is cut off
    batch_tokens: int = 4096  # padded source tokens translated at once
    n_best: int | None = None  # translations that must be exact, of beam_size; None for all
    sampling: SamplingConfig | None = None  # random translations instead of the best

    def __post_init__(self):
        BeamSearchConfig(self.beam_size, self.alpha, self.n_best)  # checks them
        for name, least in (("extra_length", 0), ("max_source_length", 2), ("batch_tokens", 1)):
            if getattr(self, name) < least:
                rule = f"--{name} must be at least {least}"
                raise InputError(f"{rule}. Received: {getattr(self, name)}")


def check_beam_size(model: TransformerConfig, config: DecodingConfig) -> None:
    """Rejects beams that could not all differ after one token."""
    if config.beam_size > model.vocab_size:
        rule = f"--beam_size must not exceed the model's vocabulary of {model.vocab_size}"
        raise InputError(f"{rule}. Received: {config.beam_size}")


def source_limit(model: TransformerConfig, config: DecodingConfig) -> int:
    """The most tokens of a source, EOS included: learned positions end at the last one learned."""
    if model.positions == "learned":
        return min(config.max_source_length, model.max_positions)
    return config.max_source_length


def output_limit(model: TransformerConfig, config: DecodingConfig) -> int:
    """The most tokens of a translation, EOS included."""
    longest = config.max_source_length + config.extra_length
    if model.positions == "learned":
        return min(longest, model.max_positions)
    return longest


def encode_text(
    tokenizer: Tokenizer, texts: tf.Tensor, limit: int
) -> tuple[tf.RaggedTensor, tf.Tensor]:
    """Maps texts to what the model reads: subwords, cut to `limit` with the EOS that ends them.

    Args:
        tokenizer: the model's.
        texts: string [B], UTF-8; invalid bytes count as U+FFFD. Blank ones become a lone EOS.
        limit: the most ids of a text, EOS included.

    Returns:
        int32 [B, None], and bool [B], True where the text was cut.
    """
    # Before the pattern, which matches no invalid bytes.
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8")
    blank = tf.strings.regex_full_match(texts, BLANK_PATTERN)
    ids = tokenizer.encode_tensor(tf.where(blank, "", texts))
    cut = ids.row_lengths() > limit - 1
    ends = tf.fill([tf.shape(texts)[0], 1], EOS_ID)
    return tf.concat([ids[:, : limit - 1], ends], axis=1), cut


def search_ids(
    model: Transformer,
    source: tf.Tensor,
    config: DecodingConfig,
    target_prefix: tf.Tensor | None = None,
) -> Hypotheses:
    """Searches the best target sequences of a batch.

    Args:
        model: any Transformer; one of `inference_model` is fastest.
        source: int32 [B, S], each row ending in EOS and then padding. A lone EOS stands for an
            empty sentence, whose translation is empty.
        config: beam size, penalty and limits.
        target_prefix: int32 [B, P], padded, P at least 1: what each translation begins with.
    """
    memory, source_mask = model.encode(source)
    projected_memory = model.project_memory(memory)
    lengths = tf.reduce_sum(tf.cast(source_mask, tf.int32), axis=1)
    longest = tf.minimum(lengths + config.extra_length, output_limit(model.config, config))
    empty = model.empty_cache(tf.shape(source)[0], config.beam_size)
    # With room for a position, as tensors without elements have no memory to be their own.
    empty = empty.reserve(1)
    layers = in_place.own(empty.layers)

    def step_fn(ids, cache, position):
        layers, *memory = cache.per_sentence
        old = DecoderCache(cache.per_beam, layers)
        logits, new = model.decode_step(ids, position, old, *memory, write=in_place.write)
        return logits, Cache(new.origins, (new.layers, *memory))

    def reserve(cache, capacity):
        layers, *memory = cache.per_sentence
        origins, layers = DecoderCache(cache.per_beam, layers).reserve(capacity)
        return Cache(origins, (layers, *memory))

    return beam_search(
        step_fn,
        Cache(empty.origins, (layers, projected_memory, source_mask)),
        max_lengths=tf.where(lengths > 1, longest, 0),
        config=BeamSearchConfig(
            config.beam_size, config.alpha, n_best=config.n_best, sampling=config.sampling
        ),
        reserve=reserve,
        prefix=target_prefix,
    )


def translate_ids(
    model: Transformer,
    tokenizer: Tokenizer,
    source: tf.Tensor,
    config: DecodingConfig,
    target_prefix: tf.Tensor | None = None,
) -> tuple[tf.Tensor, Hypotheses]:
    """Translates a batch to text, best translations first.

    Args:
        source: int32 [B, S], as of search_ids.
        target_prefix: int32 [B, P], as of search_ids.

    Returns:
        string [B, K], and what they are the texts of: score -inf where a sentence has fewer than K.
    """
    best = search_ids(model, source, config, target_prefix)
    shape = tf.shape(best.ids)  # [B, K, T]
    texts = tokenizer.decode_tensor(tf.reshape(best.ids, [shape[0] * shape[1], shape[2]]))
    return tf.reshape(texts, [-1, config.beam_size]), best


def target_log_probs(model: Transformer, source: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
    """Computes the log-probability of every target token, given the source and those before it.

    Args:
        source: int32 [B, S].
        target: int32 [B, T], ending in EOS, without BOS.

    Returns:
        float32 [B, T], 0 at padding.
    """
    inputs = {"source": source, "target": shift_right(target)}
    logits = model(inputs, training=False)  # [B, T, V]
    largest = tf.reduce_max(logits, axis=-1, keepdims=True)
    log_total = log_sum_exp(logits, largest)[:, :, 0]
    log_probs = tf.gather(logits, target, axis=2, batch_dims=2) - log_total  # [B, T]
    return tf.where(target == PAD_ID, 0.0, log_probs)
