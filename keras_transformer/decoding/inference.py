"""Binds the beam search to a model, with its cache and its way of reading text (section 6.1).

Pure graph functions. A source is its subwords and EOS, like the sources of training. Its
translation has at most `extra_length` tokens more.
"""

from typing import Any

import tensorflow as tf

from keras_transformer.config import EOS_ID, PAD_ID
from keras_transformer.decoding.beam_search import Cache, Hypotheses, beam_search
from keras_transformer.decoding.candidates import log_sum_exp
from keras_transformer.decoding.config import DecodingConfig
from keras_transformer.model.decoder_cache import DecoderCache
from keras_transformer.model.transformer import Transformer, shift_right
from keras_transformer.vocabulary.subwords import Subwords

# Spaces, line ends and control characters of any script: nothing that could be translated.
BLANK_PATTERN = r"[\s\p{Z}\p{Cc}]*"


def encode_text(
    tokenizer: Subwords, texts: tf.Tensor, limit: int
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
            empty sentence, whose translation is empty, with score 0.
        config: beam size, penalty and limits.
        target_prefix: int32 [B, P], padded, P at least 1: what each translation begins with.
    """
    memory, source_mask = model.encode(source)
    projected_memory = model.project_memory(memory)
    lengths = tf.reduce_sum(tf.cast(source_mask, tf.int32), axis=1)
    _, limit = config.limits(model.config)
    longest = tf.minimum(lengths + config.extra_length, limit)
    # With room for a position, as tensors without elements have no memory to be their own.
    empty = model.empty_cache(tf.shape(source)[0], config.beam_size).reserve(1)

    def step_fn(ids, cache, position):
        layers, *memory = cache.per_sentence
        old = DecoderCache(cache.per_beam, layers)
        logits, new = model.decode_step(ids, position, old, *memory, write=write_in_place)
        return logits, Cache(new.origins, (new.layers, *memory))

    def reserve(cache, capacity):
        layers, *memory = cache.per_sentence
        origins, layers = DecoderCache(cache.per_beam, layers).reserve(capacity)
        return Cache(origins, (layers, *memory))

    return beam_search(
        step_fn,
        Cache(empty.origins, (own_memory(empty.layers), projected_memory, source_mask)),
        max_lengths=tf.where(lengths > 1, longest, 0),
        config=config.search(),
        reserve=reserve,
        prefix=target_prefix,
    )


def own_memory(tensors: Any) -> Any:
    """Copies tensors to memory of their own, also where the graph's optimizer finds them equal."""
    return tf.nest.map_structure(lambda tensor: tf.raw_ops.DeepCopy(x=tensor), tensors)


def write_in_place(pool: tf.Tensor, entries: tf.Tensor, position: tf.Tensor) -> tf.Tensor:
    """Does what model.decoder_cache.scatter does, and `pool` itself has changed afterwards.

    TensorFlow's tensors are values: a scatter inside a while loop copies all of the cache for each
    position, a tenth of the time of decoding. Writing into the memory of `pool` is sound where
    nothing else uses it: `own_memory` sees to that at the start, and what grows or shrinks a cache
    later gives it new memory.

    Args:
        pool: [B, H, C, K, d], from `own_memory` or this function.
        entries: [B, H, K, d].
        position: int32 scalar, less than C.
    """
    shape, width = tf.shape(pool), pool.shape[3] * pool.shape[4]
    rows, capacity = shape[0] * shape[1], shape[2]
    updated = tf.raw_ops.InplaceUpdate(
        x=tf.reshape(pool, [rows * capacity, width]),
        i=tf.range(rows) * capacity + position,
        v=tf.reshape(entries, [rows, width]),
    )
    return tf.reshape(updated, shape)


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
