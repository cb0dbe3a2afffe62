"""The position-wise feed-forward network (section 3.3)."""

import keras

from keras_transformer.model.dropout import Dropout
from keras_transformer.model.layer import Layer
from keras_transformer.model.linear import linear


@keras.saving.register_keras_serializable(package="keras_transformer")
class FeedForward(Layer):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, equation 2: the same at every position.

    Args:
        d_ff: width of the inner activations.
        dropout: probability of dropping an inner activation.
        activation: "relu" as in the equation, or another of keras.activations.

    Call arguments:
        inputs: [B, T, D].
        training: whether to apply dropout.

    Returns:
        [B, T, D].
    """

    def __init__(self, d_ff: int, dropout: float = 0.0, activation: str = "relu", **kwargs):
        super().__init__(**kwargs)
        self.settings = {"d_ff": d_ff, "dropout": dropout, "activation": activation}
        self.activation = keras.activations.get(activation)
        self.dropout = Dropout(dropout, dtype=self.dtype_policy)

    def build(self, shape):
        d_model, d_ff = shape[-1], self.settings["d_ff"]
        # Kernels are Xavier-uniform, which is Keras' default.
        self.inner_kernel = self.add_weight(name="inner_kernel", shape=(d_model, d_ff))
        self.inner_bias = self.add_weight(name="inner_bias", shape=(d_ff,), initializer="zeros")
        self.outer_kernel = self.add_weight(name="outer_kernel", shape=(d_ff, d_model))
        self.outer_bias = self.add_weight(name="outer_bias", shape=(d_model,), initializer="zeros")

    def call(self, inputs, training=False):
        inner = self.activation(linear(inputs, self.inner_kernel, self.inner_bias))
        inner = self.dropout(inner, training=training)
        return linear(inner, self.outer_kernel, self.outer_bias)
