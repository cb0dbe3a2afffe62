"""The decoder: N layers of masked self-attention, attention to the memory, feed-forward network.

Section 3.1. The same layers run over whole target sentences in training (`call`) and one position
at a time in decoding (`step`), with keys and values of earlier positions kept in a cache.
"""

import functools

import keras
from keras import ops

from keras_transformer.config import TransformerConfig
from keras_transformer.model.attention import MultiHeadAttention, scaled_dot_product_attention
from keras_transformer.model.decoder_cache import merge_axes
from keras_transformer.model.feed_forward import FeedForward
from keras_transformer.model.masks import causal_mask
from keras_transformer.model.rematerialization import rematerialized
from keras_transformer.model.restricted_attention import self_attention
from keras_transformer.model.sublayer import LayerNorm, Residual


class DecoderLayer(keras.layers.Layer):
    """Masked self-attention, attention to the encoder's output, and the feed-forward network.

    Call arguments:
        inputs: [B, T, D].
        memory: [B, S, D], the encoder's output.
        self_attention_mask: bool [T, T], True at positions up to the query's own; None where
            self-attention is restricted, which then sees to it itself.
        memory_attention_mask: bool [B, 1, 1, S], True at real source tokens.
        training: whether to drop out.

    Returns:
        [B, T, D].
    """

    def __init__(self, config: TransformerConfig, **kwargs):
        super().__init__(**kwargs)
        policy = self.dtype_policy
        self.self_attention = self_attention(
            config, causal=True, dtype=policy, name="self_attention"
        )
        self.self_attention_residual = Residual(
            config, dtype=policy, name="self_attention_residual"
        )
        self.memory_attention = MultiHeadAttention(
            config, to_memory=True, dtype=policy, name="memory_attention"
        )
        self.memory_attention_residual = Residual(
            config, dtype=policy, name="memory_attention_residual"
        )
        self.feed_forward = FeedForward(config, dtype=policy, name="feed_forward")
        self.feed_forward_residual = Residual(config, dtype=policy, name="feed_forward_residual")

    def build(self, shape, *others):
        for layer in (
            self.self_attention,
            self.self_attention_residual,
            self.memory_attention,
            self.memory_attention_residual,
            self.feed_forward,
            self.feed_forward_residual,
        ):
            layer.build(shape)

    def call(self, inputs, memory, self_attention_mask, memory_attention_mask, training=False):
        attend_self = functools.partial(
            self.self_attention, attention_mask=self_attention_mask, training=training
        )
        attend_memory = functools.partial(
            self.memory_attention,
            attention_mask=memory_attention_mask,
            memory=memory,
            training=training,
        )
        return self.sublayers(inputs, attend_self, attend_memory, training)

    def step(self, inputs, shape, keys_values, write, mask, projected_memory, memory_mask):
        """Computes one position of every beam.

        Args:
            inputs: [B K, D], the position's inputs, of all beams of a sentence, then the next.
            shape: (B, K).
            keys_values: the layer's keys [B, H, C, K, d_k] and values [B, H, C, K, d_v].
            write: returns them with the position's entries, [B, H, K, d], put in.
            mask: bool [B, 1, K, C K], True at the entries of each beam's own hypothesis.
            projected_memory: keys [B, H, S, d_k] and values [B, H, S, d_v] of the memory, which
                the beams of a sentence share.
            memory_mask: bool [B, 1, 1, S], True at real source tokens.

        Returns:
            [B K, D], and the keys and values with those of the position.
        """
        written = []

        # In place of a sentence's positions come its beams: heads are [B, H, K, d].
        def attend_self(states):  # [B K, D]
            queries, *new = self.self_attention.project_queries_keys_values(states, shape)
            for old, entry in zip(keys_values, new, strict=True):
                written.append(write(old, entry))
            keys, values = [merge_axes(part, 2) for part in written]  # [B, H, C K, d]
            heads, _ = scaled_dot_product_attention(queries, keys, values, mask)
            return self.self_attention.project_outputs(heads, shape)

        def attend_memory(states):  # the K beams are K queries to one memory
            queries = self.memory_attention.project_queries(states, shape)  # [B, H, K, d_k]
            heads, _ = scaled_dot_product_attention(queries, *projected_memory, memory_mask)
            return self.memory_attention.project_outputs(heads, shape)

        return self.sublayers(inputs, attend_self, attend_memory, False), tuple(written)

    def sublayers(self, inputs, attend_self, attend_memory, training):
        """Applies the layer's three sublayers in their residual connections: [B, T, D] -> same."""
        residual = self.self_attention_residual
        states = residual(inputs, attend_self(residual.before(inputs)), training=training)
        residual = self.memory_attention_residual
        states = residual(states, attend_memory(residual.before(states)), training=training)
        residual = self.feed_forward_residual
        transformed = self.feed_forward(residual.before(states), training=training)
        return residual(states, transformed, training=training)

    def compute_output_shape(self, shape, *others):
        return shape


