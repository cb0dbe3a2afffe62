"""The encoder: N layers of self-attention and feed-forward network (section 3.1)."""

import keras

from keras_transformer.core.model.stack import Stack
from keras_transformer.core.model.transformer_layer import TransformerLayer


@keras.saving.register_keras_serializable(package="keras_transformer")
class EncoderLayer(TransformerLayer):
    """Self-attention, then the feed-forward network, each with a residual connection (section 3.1).

    TransformerLayer describes the arguments.

    Call arguments:
        inputs: [B, S, D].
        mask: bool [B, S], False at padding, which no position attends to.
        segments: int [B, S], the segments of packed rows (model/packing.py); None for one sentence
            a row.
        return_attention_scores: whether to also return the attention weights.
        training: whether to apply dropout.

    Returns:
        [B, S, D]; with `return_attention_scores`, also the attention weights [B, H, S, S].

    Example:
        >>> layer = EncoderLayer(num_heads=8, key_dim=64, d_ff=2048)
        >>> keras.ops.shape(layer(keras.random.normal((2, 10, 512))))
        (2, 10, 512)
    """

    def make_sublayers(self):
        self.self_attention = self.make_attention(
            "self_attention", window=self.attention_window, positions=self.positions
        )
        self.self_attention_dropout = self.make_dropout("self_attention_dropout")
        self.self_attention_norm = self.make_norm("self_attention_norm")

        self.feed_forward = self.make_feed_forward()
        self.feed_forward_dropout = self.make_dropout("feed_forward_dropout")
        self.feed_forward_norm = self.make_norm("feed_forward_norm")

    def build(self, inputs_shape):
        self.self_attention.build(inputs_shape)
        self.self_attention_norm.build(inputs_shape)
        self.feed_forward.build(inputs_shape)
        self.feed_forward_norm.build(inputs_shape)

    def call(self, inputs, mask=None, segments=None, return_attention_scores=False, training=None):
        x, weights = self.residual(
            inputs,
            self.self_attention,
            self.self_attention_dropout,
            self.self_attention_norm,
            query_mask=mask,
            query_segments=segments,
            return_attention_scores=True,
            training=training,
        )
        x, _ = self.residual(
            x,
            self.feed_forward,
            self.feed_forward_dropout,
            self.feed_forward_norm,
            training=training,
        )
        return (x, weights) if return_attention_scores else x


@keras.saving.register_keras_serializable(package="keras_transformer")
class Encoder(Stack):
    """A stack of EncoderLayers (section 3.1).

    Stack describes the arguments. Other layers that take `mask` and `training` are allowed, too.

    Call arguments:
        inputs: [B, S, D], embeddings with positions.
        mask: bool [B, S], False at padding, which no position attends to.
        segments: int [B, S], the segments of packed rows (model/packing.py); None for one sentence
            a row.
        training: whether to apply dropout.

    Returns:
        [B, S, D], the memory that the decoder attends to.

    Example:
        >>> layers = [EncoderLayer(num_heads=8, key_dim=64, d_ff=2048) for _ in range(6)]
        >>> encoder = Encoder(layers)
        >>> keras.ops.shape(encoder(keras.random.normal((2, 10, 512))))
        (2, 10, 512)
    """

    def build(self, inputs_shape):
        self.build_layers(inputs_shape)

    def call(self, inputs, mask=None, segments=None, training=None):
        masks = {"mask": mask} if segments is None else {"mask": mask, "segments": segments}
        x = inputs
        for layer in self.layers:
            x = self.call_layer(layer, x, **masks, training=training)
        return x if self.last_norm is None else self.last_norm(x)
