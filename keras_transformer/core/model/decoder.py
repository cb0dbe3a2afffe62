"""The decoder: N layers of self-attention, cross-attention and feed-forward network (section 3.1).

These layers compute all target positions at once, as in training. Decoding computes one position at
a time with the same weights: see search/compiled_model.py.
"""

import keras

from keras_transformer.core.model.ssru import SSRU
from keras_transformer.core.model.stack import Stack
from keras_transformer.core.model.transformer_layer import TransformerLayer


@keras.saving.register_keras_serializable(package="keras_transformer")
class DecoderLayer(TransformerLayer):
    """Causal self-attention, cross-attention to the encoder's output, and feed-forward network.

    Each of the three has a residual connection (section 3.1). TransformerLayer describes the
    arguments.

    Padding must follow a target's tokens: the causal mask then hides it from them.

    Call arguments:
        inputs: [B, T, D].
        memory: [B, S, D], the encoder's output.
        memory_mask: bool [B, S], False at padding in the source, which no position attends to.
        segments: int [B, T], the segments of packed rows (model/packing.py); None for one sentence
            a row.
        memory_segments: int [B, S], the segments of the source.
        return_attention_scores: whether to also return the attention weights.
        training: whether to apply dropout.

    Returns:
        [B, T, D]; with `return_attention_scores`, also the self-attention weights [B, H, T, T] and
        the cross-attention weights [B, H, T, S].

    Example:
        >>> layer = DecoderLayer(num_heads=8, key_dim=64, d_ff=2048)
        >>> memory = keras.random.normal((2, 7, 512))
        >>> keras.ops.shape(layer(keras.random.normal((2, 10, 512)), memory))
        (2, 10, 512)
    """

    def make_sublayers(self):
        self.self_attention = self.make_self_attention()
        self.self_attention_dropout = self.make_dropout("self_attention_dropout")
        self.self_attention_norm = self.make_norm("self_attention_norm")

        self.cross_attention = self.make_attention("cross_attention")
        self.cross_attention_dropout = self.make_dropout("cross_attention_dropout")
        self.cross_attention_norm = self.make_norm("cross_attention_norm")

        self.feed_forward = self.make_feed_forward()
        self.feed_forward_dropout = self.make_dropout("feed_forward_dropout")
        self.feed_forward_norm = self.make_norm("feed_forward_norm")

    def make_self_attention(self) -> keras.layers.Layer:
        """Makes the first sublayer."""
        return self.make_attention(
            "self_attention", window=self.attention_window, positions=self.positions
        )

    def self_attention_arguments(self, segments) -> dict:
        """Returns the keyword arguments of the first sublayer's call."""
        return {
            "use_causal_mask": True,
            "query_segments": segments,
            "return_attention_scores": True,
        }

    def build(self, inputs_shape, memory_shape=None):
        self.self_attention.build(inputs_shape)
        self.self_attention_norm.build(inputs_shape)
        self.cross_attention.build(inputs_shape, memory_shape)
        self.cross_attention_norm.build(inputs_shape)
        self.feed_forward.build(inputs_shape)
        self.feed_forward_norm.build(inputs_shape)

    def call(
        self,
        inputs,
        memory,
        memory_mask=None,
        segments=None,
        memory_segments=None,
        return_attention_scores=False,
        training=None,
    ):
        x, self_weights = self.residual(
            inputs,
            self.self_attention,
            self.self_attention_dropout,
            self.self_attention_norm,
            **self.self_attention_arguments(segments),
            training=training,
        )
        x, cross_weights = self.residual(
            x,
            self.cross_attention,
            self.cross_attention_dropout,
            self.cross_attention_norm,
            memory,
            value_mask=memory_mask,
            query_segments=segments,
            value_segments=memory_segments,
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
        return (x, self_weights, cross_weights) if return_attention_scores else x


@keras.saving.register_keras_serializable(package="keras_transformer")
class RecurrentDecoderLayer(DecoderLayer):
    """A DecoderLayer with an SSRU in place of self-attention.

    It is called like a DecoderLayer. Its self-attention weights are None.

    Example:
        >>> layer = RecurrentDecoderLayer(num_heads=8, key_dim=64, d_ff=2048)
        >>> memory = keras.random.normal((2, 7, 512))
        >>> keras.ops.shape(layer(keras.random.normal((2, 10, 512)), memory))
        (2, 10, 512)
    """

    def make_self_attention(self) -> SSRU:
        return SSRU(dtype=self.dtype_policy, name="self_attention")

    def self_attention_arguments(self, segments) -> dict:
        return {"segments": segments}


@keras.saving.register_keras_serializable(package="keras_transformer")
class Decoder(Stack):
    """A stack of DecoderLayers (section 3.1), or of RecurrentDecoderLayers.

    Stack describes the arguments.

    Call arguments:
        inputs: [B, T, D], target embeddings with positions, shifted right by the BOS token.
        memory: [B, S, D], the encoder's output.
        memory_mask: bool [B, S], False at padding in the source, which no position attends to.
        segments: int [B, T], the segments of packed rows (model/packing.py); None for one sentence
            a row.
        memory_segments: int [B, S], the segments of the source.
        training: whether to apply dropout.

    Returns:
        [B, T, D], the states from which the logits are computed.

    Example:
        >>> layers = [DecoderLayer(num_heads=8, key_dim=64, d_ff=2048) for _ in range(6)]
        >>> decoder = Decoder(layers)
        >>> memory = keras.random.normal((2, 7, 512))
        >>> keras.ops.shape(decoder(keras.random.normal((2, 10, 512)), memory))
        (2, 10, 512)
    """

    def build(self, inputs_shape, memory_shape=None):
        self.build_layers(inputs_shape, memory_shape)

    def call(
        self,
        inputs,
        memory,
        memory_mask=None,
        segments=None,
        memory_segments=None,
        training=None,
    ):
        masks = {"memory_mask": memory_mask}
        if segments is not None:
            masks.update(segments=segments, memory_segments=memory_segments)
        x = inputs
        for layer in self.layers:
            x = self.call_layer(layer, x, memory, **masks, training=training)
        return x if self.last_norm is None else self.last_norm(x)
