"""Scaled dot-product attention and multi-head attention (section 3.2)."""

import keras
from keras import ops

from keras_transformer.core.model.composite import CompositeLayer
from keras_transformer.core.model.dropout import Dropout
from keras_transformer.core.model.masks import causal_mask, combine_masks, segment_mask, window_mask
from keras_transformer.core.model.packing import positions_in_segments
from keras_transformer.core.model.positions import position_kind
from keras_transformer.support.errors import require

# Added to the scores of masked keys. It is finite, so that fully masked rows (padding) give weights
# rather than NaN, and far enough below any score that masked keys have a weight of exactly 0 in all
# other rows.
MASKED_SCORE = -1e9


def scaled_dot_product_attention(queries, keys, values, mask=None, dropout=None):
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V, equation 1.

    Args:
        queries: [..., Q, d_k].
        keys: [..., P, d_k].
        values: [..., P, d_v].
        mask: bool, broadcast to [..., Q, P], True where a query may attend to a key; None if every
            query may attend to every key.
        dropout: a function applied to the weights before they are multiplied by the values, or
            None.

    Returns:
        The outputs [..., Q, d_v] and the weights [..., Q, P] before dropout, both in the values'
        dtype. The softmax is computed in float32.
    """
    scale = ops.cast(queries.shape[-1] ** -0.5, queries.dtype)
    scores = ops.matmul(queries * scale, ops.swapaxes(keys, -1, -2))  # [..., Q, P]
    scores = ops.cast(scores, "float32")
    if mask is not None:
        scores = scores + ops.where(mask, 0.0, MASKED_SCORE)
    weights = ops.cast(ops.softmax(scores, axis=-1), values.dtype)
    dropped_weights = weights if dropout is None else dropout(weights)
    return ops.matmul(dropped_weights, values), weights


def _positions(vectors, segments):
    """Returns the positions of queries or keys [B, H, P, d]: [P], or [B, 1, P] in packed rows."""
    if segments is None:
        return ops.arange(ops.shape(vectors)[2])
    return positions_in_segments(segments)[:, None]


@keras.saving.register_keras_serializable(package="keras_transformer")
class MultiHeadAttention(CompositeLayer):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O, section 3.2.2.

    It is called like `keras.layers.MultiHeadAttention`. The projections W^Q, W^K, W^V and W^O are
    the Dense sublayers `query_dense`, `key_dense`, `value_dense` and `output_dense`, whose kernels
    have the shapes [D, H d_k], [D, H d_k], [D, H d_v] and [H d_v, D].

    Args:
        num_heads: H, the number of heads.
        key_dim: d_k, the width of the queries and keys of a head.
        value_dim: d_v, the width of the values of a head; None for d_k.
        dropout: the probability of dropping an attention weight.
        use_bias: whether the projections have biases; the paper has none.
        window: r of restricted self-attention (section 4): each position attends to the positions
            that are at most r // 2 away. None for all positions.
        positions: the kind of positions, for self-attention only. With "rotary", queries and keys
            are rotated by their positions (Su et al. 2021; see positions.rotate), so that scores
            depend on distances; `key_dim` must be even. Kinds that are added to embeddings change
            nothing here.

    Call arguments:
        query: [B, Q, D], the sequence that attends.
        value: [B, P, D], the sequence that is attended to; None for self-attention.
        key: [B, P, D], a sequence to compute the keys from, if not `value`.
        query_mask: bool [B, Q], False at padding in the query. Used in self-attention, where no
            query attends to it.
        value_mask: bool [B, P], False at padding in the value, which no query attends to.
        key_mask: bool [B, P], False at padding in the key, which no query attends to.
        attention_mask: bool [Q, P], [B, Q, P], or broadcast to [B, H, Q, P]: True where a query may
            attend to a key.
        return_attention_scores: whether to also return the attention weights.
        training: whether to apply dropout.
        use_causal_mask: whether a query may only attend to its own and earlier positions.
        query_segments: int [B, Q], the segments of packed rows (model/packing.py); None for one
            sentence a row. Attention stays within a segment, and positions begin at 0 in each.
        value_segments: int [B, P], the segments of the value; not for self-attention.
        mask: the same as `query_mask`. Keras passes it if the query is the only input and carries a
            Keras mask.

    Returns:
        [B, Q, D]; with `return_attention_scores`, also the attention weights [B, H, Q, P].

    Example:
        >>> layer = MultiHeadAttention(num_heads=8, key_dim=64)
        >>> query = keras.random.normal((2, 10, 512))
        >>> keras.ops.shape(layer(query))
        (2, 10, 512)
        >>> memory = keras.random.normal((2, 7, 512))
        >>> outputs, scores = layer(query, memory, return_attention_scores=True)
        >>> keras.ops.shape(scores)
        (2, 8, 10, 7)
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = False,
        window: int | None = None,
        positions: str = "sinusoidal",
        **kwargs,
    ):
        is_valid = key_dim % 2 == 0 or not position_kind(positions).even_key_width
        require(is_valid, "key_dim", f"must be even for {positions} positions", key_dim)
        require(window is None or window >= 1, "window", "must be at least 1", window)
        super().__init__(**kwargs)
        self.supports_masking = True
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.value_dim = key_dim if value_dim is None else value_dim
        self.use_bias = use_bias
        self.window = window
        self.positions = positions
        self.position_kind = position_kind(positions)
        self.query_dense = self._projection(num_heads * self.key_dim, "query")
        self.key_dense = self._projection(num_heads * self.key_dim, "key")
        self.value_dense = self._projection(num_heads * self.value_dim, "value")
        self.output_dense = None  # its width D is known when the layer is built
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def _projection(self, units: int, name: str) -> keras.layers.Dense:
        policy = self.dtype_policy
        return keras.layers.Dense(units, use_bias=self.use_bias, dtype=policy, name=name)

    def build(self, query_shape, value_shape=None, key_shape=None):
        value_shape = query_shape if value_shape is None else value_shape
        key_shape = value_shape if key_shape is None else key_shape
        shapes = {"query": query_shape, "value": value_shape, "key": key_shape}
        for name, shape in shapes.items():
            rule = "must have three dimensions: batch, positions, width"
            require(len(shape) == 3, name, rule, shape)
        self.query_dense.build(query_shape)
        self.key_dense.build(key_shape)
        self.value_dense.build(value_shape)
        self.output_dense = self._projection(query_shape[-1], "output")
        self.output_dense.build((*query_shape[:-1], self.num_heads * self.value_dim))

    def call(
        self,
        query,
        value=None,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
        query_segments=None,
        value_segments=None,
        mask=None,
    ):
        padding_masks = [value_mask, key_mask]
        if value is None:  # self-attention
            value = query
            value_segments = query_segments
            padding_masks += [query_mask, mask]
        if key is None:
            key = value

        queries = self._split_heads(self.query_dense(query), self.key_dim)  # [B, H, Q, d_k]
        keys = self._split_heads(self.key_dense(key), self.key_dim)  # [B, H, P, d_k]
        values = self._split_heads(self.value_dense(value), self.value_dim)  # [B, H, P, d_v]
        queries = self.position_kind.rotate(queries, _positions(queries, query_segments))
        keys = self.position_kind.rotate(keys, _positions(keys, value_segments))
        allowed = self._attention_mask(
            queries, keys, padding_masks, attention_mask, use_causal_mask
        )
        if query_segments is not None:
            same_segment = segment_mask(query_segments, value_segments)[:, None]  # [B, 1, Q, P]
            allowed = combine_masks([allowed, same_segment])
        heads, weights = scaled_dot_product_attention(
            queries, keys, values, allowed, lambda weights: self.dropout(weights, training=training)
        )
        outputs = self.output_dense(self._concatenate_heads(heads))
        if return_attention_scores:
            return outputs, weights
        return outputs

    def _attention_mask(self, queries, keys, padding_masks, attention_mask, use_causal_mask):
        """Combines all masks: bool, broadcast to [B, H, Q, P]; None if there are none."""
        query_length, key_length = ops.shape(queries)[2], ops.shape(keys)[2]
        masks = []
        for padding in padding_masks:
            if padding is not None:
                masks.append(padding[:, None, None, :])  # [B, 1, 1, P]
        if attention_mask is not None:
            if len(attention_mask.shape) == 3:
                attention_mask = attention_mask[:, None]  # [B, 1, Q, P], the same for all heads
            masks.append(attention_mask)
        if use_causal_mask:
            masks.append(causal_mask(query_length, key_length))
        if self.window is not None:
            masks.append(window_mask(query_length, key_length, self.window))
        return combine_masks(masks)

    def _split_heads(self, projected, width: int):
        """[B, P, H d] -> [B, H, P, d], d the width of a head."""
        batch, length = ops.shape(projected)[:2]
        heads = ops.reshape(projected, (batch, length, self.num_heads, width))
        return ops.transpose(heads, (0, 2, 1, 3))

    def _concatenate_heads(self, heads):
        """[B, H, Q, d_v] -> [B, Q, H d_v]."""
        batch, _, length, _ = ops.shape(heads)
        heads = ops.transpose(heads, (0, 2, 1, 3))  # [B, Q, H, d_v]
        return ops.reshape(heads, (batch, length, self.num_heads * self.value_dim))

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "dropout": self.dropout.rate,
            "use_bias": self.use_bias,
            "window": self.window,
            "positions": self.positions,
        }