class Decoder(keras.layers.Layer):
    """A stack of N DecoderLayers; with `norm="pre"`, a last normalisation after them.

    Call arguments:
        inputs: [B, T, D], target embeddings with positions, shifted right by the BOS token.
        memory: [B, S, D], the encoder's output.
        memory_attention_mask: bool [B, 1, 1, S], True at real source tokens.
        training: whether to drop out.

    Returns:
        [B, T, D], the states that the logits are made of.
    """

    def __init__(self, config: TransformerConfig, rematerialize: bool = False, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        self.rematerialize = rematerialize
        policy = self.dtype_policy
        self.layers = [
            DecoderLayer(config, dtype=policy, name=f"layer_{n}") for n in range(config.num_layers)
        ]
        self.last_norm = LayerNorm(dtype=policy, name="norm") if config.norm == "pre" else None

    def build(self, shape, *others):
        for layer in [*self.layers, self.last_norm]:
            if layer is not None:
                layer.build(shape)

    def call(self, inputs, memory, memory_attention_mask, training=False):
        self_attention_mask = None  # a T x T mask would outgrow restricted attention's memory
        if self.config.attention_window is None:
            self_attention_mask = causal_mask(ops.shape(inputs)[1])
        states = inputs
        for layer in self.layers:
            masks = [self_attention_mask, memory_attention_mask]
            if training and self.rematerialize:
                states = rematerialized(layer, [states, memory], masks)
            else:
                states = layer(states, memory, *masks, training=training)
        return states if self.last_norm is None else self.last_norm(states)

    def step(self, inputs, position, cache, projected_memory, memory_attention_mask, write):
        """Computes one position of every beam through the stack; see DecoderLayer.step.

        Args:
            inputs: [B K, D].
            position: int32 scalar, less than the cache's capacity C.
            cache: a DecoderCache of the earlier positions.
            projected_memory: a list, an entry a layer.
            memory_attention_mask: bool [B, 1, 1, S], True at real source tokens.
            write: puts entries into the cache; see decoder_cache.scatter.

        Returns:
            [B K, D] and the cache with the position added.
        """
        cache = cache.with_position(position)
        shape = ops.shape(cache.origins)[:2]
        mask = cache.mask(position, self.config.attention_window)
        write_here = functools.partial(write, position=position)
        states, layers = inputs, []
        for layer, keys_values, memory in zip(
            self.layers, cache.layers, projected_memory, strict=True
        ):
            states, keys_values = layer.step(
                states, shape, keys_values, write_here, mask, memory, memory_attention_mask
            )
            layers.append(keys_values)
        states = states if self.last_norm is None else self.last_norm(states)
        return states, cache._replace(layers=layers)

    # Stated, as Keras would otherwise trace the whole stack once more to find it out.
    def compute_output_spec(self, inputs, memory, memory_attention_mask, training=False):
        return keras.KerasTensor(inputs.shape, self.compute_dtype)
