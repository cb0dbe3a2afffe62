"""Scaled dot-product and multi-head attention (section 3.2)."""

import functools

import keras
from keras import ops

from keras_transformer.config import TransformerConfig
from keras_transformer.model.dropout import Dropout
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

    Kernels are W^Q, W^K [D, H d_k], W^V [D, H d_v] and W^O [H d_v, D], Xavier-uniform.

    Call arguments:
        queries: [B, Q, D], what attends.
        attention_mask: bool, broadcast against [B, H, Q, P], True where a query may attend.
        memory: [B, P, D], what is attended to; None for self-attention.
        training: whether to drop out attention weights.

    Returns:
        [B, Q, D].
    """

    def __init__(self, config: TransformerConfig, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        self.dropout = Dropout(config.attention_dropout, dtype=self.dtype_policy)

    def build(self, shape, *others):
        config = self.config

        def kernel(name, rows, columns):
            return self.add_weight(name=name, shape=(rows, columns), initializer="glorot_uniform")

        keys_width = config.num_heads * config.d_k
        values_width = config.num_heads * config.d_v
        self.query_kernel = kernel("query_kernel", config.d_model, keys_width)
        self.key_kernel = kernel("key_kernel", config.d_model, keys_width)
        self.value_kernel = kernel("value_kernel", config.d_model, values_width)
        self.output_kernel = kernel("output_kernel", values_width, config.d_model)

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

    def project_queries(self, inputs):
        """[B, Q, D] -> [B, H, Q, d_k]."""
        return self.split_heads(ops.matmul(inputs, self.query_kernel))

    def project_keys_values(self, inputs):
        """[B, P, D] -> [B, H, P, d_k], [B, H, P, d_v]."""
        kernels = (self.key_kernel, self.value_kernel)
        return [self.split_heads(part) for part in self.project_together(inputs, kernels)]

    def project_queries_keys_values(self, inputs):
        """[B, P, D] -> [B, H, P, d_k], [B, H, P, d_k], [B, H, P, d_v]."""
        kernels = (self.query_kernel, self.key_kernel, self.value_kernel)
        return [self.split_heads(part) for part in self.project_together(inputs, kernels)]

    def project_outputs(self, heads):
        """[B, H, Q, d_v] -> [B, Q, D]."""
        return ops.matmul(self.merge_heads(heads), self.output_kernel)

    def project_together(self, inputs, kernels):
        """Multiplies `inputs` by several kernels in one product, which is faster than several.

        Args:
            inputs: [B, P, D].
            kernels: each [D, width].

        Returns:
            A list of [B, P, width].
        """
        kernel = ops.concatenate([ops.cast(k, self.compute_dtype) for k in kernels], axis=-1)
        ends = [sum(k.shape[-1] for k in kernels[: i + 1]) for i in range(len(kernels) - 1)]
        return ops.split(ops.matmul(inputs, kernel), ends, axis=-1)

    def split_heads(self, inputs):
        """[B, P, H d] -> [B, H, P, d]."""
        batch, length = ops.shape(inputs)[0], ops.shape(inputs)[1]
        width = inputs.shape[-1] // self.config.num_heads
        heads = ops.reshape(inputs, (batch, length, self.config.num_heads, width))
        return ops.transpose(heads, (0, 2, 1, 3))

    def merge_heads(self, heads):
        """[B, H, P, d] -> [B, P, H d]."""
        batch, length = ops.shape(heads)[0], ops.shape(heads)[2]
        merged = ops.transpose(heads, (0, 2, 1, 3))
        return ops.reshape(merged, (batch, length, heads.shape[1] * heads.shape[3]))

    def compute_output_shape(self, shape, *others):
        return shape
