"""What the encoder and the decoder have in common: N equal layers of residual sublayers (3.1)."""

import functools

import keras
from keras import ops

from keras_transformer.model.attention import MultiHeadAttention
from keras_transformer.model.feed_forward import FeedForward
from keras_transformer.model.layer import Layer
from keras_transformer.model.restricted_attention import RestrictedSelfAttention
from keras_transformer.model.sublayer import EPSILON, LayerNorm, Residual


class SublayersInResiduals(Layer):
    """Base of EncoderLayer and DecoderLayer: attention and FFN, each with its Residual."""

    self_attention_class = MultiHeadAttention
    restricted_attention_class = RestrictedSelfAttention
    cross_attention_class = MultiHeadAttention
    sublayer_names: tuple[str, ...] = ()

    # Keras finds the shapes of the outputs by tracing `call`: there may be several.
    compute_output_spec = MultiHeadAttention.compute_output_spec

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        d_ff: int,
        value_dim: int | None = None,
        norm: str = "post",
        attention_window: int | None = None,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        activation: str = "relu",
        attention_bias: bool = False,
        norm_epsilon: float = EPSILON,
        **kwargs,
    ):
        super().__init__(**kwargs)
        heads = {"num_heads": num_heads, "key_dim": key_dim, "value_dim": value_dim}
        self.settings = {
            **heads,
            "d_ff": d_ff,
            "norm": norm,
            "attention_window": attention_window,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "activation_dropout": activation_dropout,
            "activation": activation,
            "attention_bias": attention_bias,
            "norm_epsilon": norm_epsilon,
        }
        heads |= {"dropout": attention_dropout, "use_bias": attention_bias}
        inner = {"d_ff": d_ff, "dropout": activation_dropout, "activation": activation}
        sublayers = {
            "self_attention": (self.self_attention_class, heads),
            "cross_attention": (self.cross_attention_class, heads),
            "feed_forward": (FeedForward, inner),
        }
        if attention_window is not None:
            restricted = {**heads, "window": attention_window}
            sublayers["self_attention"] = (self.restricted_attention_class, restricted)
        policy = self.dtype_policy
        for name in self.sublayer_names:
            sublayer_class, arguments = sublayers[name]
            setattr(self, name, sublayer_class(**arguments, dtype=policy, name=name))
            settings = {"epsilon": norm_epsilon, "dtype": policy, "name": f"{name}_residual"}
            setattr(self, f"{name}_residual", Residual(norm, dropout, **settings))

    def build(self, inputs_shape, *others):
        for name in self.sublayer_names:
            getattr(self, name).build(inputs_shape)
            getattr(self, f"{name}_residual").build(inputs_shape)

    def in_residual(self, name, states, training=False, scores=None, sublayer=None, **arguments):
        """Applies a sublayer in its residual connection: [B, T, D] -> [B, T, D].

        Attention weights are appended to the list `scores`, where it is given. `sublayer` is a
        function that is applied in place of the named sublayer, which else gets `arguments`, too.
        """
        residual = getattr(self, f"{name}_residual")
        if scores is not None:
            arguments["return_attention_scores"] = True
        if sublayer is None:
            sublayer = functools.partial(getattr(self, name), training=training, **arguments)
        outputs = sublayer(residual.sublayer_input(states))
        if scores is not None:
            outputs, weights = outputs
            scores.append(weights)
        return residual(states, outputs, training=training)


class Stack(Layer):
    """Base of Encoder and Decoder: N layers; with `norm="pre"`, a last normalisation after them."""

    layer_class = SublayersInResiduals

    def __init__(
        self,
        num_layers: int,
        num_heads: int,
        key_dim: int,
        d_ff: int,
        value_dim: int | None = None,
        norm: str = "post",
        attention_window: int | None = None,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        rematerialize: bool = False,
        activation: str = "relu",
        attention_bias: bool = False,
        norm_epsilon: float = EPSILON,
        **kwargs,
    ):
        super().__init__(**kwargs)
        policy = self.dtype_policy
        arguments = (num_heads, key_dim, d_ff, value_dim, norm, attention_window)
        arguments += (dropout, attention_dropout, activation_dropout)
        arguments += (activation, attention_bias, norm_epsilon)
        self.layers = [
            self.layer_class(*arguments, dtype=policy, name=f"layer_{n}") for n in range(num_layers)
        ]
        of_layer = self.layers[0].settings
        self.settings = {"num_layers": num_layers, **of_layer, "rematerialize": rematerialize}
        self.last_norm = None
        if norm == "pre":
            self.last_norm = LayerNorm(norm_epsilon, dtype=policy, name="norm")

    def build(self, inputs_shape, *others):
        for layer in [*self.layers, self.last_norm]:
            if layer is not None:
                layer.build(inputs_shape)

    def apply_layers(self, states, *memory, training, **masks):
        """Runs the layers and the last normalisation: [B, T, D] -> [B, T, D]."""
        for layer in self.layers:
            if training and self.settings["rematerialize"]:
                states = rematerialized(layer, states, *memory, **masks)
            else:
                states = layer(states, *memory, **masks, training=training)
        return self.normalize(states)

    def normalize(self, states):
        """The normalisation after the last layer, where there is one: [..., D] -> [..., D]."""
        return states if self.last_norm is None else self.last_norm(states)


def rematerialized(layer: keras.layers.Layer, *inputs, **masks):
    """layer(*inputs, **masks, training=True), which keeps only its inputs for the backward pass.

    That computes the rest once more, with the same result: it costs about a third of a training
    step, and saves what is within a layer, for long sentences mostly attention weights.
    Dropout must draw the same masks both times. So its random numbers are drawn here, once, and
    both computations are functions of tensors alone. Gradients flow to `inputs`, not to `masks`.
    """
    draws = {
        id(part.seed_generator.state): part.seed_generator.next()
        for part in layer._flatten_layers()
        if getattr(part, "seed_generator", None) is not None
    }
    seeds = [draws[id(state)] for state in layer.non_trainable_variables]
    weights = [ops.convert_to_tensor(variable) for variable in layer.trainable_variables]

    @keras.remat
    def compute(*tensors):
        states, weights = tensors[: len(inputs)], tensors[len(inputs) :]
        outputs, _ = layer.stateless_call(weights, seeds, *states, **masks, training=True)
        return outputs

    return compute(*inputs, *weights)
