"""The attention of every head in every layer (Figures 3 to 5), and the alignment derived from it.

Pure graph functions over the output of compiled_model.py for whole targets.
"""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from keras_transformer.search.compiled_model import Decoded, Encoded


class AttentionMaps(NamedTuple):
    """Attention weights; a row sums to 1 over its last axis, and is 0 at padding there.

    Row t of `decoder` and `memory` holds the weights used when predicting target token t. Column t
    of `decoder` is the decoder's input there: token t - 1, or BOS for t = 0. Padding rows are
    meaningless.
    """

    encoder: tf.Tensor  # float32 [B, N, H, S, S]
    decoder: tf.Tensor  # float32 [B, N, H, T, T]
    memory: tf.Tensor  # float32 [B, N, H, T, S]


def attention_maps(encoded: Encoded, decoded: Decoded) -> AttentionMaps:
    """Collects the attention of all layers for given sources and targets."""
    return AttentionMaps(
        encoder=tf.stack(encoded.attention, axis=1),
        decoder=tf.stack(decoded.self_attention, axis=1),
        memory=tf.stack(decoded.cross_attention, axis=1),
    )


def alignment(memories: Sequence[tf.Tensor], source_mask: tf.Tensor) -> tf.Tensor:
    """Finds the source position that each target token comes from.

    It is the position with the largest weight in the attention to the memory, averaged over the
    heads of the last two layers, and over the models if there are several. The layer whose row t
    best reflects token t differs: the last but one for Garg et al. (2019), the last in a small
    post-norm model, an earlier one in a pre-norm model.

    Args:
        memories: each model's AttentionMaps.memory.
        source_mask: bool [B, S], False at padding.

    Returns:
        int32 [B, T]. Only tokens of empty sources are aligned to EOS.
    """
    weights = sum(tf.reduce_mean(memory[:, -2:], axis=[1, 2]) for memory in memories)  # [B, T, S]
    # A token followed by another one is not EOS.
    words = tf.pad(source_mask[:, 1:], [[0, 0], [0, 1]])  # [B, S]
    weights = tf.where(words[:, None, :], weights, -1.0)
    return tf.argmax(weights, axis=-1, output_type=tf.int32)  # the first on ties: a lone EOS
