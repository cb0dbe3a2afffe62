"""The Transformer for decoding: pure functions over the weights of weights.py.

A model encodes each source once, and then decodes one target position at a time, with the keys and
values of earlier positions in a cache; or it decodes all positions of a given target at once. The
results equal those of model/transformer.py, whose layers compute all target positions for training:
a test compares the two for every configuration option. Axis letters are those in
keras_transformer/__init__.py. Rows are the vectors multiplied by a matrix: all positions, or beams,
of all sentences, [B P, D].
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import keras
import tensorflow as tf

from keras_transformer.core.config import BOS_ID, EOS_ID, GATED, TransformerConfig
from keras_transformer.core.model.attention import scaled_dot_product_attention
from keras_transformer.core.model.masks import causal_mask, padding_mask, window_mask
from keras_transformer.core.model.transformer import Transformer, shift_right, with_code
from keras_transformer.core.search.alignment import alignment
from keras_transformer.core.search.cache import (
    NOT_WRITTEN,
    KeysValues,
    Pool,
    SearchCache,
    XlaPool,
    attention_mask,
    with_own_entries,
)
from keras_transformer.core.search.matrices import ScaledRows
from keras_transformer.core.search.state import FirstInputs
from keras_transformer.core.search.weights import (
    CrossAttentionWeights,
    DecoderLayerWeights,
    EncoderLayerWeights,
    Normalization,
    SelfAttentionWeights,
    Weights,
    as_tensors,
    read_weights,
)


class Encoded(NamedTuple):
    """The output of the encoder."""

    memory: tf.Tensor  # float32 [B, S, D]
    mask: tf.Tensor  # bool [B, S], False at padding, and where the decoder reads the source
    attention: list[tf.Tensor]  # attention weights of each layer, float32 [B, H, S, S]
    source: tf.Tensor  # int32 [B, S]


class Decoded(NamedTuple):
    """The output of the decoder for whole targets."""

    logits: tf.Tensor  # float32 [B, T, V]; row t predicts token t
    self_attention: list[tf.Tensor]  # for each layer, float32 [B, H, T, T]
    cross_attention: list[tf.Tensor]  # for each layer, float32 [B, H, T, S]


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
        return CompiledModel(self.config, weights, XlaPool if for_xla else Pool)

    def start(self, source: tf.Tensor, beams: int) -> SearchCache:
        """Encodes sources, int32 [B, S], for a search with K beams."""
        encoded = encode(self, source)
        memory = project_memory(self, encoded.memory)
        cache = empty_cache(self, memory, encoded.mask, beams)
        if self.config.decoder_reads_code:  # BOS precedes the first input
            bos = tf.fill([tf.shape(source)[0], beams], BOS_ID)
            _, _, cache = decode_position(self, bos, cache, tf.constant(0))
        return cache

    def first_inputs(self, source: tf.Tensor) -> FirstInputs:
        """Returns the first inputs of the targets of sources, int32 [B, S]."""
        if self.config.decoder_reads_code:
            return FirstInputs(source[:, 0], position=1)
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
        return encoded, decode(self, encoded, target)


class _HeadLayout:
    """Splits projections into heads, and concatenates heads.

    It gathers rows along the last axis, which is several times faster than tf.transpose on CPUs.
    The order of the rows is the same for all layers, and computed once.

    Args:
        num_heads: H.
        batch: B.
        length: P, the number of rows per sentence: positions or beams.
    """

    def __init__(self, num_heads: int, batch: tf.Tensor, length: tf.Tensor | int):
        self._num_heads = num_heads
        self._batch = batch
        self._length = length
        self._order_to_split: dict[int, tf.Tensor] = {}  # by number of projections
        self._order_to_concatenate: tf.Tensor | None = None

    def split(self, projected: tf.Tensor, widths: Sequence[int]) -> list[tf.Tensor]:
        """float32 [B P, sum of H d] -> for each d in `widths`, float32 [B, H, P, d]."""
        if len(set(widths)) > 1:
            sizes = [self._num_heads * width for width in widths]
            parts = tf.split(projected, sizes, axis=-1)
            return [self.split(part, [width])[0] for part, width in zip(parts, widths, strict=True)]
        count, width = len(widths), widths[0]
        if count not in self._order_to_split:
            numbers = self._numbers([self._batch, self._length, count, self._num_heads])
            order = tf.transpose(numbers, [2, 0, 3, 1])  # [count, B, H, P]
            self._order_to_split[count] = tf.reshape(order, [-1])
        rows = tf.gather(tf.reshape(projected, [-1, width]), self._order_to_split[count])
        shape = [count, self._batch, self._num_heads, self._length, width]
        return tf.unstack(tf.reshape(rows, shape), num=count)

    def concatenate(self, heads: tf.Tensor) -> tf.Tensor:
        """float32 [B, H, P, d] -> [B P, H d]."""
        width = heads.shape[-1]
        if self._order_to_concatenate is None:
            numbers = self._numbers([self._batch, self._num_heads, self._length])
            order = tf.transpose(numbers, [0, 2, 1])  # [B, P, H]
            self._order_to_concatenate = tf.reshape(order, [-1])
        rows = tf.gather(tf.reshape(heads, [-1, width]), self._order_to_concatenate)
        return tf.reshape(rows, [self._batch * self._length, self._num_heads * width])

    @staticmethod
    def _numbers(shape: list) -> tf.Tensor:
        """Numbers all elements of a tensor: int32 of `shape`."""
        return tf.reshape(tf.range(tf.reduce_prod(shape)), shape)


def compile_model(model: Transformer, dtype: str = "float32") -> CompiledModel:
    """Reads the weights of a Transformer once; `dtype` as for weights.read_weights."""
    return CompiledModel(model.config, read_weights(model, dtype))


def encode(model: CompiledModel, source: tf.Tensor) -> Encoded:
    """Runs the encoder over sources, int32 [B, S], padded."""
    config, weights = model.config, model.weights
    mask = padding_mask(source)
    batch, length = tf.unstack(tf.shape(source))
    positions = tf.range(length)
    if config.decoder_reads_code:  # nothing attends to a code, and positions start after it
        mask &= (positions > 0) | (source == EOS_ID)  # an empty source has none
        positions = tf.maximum(positions - 1, 0)
    layout = _HeadLayout(config.num_heads, batch, length)
    allowed = mask[:, None, None, :]  # [B, 1, 1, S]
    if config.attention_window is not None:
        allowed &= window_mask(length, length, config.attention_window)

    x = _embed(config, weights.source_embedding, source)  # [B, S, D]
    x = _add_positions(config, weights.encoder.positions, x, positions)
    x = tf.reshape(x, [batch * length, config.d_model])
    attention = []
    for layer in weights.encoder.layers:
        norm = layer.self_attention_norm
        rows = _norm_if_pre(config, norm, x)
        attended, attention_weights = _attend_to_itself(
            config, layer.self_attention, rows, layout, positions, allowed
        )
        attention.append(attention_weights)
        x = _norm_if_post(config, norm, x + attended)

        x = _feed_forward(config, layer, x)
    x = _last_norm(config, weights.encoder.last_norm, x)
    return Encoded(tf.reshape(x, [batch, length, config.d_model]), mask, attention, source)


def decode(model: CompiledModel, encoded: Encoded, target: tf.Tensor) -> Decoded:
    """Runs the decoder over whole targets, int32 [B, T], padded, without BOS."""
    config, weights = model.config, model.weights
    inputs = shift_right(target)
    if config.decoder_reads_code:
        inputs = with_code(inputs, encoded.source)  # [B, T + 1]
    batch, length = tf.unstack(tf.shape(inputs))
    layout = _HeadLayout(config.num_heads, batch, length)
    allowed = causal_mask(length)
    if config.attention_window is not None:
        allowed &= window_mask(length, length, config.attention_window)
    positions = tf.range(length)
    self_attention = []

    def attend_to_target(number, layer_weights, rows):
        attended, attention_weights = _attend_to_itself(
            config, layer_weights, rows, layout, positions, allowed
        )
        self_attention.append(attention_weights)
        return attended

    x = _embed(config, weights.target_embedding, inputs)  # [B, T, D]
    x = _add_positions(config, weights.decoder.positions, x, positions)
    x = tf.reshape(x, [batch * length, config.d_model])
    memory = project_memory(model, encoded.memory)
    x, cross_attention = _decoder_layers(model, x, layout, attend_to_target, memory, encoded.mask)
    logits = tf.reshape(weights.logits.apply(x), [batch, length, config.vocab_size])
    decoded = Decoded(logits, self_attention, cross_attention)
    return _without_bos(decoded) if config.decoder_reads_code else decoded


def _without_bos(decoded: Decoded) -> Decoded:
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
    layout = _HeadLayout(config.num_heads, batch, beams)  # beams instead of positions
    origins = with_own_entries(cache.origins, position)
    allowed = attention_mask(origins, position, config.attention_window)
    layers = []

    def attend_to_cache(number, layer_weights, rows):
        attended, layer_cache = _attend_to_cache(
            config, layer_weights, rows, layout, cache.layers[number], position, allowed
        )
        layers.append(layer_cache)
        return attended

    x = _embed(config, weights.target_embedding, ids)  # [B, K, D]
    x = _add_positions(config, weights.decoder.positions, x, tf.reshape(position, [1]))
    x = tf.reshape(x, [batch * beams, config.d_model])
    x, cross_attention = _decoder_layers(
        model, x, layout, attend_to_cache, cache.memory, cache.source_mask
    )
    return x, cross_attention, cache._replace(origins=origins, layers=tuple(layers))


def _decoder_layers(
    model: CompiledModel,
    x: tf.Tensor,
    layout: _HeadLayout,
    attend: Callable[[int, SelfAttentionWeights, tf.Tensor], tf.Tensor],
    memory: Sequence[KeysValues],
    source_mask: tf.Tensor,
) -> tuple[tf.Tensor, list[tf.Tensor]]:
    """Runs the decoder layers.

    Args:
        model: the model.
        x: float32 [B P, D], the embeddings at all positions, or at one position for all beams.
        layout: the head layout for these rows.
        attend: self-attention: (layer number, its weights, rows) -> rows.
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
        attended = attend(number, layer.self_attention, _norm_if_pre(config, norm, x))
        x = _norm_if_post(config, norm, x + attended)

        norm = layer.cross_attention_norm
        rows = _norm_if_pre(config, norm, x)
        attended, attention_weights = _attend_to_memory(
            config, layer.cross_attention, rows, layout, memory[number], memory_allowed
        )
        cross_attention.append(attention_weights)
        x = _norm_if_post(config, norm, x + attended)

        x = _feed_forward(config, layer, x)
    return _last_norm(config, model.weights.decoder.last_norm, x), cross_attention


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
    layout = _HeadLayout(config.num_heads, batch, length)
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
    layers = [model.pool.empty(shape, config.d_k, config.d_v) for _ in memory]
    origins = tf.fill([batch, beams, 1], NOT_WRITTEN)
    return SearchCache(origins, tuple(layers), tuple(memory), source_mask)


