"""The attention of every head of every layer (Figures 3 to 5), and the alignment made of it.

Pure graph functions of what compiled_model.py computes for whole targets.
"""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from keras_transformer.search.compiled_model import Decoded, Encoded


class AttentionMaps(NamedTuple):
    """Attention weights; a row sums to 1 over its last axis, and is 0 at padding there.

    Row t of `decoder` and `memory` is what the decoder attended to when it predicted target token
    t. Its input there was token t - 1, so that column t of `decoder` is token t - 1, and column 0
    the BOS token. Rows of padding mean nothing.
    """

    encoder: tf.Tensor  # float32 [B, N, H, S, S]
    decoder: tf.Tensor  # float32 [B, N, H, T, T]
    memory: tf.Tensor  # float32 [B, N, H, T, S]


def attention_maps(encoded: Encoded, decoded: Decoded) -> AttentionMaps:
    """Collects the attention of all layers to given sources and targets."""
    return AttentionMaps(
        encoder=tf.stack(encoded.attention, axis=1),
        decoder=tf.stack(decoded.self_attention, axis=1),
        memory=tf.stack(decoded.cross_attention, axis=1),
    )


def alignment(memories: Sequence[tf.Tensor], source_mask: tf.Tensor) -> tf.Tensor:
    """Finds the source position that each target token comes from.

    It is the position with the largest weight in the attention to the memory, averaged over the
    heads of the last two layers, and over the models if there are several. In which layer row t is
    about token t the most differs: in the last layer but one for Garg et al. (2019), in the last
    layer of a small post-norm model, earlier in a pre-norm one.

    Args:
        memories: AttentionMaps.memory of each model.
        source_mask: bool [B, S], False at padding.

    Returns:
        int32 [B, T]. EOS is aligned to only where it is alone.
    """
    weights = sum(tf.reduce_mean(memory[:, -2:], axis=[1, 2]) for memory in memories)  # [B, T, S]
    # A token that another one follows is no EOS.
    words = tf.pad(source_mask[:, 1:], [[0, 0], [0, 1]])  # [B, S]
    weights = tf.where(words[:, None, :], weights, -1.0)
    return tf.argmax(weights, axis=-1, output_type=tf.int32)  # of equals, the first: a lone EOS
