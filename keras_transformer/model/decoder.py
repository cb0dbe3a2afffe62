"""The decoder: N layers of self-attention, cross-attention and feed-forward network (section 3.1).

These layers compute all positions of a target at once, as training does. Decoding computes one
position after the other, from the same weights: see decoding/compiled_model.py.
"""

import keras

from keras_transformer.config import Norm
from keras_transformer.fields import Positive, Share, Size, check_arguments
from keras_transformer.model.attention import MultiHeadAttention
from keras_transformer.model.composite import CompositeLayer
from keras_transformer.model.dropout import Dropout
from keras_transformer.model.encoder import Layers, serialize_layers
from keras_transformer.model.feed_forward import NetworkActivation, make_feed_forward
from keras_transformer.model.rematerialization import rematerialized


@keras.saving.register_keras_serializable(package="keras_transformer")
class DecoderLayer(CompositeLayer):
    """Causal self-attention, cross-attention to the encoder's output, and feed-forward network.

    Each of the three is in a residual connection (section 3.1). With `norm="post"`, as in the
    paper, a sublayer gives LayerNorm(x + Dropout(Sublayer(x))). With `norm="pre"` it gives
    x + Dropout(Sublayer(LayerNorm(x))).

    Padding must follow the tokens of a target: the causal mask then hides it from them.

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
        inputs: [B, T, D].
        memory: [B, S, D], the encoder's output.
        memory_mask: bool [B, S], False at padding of the source, which no position attends to.
        return_attention_scores: whether to return the attention weights, too.
        training: whether to apply dropout.

    Returns:
        [B, T, D]; with `return_attention_scores`, also the weights of self-attention [B, H, T, T]
        and of cross-attention [B, H, T, S].

    Example:
        >>> layer = DecoderLayer(num_heads=8, key_dim=64, d_ff=2048)
        >>> memory = keras.random.normal((2, 7, 512))
        >>> keras.ops.shape(layer(keras.random.normal((2, 10, 512)), memory))
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
        check_arguments(DecoderLayer, locals())
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

        self.cross_attention = MultiHeadAttention(
            num_heads,
            key_dim,
            value_dim,
            dropout=attention_dropout,
            use_bias=attention_bias,
            dtype=policy,
            name="cross_attention",
        )
        self.cross_attention_dropout = Dropout(
            dropout, dtype=policy, name="cross_attention_dropout"
        )
        self.cross_attention_norm = keras.layers.LayerNormalization(
            epsilon=norm_epsilon, dtype=policy, name="cross_attention_norm"
        )

        self.feed_forward = make_feed_forward(d_ff, activation_dropout, activation, policy)
        self.feed_forward_dropout = Dropout(dropout, dtype=policy, name="feed_forward_dropout")
        self.feed_forward_norm = keras.layers.LayerNormalization(
            epsilon=norm_epsilon, dtype=policy, name="feed_forward_norm"
        )

    def build(self, inputs_shape, memory_shape=None):
        self.self_attention.build(inputs_shape)
        self.self_attention_norm.build(inputs_shape)
        self.cross_attention.build(inputs_shape, memory_shape)
        self.cross_attention_norm.build(inputs_shape)
        self.feed_forward.build(inputs_shape)
        self.feed_forward_norm.build(inputs_shape)

    def call(self, inputs, memory, memory_mask=None, return_attention_scores=False, training=None):
        x = inputs
        pre_norm = self.norm == "pre"

        sublayer_input = self.self_attention_norm(x) if pre_norm else x
        attended, self_weights = self.self_attention(
            sublayer_input, use_causal_mask=True, return_attention_scores=True, training=training
        )
        x = x + self.self_attention_dropout(attended, training=training)
        x = x if pre_norm else self.self_attention_norm(x)

        sublayer_input = self.cross_attention_norm(x) if pre_norm else x
        attended, cross_weights = self.cross_attention(
            sublayer_input,
            memory,
            value_mask=memory_mask,
            return_attention_scores=True,
            training=training,
        )
        x = x + self.cross_attention_dropout(attended, training=training)
        x = x if pre_norm else self.cross_attention_norm(x)

        sublayer_input = self.feed_forward_norm(x) if pre_norm else x
        transformed = self.feed_forward(sublayer_input, training=training)
        x = x + self.feed_forward_dropout(transformed, training=training)
        x = x if pre_norm else self.feed_forward_norm(x)

        if return_attention_scores:
            return x, self_weights, cross_weights
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
class Decoder(CompositeLayer):
    """A stack of DecoderLayers (section 3.1).

    Args:
        layers: the DecoderLayers, the first one first; 6 equal ones in the paper.
        last_norm: whether a layer normalisation follows the last layer, as it must if the layers
            have `norm="pre"`.
        norm_epsilon: what this normalisation adds to variances.
        rematerialize: whether training computes each layer again in the backward pass, which saves
            memory and takes time.

    Call arguments:
        inputs: [B, T, D], target embeddings with positions, shifted right by the BOS token.
        memory: [B, S, D], the encoder's output.
        memory_mask: bool [B, S], False at padding of the source, which no position attends to.
        training: whether to apply dropout.

    Returns:
        [B, T, D], the states that the logits are computed from.

    Example:
        >>> layers = [DecoderLayer(num_heads=8, key_dim=64, d_ff=2048) for _ in range(6)]
        >>> decoder = Decoder(layers)
        >>> memory = keras.random.normal((2, 7, 512))
        >>> keras.ops.shape(decoder(keras.random.normal((2, 10, 512)), memory))
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
        check_arguments(Decoder, locals())
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

    def build(self, inputs_shape, memory_shape=None):
        for layer in self.layers:
            if not layer.built:
                layer.build(inputs_shape, memory_shape)
        if self.last_norm is not None:
            self.last_norm.build(inputs_shape)

    def call(self, inputs, memory, memory_mask=None, training=None):
        x = inputs
        for layer in self.layers:
            if training and self.rematerialize:
                x = rematerialized(layer, x, memory, memory_mask=memory_mask)
            else:
                x = layer(x, memory, memory_mask=memory_mask, training=training)
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