def _embed(config: TransformerConfig, embedding, ids: tf.Tensor) -> tf.Tensor:
    """Section 3.4: int32 [...] -> float32 [..., D]."""
    vectors = embedding.look_up(ids)
    return vectors * config.d_model**0.5 if config.scale_embeddings else vectors


def _add_positions(
    config: TransformerConfig, table: tf.Tensor | None, embeddings: tf.Tensor, positions: tf.Tensor
) -> tf.Tensor:
    """Adds positional encodings for int32 [P] to embeddings, float32 [B, P, D]."""
    rows = None if table is None else tf.cast(tf.gather(table, positions), tf.float32)
    return config.position_kind.add(embeddings, positions, rows)


def _norm_if_pre(config: TransformerConfig, norm: Normalization, x: tf.Tensor) -> tf.Tensor:
    """Returns a sublayer's input: with norm="pre", x after layer normalization."""
    return _normalize(config, norm, x) if config.norm == "pre" else x


def _norm_if_post(config: TransformerConfig, norm: Normalization, x: tf.Tensor) -> tf.Tensor:
    """Returns a residual sum: with norm="post", after layer normalization."""
    return _normalize(config, norm, x) if config.norm == "post" else x


def _last_norm(config: TransformerConfig, norm: Normalization | None, x: tf.Tensor) -> tf.Tensor:
    return x if norm is None else _normalize(config, norm, x)


