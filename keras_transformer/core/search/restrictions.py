"""Restrictions on a search: minimum length, repeated n-grams, forbidden phrases.

Before each step, a restriction lists the tokens that must not extend an alive hypothesis. The log
probabilities of all others stay the model's own.

Tokens are forbidden after normalization, so log probabilities stay the model's own, as in fairseq.
Each step compares phrases from the start, without state, so hypotheses can be reordered, and
sentences can leave the batch. A phrase has the vocabulary's segmentation alone.
"""

import numpy as np
import tensorflow as tf

from keras_transformer.core.search.config import SearchSettings


def banned_logits(
    ids: tf.Tensor,
    position: tf.Tensor,
    max_lengths: tf.Tensor,
    settings: SearchSettings,
) -> tf.Tensor:
    """Finds the banned tokens.

    Args:
        ids: int32 [B, K, L], the alive hypotheses, without EOS.
        position: int32 scalar, the number of valid ids.
        max_lengths: int32 [B]; a hypothesis of this length may always end.
        settings: the search settings, with at least one restriction.

    Returns:
        int32 [N, 3], rows of sentence, hypothesis and token.
    """
    restricted = [
        too_short(ids, position, max_lengths, settings),
        repeated(ids, position, settings.options.no_repeat_ngram_size),
        forbidden(ids, position, settings.forbidden),
    ]
    tokens, banned = (tf.concat(parts, axis=2) for parts in zip(*restricted, strict=True))
    indices = tf.where(banned)  # [N, 3]
    tokens = tf.gather_nd(tokens, indices)  # [N]
    return tf.concat([tf.cast(indices[:, :2], tf.int32), tokens[:, None]], axis=1)


def too_short(
    ids: tf.Tensor, position: tf.Tensor, max_lengths: tf.Tensor, settings: SearchSettings
) -> tuple[tf.Tensor, tf.Tensor]:
    """Bans EOS before the minimum length: tokens int32, banned bool, [B, K, 1] each."""
    shortest = tf.minimum(min(settings.options.min_length, tf.int32.max), max_lengths)
    banned = tf.zeros_like(ids[:, :, :1]) + position + 1 < shortest[:, None, None]
    return tf.fill(tf.shape(banned), settings.eos_id), banned


def repeated(ids: tf.Tensor, position: tf.Tensor, size: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Bans tokens that followed an earlier occurrence of the last `size` - 1 tokens.

    Returns tokens int32 and banned bool, [B, K, L] each; with size 0, nothing is banned.
    """
    positions = tf.range(tf.shape(ids)[2])
    banned = tf.fill(tf.shape(ids), size > 0) & (positions >= size - 1) & (positions < position)
    for back in range(1, size):
        last = ids[:, :, tf.maximum(position - back, 0)]  # [B, K]
        banned &= tf.roll(ids, back, axis=2) == last[:, :, None]
    return ids, banned


def forbidden(
    ids: tf.Tensor, position: tf.Tensor, phrases: tuple[tuple[int, ...], ...]
) -> tuple[tf.Tensor, tf.Tensor]:
    """Bans the last token of each of P phrases, if the rest of it ends the hypothesis.

    Returns tokens int32, banned bool, [B, K, P] each.
    """
    longest = max(map(len, phrases), default=1)
    anything = -1
    beginnings = np.full([len(phrases), longest - 1], anything, "int32")  # [P, M]
    for row, phrase in zip(beginnings, phrases, strict=True):
        row[longest - len(phrase) :] = phrase[:-1]
    positions = position + tf.range(1 - longest, 0)  # [M]
    written = tf.gather(ids, tf.maximum(positions, 0), axis=2)  # [B, K, M]
    same = (written[:, :, None] == beginnings) & (positions >= 0)  # [B, K, P, M]
    banned = tf.reduce_all(same | (beginnings == anything), axis=3)  # [B, K, P]
    last_ids = tf.constant([phrase[-1] for phrase in phrases], tf.int32)
    return tf.broadcast_to(last_ids, tf.shape(banned)), banned
