"""The position-wise feed-forward network (section 3.3)."""

import keras
from keras import ops

from keras_transformer.config import TransformerConfig
from keras_transformer.model.dropout import Dropout
from keras_transformer.model.linear import linear


class FeedForward(keras.layers.Layer):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, equation 2: the same at every position.

    Call arguments:
        inputs: [B, T, D].
        training: whether to drop out inner activations.

    Returns:
        [B, T, D].
    """

    def __init__(self, config: TransformerConfig, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        self.dropout = Dropout(config.activation_dropout, dtype=self.dtype_policy)

    def build(self, shape):
        d_model, d_ff = self.config.d_model, self.config.d_ff
        self.inner_kernel = self.add_weight(
            name="inner_kernel", shape=(d_model, d_ff), initializer="glorot_uniform"
        )
        self.inner_bias = self.add_weight(name="inner_bias", shape=(d_ff,), initializer="zeros")
        self.outer_kernel = self.add_weight(
            name="outer_kernel", shape=(d_ff, d_model), initializer="glorot_uniform"
        )
        self.outer_bias = self.add_weight(name="outer_bias", shape=(d_model,), initializer="zeros")

    def call(self, inputs, training=False):
        inner = ops.relu(linear(inputs, self.inner_kernel, self.inner_bias))
        inner = self.dropout(inner, training=training)
        return linear(inner, self.outer_kernel, self.outer_bias)

    def compute_output_shape(self, shape):
        return shape