def _normalize(config: TransformerConfig, norm: Normalization, x: tf.Tensor) -> tf.Tensor:
    """Layer normalization over the last axis."""
    centered = x - tf.reduce_mean(x, axis=-1, keepdims=True)
    variance = tf.reduce_mean(tf.square(centered), axis=-1, keepdims=True)
    return centered * tf.math.rsqrt(variance + config.norm_epsilon) * norm.gamma + norm.beta


def _feed_forward(
    config: TransformerConfig, layer: EncoderLayerWeights | DecoderLayerWeights, x: tf.Tensor
) -> tf.Tensor:
    """The feed-forward network (equation 2) with its residual connection: [R, D] -> [R, D]."""
    activation = keras.activations.get(GATED.get(config.activation, config.activation))
    norm = layer.feed_forward_norm
    inner = layer.feed_forward.inner.apply(_norm_if_pre(config, norm, x))  # [R, F], or [R, 2 F]
    if config.activation in GATED:
        gate, inner = tf.split(inner, 2, axis=-1)
        inner = activation(gate) * inner  # [R, F]
    else:
        inner = activation(inner)
    outer = layer.feed_forward.outer.apply(inner, non_negative=config.activation == "relu")
    return _norm_if_post(config, norm, x + outer)


def _attend_to_itself(
    config: TransformerConfig,
    weights: SelfAttentionWeights,
    rows: tf.Tensor,
    layout: _HeadLayout,
    positions: tf.Tensor,
    allowed: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Self-attention over whole sequences.

    Args:
        rows: float32 [B P, D].
        layout: the head layout for these rows.
        positions: int32 [P].
        allowed: bool, broadcast to [B, H, P, P].

    Returns:
        float32 [B P, D], and the attention weights [B, H, P, P].
    """
    widths = [config.d_k, config.d_k, config.d_v]
    queries, keys, values = layout.split(weights.query_key_value.apply(rows), widths)
    queries, keys = _rotated(config, queries, keys, positions)
    heads, attention = scaled_dot_product_attention(queries, keys, values, allowed)
    return weights.output.apply(layout.concatenate(heads)), attention


def _attend_to_cache(
    config: TransformerConfig,
    weights: SelfAttentionWeights,
    rows: tf.Tensor,
    layout: _HeadLayout,
    cache: Pool,
    position: tf.Tensor,
    allowed: tf.Tensor,
) -> tuple[tf.Tensor, Pool]:
    """Self-attention at one position for every beam, over earlier positions and itself.

    Args:
        rows: float32 [B K, D].
        layout: the head layout for these rows.
        cache: this layer's cache.
        position: int32 scalar.
        allowed: bool [B, 1, K, C K].

    Returns:
        float32 [B K, D], and the cache including this position.
    """
    widths = [config.d_k, config.d_k, config.d_v]
    queries, keys, values = layout.split(
        weights.query_key_value.apply(rows), widths
    )  # [B, H, K, d]
    queries, keys = _rotated(config, queries, keys, tf.reshape(position, [1]))
    cache = cache.with_position(keys, values, position)
    shape = tf.shape(cache.keys)
    pool = [shape[0], config.num_heads, shape[2] * cache.keys.shape[3]]
    all_keys = tf.reshape(cache.keys, [*pool, config.d_k])  # [B, H, C K, d_k]
    all_values = tf.reshape(cache.values, [*pool, config.d_v])  # [B, H, C K, d_v]
    heads, _ = scaled_dot_product_attention(queries, all_keys, all_values, allowed)
    return weights.output.apply(layout.concatenate(heads)), cache


def _rotated(
    config: TransformerConfig, queries: tf.Tensor, keys: tf.Tensor, positions: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Rotates queries and keys by their positions, if the model's kind of positions does so."""
    kind = config.position_kind
    return kind.rotate(queries, positions), kind.rotate(keys, positions)


def _attend_to_memory(
    config: TransformerConfig,
    weights: CrossAttentionWeights,
    rows: tf.Tensor,
    layout: _HeadLayout,
    memory: KeysValues,
    allowed: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Attention to the encoder's output.

    Args:
        rows: float32 [B P, D], all target positions, or one position for all beams.
        layout: the head layout for these rows.
        memory: keys [B, H, S, d_k] and values [B, H, S, d_v].
        allowed: bool [B, 1, 1, S].

    Returns:
        float32 [B P, D], and the attention weights [B, H, P, S].
    """
    (queries,) = layout.split(weights.query.apply(rows), [config.d_k])
    heads, attention = scaled_dot_product_attention(queries, memory.keys, memory.values, allowed)
    return weights.output.apply(layout.concatenate(heads)), attention
