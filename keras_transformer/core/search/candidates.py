"""Extensions of hypotheses by one token: the best ones, or forced ones.

All take the log probabilities of the alive hypotheses, float32 [B, K], and the logits for their
next tokens, float32 [B, K, V]. Missing hypotheses and their extensions have log probability -inf.
`banned`, int32 [N, 3], holds rows of sentence, hypothesis and token that are not chosen; the log
probabilities of other tokens stay the same.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_transformer.core.search.state import NONE


class Extensions(NamedTuple):
    """Each sentence's alive hypotheses extended by one token; C of them, best first."""

    tokens: tf.Tensor  # int32 [B, C], the new token of each
    parents: tf.Tensor  # int32 [B, C], the alive hypothesis that each extends
    log_probs: tf.Tensor  # float32 [B, C], for the whole hypothesis


def best_extensions(
    alive_log_probs: tf.Tensor, logits: tf.Tensor, count: int, banned: tf.Tensor | None = None
) -> Extensions:
    """Finds the `count` (C, at most K V) most probable extensions for each sentence.

    Only part of [B, K, V] is ranked: the best extensions are in the C blocks of logits with the
    largest maxima, which are fast to compute. Only these blocks are normalized.
    """
    _, beams, vocab_size = logits.shape
    width = block_width(vocab_size, beams, count)
    num_blocks = vocab_size // width  # N
    blocks = tf.reshape(logits, [-1, beams, num_blocks, width])  # [B, K, N, width]
    largest = tf.reduce_max(blocks, axis=3)  # [B, K, N]
    log_total = log_sum_exp(logits, blocks, largest)  # [B, K, 1]
    if banned is not None:
        blocks = tf.reshape(without(logits, banned), tf.shape(blocks))
        largest = tf.reduce_max(blocks, axis=3)  # [B, K, N]
    kept = min(count, beams * num_blocks)
    ranks = largest + (alive_log_probs[:, :, None] - log_total)
    _, best = tf.math.top_k(tf.reshape(ranks, [-1, beams * num_blocks]), kept)  # [B, kept]
    best = tf.sort(best, axis=1)  # to keep the order of ties, as in top_k
    parents = best // num_blocks
    blocks = tf.reshape(blocks, [-1, beams * num_blocks, width])  # [B, K N, width]
    best_blocks = tf.gather(blocks, best, batch_dims=1)  # [B, kept, width]
    # Rounding must not give a probability above 1: the bound that ends searches relies on it.
    token_log_probs = tf.minimum(best_blocks - tf.gather(log_total, parents, batch_dims=1), 0.0)
    log_probs = tf.gather(alive_log_probs, parents, batch_dims=1)[:, :, None] + token_log_probs
    log_probs, chosen = tf.math.top_k(tf.reshape(log_probs, [-1, kept * width]), count)  # [B, C]
    block = tf.gather(best, chosen // width, batch_dims=1)  # [B, C]
    return Extensions(
        tokens=(block * width + chosen % width) % vocab_size,
        parents=block // num_blocks,
        log_probs=log_probs,
    )


def largest_logits(logits: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Finds each hypothesis's largest logit, the first on ties.

    Block maxima are fast; tf.argmax over all logits takes twice as long.

    Args:
        logits: float32 [B, K, V].

    Returns:
        The tokens int32 [B, K], and the logits float32 [B, K].
    """
    _, beams, vocab_size = logits.shape
    width = block_width(vocab_size, beams, beams)
    blocks = tf.reshape(logits, [-1, beams, vocab_size // width, width])  # [B, K, N, width]
    best = tf.argmax(tf.reduce_max(blocks, axis=3), axis=2, output_type=tf.int32)  # [B, K]
    block = tf.gather(blocks, best, batch_dims=2)  # [B, K, width]
    column = tf.argmax(block, axis=2, output_type=tf.int32)  # [B, K]
    return best * width + column, tf.gather(block, column, batch_dims=2)


def log_sum_exp(logits: tf.Tensor, blocks: tf.Tensor, largest: tf.Tensor) -> tf.Tensor:
    """tf.reduce_logsumexp of logits [B, K, V]: [B, K, 1], given them in blocks and their maxima.

    Computed as the largest logit minus its log probability: oneDNN's softmax takes half the time of
    TensorFlow's exponentials and their sum.
    """
    top = tf.argmax(largest, axis=2, output_type=tf.int32)  # [B, K], a block
    probabilities = tf.reshape(tf.nn.softmax(logits), tf.shape(blocks))
    best = tf.reduce_max(tf.gather(probabilities, top, batch_dims=2), axis=2)  # [B, K]
    return (tf.gather(largest, top, batch_dims=2) - tf.math.log(best))[:, :, None]


def forced_extensions(
    alive_log_probs: tf.Tensor, logits: tf.Tensor, tokens: tf.Tensor, count: int
) -> Extensions:
    """Extends every hypothesis by a token of its own, int32 [B, K].

    Of the `count` extensions, those after the first K are missing.
    """
    beams = logits.shape[1]
    log_probs = tf.gather(logits, tokens, batch_dims=2) - tf.reduce_logsumexp(logits, axis=2)

    def widened(tensor, value):
        return tf.pad(tensor, [[0, 0], [0, count - beams]], constant_values=value)

    return Extensions(
        tokens=widened(tokens, 0),
        parents=widened(tf.zeros_like(tokens) + tf.range(beams), 0),
        log_probs=widened(alive_log_probs + log_probs, NONE),
    )


def without(logits: tf.Tensor, banned: tf.Tensor | None) -> tf.Tensor:
    """Returns the logits with -inf for `banned` tokens; None bans none."""
    if banned is None:
        return logits
    values = tf.fill(tf.shape(banned)[:1], NONE)
    return tf.tensor_scatter_nd_update(logits, banned, values)


def block_width(vocab_size: int, beams: int, count: int) -> int:
    """Returns the divisor V' of V that ranks the fewest: K V / V' maxima, then C V' numbers."""
    widths = [width for width in range(1, vocab_size + 1) if vocab_size % width == 0]
    return min(widths, key=lambda width: beams * vocab_size // width + count * width)
