"""Scaled dot-product and multi-head attention (section 3.2)."""

import functools

import keras
from keras import ops

from keras_transformer.model.dropout import Dropout
from keras_transformer.model.layer import Layer
from keras_transformer.model.linear import linear
from keras_transformer.model.masks import all_of, causal_mask

# Added to the scores of forbidden keys. Finite, so that a row without any allowed key (padding)
# gives uniform weights, not NaN; its square fits float32 and itself bfloat16.
FORBIDDEN_SCORE = -1e9


def scaled_dot_product_attention(queries, keys, values, mask=None, dropout=None):
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V, equation 1.

    Args:
        queries: [..., Q, d_k].
        keys: [..., P, d_k].
        values: [..., P, d_v].
        mask: bool, broadcast against [..., Q, P], True where a query may attend; None for
            everywhere.
        dropout: applied to the weights where given.

    Returns:
        outputs [..., Q, d_v] and weights [..., Q, P], both of the queries' dtype. The softmax is
        taken in float32.
    """
    queries = queries * ops.cast(queries.shape[-1] ** -0.5, queries.dtype)
    scores = ops.matmul(queries, ops.swapaxes(keys, -1, -2))  # [..., Q, P]
    scores = ops.cast(scores, "float32")
    if mask is not None:
        scores = scores + ops.where(mask, 0.0, FORBIDDEN_SCORE)
    weights = ops.cast(ops.softmax(scores, axis=-1), values.dtype)
    dropped = weights if dropout is None else dropout(weights)
    return ops.matmul(dropped, values), weights


@keras.saving.register_keras_serializable(package="keras_transformer")
class MultiHeadAttention(Layer):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O, section 3.2.2.

    The kernels are W^Q and W^K [D, H d_k], W^V [D, H d_v] and W^O [H d_v, D], Xavier-uniform.
    Keys and values are projections of the same sequence, as everywhere in the paper.

    Args:
        num_heads: H.
        key_dim: d_k, the width of a head's queries and keys.
        value_dim: d_v, the width of a head's values; None for d_k.
        dropout: probability of dropping an attention weight.
        use_bias: whether a bias is added to each projection; the paper has none.

    Call arguments:
        inputs: [B, Q, D], the sequence that attends.
        memory: [B, P, D], the sequence that is attended to; None for self-attention.
        attention_mask: bool [Q, P], [B, Q, P] or broadcast against [B, H, Q, P], True where a query
            may attend to a key.
        mask: bool [B, Q], True at tokens of `inputs`, False at padding. Self-attention does not
            attend to padding.
        memory_mask: bool [B, P], the same of `memory`.
        use_causal_mask: whether a query sees no later keys.
        return_attention_scores: whether to return the weights, too.
        training: whether to apply dropout.

    Returns:
        [B, Q, D]; with `return_attention_scores`, also the attention weights [B, H, Q, P].

    Example:
        >>> layer = MultiHeadAttention(num_heads=8, key_dim=64)
        >>> layer(keras.random.normal((2, 10, 512))).shape
        (2, 10, 512)
    """

    # Keras finds the shapes of the outputs by tracing `call`: there may be two.
    compute_output_spec = keras.Operation.compute_output_spec

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        value_dim = key_dim if value_dim is None else value_dim
        sizes = {"num_heads": num_heads, "key_dim": key_dim, "value_dim": value_dim}
        self.settings = {**sizes, "dropout": dropout, "use_bias": use_bias}
        self.num_heads, self.key_dim, self.value_dim = num_heads, key_dim, value_dim
        self.widths = {"query": key_dim, "key": key_dim, "value": value_dim}  # of a head
        self.use_bias = use_bias
        self.dropout = Dropout(dropout, dtype=self.dtype_policy)

    def build(self, shape, *others):
        self.add_projections(shape[-1])
        self.add_projection("output", (self.num_heads * self.value_dim, shape[-1]))

    def add_projections(self, d_model):
        """Adds the kernels of queries, keys and values, and their biases."""
        for name, width in self.widths.items():
            self.add_projection(name, (d_model, self.num_heads * width))

    def add_projection(self, name, shape):
        kernel = self.add_weight(name=f"{name}_kernel", shape=shape, initializer="glorot_uniform")
        setattr(self, f"{name}_kernel", kernel)
        if self.use_bias:
            bias = self.add_weight(name=f"{name}_bias", shape=shape[1:], initializer="zeros")
            setattr(self, f"{name}_bias", bias)

    def call(
        self,
        inputs,
        memory=None,
        attention_mask=None,
        mask=None,
        memory_mask=None,
        use_causal_mask=False,
        return_attention_scores=False,
        training=False,
    ):
        heads = self.project_heads(inputs, memory)
        not_padding = mask if memory is None else memory_mask
        if attention_mask is not None and len(attention_mask.shape) == 3:
            attention_mask = attention_mask[:, None]  # [B, 1, Q, P], the same for all heads
        dropout = functools.partial(self.dropout, training=training)
        outputs, weights = self.attend(
            heads, attention_mask, not_padding, use_causal_mask, return_attention_scores, dropout
        )
        outputs = self.project_outputs(outputs)
        return (outputs, weights) if return_attention_scores else outputs

    def project_heads(self, inputs, memory=None):
        """Returns queries [B, H, Q, d_k], keys [B, H, P, d_k] and values [B, H, P, d_v]."""
        if memory is None:
            return self.project(inputs, ("query", "key", "value"))
        return [*self.project(inputs, ("query",)), *self.project(memory, ("key", "value"))]

    def attend(
        self, heads, attention_mask, not_padding, use_causal_mask, return_attention_scores, dropout
    ):
        """Applies equation 1 to all heads; `not_padding` is bool [B, P] or None."""
        masks = [attention_mask]
        masks.append(None if not_padding is None else not_padding[:, None, None, :])
        masks.append(causal_mask(ops.shape(heads[0])[2]) if use_causal_mask else None)
        return scaled_dot_product_attention(*heads, all_of(masks), dropout)

    def project(self, inputs, names, shape=None):
        """Multiplies by several kernels in one product, which is faster than several products.

        `inputs` are [B, P, D], or [B P, D] with the shape (B, P) given. For each name of a kernel,
        "query", "key" or "value", returns [B, H, P, d], d the width of a head.
        """
        batch, length = shape or ops.shape(inputs)[:2]
        rows = ops.reshape(inputs, (-1, inputs.shape[-1]))
        projected = linear(rows, *self.joined(names))  # [B P, sum of H d]
        heads, widths = self.num_heads, [self.widths[name] for name in names]
        if len(set(widths)) == 1:  # one transposition for all
            shape = (batch, length, len(names), heads, widths[0])
            return ops.unstack(self.transpose(projected, shape, (2, 0, 3, 1)))
        ends = [heads * sum(widths[: i + 1]) for i in range(len(names) - 1)]
        return [
            self.transpose(part, (batch, length, heads, width), (0, 2, 1))
            for part, width in zip(ops.split(projected, ends, axis=-1), widths, strict=True)
        ]

    def joined(self, names):
        """Returns the kernels of these names side by side, [D, sum of H d], and biases if any."""
        found = []
        for kind in ("kernel", "bias")[: 1 + self.use_bias]:
            parts = [getattr(self, f"{name}_{kind}") for name in names]
            found.append(parts[0] if len(parts) == 1 else ops.concatenate(parts, axis=-1))
        return found

    def project_outputs(self, heads, shape=None):
        """[B, H, Q, d_v] -> [B, Q, D]; with the shape (B, Q) given, [B Q, D]."""
        batch, length = shape or (ops.shape(heads)[0], ops.shape(heads)[2])
        heads_shape = (batch, self.num_heads, length, heads.shape[3])
        merged = self.transpose(heads, heads_shape, (0, 2, 1))  # [B, Q, H, d_v]
        rows = ops.reshape(merged, (-1, self.num_heads * heads.shape[3]))
        rows = linear(rows, *self.joined(("output",)))  # [B Q, D]
        return rows if shape else ops.reshape(rows, (batch, length, rows.shape[1]))

    def transpose(self, tensor, shape, axes):
        """Reshapes a tensor to `shape`, then permutes all axes but the last, which stays last."""
        return ops.transpose(ops.reshape(tensor, shape), (*axes, len(axes)))
