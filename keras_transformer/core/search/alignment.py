"""The attention of every head in every layer (Figures 3 to 5), and the alignment derived from it.

Pure graph functions.
"""

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf


class AttentionMaps(NamedTuple):
    """Attention weights; a row sums to 1 over its last axis, and is 0 at padding there.

    Row t of `decoder` and `memory` holds the weights used when predicting target token t. Column t
    of `decoder` is the decoder's input there: token t - 1, or BOS for t = 0. Padding rows are
    meaningless.
    """

    encoder: tf.Tensor  # float32 [B, N, H, S, S]
    decoder: tf.Tensor  # float32 [B, N, H, T, T]
    memory: tf.Tensor  # float32 [B, N, H, T, S]


def alignment(cross_attention: Sequence[Sequence[tf.Tensor]], source_mask: tf.Tensor) -> tf.Tensor:
    """Finds the source position that each target token comes from.

    It is the position with the largest weight in the attention to the memory, averaged over the
    heads of the last two layers, and over the models if there are several. The layer whose row t
    best reflects token t differs: the last but one for Garg et al. (2019), the last in a small
    post-norm model, an earlier one in a pre-norm model.

    Args:
        cross_attention: for each model, the weights of each layer, float32 [B, H, P, S], at all
            positions of a target, or at one position for all beams.
        source_mask: bool [B, S], False at padding.

    Returns:
        int32 [B, P]. Only tokens of empty sources are aligned to EOS.
    """
    means = [
        tf.reduce_mean(tf.add_n(layers[-2:]), axis=1) / len(layers[-2:])
        for layers in cross_attention
    ]
    # A token followed by another one is not EOS.
    words = tf.pad(source_mask[:, 1:], [[0, 0], [0, 1]])  # [B, S]
    weights = tf.where(words[:, None, :], tf.add_n(means), -1.0)  # [B, P, S]
    return tf.argmax(weights, axis=-1, output_type=tf.int32)  # the first on ties: a lone EOS
