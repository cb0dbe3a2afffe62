"""Lexical constraints: phrases that a hypothesis must contain (Hokamp and Liu 2017).

Used for the sentences for which an unconstrained search misses a phrase (beam_search.py). To
produce hypotheses with the phrases, a step considers more extensions, and divides the beam among
hypotheses that have more or fewer tokens of their phrases: dynamic beam allocation (Post and Vilar
2018, section 3). Phrases are token ids, int32 [B, P, M], padded, P and M at least 1; all padding
means no phrase. They may overlap, and a phrase given twice need only occur once.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_transformer.search.candidates import NONE, Extensions


class PhraseProgress(NamedTuple):
    """The progress of hypotheses towards their phrases."""

    # How many tokens of each phrase a hypothesis has: all if the phrase occurs, otherwise the
    # length of the phrase's longest prefix that ends the hypothesis.
    counts: tf.Tensor  # int32 [B, K, P]
    occurs: tf.Tensor  # bool [B, K, P], whether a phrase occurs


def phrase_progress(
    ids: tf.Tensor, position: tf.Tensor, phrases: tf.Tensor, pad_id: int
) -> PhraseProgress:
    """Compares hypotheses with their sentence's phrases.

    Args:
        ids: int32 [B, K, L], of which the first `position` tokens are valid.
        position: int32 scalar.
        phrases: int32 [B, P, M], padded.
        pad_id: the id of padding.

    Example:
        The hypothesis 7 5 8 5 contains the phrase 5 8, and ends with the beginning of 5 9.

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
    # Unlike ==, tf.equal keeps the rank if L is not known yet.
    same = tf.equal(windows[:, :, None], phrases[:, None, :, None])  # [B, K, P, L, M]
    same |= is_padding[:, None, :, None] | (places >= position)
    begins_here = tf.reduce_all(same, axis=4)  # [B, K, P, L]
    lengths = tf.math.count_nonzero(~is_padding, axis=2, dtype=tf.int32)[:, None]  # [B, 1, P]
    written = tf.maximum(position - starts, 0)  # [L], the number of tokens from each place
    found = tf.minimum(lengths[..., None], written)  # [B, 1, P, L]
    counts = tf.reduce_max(tf.where(begins_here, found, 0), axis=3)  # [B, K, P]
    return PhraseProgress(counts, counts == lengths)


def add_required(
    free: Extensions, alive: tf.Tensor, logits: tf.Tensor, allowed: tf.Tensor, required: tf.Tensor
) -> Extensions:
    """Adds extensions by required tokens, and by each hypothesis's best two tokens.

    Two, as one of them may be EOS; and only for sentences with a required token.

    Args:
        free: the extensions without regard to phrases.
        alive: float32 [B, K], log probabilities of the hypotheses to extend.
        logits: float32 [B, K, V].
        allowed: the same, with -inf for banned tokens.
        required: int32 [B, P, K], tokens, or -1 for none.

    Returns:
        `free` and the others. Duplicates of `free` and banned ones have log probability -inf.
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
    """Chooses K of C hypotheses by progress and log probability, in the form of tf.math.top_k.

    A bank contains the hypotheses with the same number of phrase tokens: those of complete phrases
    and of one begun phrase. The beam takes the best of each bank in turn, starting with the bank
    that has the most tokens, which gains a token at each step.

    Args:
        progress: the progress of the C hypotheses, [B, C, P] each.
        log_probs: float32 [B, C].
        beams: K.

    Returns:
        The log probabilities of the chosen hypotheses, float32 [B, K], and their indices, int32.

    Example:
        Four hypotheses have 0, 2, 2 and 1 tokens of their only phrase, which has three tokens.
        There is room for three: one from each bank precedes the second one with two tokens.

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
    """Counts the earlier occurrences of each key in its row: int32 [B, C].

    Example:
        >>> earlier_equals(tf.constant([[3, 1, 3, 3]])).numpy().tolist()
        [[0, 0, 1, 2]]
    """
    places = tf.range(tf.shape(keys)[1])
    equals = (keys[:, :, None] == keys[:, None]) & (places[:, None] > places)
    return tf.math.count_nonzero(equals, axis=2, dtype=tf.int32)
