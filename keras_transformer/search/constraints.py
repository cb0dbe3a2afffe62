"""Lexical constraints: phrases that a hypothesis must contain (Hokamp and Liu 2017).

The search comes here for the sentences whose phrases it does not find by itself (beam_search.py).
So that there are hypotheses with them, a step considers more extensions, and divides the beam among
those with more and with fewer tokens of their phrases: dynamic beam allocation (Post and Vilar
2018, section 3). Phrases are token ids, int32 [B, P, M], P and M at least 1, with padding after
each; one of padding alone is none. They may overlap, and one given twice may occur once.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_transformer.search.candidates import NONE, Extensions


class PhraseProgress(NamedTuple):
    """How far hypotheses have come with their phrases."""

    # How many tokens of each phrase a hypothesis has: all where the phrase occurs, otherwise
    # those of its beginning that the hypothesis ends with.
    counts: tf.Tensor  # int32 [B, K, P]
    occurs: tf.Tensor  # bool [B, K, P], whether a phrase occurs


def phrase_progress(
    ids: tf.Tensor, position: tf.Tensor, phrases: tf.Tensor, pad_id: int
) -> PhraseProgress:
    """Compares hypotheses with the phrases of their sentence.

    Args:
        ids: int32 [B, K, L], of which the first `position` tokens count.
        position: int32 scalar.
        phrases: int32 [B, P, M], padded.
        pad_id: of the padding.

    Example:
        The hypothesis 7 5 8 5 has all of the phrase 5 8, and ends with the beginning of 5 9.

        >>> ids = tf.constant([[[7, 5, 8, 5]]])
        >>> phrases = tf.constant([[[5, 8], [5, 9]]])
        >>> progress = phrase_progress(ids, tf.constant(4), phrases, pad_id=0)
        >>> progress.counts.numpy().tolist(), progress.occurs.numpy().tolist()
        ([[[2, 1]]], [[[True, False]]])
    """
    is_padding = phrases == pad_id  # [B, P, M]
    starts = tf.range(tf.shape(ids)[2])  # [L], where a phrase may begin
    places = starts[:, None] + tf.range(tf.shape(phrases)[2])  # [L, M]
    windows = tf.gather(ids, tf.minimum(places, starts[-1]), axis=2)  # [B, K, L, M]
    # Unlike ==, tf.equal keeps the rank where L is not known yet.
    same = tf.equal(windows[:, :, None], phrases[:, None, :, None])  # [B, K, P, L, M]
    same |= is_padding[:, None, :, None] | (places >= position)
    begins_here = tf.reduce_all(same, axis=4)  # [B, K, P, L]
    lengths = tf.math.count_nonzero(~is_padding, axis=2, dtype=tf.int32)[:, None]  # [B, 1, P]
    written = tf.maximum(position - starts, 0)  # [L], the tokens from each place on
    found = tf.minimum(lengths[..., None], written)  # [B, 1, P, L]
    counts = tf.reduce_max(tf.where(begins_here, found, 0), axis=3)  # [B, K, P]
    return PhraseProgress(counts, counts == lengths)


def add_required(
    free: Extensions, alive: tf.Tensor, logits: tf.Tensor, allowed: tf.Tensor, required: tf.Tensor
) -> Extensions:
    """Adds extensions by required tokens, and by the best two tokens of each hypothesis.

    Two, as one of them may be EOS; and only in sentences with a required token.

    Args:
        free: what the search considers without phrases.
        alive: float32 [B, K], log-probabilities of the hypotheses that are extended.
        logits: float32 [B, K, V].
        allowed: the same, -inf for tokens that must not come next.
        required: int32 [B, P, K], tokens, or -1 for none.

    Returns:
        `free` and the others. Those that are in `free` already have log-probability -inf, and so
        have those that are not allowed.
    """
    batch, beams, vocab_size = tf.unstack(tf.shape(logits))
    best = tf.transpose(tf.math.top_k(allowed, 2).indices, [0, 2, 1])  # [B, 2, K]
    best = tf.where(tf.reduce_any(required >= 0, axis=[1, 2], keepdims=True), best, -1)
    tokens = tf.reshape(tf.concat([required, best], axis=1), [batch, -1])  # [B, (P + 2) K]
    exists = tokens >= 0
    tokens = tf.maximum(tokens, 0)
    parents = tf.zeros_like(tokens) + tf.range(tf.shape(tokens)[1]) % beams
    places = parents * vocab_size + tokens
    log_probs = tf.gather(tf.reshape(allowed, [batch, -1]), places, batch_dims=1)
    log_probs -= tf.gather(tf.reduce_logsumexp(logits, axis=2), parents, batch_dims=1)
    log_probs = tf.minimum(log_probs, 0.0) + tf.gather(alive, parents, batch_dims=1)
    more = Extensions(tokens, parents, tf.where(exists, log_probs, NONE))
    every = Extensions(*[tf.concat(pair, axis=1) for pair in zip(free, more, strict=True)])
    keys = tf.where(every.log_probs > NONE, every.parents * vocab_size + every.tokens, -1)
    return every._replace(log_probs=tf.where(earlier_equals(keys) > 0, NONE, every.log_probs))


def allocate_beam(
    progress: PhraseProgress, log_probs: tf.Tensor, beams: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Chooses K of C hypotheses by their progress and by log-probability, as tf.math.top_k would.

    A bank has the hypotheses with the same number of tokens of their phrases: of those that occur,
    and of one that is begun. The beam takes the best of each bank in turn, the fullest bank first:
    it gets a token more at each step.

    Args:
        progress: of the C hypotheses, [B, C, P] each.
        log_probs: float32 [B, C].
        beams: K.

    Returns:
        The log-probabilities of the chosen hypotheses, float32 [B, K], and their places, int32.

    Example:
        Four hypotheses have 0, 2, 2 and 1 tokens of their only phrase, of three tokens. There is
        room for three: one of each bank comes before the second one with two tokens.

        >>> counts = tf.constant([[[0], [2], [2], [1]]])
        >>> progress = PhraseProgress(counts, counts == 3)
        >>> log_probs = tf.constant([[-1.0, -4.0, -5.0, -6.0]])
        >>> chosen, places = allocate_beam(progress, log_probs, beams=3)
        >>> places.numpy().tolist(), chosen.numpy().tolist()
        ([[1, 3, 0]], [[-4.0, -6.0, -1.0]])
    """
    complete_tokens = tf.where(progress.occurs, progress.counts, 0)
    begun_tokens = tf.where(progress.occurs, 0, progress.counts)
    banks = tf.reduce_sum(complete_tokens, axis=2) + tf.reduce_max(begun_tokens, axis=2)  # [B, C]
    log_probs, order = tf.math.top_k(log_probs, tf.shape(log_probs)[1])
    banks = tf.gather(banks, order, batch_dims=1)
    fullest = tf.reduce_max(banks, axis=1, keepdims=True)
    turns = earlier_equals(banks) * (fullest + 1) + fullest - banks
    _, chosen = tf.math.top_k(-tf.where(log_probs > NONE, turns, tf.int32.max), beams)
    return tf.gather(log_probs, chosen, batch_dims=1), tf.gather(order, chosen, batch_dims=1)


def earlier_equals(keys: tf.Tensor) -> tf.Tensor:
    """Counts the equals of each key that stand before it in its row: int32 [B, C].

    Example:
        >>> earlier_equals(tf.constant([[3, 1, 3, 3]])).numpy().tolist()
        [[0, 0, 1, 2]]
    """
    places = tf.range(tf.shape(keys)[1])
    equals = (keys[:, :, None] == keys[:, None]) & (places[:, None] > places)
    return tf.math.count_nonzero(equals, axis=2, dtype=tf.int32)
