"""The decoder: N layers of causal self-attention, cross-attention and feed-forward network.

Section 3.1. The same layers run over whole target sentences in training (`call`) and one position
at a time in decoding (`step`), with keys and values of earlier positions kept in a cache.
"""

import functools

import keras
from keras import ops

from keras_transformer.model.attention import scaled_dot_product_attention
from keras_transformer.model.decoder_cache import merge_axes
from keras_transformer.model.stack import Stack, SublayersInResiduals


@keras.saving.register_keras_serializable(package="keras_transformer")
class DecoderLayer(SublayersInResiduals):
    """Causal self-attention, cross-attention to the encoder's output, and feed-forward network.

    Padding must follow the tokens of a target: the causal mask then hides it from them.

    Args: as of EncoderLayer.

    Call arguments:
        inputs: [B, T, D].
        memory: [B, S, D], the encoder's output.
        memory_mask: bool [B, S], False at padding of the source, which nothing attends to.
        return_attention_scores: whether to return the attention weights, too.
        training: whether to apply dropout.

    Returns:
        [B, T, D]; with `return_attention_scores`, also the weights of self-attention [B, H, T, T]
        and of cross-attention [B, H, T, S].
    """

    sublayer_names = ("self_attention", "cross_attention", "feed_forward")

    def call(self, inputs, memory, memory_mask=None, return_attention_scores=False, training=False):
        scores = [] if return_attention_scores else None
        states = self.in_residual("self_attention", inputs, training, scores, use_causal_mask=True)
        states = self.in_residual(
            "cross_attention", states, training, scores, memory=memory, memory_mask=memory_mask
        )
        states = self.in_residual("feed_forward", states, training)
        return (states, *scores) if return_attention_scores else states

    def step(self, inputs, shape, keys_values, write, mask, projected_memory, memory_mask):
        """Computes one position of every beam: [B K, D] and the keys and values with its own.

        Args:
            inputs: [B K, D], of all beams of a sentence, then of the next.
            shape: (B, K).
            keys_values: the layer's keys [B, H, C, K, d_k] and values [B, H, C, K, d_v].
            write: returns them with the position's entries, [B, H, K, d], put in.
            mask: bool [B, 1, K, C K], True at the entries of each beam's own hypothesis.
            projected_memory: keys [B, H, S, d_k] and values [B, H, S, d_v], which beams share.
            memory_mask: bool [B, 1, 1, S], False at padding of the source.
        """
        written = []

        # In place of a sentence's positions come its beams: heads are [B, H, K, d].
        def attend_self(states):  # [B K, D]
            queries, *new = self.self_attention.project(states, ("query", "key", "value"), shape)
            for old, entry in zip(keys_values, new, strict=True):
                written.append(write(old, entry))
            keys, values = [merge_axes(part, 2) for part in written]  # [B, H, C K, d]
            heads, _ = scaled_dot_product_attention(queries, keys, values, mask)
            return self.self_attention.project_outputs(heads, shape)

        def attend_memory(states):  # the K beams are K queries to one memory
            (queries,) = self.cross_attention.project(states, ("query",), shape)  # [B, H, K, d_k]
            heads, _ = scaled_dot_product_attention(queries, *projected_memory, memory_mask)
            return self.cross_attention.project_outputs(heads, shape)

        states = self.in_residual("self_attention", inputs, sublayer=attend_self)
        states = self.in_residual("cross_attention", states, sublayer=attend_memory)
        return self.in_residual("feed_forward", states), tuple(written)


@keras.saving.register_keras_serializable(package="keras_transformer")
class Decoder(Stack):
    """A stack of N DecoderLayers; with `norm="pre"`, a last normalisation after them.

    Args: as of Encoder.

    Call arguments: as of DecoderLayer, without `return_attention_scores`. The inputs are target
    embeddings with positions, shifted right by the BOS token.

    Returns:
        [B, T, D], the states that the logits are made of.
    """

    layer_class = DecoderLayer

    def call(self, inputs, memory, memory_mask=None, training=False):
        return self.apply_layers(inputs, memory, memory_mask=memory_mask, training=training)

    def step(self, inputs, position, cache, projected_memory, memory_mask, write):
        """Computes one position of every beam: [B K, D] and the cache with the position added.

        `inputs` are [B K, D], of all beams of a sentence, then of the next; `memory_mask` is bool
        [B, S], False at padding. The other arguments are those of Transformer.decode_step.
        """
        cache = cache.with_position(position)
        shape = ops.shape(cache.origins)[:2]
        mask = cache.mask(position, self.settings["attention_window"])
        memory_mask = memory_mask[:, None, None, :]
        write_here = functools.partial(write, position=position)
        states, layers = inputs, []
        parts = zip(self.layers, cache.layers, projected_memory, strict=True)
        for layer, keys_values, memory in parts:
            states, keys_values = layer.step(
                states, shape, keys_values, write_here, mask, memory, memory_mask
            )
            layers.append(keys_values)
        return self.normalize(states), cache._replace(layers=layers)
