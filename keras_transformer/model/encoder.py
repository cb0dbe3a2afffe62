"""The encoder: N layers of self-attention and feed-forward network (section 3.1)."""

from collections.abc import Sequence
from typing import Annotated, Any

import keras

from keras_transformer.config import Norm
from keras_transformer.fields import Positive, Rule, Share, Size, check_arguments
from keras_transformer.model.attention import MultiHeadAttention
from keras_transformer.model.composite import CompositeLayer
from keras_transformer.model.dropout import Dropout
from keras_transformer.model.feed_forward import NetworkActivation, make_feed_forward
from keras_transformer.model.rematerialization import rematerialized


def _are_layers(value: Any) -> bool:
    is_sequence = isinstance(value, Sequence) and len(value) > 0
    return is_sequence and all(isinstance(item, keras.layers.Layer) for item in value)


# Those of a stack.
Layers = Annotated[Any, Rule("be a list of Keras layers, with at least one", _are_layers)]


@keras.saving.register_keras_serializable(package="keras_transformer")
class EncoderLayer(CompositeLayer):
    """Self-attention, then the feed-forward network, each in a residual connection (section 3.1).

    With `norm="post"`, as in the paper, a sublayer gives LayerNorm(x + Dropout(Sublayer(x))). With
    `norm="pre"` it gives x + Dropout(Sublayer(LayerNorm(x))).

    Args:
        num_heads: H, the number of attention heads.
        key_dim: d_k, the width of the queries and keys of a head.
        d_ff: the width of the feed-forward network's inner activations.
        value_dim: d_v, the width of the values of a head; None for d_k.
        norm: "post" or "pre", where the layer normalisation stands.
        activation: of the feed-forward network, "relu" in the paper; "swiglu" for a
            GatedFeedForward.
        dropout: P_drop, on the output of each sublayer.
        attention_dropout: the probability of dropping an attention weight.
        activation_dropout: the probability of dropping an inner activation of the feed-forward
            network.
        attention_window: r of restricted self-attention (section 4); None for all positions.
        attention_bias: whether attention's projections have biases.
        norm_epsilon: what normalisation adds to variances.
        rotary: whether self-attention has rotary positions; see MultiHeadAttention.

    Call arguments:
        inputs: [B, S, D].
        mask: bool [B, S], False at padding, which no position attends to.
        return_attention_scores: whether to return the attention weights, too.
        training: whether to apply dropout.

    Returns:
        [B, S, D]; with `return_attention_scores`, also the attention weights [B, H, S, S].

    Example:
        >>> layer = EncoderLayer(num_heads=8, key_dim=64, d_ff=2048)
        >>> keras.ops.shape(layer(keras.random.normal((2, 10, 512))))
        (2, 10, 512)
    """

    def __init__(
        self,
        num_heads: Size,
        key_dim: Size,
        d_ff: Size,
        value_dim: Size | None = None,
        norm: Norm = "post",
        activation: NetworkActivation = "relu",
        dropout: Share = 0.0,
        attention_dropout: Share = 0.0,
        activation_dropout: Share = 0.0,
        attention_window: Size | None = None,
        attention_bias: bool = False,
        norm_epsilon: Positive = 1e-6,
        rotary: bool = False,
        **kwargs,
    ):
        check_arguments(EncoderLayer, locals())
        super().__init__(**kwargs)
        self.supports_masking = True
        self.norm = norm
        self.activation = activation
        policy = self.dtype_policy

        self.self_attention = MultiHeadAttention(
            num_heads,
            key_dim,
            value_dim,
            dropout=attention_dropout,
            use_bias=attention_bias,
            window=attention_window,
            rotary=rotary,
            dtype=policy,
            name="self_attention",
        )
        self.self_attention_dropout = Dropout(dropout, dtype=policy, name="self_attention_dropout")
        self.self_attention_norm = keras.layers.LayerNormalization(
            epsilon=norm_epsilon, dtype=policy, name="self_attention_norm"
        )

        self.feed_forward = make_feed_forward(d_ff, activation_dropout, activation, policy)
        self.feed_forward_dropout = Dropout(dropout, dtype=policy, name="feed_forward_dropout")
        self.feed_forward_norm = keras.layers.LayerNormalization(
            epsilon=norm_epsilon, dtype=policy, name="feed_forward_norm"
        )

    def build(self, inputs_shape):
        self.self_attention.build(inputs_shape)
        self.self_attention_norm.build(inputs_shape)
        self.feed_forward.build(inputs_shape)
        self.feed_forward_norm.build(inputs_shape)

    def call(self, inputs, mask=None, return_attention_scores=False, training=None):
        x = inputs
        pre_norm = self.norm == "pre"

        sublayer_input = self.self_attention_norm(x) if pre_norm else x
        attended, weights = self.self_attention(
            sublayer_input, query_mask=mask, return_attention_scores=True, training=training
        )
        x = x + self.self_attention_dropout(attended, training=training)
        x = x if pre_norm else self.self_attention_norm(x)

        sublayer_input = self.feed_forward_norm(x) if pre_norm else x
        transformed = self.feed_forward(sublayer_input, training=training)
        x = x + self.feed_forward_dropout(transformed, training=training)
        x = x if pre_norm else self.feed_forward_norm(x)

        if return_attention_scores:
            return x, weights
        return x

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.self_attention.num_heads,
            "key_dim": self.self_attention.key_dim,
            "d_ff": self.feed_forward.d_ff,
            "value_dim": self.self_attention.value_dim,
            "norm": self.norm,
            "activation": self.activation,
            "dropout": self.self_attention_dropout.rate,
            "attention_dropout": self.self_attention.dropout.rate,
            "activation_dropout": self.feed_forward.dropout.rate,
            "attention_window": self.self_attention.window,
            "attention_bias": self.self_attention.use_bias,
            "norm_epsilon": self.self_attention_norm.epsilon,
            "rotary": self.self_attention.rotary,
        }


