"""What a search must not write: too short hypotheses, repeated n-grams, forbidden phrases.

A restriction says before each step by which tokens the alive hypotheses may not be extended. The
log-probabilities of all others stay the model's own.
"""

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.config import SearchSettings


def banned_logits(
    ids: tf.Tensor,
    position: tf.Tensor,
    max_lengths: tf.Tensor,
    settings: SearchSettings,
    token_of_logit: tf.Tensor | None = None,
) -> tf.Tensor:
    """Finds the logits of tokens that must not come next.

    Args:
        ids: int32 [B, K, L], of the alive hypotheses, without EOS.
        position: int32 scalar, how many of the L there are.
        max_lengths: int32 [B]; a hypothesis of this length may always end.
        settings: of the search; they have at least one restriction.
        token_of_logit: int32 [V], as `tokens` of `beam_search`.

    Returns:
        int32 [N, 3], rows of sentence, hypothesis and place among the V logits.
    """
    found = [
        too_short(ids, position, max_lengths, settings),
        repeated(ids, position, settings.options.no_repeat_ngram_size),
        forbidden(ids, position, settings.forbidden),
    ]
    tokens, banned = (tf.concat(parts, axis=2) for parts in zip(*found, strict=True))
    places = tf.where(banned)  # [N, 3]
    tokens = tf.gather_nd(tokens, places)  # [N]
    if token_of_logit is not None:
        last_ids = [settings.eos_id, *(phrase[-1] for phrase in settings.forbidden)]
        count = tf.maximum(tf.reduce_max(token_of_logit), max(last_ids)) + 1
        # The padding of a shortlist is one token several times: any of its places will do.
        logit_of_token = tf.tensor_scatter_nd_update(
            tf.fill(count[None], -1), token_of_logit[:, None], tf.range(tf.size(token_of_logit))
        )
        tokens = tf.gather(logit_of_token, tokens)  # -1 where a token has no logit
        has_logit = tokens >= 0
        places = places[has_logit]
        tokens = tokens[has_logit]
    return tf.concat([tf.cast(places[:, :2], tf.int32), tokens[:, None]], axis=1)


def too_short(
    ids: tf.Tensor, position: tf.Tensor, max_lengths: tf.Tensor, settings: SearchSettings
) -> tuple[tf.Tensor, tf.Tensor]:
    """EOS, before the shortest length there may be: tokens int32, banned bool, [B, K, 1] each."""
    shortest = tf.minimum(min(settings.options.min_length, tf.int32.max), max_lengths)
    banned = tf.zeros_like(ids[:, :, :1]) + position + 1 < shortest[:, None, None]
    return tf.fill(tf.shape(banned), settings.eos_id), banned


def repeated(ids: tf.Tensor, position: tf.Tensor, size: int) -> tuple[tf.Tensor, tf.Tensor]:
    """What once followed the last `size` - 1 tokens: tokens int32, banned bool, [B, K, L] each.

    Of size 0, nothing is banned.
    """
    places = tf.range(tf.shape(ids)[2])
    banned = tf.fill(tf.shape(ids), size > 0) & (places >= size - 1) & (places < position)
    for back in range(1, size):
        last = ids[:, :, tf.maximum(position - back, 0)]  # [B, K]
        banned &= tf.roll(ids, back, axis=2) == last[:, :, None]
    return ids, banned


def forbidden(
    ids: tf.Tensor, position: tf.Tensor, phrases: tuple[tuple[int, ...], ...]
) -> tuple[tf.Tensor, tf.Tensor]:
    """The last token of each of P phrases, where the rest of it was written just before.

    Returns tokens int32, banned bool, [B, K, P] each.
    """
    longest = max(map(len, phrases), default=1)
    anything = -1
    beginnings = np.full([len(phrases), longest - 1], anything, "int32")  # [P, M]
    for row, phrase in zip(beginnings, phrases, strict=True):
        row[longest - len(phrase) :] = phrase[:-1]
    places = position + tf.range(1 - longest, 0)  # [M]
    written = tf.gather(ids, tf.maximum(places, 0), axis=2)  # [B, K, M]
    same = (written[:, :, None] == beginnings) & (places >= 0)  # [B, K, P, M]
    banned = tf.reduce_all(same | (beginnings == anything), axis=3)  # [B, K, P]
    last_ids = tf.constant([phrase[-1] for phrase in phrases], tf.int32)
    return tf.broadcast_to(last_ids, tf.shape(banned)), banned
