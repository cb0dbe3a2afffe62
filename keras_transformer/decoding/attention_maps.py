"""What every head of every layer attends to, for given sentence pairs (Figures 3 to 5).

Pure graph functions: they call each layer of the model for its attention weights, too.
"""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from keras_transformer.model.masks import padding_mask
from keras_transformer.model.transformer import Transformer, shift_right


class AttentionMaps(NamedTuple):
    """Attention weights; a row sums to 1 over its last axis, and is 0 at padding there.

    Row t of `decoder` and `memory` is what the decoder attended to when it predicted target token
    t. Its input there was token t - 1, so that column t of `decoder` is token t - 1, and column 0
    the BOS token. Rows of padding mean nothing.
    """

    encoder: tf.Tensor  # float32 [B, N, H, S, S]
    decoder: tf.Tensor  # float32 [B, N, H, T, T]
    memory: tf.Tensor  # float32 [B, N, H, T, S]


def attention_maps(
    model: Transformer, source: tf.Tensor, target: tf.Tensor
) -> tuple[AttentionMaps, tf.Tensor]:
    """Computes what predicting every target token attends to, and the logits, float32 [B, T, V].

    Args:
        model: any Transformer.
        source: int32 [B, S], rows ending in EOS and then padding.
        target: int32 [B, T], the same, without BOS.
    """
    encoder_maps, decoder_maps, memory_maps = [], [], []
    source_mask = padding_mask(source)
    states = model.source_positions(model.embedding(source))
    for layer in model.encoder.layers:
        states, weights = layer(states, mask=source_mask, return_attention_scores=True)
        encoder_maps.append(tf.cast(weights, tf.float32))  # [B, H, S, S]
    memory = model.encoder.normalize(states)

    states = model.target_positions(model.target_embedding(shift_right(target)))
    for layer in model.decoder.layers:
        states, of_self, of_memory = layer(
            states, memory, memory_mask=source_mask, return_attention_scores=True
        )
        decoder_maps.append(tf.cast(of_self, tf.float32))  # [B, H, T, T]
        memory_maps.append(tf.cast(of_memory, tf.float32))  # [B, H, T, S]

    layers = (encoder_maps, decoder_maps, memory_maps)
    logits = model.logits_embedding(model.decoder.normalize(states), reverse=True)
    return AttentionMaps(*[tf.stack(weights, axis=1) for weights in layers]), logits


def alignment(memories: Sequence[tf.Tensor], source_mask: tf.Tensor) -> tf.Tensor:
    """Finds the source position that each target token comes from.

    That of the largest weight in the attention to the memory, averaged over the heads of the last
    two layers, and over the models if there are several; `memories` are their AttentionMaps.memory.
    Where row t is about token t the most differs: in the last layer but one for Garg et al. (2019),
    in the last of a small post-norm model, earlier in a pre-norm one.

    The source mask is bool [B, S], False at padding. EOS is aligned to only where it is alone.
    Returns int32 [B, T].
    """
    weights = sum(tf.reduce_mean(memory[:, -2:], axis=[1, 2]) for memory in memories)  # [B, T, S]
    # A token that another one follows is no EOS.
    words = tf.pad(source_mask[:, 1:], [[0, 0], [0, 1]])  # [B, S]
    weights = tf.where(words[:, None, :], weights, -1.0)
    return tf.argmax(weights, axis=-1, output_type=tf.int32)  # of equals, the first: a lone EOS
