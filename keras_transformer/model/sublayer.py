"""What surrounds every sublayer: dropout, the residual connection and layer normalisation."""

import keras
from keras import ops

from keras_transformer.model.dropout import Dropout
from keras_transformer.model.layer import Layer

EPSILON = 1e-6


def normalize(inputs, gain, bias, epsilon=EPSILON):
    """Layer normalisation over the last axis: gain (x - mean) / sqrt(variance + epsilon) + bias.

    `inputs` and the result are float32 [..., D], `gain` and `bias` [D]. The gradient is written
    out, which takes half the operations that differentiating takes.
    """

    @ops.custom_gradient
    def normalized(inputs, gain, bias):
        gain, bias = ops.convert_to_tensor(gain), ops.convert_to_tensor(bias)
        centred = inputs - ops.mean(inputs, axis=-1, keepdims=True)
        inverse = ops.rsqrt(ops.mean(ops.square(centred), axis=-1, keepdims=True) + epsilon)
        normal = centred * inverse

        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream
            rows = tuple(range(len(inputs.shape) - 1))
            product = upstream * normal
            scaled = upstream * gain
            mean_product = ops.mean(product * gain, axis=-1, keepdims=True)
            mean = ops.mean(scaled, axis=-1, keepdims=True)
            to_inputs = (scaled - mean - normal * mean_product) * inverse
            return to_inputs, ops.sum(product, axis=rows), ops.sum(upstream, axis=rows)

        return normal * gain + bias, gradient

    return normalized(inputs, gain, bias)


@keras.saving.register_keras_serializable(package="keras_transformer")
class LayerNorm(Layer):
    """Normalises [..., D] over its last axis, in float32, with D gains and D biases.

    Args:
        epsilon: added to the variance.
    """

    def __init__(self, epsilon: float = EPSILON, **kwargs):
        super().__init__(**kwargs)
        self.settings = {"epsilon": epsilon}

    def build(self, shape):
        self.gain = self.add_weight(name="gain", shape=shape[-1:], initializer="ones")
        self.bias = self.add_weight(name="bias", shape=shape[-1:], initializer="zeros")

    def call(self, inputs):
        arguments = [ops.cast(tensor, "float32") for tensor in (inputs, self.gain, self.bias)]
        return ops.cast(normalize(*arguments, **self.settings), self.compute_dtype)


@keras.saving.register_keras_serializable(package="keras_transformer")
class Residual(Layer):
    """LayerNorm(x + Dropout(Sublayer(x))), sections 3.1 and 5.4.

    With `norm="pre"`, x + Dropout(Sublayer(LayerNorm(x))), which is not the paper's. The sublayer
    itself is applied by the caller, to `sublayer_input(x)`.

    Args:
        norm: "post" or "pre".
        dropout: P_drop, the probability of dropping an element of the sublayer's output.
        epsilon: of the LayerNorm.

    Call arguments:
        inputs: [B, T, D], x.
        outputs: [B, T, D], the sublayer's output for `sublayer_input(x)`.
        training: whether to apply dropout.

    Returns:
        [B, T, D].
    """

    def __init__(
        self, norm: str = "post", dropout: float = 0.0, epsilon: float = EPSILON, **kwargs
    ):
        super().__init__(**kwargs)
        if norm not in ("post", "pre"):
            raise ValueError(f"norm must be post or pre. Received: {norm!r}")
        self.settings = {"norm": norm, "dropout": dropout, "epsilon": epsilon}
        self.pre = norm == "pre"
        self.norm = LayerNorm(epsilon, dtype=self.dtype_policy, name="norm")
        self.dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, shape, *others):
        self.norm.build(shape)

    def sublayer_input(self, inputs):
        """Returns what the sublayer is applied to: [B, T, D] -> [B, T, D]."""
        return self.norm(inputs) if self.pre else inputs

    def call(self, inputs, outputs, training=False):
        total = inputs + self.dropout(outputs, training=training)
        return total if self.pre else self.norm(total)
