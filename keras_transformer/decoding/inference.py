"""Binds the beam search to a model, with its cache and its way of reading text (section 6.1).

Pure graph functions. A source is its subwords and EOS, like the sources of training.
"""

import tensorflow as tf

from keras_transformer.config import EOS_ID
from keras_transformer.decoding.beam_search import Cache, Hypotheses, beam_search
from keras_transformer.decoding.config import DecodingConfig
from keras_transformer.decoding.ensemble import AnyModel, log_probs
from keras_transformer.decoding.shortlist import Shortlist
from keras_transformer.model.decoder_cache import DecoderCache
from keras_transformer.model.transformer import shift_right
from keras_transformer.vocabulary.subwords import Subwords

# Spaces, line ends and control characters of any script: nothing that could be translated.
BLANK_PATTERN = r"[\s\p{Z}\p{Cc}]*"


def encode_text(
    vocabulary: Subwords, texts: tf.Tensor, limit: int
) -> tuple[tf.RaggedTensor, tf.Tensor]:
    """Maps texts, string [B], to what the model reads: ids int32 [B, None], at most `limit` each.

    EOS ends them; a blank text is a lone EOS. Invalid bytes count as U+FFFD. Also returns bool [B],
    True where the text was cut.
    """
    # Before the pattern, which matches no invalid bytes.
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8")
    blank = tf.strings.regex_full_match(texts, BLANK_PATTERN)
    ids = vocabulary.encode_tensor(tf.where(blank, "", texts))
    cut = ids.row_lengths() > limit - 1
    ends = tf.fill([tf.shape(texts)[0], 1], EOS_ID)
    return tf.concat([ids[:, : limit - 1], ends], axis=1), cut


def search_ids(
    model: AnyModel,
    source: tf.Tensor,
    config: DecodingConfig,
    target_prefix: tf.Tensor | None = None,
    shortlist: Shortlist | None = None,
    forbidden: tuple[tuple[int, ...], ...] = (),
    phrases: tuple[tf.Tensor, ...] = (),
    n_best: tf.Tensor | None = None,
) -> Hypotheses:
    """Searches the best target sequences of a batch.

    Args:
        model: any Transformer or Ensemble; one of `inference_model` is fastest.
        source: int32 [B, S], each row ending in EOS and then padding. A lone EOS stands for an
            empty sentence, whose translation is empty, with score 0.
        config: of the search, and the limits of lengths.
        target_prefix: int32 [B, P], padded, P at least 1: what each translation begins with.
        shortlist: of the tokens to consider, all if not given; without sampling, and for one
            Transformer of `inference_model`.
        forbidden: the ids of the forbidden phrases, which a `target_prefix` may contain.
        phrases: of `beam_search`; they need a `target_prefix`, be it padding.
        n_best: of `beam_search`.
    """
    memory, source_mask = model.encode(source)
    projected_memory = model.project_memory(memory)
    lengths = tf.reduce_sum(tf.cast(source_mask, tf.int32), axis=1)
    _, limit = config.limits(model.config)
    longest = tf.minimum(lengths + config.extra_length, limit)
    # With room for a position, as tensors without elements have no memory to be their own.
    empty = model.empty_cache(tf.shape(source)[0], config.beam_size).reserve(1)
    # For write_in_place: the graph's optimizer lets tensors share memory that it finds equal.
    own_layers = tf.nest.map_structure(lambda pool: tf.raw_ops.DeepCopy(x=pool), empty.layers)
    tokens, penalties, kernel = None, (), None
    if shortlist is not None:
        given = target_prefix
        for each in phrases:
            given = tf.concat([given, tf.reshape(each, [tf.shape(source)[0], -1])], axis=1)
        tokens, penalties, given = shortlist.considered(source, given)
        target_prefix = given[:, : tf.shape(target_prefix)[1]] if phrases else given
        kernel = model.logits_embedding.softmax_columns(tokens)
        if model.logits_embedding.bias is not None:
            penalties += tf.gather(model.logits_embedding.bias, tokens)

    def step_fn(ids, cache, position):
        layers, penalties, *memory = cache.per_sentence
        old = DecoderCache(cache.per_beam, layers)
        logits, new = model.decode_step(ids, position, old, *memory, write_in_place, kernel)
        if shortlist is not None:
            logits += penalties[:, None]
        return logits, Cache(new.origins, (new.layers, penalties, *memory))

    def reserve(cache, capacity):
        layers, *memory = cache.per_sentence
        origins, layers = DecoderCache(cache.per_beam, layers).reserve(capacity)
        return Cache(origins, (layers, *memory))

    return beam_search(
        step_fn,
        Cache(empty.origins, (own_layers, penalties, projected_memory, source_mask)),
        max_lengths=tf.where(lengths > 1, longest, 0),
        config=config.search(forbidden),
        reserve=reserve,
        prefix=target_prefix,
        tokens=tokens,
        phrases=phrases,
        n_best=n_best,
    )


def write_in_place(pool: tf.Tensor, entries: tf.Tensor, position: tf.Tensor) -> tf.Tensor:
    """Does what model.decoder_cache.scatter does, and `pool` itself has changed afterwards.

    TensorFlow's tensors are values: a scatter inside a while loop copies all of the cache for each
    position, a tenth of the time of decoding. Writing into the memory of `pool` is sound where
    nothing else uses it: a deep copy sees to that at the start, and what grows or shrinks a cache
    later gives it new memory.
    """
    shape, width = tf.shape(pool), pool.shape[3] * pool.shape[4]
    rows, capacity = shape[0] * shape[1], shape[2]
    updated = tf.raw_ops.InplaceUpdate(
        x=tf.reshape(pool, [rows * capacity, width]),
        i=tf.range(rows) * capacity + position,
        v=tf.reshape(entries, [rows, width]),
    )
    return tf.reshape(updated, shape)


def target_log_probs(model: AnyModel, source: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
    """Computes the log-probability of every target token, given the source and those before it.

    The source is int32 [B, S]; the target int32 [B, T], ending in EOS, without BOS; the result
    float32 [B, T], 0 at padding.
    """
    inputs = {"source": source, "target": shift_right(target)}
    return log_probs(model(inputs, training=False), target)
