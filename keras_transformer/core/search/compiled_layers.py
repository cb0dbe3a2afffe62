"""The layers of a compiled model: pure functions over the weights of weights.py.

Rows are the vectors multiplied by a matrix: all positions, or beams, of all sentences, [B P, D].
"""

from collections.abc import Sequence

import keras
import tensorflow as tf

from keras_transformer.core.config import BOS_ID, GATED, TransformerConfig
from keras_transformer.core.model.attention import scaled_dot_product_attention
from keras_transformer.core.model.ssru import linear_recurrence
from keras_transformer.core.search.cache import KeysValues, Pool, RecurrentState
from keras_transformer.core.search.weights import (
    CrossAttentionWeights,
    DecoderLayerWeights,
    EncoderLayerWeights,
    Normalization,
    SelfAttentionWeights,
    SSRUWeights,
)


class HeadLayout:
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


def embed(config: TransformerConfig, embedding, ids: tf.Tensor) -> tf.Tensor:
    """Section 3.4: int32 [...] -> float32 [..., D]."""
    vectors = embedding.look_up(ids)
    return vectors * config.d_model**0.5 if config.scale_embeddings else vectors


def embed_target(config: TransformerConfig, embedding, ids: tf.Tensor) -> tf.Tensor:
    """The same for targets, which may start with zeros in place of BOS."""
    vectors = embed(config, embedding, ids)
    if config.starts_with_zeros:
        vectors = tf.where((ids == BOS_ID)[..., None], tf.zeros_like(vectors), vectors)
    return vectors


def add_positions(
    config: TransformerConfig, table: tf.Tensor | None, embeddings: tf.Tensor, positions: tf.Tensor
) -> tf.Tensor:
    """Adds positional encodings for int32 [P] to embeddings, float32 [B, P, D]."""
    rows = None if table is None else tf.cast(tf.gather(table, positions), tf.float32)
    return config.position_kind.add(embeddings, positions, rows)


def norm_if_pre(config: TransformerConfig, norm: Normalization, x: tf.Tensor) -> tf.Tensor:
    """Returns a sublayer's input: with norm="pre", x after layer normalization."""
    return _normalize(config, norm, x) if config.norm == "pre" else x


def norm_if_post(config: TransformerConfig, norm: Normalization, x: tf.Tensor) -> tf.Tensor:
    """Returns a residual sum: with norm="post", after layer normalization."""
    return _normalize(config, norm, x) if config.norm == "post" else x


def last_norm(config: TransformerConfig, norm: Normalization | None, x: tf.Tensor) -> tf.Tensor:
    """The last normalization of a pre-norm stack; post-norm stacks have none."""
    return x if norm is None else _normalize(config, norm, x)


def _normalize(config: TransformerConfig, norm: Normalization, x: tf.Tensor) -> tf.Tensor:
    """Layer normalization over the last axis."""
    centered = x - tf.reduce_mean(x, axis=-1, keepdims=True)
    variance = tf.reduce_mean(tf.square(centered), axis=-1, keepdims=True)
    return centered * tf.math.rsqrt(variance + config.norm_epsilon) * norm.gamma + norm.beta


def feed_forward(
    config: TransformerConfig, layer: EncoderLayerWeights | DecoderLayerWeights, x: tf.Tensor
) -> tf.Tensor:
    """The feed-forward network (equation 2) with its residual connection: [R, D] -> [R, D]."""
    activation = keras.activations.get(GATED.get(config.activation, config.activation))
    norm = layer.feed_forward_norm
    inner = layer.feed_forward.inner.apply(norm_if_pre(config, norm, x))  # [R, F], or [R, 2 F]
    if config.activation in GATED:
        gate, inner = tf.split(inner, 2, axis=-1)
        inner = activation(gate) * inner  # [R, F]
    else:
        inner = activation(inner)
    outer = layer.feed_forward.outer.apply(inner, non_negative=config.activation == "relu")
    return norm_if_post(config, norm, x + outer)


def attend_to_itself(
    config: TransformerConfig,
    weights: SelfAttentionWeights,
    rows: tf.Tensor,
    layout: HeadLayout,
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


def attend_to_cache(
    config: TransformerConfig,
    weights: SelfAttentionWeights,
    rows: tf.Tensor,
    layout: HeadLayout,
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


def recur_over_itself(weights: SSRUWeights, rows: tf.Tensor, batch: tf.Tensor) -> tf.Tensor:
    """An SSRU over whole sequences, in place of self-attention: float32 [B T, D] -> [B T, D]."""
    gates, entries = _gates_and_entries(weights, rows)
    shape = [batch, -1, rows.shape[-1]]  # [B, T, D]
    states = linear_recurrence(tf.reshape(gates, shape), tf.reshape(entries, shape))
    return tf.nn.relu(tf.reshape(states, tf.shape(rows)))


def recur_at_position(
    weights: SSRUWeights, rows: tf.Tensor, state: RecurrentState
) -> tuple[tf.Tensor, RecurrentState]:
    """An SSRU at one position for every beam: float32 [B K, D] -> [B K, D], and the new state."""
    gates, entries = _gates_and_entries(weights, rows)
    beams, width = state.values.shape[1], rows.shape[-1]
    values = gates * tf.reshape(state.values, [-1, width]) + entries
    return tf.nn.relu(values), RecurrentState(tf.reshape(values, [-1, beams, width]))


def _gates_and_entries(weights: SSRUWeights, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns f and (1 - f) x W for rows [R, D], float32 [R, D] each; see model/ssru.py."""
    inputs, forget = tf.split(weights.input_forget.apply(rows), 2, axis=-1)
    gates = tf.sigmoid(forget + weights.forget_bias)
    return gates, (1 - gates) * inputs


def attend_to_memory(
    config: TransformerConfig,
    weights: CrossAttentionWeights,
    rows: tf.Tensor,
    layout: HeadLayout,
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
