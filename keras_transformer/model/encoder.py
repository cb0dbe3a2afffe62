"""The encoder: N layers of self-attention and feed-forward network (section 3.1)."""

import functools

import keras

from keras_transformer.config import TransformerConfig
from keras_transformer.model.feed_forward import FeedForward
from keras_transformer.model.rematerialization import rematerialized
from keras_transformer.model.restricted_attention import self_attention
from keras_transformer.model.sublayer import LayerNorm, Residual


class EncoderLayer(keras.layers.Layer):
    """Self-attention, then the feed-forward network, each in a residual connection.

    Call arguments:
        inputs: [B, S, D].
        attention_mask: bool [B, 1, 1, S], True at real tokens.
        training: whether to drop out.

    Returns:
        [B, S, D].
    """

    def __init__(self, config: TransformerConfig, **kwargs):
        super().__init__(**kwargs)
        policy = self.dtype_policy
        self.self_attention = self_attention(config, dtype=policy, name="self_attention")
        self.self_attention_residual = Residual(
            config, dtype=policy, name="self_attention_residual"
        )
        self.feed_forward = FeedForward(config, dtype=policy, name="feed_forward")
        self.feed_forward_residual = Residual(config, dtype=policy, name="feed_forward_residual")

    def build(self, shape, *others):
        for layer in (
            self.self_attention,
            self.self_attention_residual,
            self.feed_forward,
            self.feed_forward_residual,
        ):
            layer.build(shape)

    def call(self, inputs, attention_mask, training=False):
        attend = functools.partial(
            self.self_attention, attention_mask=attention_mask, training=training
        )
        return self.sublayers(inputs, attend, training)

    def sublayers(self, inputs, attend, training):
        """Applies the two sublayers in their residual connections: [B, S, D] -> same."""
        residual = self.self_attention_residual
        states = residual(inputs, attend(residual.before(inputs)), training=training)
        residual = self.feed_forward_residual
        transformed = self.feed_forward(residual.before(states), training=training)
        return residual(states, transformed, training=training)

    def compute_output_shape(self, shape, *others):
        return shape


class Encoder(keras.layers.Layer):
    """A stack of N EncoderLayers; with `norm="pre"`, a last normalisation after them.

    Args:
        config: the model's configuration.
        rematerialize: whether training computes each layer again in its backward pass.

    Call arguments:
        inputs: [B, S, D], embeddings with positions.
        attention_mask: bool [B, 1, 1, S], True at real tokens.
        training: whether to drop out.

    Returns:
        [B, S, D], the memory that the decoder attends to.
    """

    def __init__(self, config: TransformerConfig, rematerialize: bool = False, **kwargs):
        super().__init__(**kwargs)
        policy = self.dtype_policy
        self.rematerialize = rematerialize
        self.layers = [
            EncoderLayer(config, dtype=policy, name=f"layer_{n}") for n in range(config.num_layers)
        ]
        self.last_norm = LayerNorm(dtype=policy, name="norm") if config.norm == "pre" else None

    def build(self, shape, *others):
        for layer in [*self.layers, self.last_norm]:
            if layer is not None:
                layer.build(shape)

    def call(self, inputs, attention_mask, training=False):
        states = inputs
        for layer in self.layers:
            if training and self.rematerialize:
                states = rematerialized(layer, [states], [attention_mask])
            else:
                states = layer(states, attention_mask, training=training)
        return states if self.last_norm is None else self.last_norm(states)

    # Stated, as Keras would otherwise trace the whole stack once more to find it out.
    def compute_output_spec(self, inputs, attention_mask, training=False):
        return keras.KerasTensor(inputs.shape, self.compute_dtype)
