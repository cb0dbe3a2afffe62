"""What every head of every layer attends to, for given sentence pairs (Figures 3 to 5).

Pure graph functions: they walk the layers of the model with attentions that also record their
weights.
"""

from typing import NamedTuple

import keras
import tensorflow as tf

from keras_transformer.model import transformer
from keras_transformer.model.masks import causal_mask, padding_mask


class AttentionMaps(NamedTuple):
    """Attention weights; a row sums to 1 over its last axis, and is 0 at padding there.

    Row t of `decoder` and `memory` is what the decoder attended to when it predicted target token
    t. Its input there was token t - 1, so that column t of `decoder` is token t - 1, and column 0
    the BOS token. Rows of padding mean nothing.
    """

    encoder: tf.Tensor  # float32 [B, N, H, S, S]
    decoder: tf.Tensor  # float32 [B, N, H, T, T]
    memory: tf.Tensor  # float32 [B, N, H, T, S]


def attention_maps(model: keras.Model, source: tf.Tensor, target: tf.Tensor) -> AttentionMaps:
    """Computes what predicting every target token attends to.

    Args:
        model: from build_transformer.
        source: int32 [B, S], rows ending in EOS and then padding.
        target: int32 [B, T], the same, without BOS.
    """
    maps, _ = maps_and_logits(model, source, target)
    return maps


def maps_and_logits(
    model: keras.Model, source: tf.Tensor, target: tf.Tensor
) -> tuple[AttentionMaps, tf.Tensor]:
    """`attention_maps` with the logits float32 [B, T, V] that the same pass ends in."""
    tied = model.config.tie_embeddings
    target_embedding = model.get_layer("embedding" if tied else "target_embedding")
    encoder, decoder = model.get_layer("encoder"), model.get_layer("decoder")
    encoder_maps, decoder_maps, memory_maps = [], [], []

    def recording(attention, maps, mask, memory=None):
        def attend(states):
            outputs, weights = attention.attend(states, mask, memory)
            maps.append(tf.cast(weights, tf.float32))  # [B, H, Q, P]
            return outputs

        return attend

    source_mask = padding_mask(source)[:, None, None, :]
    states = model.get_layer("source_positions")(model.get_layer("embedding")(source))
    for layer in encoder.layers:
        attend = recording(layer.self_attention, encoder_maps, source_mask)
        states = layer.sublayers(states, attend, False)
    memory = states if encoder.last_norm is None else encoder.last_norm(states)

    earlier = causal_mask(tf.shape(target)[1])
    states = target_embedding(transformer.shift_right(target))
    states = model.get_layer("target_positions")(states)
    for layer in decoder.layers:
        attend_self = recording(layer.self_attention, decoder_maps, earlier)
        attend_memory = recording(layer.memory_attention, memory_maps, source_mask, memory)
        states = layer.sublayers(states, attend_self, attend_memory, False)
    states = states if decoder.last_norm is None else decoder.last_norm(states)

    layers = (encoder_maps, decoder_maps, memory_maps)
    maps = AttentionMaps(*[tf.stack(weights, axis=1) for weights in layers])
    return maps, model.get_layer("logits")(states)


def alignment(maps: AttentionMaps, source_mask: tf.Tensor) -> tf.Tensor:
    """Finds the source position that each target token comes from.

    That of the largest weight in the attention to the memory, averaged over the heads of the last
    two layers. Where row t is about token t the most differs: in the last layer but one for Garg
    et al. (2019), in the last of a small post-norm model, earlier in a pre-norm one.

    Args:
        maps: of the pairs.
        source_mask: bool [B, S], True at real tokens, EOS included. EOS is aligned to only where
            it is alone.

    Returns:
        int32 [B, T].
    """
    weights = tf.reduce_mean(maps.memory[:, -2:], axis=[1, 2])  # [B, T, S]
    # A real token that another one follows is no EOS.
    words = tf.pad(source_mask[:, 1:], [[0, 0], [0, 1]])  # [B, S]
    weights = tf.where(words[:, None, :], weights, -1.0)
    return tf.argmax(weights, axis=-1, output_type=tf.int32)  # of equals, the first: a lone EOS
