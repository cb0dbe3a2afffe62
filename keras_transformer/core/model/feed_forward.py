"""The position-wise feed-forward network (section 3.3), and a gated one."""

import keras

from keras_transformer.core.model.composite import CompositeLayer
from keras_transformer.core.model.dropout import Dropout


@keras.saving.register_keras_serializable(package="keras_transformer")
class FeedForward(CompositeLayer):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, equation 2: the same at every position.

    The two linear transformations are the Dense sublayers `inner_dense`, with W_1 and b_1, and
    `outer_dense`, with W_2 and b_2.

    Args:
        d_ff: the width of the inner activations.
        dropout: the probability of dropping an inner activation.
        activation: "relu" as in the equation, or another Keras activation.

    Call arguments:
        inputs: [B, T, D].
        training: whether to apply dropout.

    Returns:
        [B, T, D].

    Example:
        >>> layer = FeedForward(d_ff=2048)
        >>> keras.ops.shape(layer(keras.random.normal((2, 10, 512))))
        (2, 10, 512)
    """

    def __init__(self, d_ff: int, dropout: float = 0.0, activation: str = "relu", **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.d_ff = d_ff
        self.activation = activation
        self.inner_dense = keras.layers.Dense(
            d_ff, activation=activation, dtype=self.dtype_policy, name="inner"
        )
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.outer_dense = None  # its width D is known when the layer is built

    def build(self, inputs_shape):
        d_model = inputs_shape[-1]
        self.inner_dense.build(inputs_shape)
        self.outer_dense = keras.layers.Dense(d_model, dtype=self.dtype_policy, name="outer")
        self.outer_dense.build((*inputs_shape[:-1], self.d_ff))

    def call(self, inputs, training=None):
        inner = self.inner_dense(inputs)  # [B, T, F]
        inner = self.dropout(inner, training=training)
        return self.outer_dense(inner)

    def get_config(self):
        return {
            **super().get_config(),
            "d_ff": self.d_ff,
            "dropout": self.dropout.rate,
            "activation": self.activation,
        }


@keras.saving.register_keras_serializable(package="keras_transformer")
class GatedFeedForward(CompositeLayer):
    """FFN(x) = (f(x W) * (x V)) W_2, the gated network of Shazeer 2020 (arXiv 2002.05202).

    The linear transformations are the Dense sublayers `gate_dense`, with W and the activation f,
    `inner_dense`, with V, and `outer_dense`, with W_2. They have no biases.

    With two thirds of equation 2's d_ff, it has as many parameters as that network.

    Args:
        d_ff: the width of the inner activations.
        dropout: the probability of dropping an inner activation.
        activation: f, "swish" (SwiGLU), "gelu" (GEGLU), or another Keras activation.

    Call arguments:
        inputs: [B, T, D].
        training: whether to apply dropout.

    Returns:
        [B, T, D].

    Example:
        >>> layer = GatedFeedForward(d_ff=1365)
        >>> keras.ops.shape(layer(keras.random.normal((2, 10, 512))))
        (2, 10, 512)
    """

    def __init__(self, d_ff: int, dropout: float = 0.0, activation: str = "swish", **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.d_ff = d_ff
        self.activation = activation
        policy = self.dtype_policy
        self.gate_dense = keras.layers.Dense(
            d_ff, activation=activation, use_bias=False, dtype=policy, name="gate"
        )
        self.inner_dense = keras.layers.Dense(d_ff, use_bias=False, dtype=policy, name="inner")
        self.dropout = Dropout(dropout, dtype=policy, name="dropout")
        self.outer_dense = None  # its width D is known when the layer is built

    def build(self, inputs_shape):
        d_model = inputs_shape[-1]
        self.gate_dense.build(inputs_shape)
        self.inner_dense.build(inputs_shape)
        self.outer_dense = keras.layers.Dense(
            d_model, use_bias=False, dtype=self.dtype_policy, name="outer"
        )
        self.outer_dense.build((*inputs_shape[:-1], self.d_ff))

    def call(self, inputs, training=None):
        inner = self.gate_dense(inputs) * self.inner_dense(inputs)  # [B, T, F]
        inner = self.dropout(inner, training=training)
        return self.outer_dense(inner)

    def get_config(self):
        return {
            **super().get_config(),
            "d_ff": self.d_ff,
            "dropout": self.dropout.rate,
            "activation": self.activation,
        }