@keras.saving.register_keras_serializable(package="keras_transformer")
class Encoder(CompositeLayer):
    """A stack of EncoderLayers (section 3.1).

    Args:
        layers: the EncoderLayers, the first one first; 6 equal ones in the paper. Other layers
            may be among them that take `mask` and `training`.
        last_norm: whether a layer normalisation follows the last layer, as it must if the layers
            have `norm="pre"`.
        norm_epsilon: what this normalisation adds to variances.
        rematerialize: whether training computes each layer again in the backward pass, which saves
            memory and takes time.

    Call arguments:
        inputs: [B, S, D], embeddings with positions.
        mask: bool [B, S], False at padding, which no position attends to.
        training: whether to apply dropout.

    Returns:
        [B, S, D], the memory that the decoder attends to.

    Example:
        >>> layers = [EncoderLayer(num_heads=8, key_dim=64, d_ff=2048) for _ in range(6)]
        >>> encoder = Encoder(layers)
        >>> keras.ops.shape(encoder(keras.random.normal((2, 10, 512))))
        (2, 10, 512)
    """

    def __init__(
        self,
        layers: Layers,
        last_norm: bool = False,
        norm_epsilon: Positive = 1e-6,
        rematerialize: bool = False,
        **kwargs,
    ):
        check_arguments(Encoder, locals())
        super().__init__(**kwargs)
        self.supports_masking = True
        self.layers = list(layers)
        self.norm_epsilon = norm_epsilon
        self.rematerialize = rematerialize
        self.last_norm = None
        if last_norm:
            self.last_norm = keras.layers.LayerNormalization(
                epsilon=norm_epsilon, dtype=self.dtype_policy, name="last_norm"
            )

    def build(self, inputs_shape):
        for layer in self.layers:
            if not layer.built:
                layer.build(inputs_shape)
        if self.last_norm is not None:
            self.last_norm.build(inputs_shape)

    def call(self, inputs, mask=None, training=None):
        x = inputs
        for layer in self.layers:
            if training and self.rematerialize:
                x = rematerialized(layer, x, mask=mask)
            else:
                x = layer(x, mask=mask, training=training)
        return x if self.last_norm is None else self.last_norm(x)

    def get_config(self):
        return {
            **super().get_config(),
            "layers": serialize_layers(self.layers),
            "last_norm": self.last_norm is not None,
            "norm_epsilon": self.norm_epsilon,
            "rematerialize": self.rematerialize,
        }

    @classmethod
    def from_config(cls, config):
        layers = [keras.saving.deserialize_keras_object(layer) for layer in config["layers"]]
        return cls(**{**config, "layers": layers})


def serialize_layers(layers: Sequence[keras.layers.Layer]) -> list[dict]:
    """Serializes the layers of a stack, for its `get_config`.

    The shapes that a layer was built for are left out. With these, Keras would build the new layer
    as soon as it makes it, outside its stack, and the paths of its variables would lack the name of
    the stack.
    """
    serialized = []
    for layer in layers:
        description = keras.saving.serialize_keras_object(layer)
        description.pop("build_config", None)
        serialized.append(description)
    return serialized
