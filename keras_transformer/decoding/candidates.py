"""Extensions of hypotheses by one token: the best, those a prefix forces, or random ones.

A hypothesis that does not exist has log-probability -inf, and so have its extensions.
"""

import dataclasses
import math
from typing import NamedTuple

import tensorflow as tf

from keras_transformer.errors import InputError

# The log-probability and the score of hypotheses that do not exist: slots not filled yet.
NONE = -math.inf


@dataclasses.dataclass(frozen=True)
class SamplingConfig:
    """How tokens are drawn at random."""

    temperature: float = 1.0  # logits are divided by it
    top_k: int = 0  # only the k most probable tokens; 0 for all
    top_p: float = 1.0  # only the most probable tokens that make up this probability
    seed: int = 1

    def __post_init__(self):
        if not 0 < self.temperature < math.inf:
            rule = "--temperature must be a positive number"
            raise InputError(f"{rule}. Received: {self.temperature}")
        if self.top_k < 0:
            raise InputError(f"--top_k must be at least 0. Received: {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise InputError(f"--top_p must be in (0, 1]. Received: {self.top_p}")


class Extensions(NamedTuple):
    """Alive hypotheses of each sentence, longer by one token; C of them, best first."""

    tokens: tf.Tensor  # int32 [B, C], the last token of each
    parents: tf.Tensor  # int32 [B, C], the alive hypothesis that each extends
    token_log_probs: tf.Tensor  # float32 [B, C], of the last token
    log_probs: tf.Tensor  # float32 [B, C], of the whole hypothesis


def best_extensions(alive_log_probs: tf.Tensor, logits: tf.Tensor, count: int) -> Extensions:
    """Finds the `count` most probable extensions of each sentence's alive hypotheses.

    Not all of [B, K, V] is ranked: the best C extensions lie in the C blocks of a row of logits
    that have the best maxima, and maxima are quickly had. Nor is all of it normalised.

    Args:
        alive_log_probs: float32 [B, K], those of the hypotheses.
        logits: float32 [B, K, V], of their next tokens.
        count: C, at most K V.
    """
    beams, vocab_size = logits.shape[1], logits.shape[2]
    width = block_width(vocab_size, beams, count)
    blocks = tf.reshape(logits, [-1, beams, vocab_size // width, width])  # [B, K, N, width]
    largest = tf.reduce_max(blocks, axis=3)  # [B, K, N]
    log_total = log_sum_exp(logits, tf.reduce_max(largest, axis=2, keepdims=True))  # [B, K, 1]
    shift = alive_log_probs[:, :, None] - log_total  # [B, K, 1]

    kept = min(count, beams * vocab_size // width)
    ranks = tf.reshape(largest + shift, [-1, beams * vocab_size // width])  # [B, K N]
    _, best = tf.math.top_k(ranks, kept)  # [B, kept]
    best = tf.sort(best, axis=1)  # so that of equals the first stays the first, as in top_k
    parents = best // (vocab_size // width)
    found = tf.gather(
        tf.reshape(blocks, [-1, beams * vocab_size // width, width]), best, batch_dims=1
    )  # [B, kept, width]
    log_totals = tf.gather(log_total, parents, batch_dims=1)  # [B, kept, 1]
    # Rounding must not make a token more probable than 1: the bound that ends searches needs that.
    token_log_probs = tf.minimum(found - log_totals, 0.0)
    log_probs = tf.gather(alive_log_probs, parents, batch_dims=1)[:, :, None] + token_log_probs

    def flat(tensor):
        return tf.reshape(tensor, [-1, kept * width])

    log_probs, chosen = tf.math.top_k(flat(log_probs), count)  # [B, C]
    block = tf.gather(best, chosen // width, batch_dims=1)
    return Extensions(
        tokens=(block * width + chosen % width) % vocab_size,
        parents=tf.gather(parents, chosen // width, batch_dims=1),
        token_log_probs=tf.gather(flat(token_log_probs), chosen, batch_dims=1),
        log_probs=log_probs,
    )


def forced_extensions(
    alive_log_probs: tf.Tensor, logits: tf.Tensor, tokens: tf.Tensor, count: int
) -> Extensions:
    """Extends every hypothesis of a sentence by the same token, the one given.

    Args:
        alive_log_probs: float32 [B, K].
        logits: float32 [B, K, V].
        tokens: int32 [B].
        count: C, at least K; there are no others than the first K.
    """
    beams = logits.shape[1]
    tokens = tf.repeat(tokens[:, None], beams, axis=1)  # [B, K]
    log_total = log_sum_exp(logits, tf.reduce_max(logits, axis=-1, keepdims=True))
    log_probs = (tf.gather(logits, tokens[:, :, None], batch_dims=2) - log_total)[:, :, 0]

    def widened(tensor, value):
        return tf.pad(tensor, [[0, 0], [0, count - beams]], constant_values=value)

    return Extensions(
        tokens=widened(tokens, 0),
        parents=widened(tf.zeros_like(tokens) + tf.range(beams), 0),
        token_log_probs=widened(log_probs, 0.0),
        log_probs=widened(alive_log_probs + log_probs, NONE),
    )


def sampled_extensions(
    alive_log_probs: tf.Tensor, logits: tf.Tensor, uniform: tf.Tensor, config: SamplingConfig
) -> Extensions:
    """Extends every hypothesis by one token drawn at random.

    Args:
        alive_log_probs: float32 [B, K].
        logits: float32 [B, K, V].
        uniform: float32 [B, K], random numbers in [0, 1).
        config: which tokens may be drawn.

    Returns:
        K extensions a sentence, with the model's own log-probabilities, whatever the temperature.
    """
    vocab_size = logits.shape[-1]
    ranked, ids = tf.math.top_k(logits, min(config.top_k or vocab_size, vocab_size))  # [B, K, R]
    log_total = log_sum_exp(logits, largest=ranked[:, :, :1])
    total = tf.cumsum(tf.nn.softmax(ranked / config.temperature), axis=-1)  # [B, K, R]
    # A token may be drawn as long as those before it do not make up top_p: the first always may.
    before = tf.pad(total[:, :, :-1], [[0, 0], [0, 0], [1, 0]])
    allowed = tf.cast(before < config.top_p, tf.int32)
    last = tf.reduce_sum(allowed, axis=-1, keepdims=True) - 1  # [B, K, 1]
    threshold = uniform[:, :, None] * tf.gather(total, last, batch_dims=2)
    passed = tf.reduce_sum(tf.cast(total <= threshold, tf.int32), axis=-1, keepdims=True)
    chosen = tf.minimum(passed, last)  # [B, K, 1]
    log_probs = (tf.gather(ranked, chosen, batch_dims=2) - log_total)[:, :, 0]
    beams = tf.range(tf.shape(logits)[1])
    return Extensions(
        tokens=tf.gather(ids, chosen, batch_dims=2)[:, :, 0],
        parents=tf.broadcast_to(beams, tf.shape(log_probs)),
        token_log_probs=log_probs,
        log_probs=alive_log_probs + log_probs,
    )


def block_width(vocab_size: int, beams: int, count: int) -> int:
    """The divisor V' of V that leaves the fewest numbers to rank.

    These are the maxima of all K V / V' blocks, and then the V' numbers of each of C blocks.
    """
    widths = [width for width in range(1, vocab_size + 1) if vocab_size % width == 0]
    return min(widths, key=lambda width: beams * vocab_size // width + count * width)


def log_sum_exp(logits: tf.Tensor, largest: tf.Tensor) -> tf.Tensor:
    """log of the sum of exp(logits) over the last axis, whose largest value is known already.

    Args:
        logits: float32 [..., V].
        largest: float32 [..., 1].

    Returns:
        float32 [..., 1].
    """
    total = tf.reduce_sum(tf.exp(logits - largest), axis=-1, keepdims=True)
    return tf.math.log(total) + largest
