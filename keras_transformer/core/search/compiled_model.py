"""The Transformer for decoding: pure functions over the weights of weights.py.

A model encodes each source once, and then decodes one target position at a time, with the keys and
values of earlier positions in a cache; or it decodes all positions of a given target at once. The
results equal those of model/transformer.py, whose layers compute all target positions for training:
a test compares the two for every configuration option. Axis letters are those in
keras_transformer/__init__.py. Rows are explained in compiled_layers.py.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from keras_transformer.core.config import BOS_ID, EOS_ID, TransformerConfig
from keras_transformer.core.model.masks import causal_mask, source_mask, window_mask
from keras_transformer.core.model.transformer import Transformer, shift_right, with_code
from keras_transformer.core.search.alignment import AttentionMaps, alignment
from keras_transformer.core.search.cache import (
    NOT_WRITTEN,
    KeysValues,
    Pool,
    RecurrentState,
    SearchCache,
    XlaPool,
    attention_mask,
    with_own_entries,
)
from keras_transformer.core.search.compiled_layers import (
    HeadLayout,
    add_positions,
    attend_to_cache,
    attend_to_itself,
    attend_to_memory,
    embed,
    embed_target,
    feed_forward,
    last_norm,
    norm_if_post,
    norm_if_pre,
    recur_at_position,
    recur_over_itself,
)
from keras_transformer.core.search.matrices import ScaledRows
from keras_transformer.core.search.state import FirstInputs
from keras_transformer.core.search.weights import (
    SelfAttentionWeights,
    SSRUWeights,
    Weights,
    as_tensors,
    read_weights,
)


class Encoded(NamedTuple):
    """The output of the encoder."""

    memory: tf.Tensor  # float32 [B, S, D]
    mask: tf.Tensor  # bool [B, S], False at padding, and where the decoder reads the source
    attention: list[tf.Tensor]  # attention weights of each layer, float32 [B, H, S, S]


class Decoded(NamedTuple):
    """The output of the decoder for whole targets."""

    logits: tf.Tensor  # float32 [B, T, V]; row t predicts token t
    self_attention: list[tf.Tensor]  # for each layer, float32 [B, H, T, T]; none of an SSRU
    cross_attention: list[tf.Tensor]  # for each layer, float32 [B, H, T, S]


def attention_maps(encoded: Encoded, decoded: Decoded) -> AttentionMaps:
    """Returns the attention of all heads."""
    memory = tf.stack(decoded.cross_attention, axis=1)
    if decoded.self_attention:
        decoder = tf.stack(decoded.self_attention, axis=1)
    else:
        batch, _, heads, length, _ = tf.unstack(tf.shape(memory))
        decoder = tf.zeros([batch, 0, heads, length, length])
    return AttentionMaps(tf.stack(encoded.attention, axis=1), decoder, memory)


class CompiledModel(NamedTuple):
    """A model for decoding; an Ensemble has the same methods."""

    config: TransformerConfig
    weights: Weights  # stored variables; tensors within a graph
    pool: type[Pool] = Pool  # the kind in the caches of its searches

    @property
    def members(self) -> "tuple[CompiledModel, ...]":
        """The members of an ensemble: here, the model itself."""
        return (self,)

    def in_graph(self, for_xla: bool = False) -> "CompiledModel":
        """Reads the stored variables at the beginning of a graph.

        Args:
            for_xla: whether XLA compiles the graph. It needs another pool, and multiplies by
                matrices as they are stored.
        """
        weights = as_tensors(self.weights, keep_matrices=for_xla)
        return self._replace(weights=weights, pool=XlaPool if for_xla else Pool)

    def start(self, source: tf.Tensor, beams: int) -> SearchCache:
        """Encodes sources, int32 [B, S], for a search with K beams."""
        encoded = encode(self, source)
        memory = project_memory(self, encoded.memory)
        return empty_cache(self, memory, encoded.mask, beams)

    def first_inputs(self, source: tf.Tensor) -> FirstInputs:
        """Returns the first inputs of the targets of sources, int32 [B, S]."""
        return FirstInputs(tf.fill([tf.shape(source)[0]], BOS_ID), position=0)

    def step(
        self, ids: tf.Tensor, cache: SearchCache, position: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, SearchCache]:
        """Computes the logits at one position for every beam.

        Args:
            ids: int32 [B, K], the tokens at this position: `first_inputs` at the first.
            cache: the cache of earlier positions, with room for this one; see `cache.Pool`.
            position: int32 scalar.

        Returns:
            The logits for the next token, float32 [B, K, V], its alignment, int32 [B, K], and the
            cache including this position.
        """
        logits, attention, cache = self.attentive_step(ids, cache, position)
        return logits, alignment([attention], cache.source_mask), cache

    def attentive_step(
        self, ids: tf.Tensor, cache: SearchCache, position: tf.Tensor
    ) -> tuple[tf.Tensor, list[tf.Tensor], SearchCache]:
        """Like `step`, with each layer's cross-attention, float32 [B, H, K, S], as it is."""
        states, attention, cache = decode_position(self, ids, cache, position)
        logits = self.weights.logits.apply(states)  # [B K, V]
        shape = [tf.shape(ids)[0], ids.shape[1], self.config.vocab_size]
        return tf.reshape(logits, shape), attention, cache

    def scaled_step(
        self, ids: tf.Tensor, cache: SearchCache, position: tf.Tensor
    ) -> tuple[ScaledRows, tf.Tensor, SearchCache]:
        """Like `step`, for one beam, without scaling the logits, which are only compared."""
        states, attention, cache = decode_position(self, ids, cache, position)
        logits = self.weights.logits.apply_scaled(states)
        return logits, alignment([attention], cache.source_mask), cache

    def decode_target(self, source: tf.Tensor, target: tf.Tensor) -> tuple[Encoded, Decoded]:
        """Encodes sources, int32 [B, S], and decodes their targets, int32 [B, T], as a whole."""
        encoded = encode(self, source)
        return encoded, decode(self, encoded, shift_right(target))

    def encoder_inputs(self, source: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns which ids of sources the encoder reads, bool [B, S], and their positions [S]."""
        mask = source_mask(source, self.config.encoder_reads_eos)
        return mask, tf.range(tf.shape(source)[1])


class CodedModel(CompiledModel):
    """A model whose decoder reads the first id of each source, a code, between BOS and the target.

    See `decoder_reads_code` in TransformerConfig. The encoder's output has a row for the code, so
    that alignments count it, but nothing attends to it.
    """

    def start(self, source: tf.Tensor, beams: int) -> SearchCache:
        bos = tf.fill([tf.shape(source)[0], beams], BOS_ID)
        _, _, cache = decode_position(self, bos, super().start(source, beams), tf.constant(0))
        return cache

    def first_inputs(self, source: tf.Tensor) -> FirstInputs:
        return FirstInputs(source[:, 0], position=1)

    def decode_target(self, source: tf.Tensor, target: tf.Tensor) -> tuple[Encoded, Decoded]:
        encoded = encode(self, source)
        inputs = with_code(shift_right(target), source)  # [B, T + 1]
        return encoded, without_bos(decode(self, encoded, inputs))

    def encoder_inputs(self, source: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        mask, positions = super().encoder_inputs(source)
        mask &= (positions > 0) | (source == EOS_ID)  # an empty source has no code
        return mask, tf.maximum(positions - 1, 0)


def compile_model(model: Transformer, dtype: str = "float32") -> CompiledModel:
    """Reads the weights of a Transformer once; `dtype` as for weights.read_weights."""
    kind = CodedModel if model.config.decoder_reads_code else CompiledModel
    return kind(model.config, read_weights(model, dtype))


def encode(model: CompiledModel, source: tf.Tensor) -> Encoded:
    """Runs the encoder over sources, int32 [B, S], padded."""
    config, weights = model.config, model.weights
    mask, positions = model.encoder_inputs(source)
    batch, length = tf.unstack(tf.shape(source))
    layout = HeadLayout(config.num_heads, batch, length)
    allowed = mask[:, None, None, :]  # [B, 1, 1, S]
    if config.attention_window is not None:
        allowed &= window_mask(length, length, config.attention_window)

    x = embed(config, weights.source_embedding, source)  # [B, S, D]
    x = add_positions(config, weights.encoder.positions, x, positions)
    x = tf.reshape(x, [batch * length, config.d_model])
    attention = []
    for layer in weights.encoder.layers:
        norm = layer.self_attention_norm
        rows = norm_if_pre(config, norm, x)
        attended, attention_weights = attend_to_itself(
            config, layer.self_attention, rows, layout, positions, allowed
        )
        attention.append(attention_weights)
        x = norm_if_post(config, norm, x + attended)

        x = feed_forward(config, layer, x)
    x = last_norm(config, weights.encoder.last_norm, x)
    return Encoded(tf.reshape(x, [batch, length, config.d_model]), mask, attention)


def decode(model: CompiledModel, encoded: Encoded, inputs: tf.Tensor) -> Decoded:
    """Runs the decoder over whole inputs, int32 [B, T], padded, which begin with BOS."""
    config, weights = model.config, model.weights
    batch, length = tf.unstack(tf.shape(inputs))
    layout = HeadLayout(config.num_heads, batch, length)
    allowed = causal_mask(length)
    if config.attention_window is not None:
        allowed &= window_mask(length, length, config.attention_window)
    positions = tf.range(length)
    self_attention = []

    def attend_to_target(number, layer_weights, rows):
        if isinstance(layer_weights, SSRUWeights):
            return recur_over_itself(layer_weights, rows, batch)
        attended, attention_weights = attend_to_itself(
            config, layer_weights, rows, layout, positions, allowed
        )
        self_attention.append(attention_weights)
        return attended

    x = embed_target(config, weights.target_embedding, inputs)  # [B, T, D]
    x = add_positions(config, weights.decoder.positions, x, positions)
    x = tf.reshape(x, [batch * length, config.d_model])
    memory = project_memory(model, encoded.memory)
    x, cross_attention = decoder_layers(model, x, layout, attend_to_target, memory, encoded.mask)
    logits = tf.reshape(weights.logits.apply(x), [batch, length, config.vocab_size])
    return Decoded(logits, self_attention, cross_attention)


def without_bos(decoded: Decoded) -> Decoded:
    """Removes the row of BOS, which predicts a code; attention to both is added up."""

    def of_targets(weights):  # [B, H, T + 1, T + 1] -> [B, H, T, T]
        rows = weights[:, :, 1:]
        return tf.concat([rows[..., :1] + rows[..., 1:2], rows[..., 2:]], axis=-1)

    return Decoded(
        decoded.logits[:, 1:],
        [of_targets(weights) for weights in decoded.self_attention],
        [weights[:, :, 1:] for weights in decoded.cross_attention],
    )


def decode_position(
    model: CompiledModel, ids: tf.Tensor, cache: SearchCache, position: tf.Tensor
) -> tuple[tf.Tensor, list[tf.Tensor], SearchCache]:
    """Computes one position for every beam, up to the states before the logits.

    Args:
        model: the model that made the cache.
        ids, cache, position: see `CompiledModel.step`.

    Returns:
        The states, float32 [B K, D], each layer's cross-attention, float32 [B, H, K, S], and the
        cache including this position.
    """
    config, weights = model.config, model.weights
    batch, beams = tf.shape(ids)[0], ids.shape[1]
    layout = HeadLayout(config.num_heads, batch, beams)  # beams instead of positions
    origins = with_own_entries(cache.origins, position)
    allowed = attention_mask(origins, position, config.attention_window)
    layers = []

    def attend(number, layer_weights, rows):
        layer_cache = cache.layers[number]
        if isinstance(layer_weights, SSRUWeights):
            attended, layer_cache = recur_at_position(layer_weights, rows, layer_cache)
        else:
            attended, layer_cache = attend_to_cache(
                config, layer_weights, rows, layout, layer_cache, position, allowed
            )
        layers.append(layer_cache)
        return attended

    x = embed_target(config, weights.target_embedding, ids)  # [B, K, D]
    x = add_positions(config, weights.decoder.positions, x, tf.reshape(position, [1]))
    x = tf.reshape(x, [batch * beams, config.d_model])
    x, cross_attention = decoder_layers(model, x, layout, attend, cache.memory, cache.source_mask)
    return x, cross_attention, cache._replace(origins=origins, layers=tuple(layers))


def decoder_layers(
    model: CompiledModel,
    x: tf.Tensor,
    layout: HeadLayout,
    attend: Callable[[int, SelfAttentionWeights | SSRUWeights, tf.Tensor], tf.Tensor],
    memory: Sequence[KeysValues],
    source_mask: tf.Tensor,
) -> tuple[tf.Tensor, list[tf.Tensor]]:
    """Runs the decoder layers.

    Args:
        model: the model.
        x: float32 [B P, D], the embeddings at all positions, or at one position for all beams.
        layout: the head layout for these rows.
        attend: self-attention, or the SSRU: (layer number, its weights, rows) -> rows.
        memory: for each layer, the source's keys and values.
        source_mask: bool [B, S], False at padding.

    Returns:
        float32 [B P, D], and each layer's cross-attention weights, [B, H, P, S].
    """
    config = model.config
    memory_allowed = source_mask[:, None, None, :]  # [B, 1, 1, S]
    cross_attention = []
    for number, layer in enumerate(model.weights.decoder.layers):
        norm = layer.self_attention_norm
        attended = attend(number, layer.self_attention, norm_if_pre(config, norm, x))
        x = norm_if_post(config, norm, x + attended)

        norm = layer.cross_attention_norm
        rows = norm_if_pre(config, norm, x)
        attended, attention_weights = attend_to_memory(
            config, layer.cross_attention, rows, layout, memory[number], memory_allowed
        )
        cross_attention.append(attention_weights)
        x = norm_if_post(config, norm, x + attended)

        x = feed_forward(config, layer, x)
    return last_norm(config, model.weights.decoder.last_norm, x), cross_attention


def project_memory(model: CompiledModel, memory: tf.Tensor) -> tuple[KeysValues, ...]:
    """Computes the source keys and values for each decoder layer, once per source.

    Args:
        memory: float32 [B, S, D].

    Returns:
        For each layer, keys [B, H, S, d_k] and values [B, H, S, d_v].
    """
    config = model.config
    batch, length, _ = tf.unstack(tf.shape(memory))
    rows = tf.reshape(memory, [batch * length, config.d_model])
    layout = HeadLayout(config.num_heads, batch, length)
    projected = []
    for layer in model.weights.decoder.layers:
        keys_and_values = layer.cross_attention.key_value.apply(rows)
        keys, values = layout.split(keys_and_values, [config.d_k, config.d_v])
        projected.append(KeysValues(keys, values))
    return tuple(projected)


def empty_cache(
    model: CompiledModel, memory: Sequence[KeysValues], source_mask: tf.Tensor, beams: int
) -> SearchCache:
    """Makes an empty cache for B x K hypotheses, with room for one position."""
    config, batch = model.config, tf.shape(source_mask)[0]
    shape = [batch, config.num_heads, 1, beams]
    if config.decoder_self_attention == "ssru":
        layers = [RecurrentState(tf.zeros([batch, beams, config.d_model])) for _ in memory]
    else:
        layers = [model.pool.empty(shape, config.d_k, config.d_v) for _ in memory]
    origins = tf.fill([batch, beams, 1], NOT_WRITTEN)
    return SearchCache(origins, tuple(layers), tuple(memory), source_mask)
