"""Lexical constraints: phrases that a hypothesis must contain (Hokamp and Liu 2017).

So that there are such hypotheses, a step considers more extensions, and divides the beam among
those with more and with fewer tokens of their phrases: dynamic beam allocation (Post and Vilar
2018, section 3). Phrases are token ids, int32 [B, P, M], P and M at least 1, with padding after
each; one of padding alone is none. They may overlap, and one given twice may occur once.
"""

import tensorflow as tf

from keras_transformer.decoding.candidates import NONE, Extensions


def written(
    ids: tf.Tensor, position: tf.Tensor, phrases: tf.Tensor, pad_id: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Compares hypotheses, int32 [B, K, L], of which `position` tokens count, with their phrases.

    Gives int32 [B, K, P], how many tokens of each phrase there are: all where it occurs, otherwise
    those of its beginning that the hypothesis ends with; and bool [B, K, P], whether it occurs.
    """
    starts, is_padding = tf.range(tf.shape(ids)[2]), phrases == pad_id
    places = starts[:, None] + tf.range(tf.shape(phrases)[2])  # [L, M]
    windows = tf.gather(ids, tf.minimum(places, starts[-1]), axis=2)  # [B, K, L, M]
    same = windows[:, :, None] == phrases[:, None, :, None]  # [B, K, P, L, M]
    same |= is_padding[:, None, :, None] | (places >= position)
    lengths = tf.math.count_nonzero(~is_padding, axis=2, dtype=tf.int32)[:, None]  # [B, 1, P]
    found = tf.minimum(lengths[..., None], tf.maximum(position - starts, 0))  # [B, 1, P, L]
    counts = tf.reduce_max(tf.where(tf.reduce_all(same, axis=4), found, 0), axis=3)  # [B, K, P]
    return counts, counts == lengths


def with_required(
    free: Extensions, alive: tf.Tensor, logits: tf.Tensor, allowed: tf.Tensor, required: tf.Tensor
) -> Extensions:
    """Adds extensions by required tokens, int32 [B, P, K], places among the V or -1, and the best.

    The best are two of each hypothesis, as one may be EOS, in sentences with a required token. What
    is there already gets log-probability -inf, as others have for what is not in `allowed`.
    """
    batch, beams, vocab_size = tf.unstack(tf.shape(logits))
    best = tf.transpose(tf.math.top_k(allowed, 2).indices, [0, 2, 1])  # [B, 2, K]
    best = tf.where(tf.reduce_any(required >= 0, axis=[1, 2], keepdims=True), best, -1)
    tokens = tf.reshape(tf.concat([required, best], axis=1), [batch, -1])  # [B, (P + 2) K]
    exists, tokens = tokens >= 0, tf.maximum(tokens, 0)
    parents = tf.zeros_like(tokens) + tf.range(tf.shape(tokens)[1]) % beams
    places = parents * vocab_size + tokens
    log_probs = tf.gather(tf.reshape(allowed, [batch, -1]), places, batch_dims=1)
    log_probs -= tf.gather(tf.reduce_logsumexp(logits, axis=2), parents, batch_dims=1)
    log_probs = tf.minimum(log_probs, 0.0) + tf.gather(alive, parents, batch_dims=1)
    more = Extensions(tokens, parents, tf.where(exists, log_probs, NONE))
    every = Extensions(*[tf.concat(pair, axis=1) for pair in zip(free, more, strict=True)])
    keys = tf.where(every.log_probs > NONE, every.parents * vocab_size + every.tokens, -1)
    return every._replace(log_probs=tf.where(earlier_equals(keys) > 0, NONE, every.log_probs))


def allocated(
    counts: tf.Tensor, occurs: tf.Tensor, log_probs: tf.Tensor, beams: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """As tf.math.top_k, chooses K of C hypotheses by what is `written`, and by log-probability.

    A bank has hypotheses with as many tokens: of phrases that occur, and of one that is begun. The
    beam takes the best of each bank in turn, the fullest first: it gets a token more at each step.
    """
    banks = tf.reduce_sum(tf.where(occurs, counts, 0), axis=2)
    banks += tf.reduce_max(tf.where(occurs, 0, counts), axis=2)  # [B, C]
    log_probs, order = tf.math.top_k(log_probs, tf.shape(log_probs)[1])
    banks = tf.gather(banks, order, batch_dims=1)
    fullest = tf.reduce_max(banks, axis=1, keepdims=True)
    turns = earlier_equals(banks) * (fullest + 1) + fullest - banks
    _, chosen = tf.math.top_k(-tf.where(log_probs > NONE, turns, tf.int32.max), beams)
    return tf.gather(log_probs, chosen, batch_dims=1), tf.gather(order, chosen, batch_dims=1)


def earlier_equals(keys: tf.Tensor) -> tf.Tensor:
    """Counts the equals of each key that stand before it in its row: int32 [B, C]."""
    places = tf.range(tf.shape(keys)[1])
    equals = (keys[:, :, None] == keys[:, None]) & (places[:, None] > places)
    return tf.math.count_nonzero(equals, axis=2, dtype=tf.int32)
