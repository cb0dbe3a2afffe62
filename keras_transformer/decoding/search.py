"""Binds the beam search to models, with their cache and their way of reading text (section 6.1).

Pure graph functions. A source is its subwords and EOS, like the sources of training. Several models
of the same vocabularies decode as one, an ensemble: its probabilities are the mean of theirs.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from keras_transformer.config import EOS_ID, PAD_ID
from keras_transformer.decoding.beam_search import (
    Cache,
    Hypotheses,
    StepFunction,
    beam_search,
)
from keras_transformer.decoding.cache import DecoderCache, KeysValues, with_room
from keras_transformer.decoding.compiled_model import (
    CompiledModel,
    decode,
    decode_states,
    decode_step,
    empty_cache,
    encode,
    project_memory,
)
from keras_transformer.decoding.config import DecodingConfig, SearchSettings
from keras_transformer.decoding.greedy_search import Greedy, GreedyStepFunction, greedy_search
from keras_transformer.decoding.matrices import ScaledRows
from keras_transformer.decoding.shortlist import Considered, Shortlist
from keras_transformer.decoding.weights import Linear
from keras_transformer.language_codes import pattern_of
from keras_transformer.vocabulary.subwords import Subwords

# Spaces, line ends and control characters of any script: nothing that could be translated.
BLANK_PATTERN = r"[\s\p{Z}\p{Cc}]*"


def encode_text(vocabulary: Subwords, texts: tf.Tensor) -> tf.RaggedTensor:
    """Cuts texts into subwords: string [B] -> ids int32 [B, None], none for a blank text.

    Invalid bytes count as U+FFFD. A text of nothing but the code of a language is blank, too.
    """
    # Before the pattern, which matches no invalid bytes.
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8")
    pattern = BLANK_PATTERN
    if vocabulary.languages:
        pattern = f"(?:{pattern_of(vocabulary.languages)})?{BLANK_PATTERN}"
    blank = tf.strings.regex_full_match(texts, pattern)
    return vocabulary.encode_tensor(tf.where(blank, "", texts))


def with_eos(ids: tf.RaggedTensor, limit: int) -> tf.RaggedTensor:
    """Ends rows of ids, int32 [B, None], in EOS, and cuts them to at most `limit` ids with it."""
    ends = tf.fill([ids.nrows(), 1], EOS_ID)
    return tf.concat([ids[:, : limit - 1], ends], axis=1)


def search_ids(
    models: Sequence[CompiledModel],
    source: tf.Tensor,
    settings: SearchSettings,
    target_prefix: tf.Tensor | None = None,
    shortlist: Shortlist | None = None,
    phrases: tf.Tensor | None = None,
    n_best: tf.Tensor | None = None,
) -> Hypotheses:
    """Searches the best target sequences of a batch.

    Args:
        models: one model, or those of an ensemble.
        source: int32 [B, S], each row ending in EOS and then padding. A lone EOS stands for an
            empty sentence, whose translation is empty, with score 0.
        settings: the options of the search, and the forbidden phrases.
        target_prefix: int32 [B, P], padded, P at least 1: what each translation begins with. It may
            contain forbidden phrases.
        shortlist: of the tokens to consider, all if not given; without sampling, and for a single
            model.
        phrases: int32 [B, P, M], padded: what each translation must contain
            (decoding/constraints.py). They need a `target_prefix`, be it padding.
        n_best: int32 scalar, how many of the hypotheses must be the best ones; those of the options
            if not given.

    Returns:
        K hypotheses of each sentence, best first; see beam_search.Hypotheses.
    """
    beams = settings.options.beam_size
    given = _given_tokens(target_prefix, phrases)
    sources = _encode_sources(models, source, beams, shortlist, given)
    return beam_search(
        _step_function(models, sources.considered),
        sources.cache,
        max_lengths=_max_lengths(models, sources.mask, settings.options),
        settings=settings,
        reserve=_reserve,
        prefix=sources.places_of(target_prefix),
        tokens=sources.tokens,
        phrases=phrases,
        n_best=n_best,
    )


def search_ids_greedily(
    models: Sequence[CompiledModel],
    source: tf.Tensor,
    settings: SearchSettings,
    target_prefix: tf.Tensor | None = None,
    shortlist: Shortlist | None = None,
) -> Greedy:
    """Does what `search_ids` does with one beam, without scores; see greedy_search.Greedy."""
    sources = _encode_sources(models, source, 1, shortlist, target_prefix)
    return greedy_search(
        _greedy_step_function(models, sources.considered),
        sources.cache,
        max_lengths=_max_lengths(models, sources.mask, settings.options),
        settings=settings,
        reserve=_reserve,
        prefix=sources.places_of(target_prefix),
        tokens=sources.tokens,
    )


class SentenceCache(NamedTuple):
    """What a step keeps for each sentence."""

    layers: tuple[KeysValues, ...]  # of the decoder: DecoderCache.layers
    memories: list[list[KeysValues]]  # of each model, what `project_memory` returned
    source_mask: tf.Tensor  # bool [B, S]
    penalties: tf.Tensor | tuple[()]  # with a shortlist, float32 [B, C], added to logits


class _Sources(NamedTuple):
    """What a search begins with."""

    cache: Cache  # of an origin for each beam, and a SentenceCache
    mask: tf.Tensor  # bool [B, S], False at padding
    considered: Considered | None  # with a shortlist

    @property
    def tokens(self) -> tf.Tensor | None:
        """The token that each logit is of: int32 [C], or None for all of them."""
        return None if self.considered is None else self.considered.tokens

    def places_of(self, prefix: tf.Tensor | None) -> tf.Tensor | None:
        """The places of a prefix among the logits: int32 [B, P]."""
        if self.considered is None or prefix is None:
            return prefix
        return self.considered.places_of(prefix)


def _encode_sources(
    models: Sequence[CompiledModel],
    source: tf.Tensor,
    beams: int,
    shortlist: Shortlist | None,
    given: tf.Tensor | None,
) -> _Sources:
    """Computes what all steps of a search use; `given` is what a shortlist must contain."""
    encoded = [encode(model, source) for model in models]
    memories = [
        project_memory(model, result.memory) for model, result in zip(models, encoded, strict=True)
    ]
    considered = None if shortlist is None else shortlist.considered(source, given)
    empty = empty_cache(models, tf.shape(source)[0], beams)
    per_sentence = SentenceCache(
        layers=empty.layers,
        memories=memories,
        source_mask=encoded[0].mask,
        penalties=() if considered is None else considered.penalties,
    )
    return _Sources(Cache(empty.origins, per_sentence), encoded[0].mask, considered)


def _max_lengths(
    models: Sequence[CompiledModel], source_mask: tf.Tensor, options: DecodingConfig
) -> tf.Tensor:
    """The most tokens of a translation of each source, int32 [B]: 0 of an empty one."""
    source_lengths = tf.reduce_sum(tf.cast(source_mask, tf.int32), axis=1)
    limit = min(options.limits(model.config).target for model in models)
    longest = tf.minimum(source_lengths + options.extra_length, limit)
    return tf.where(source_lengths > 1, longest, 0)


def _step_function(models: Sequence[CompiledModel], considered: Considered | None) -> StepFunction:
    """Makes the function that computes one position of all hypotheses; see beam_search."""
    softmax_layers = _softmax_layers(models, considered)

    def step(ids, cache, position):
        per_sentence = cache.per_sentence
        logits, new_cache = _ensemble_step(
            models,
            softmax_layers,
            ids,
            position,
            DecoderCache(cache.per_beam, per_sentence.layers),
            per_sentence.memories,
            per_sentence.source_mask,
        )
        if considered is not None:
            logits += per_sentence.penalties[:, None]
        return logits, _updated(cache, new_cache)

    return step


def _greedy_step_function(
    models: Sequence[CompiledModel], considered: Considered | None
) -> GreedyStepFunction:
    """Makes the function that computes one position of all sentences; see greedy_search."""
    if len(models) > 1:
        step = _step_function(models, considered)

        def mean_step(ids, cache, position):
            logits, cache = step(ids, cache, position)
            return ScaledRows(logits[:, 0], tf.ones_like(logits[:, 0, :1])), cache

        return mean_step
    (softmax_layer,) = _softmax_layers(models, considered)

    def single_step(ids, cache, position):
        per_sentence = cache.per_sentence
        states, new_cache = decode_states(
            models[0],
            ids,
            position,
            DecoderCache(cache.per_beam, per_sentence.layers),
            per_sentence.memories[0],
            per_sentence.source_mask,
        )
        logits = softmax_layer.apply_scaled(states)
        if considered is not None:
            logits = logits._replace(values=logits.values + per_sentence.penalties)
        return logits, _updated(cache, new_cache)

    return single_step


def _softmax_layers(models: Sequence[CompiledModel], considered: Considered | None) -> list[Linear]:
    """The softmax layer of each model; with a shortlist, of the tokens that are considered."""
    layers = [model.weights.logits for model in models]
    return layers if considered is None else [_narrowed(layers[0], considered.tokens)]


def _updated(cache: Cache, decoder_cache: DecoderCache) -> Cache:
    """The cache with the keys and values of one more position."""
    per_sentence = cache.per_sentence._replace(layers=decoder_cache.layers)
    return Cache(decoder_cache.origins, per_sentence)


def _reserve(cache: Cache, capacity: tf.Tensor) -> Cache:
    """Makes room for positions below `capacity`."""
    own = DecoderCache(cache.per_beam, cache.per_sentence.layers)
    return _updated(cache, with_room(own, capacity))


def _ensemble_step(
    models: Sequence[CompiledModel],
    softmax_layers: Sequence[Linear],
    ids: tf.Tensor,
    position: tf.Tensor,
    cache: DecoderCache,
    memories: list[list[KeysValues]],
    source_mask: tf.Tensor,
) -> tuple[tf.Tensor, DecoderCache]:
    """Computes one position with each model: logits float32 [B, K, V], and the new cache."""
    every_logits, layers, origins = [], [], cache.origins
    start = 0
    for model, softmax_layer, memory in zip(models, softmax_layers, memories, strict=True):
        end = start + len(memory)
        own_cache = DecoderCache(cache.origins, cache.layers[start:end])
        logits, new_cache = decode_step(
            model, ids, position, own_cache, memory, source_mask, softmax_layer
        )
        every_logits.append(logits)
        layers.extend(new_cache.layers)
        origins = new_cache.origins
        start = end
    return mean_logits(every_logits), DecoderCache(origins, tuple(layers))


def mean_logits(every_logits: Sequence[tf.Tensor]) -> tf.Tensor:
    """The logits of one model; of several, the logarithm of the mean of their probabilities.

    Each is float32 [..., V], and so is the result.
    """
    if len(every_logits) == 1:
        return every_logits[0]
    log_probs = tf.stack([tf.nn.log_softmax(logits) for logits in every_logits])
    return tf.reduce_logsumexp(log_probs, axis=0) - math.log(len(every_logits))


def target_log_probs(
    models: Sequence[CompiledModel], source: tf.Tensor, target: tf.Tensor
) -> tf.Tensor:
    """Computes the log-probability of every target token, given the source and those before it.

    Args:
        models: one model, or those of an ensemble.
        source: int32 [B, S], each row ending in EOS and then padding.
        target: int32 [B, T], the same, without BOS.

    Returns:
        float32 [B, T], natural logarithms, 0 at padding.
    """
    decoded = [decode(model, encode(model, source), target) for model in models]
    return token_log_probs(mean_logits([each.logits for each in decoded]), target)


def token_log_probs(logits: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
    """The log-probabilities of the target's tokens, int32 [B, T]: float32 [B, T], 0 at padding."""
    target_logits = tf.gather(logits, target, batch_dims=2)
    log_probs = target_logits - tf.reduce_logsumexp(logits, axis=2)
    return tf.where(target == PAD_ID, 0.0, log_probs)


def _given_tokens(target_prefix: tf.Tensor | None, phrases: tf.Tensor | None) -> tf.Tensor | None:
    """The tokens that the caller of a search gives: int32 [B, P], padded."""
    if phrases is None:
        return target_prefix
    batch = tf.shape(phrases)[0]
    return tf.concat([target_prefix, tf.reshape(phrases, [batch, -1])], axis=1)


def _narrowed(softmax_layer: Linear, tokens: tf.Tensor) -> Linear:
    """The softmax layer of some tokens, int32 [C]."""
    bias = None if softmax_layer.bias is None else tf.gather(softmax_layer.bias, tokens)
    return Linear(softmax_layer.matrix.columns(tokens), bias)
