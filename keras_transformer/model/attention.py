"""Scaled dot-product and multi-head attention (section 3.2)."""

import functools
import math

import keras
from keras import ops

from keras_transformer.config import TransformerConfig
from keras_transformer.model.dropout import Dropout
from keras_transformer.model.linear import linear
from keras_transformer.model.masks import score_bias


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
        scores = scores + score_bias(mask)
    weights = ops.cast(ops.softmax(scores, axis=-1), values.dtype)
    dropped = weights if dropout is None else dropout(weights)
    return ops.matmul(dropped, values), weights


class MultiHeadAttention(keras.layers.Layer):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O, section 3.2.2, without biases.

    Kernels are W^Q, W^K [D, H d_k], W^V [D, H d_v] and W^O [H d_v, D], Xavier-uniform. In the
    layout for inference, those that multiply the same inputs stand side by side in one matrix.

    Args:
        config: the model's.
        to_memory: whether keys and values are another sequence's than the queries.

    Call arguments:
        queries: [B, Q, D], what attends.
        attention_mask: bool, broadcast against [B, H, Q, P], True where a query may attend.
        memory: [B, P, D], what is attended to; None for self-attention.
        training: whether to drop out attention weights.

    Returns:
        [B, Q, D].
    """

    def __init__(self, config: TransformerConfig, to_memory: bool = False, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        self.to_memory = to_memory
        self.widths = {"query": config.d_k, "key": config.d_k, "value": config.d_v}  # of a head
        self.dropout = Dropout(config.attention_dropout, dtype=self.dtype_policy)

    def build(self, shape, *others):
        config = self.config

        def kernel(name, rows, columns):
            return self.add_weight(name=name, shape=(rows, columns), initializer="glorot_uniform")

        for names in self.stored_kernels():
            columns = config.num_heads * sum(self.widths[name] for name in names)
            name = "_".join([*names, "kernel"])
            setattr(self, name, kernel(name, config.d_model, columns))
        values_width = config.num_heads * config.d_v
        self.output_kernel = kernel("output_kernel", values_width, config.d_model)

    def stored_kernels(self):
        """Returns which of the queries', keys' and values' kernels stand side by side."""
        if self.config.layout == "training":
            return [("query",), ("key",), ("value",)]
        return [("query",), ("key", "value")] if self.to_memory else [("query", "key", "value")]

    def call(self, queries, attention_mask=None, memory=None, training=False):
        outputs, _ = self.attend(queries, attention_mask, memory, training)
        return outputs

    def attend(self, queries, attention_mask=None, memory=None, training=False):
        """What `call` does, with the attention weights: [B, Q, D], [B, H, Q, P]."""
        if memory is None:
            heads = self.project_queries_keys_values(queries)
        else:
            heads = (self.project_queries(queries), *self.project_keys_values(memory))
        dropout = functools.partial(self.dropout, training=training)
        outputs, weights = scaled_dot_product_attention(*heads, attention_mask, dropout)
        return self.project_outputs(outputs), weights

    def project_queries(self, inputs, shape=None):
        """[B, Q, D] -> [B, H, Q, d_k]."""
        return self.project(inputs, ("query",), shape)[0]

    def project_keys_values(self, inputs, shape=None):
        """[B, P, D] -> [B, H, P, d_k], [B, H, P, d_v]."""
        return self.project(inputs, ("key", "value"), shape)

    def project_queries_keys_values(self, inputs, shape=None):
        """[B, P, D] -> [B, H, P, d_k], [B, H, P, d_k], [B, H, P, d_v]."""
        return self.project(inputs, ("query", "key", "value"), shape)

    def project_outputs(self, heads, shape=None):
        """[B, H, Q, d_v] -> [B, Q, D]; with the shape given, [B Q, D]."""
        batch, length = shape or (ops.shape(heads)[0], ops.shape(heads)[2])
        heads_shape = (batch, self.config.num_heads, length, heads.shape[3])
        merged = self.transpose(heads, heads_shape, (0, 2, 1))  # [B, Q, H, d_v]
        kernel = ops.cast(self.output_kernel, self.compute_dtype)
        rows = linear(ops.reshape(merged, (-1, kernel.shape[0])), kernel)
        return rows if shape else ops.reshape(rows, (batch, length, kernel.shape[1]))

    def project(self, inputs, names, shape=None):
        """Multiplies by several kernels in one product, which is faster than several.

        Args:
            inputs: [B, P, D], or [B P, D] with the shape given.
            names: of the kernels: "query", "key", "value".
            shape: (B, P), where it is known already.

        Returns:
            A list of [B, H, P, d], d the width of a head.
        """
        batch, length = shape or ops.shape(inputs)[:2]
        rows = ops.reshape(inputs, (-1, inputs.shape[-1]))
        projected = linear(rows, self.joined_kernel(names))  # [B P, sum of H d]
        heads, widths = self.config.num_heads, [self.widths[name] for name in names]
        if len(set(widths)) == 1:  # one transposition for all
            shape = (batch, length, len(names), heads, widths[0])
            return ops.unstack(self.transpose(projected, shape, (2, 0, 3, 1)))
        ends = [heads * sum(widths[: i + 1]) for i in range(len(names) - 1)]
        return [
            self.transpose(part, (batch, length, heads, width), (0, 2, 1))
            for part, width in zip(ops.split(projected, ends, axis=-1), widths, strict=True)
        ]

    def joined_kernel(self, names):
        """Returns the kernels of these names side by side, [D, sum of H d]."""
        # Cast here, as layers cast variables in `call` alone, and decoding has other ways in.
        if names in self.stored_kernels():
            return ops.cast(getattr(self, "_".join([*names, "kernel"])), self.compute_dtype)
        return ops.concatenate([self.joined_kernel((name,)) for name in names], axis=-1)

    def transpose(self, tensor, shape, axes):
        """Gives a tensor a shape, and permutes all axes but the last, which stays the last.

        The small tensors of decoding, on a CPU, are permuted several times faster by gathering the
        rows of the last axis; but the gradient of that takes long.
        """
        if self.config.layout == "training":
            return ops.transpose(ops.reshape(tensor, shape), (*axes, len(axes)))
        places = ops.reshape(ops.arange(math.prod(shape[:-1]), dtype="int32"), shape[:-1])
        order = ops.reshape(ops.transpose(places, axes), (-1,))
        rows = ops.take(ops.reshape(tensor, (-1, shape[-1])), order, axis=0)
        return ops.reshape(rows, (*[shape[axis] for axis in axes], shape[-1]))

    def compute_output_shape(self, shape, *others):
        return shape
