"""Sampling: the strategy that extends each hypothesis by a random token."""

import tensorflow as tf

from keras_transformer.core.search.beam_search import BeamSearch
from keras_transformer.core.search.candidates import Extensions, forced_extensions, without
from keras_transformer.core.search.config import SamplingConfig, SearchSettings
from keras_transformer.core.search.state import NONE, SearchState


class Sampling(BeamSearch):
    """Samples K hypotheses for each sentence.

    Args:
        settings: as for BeamSearch, with the options of sampling.
        alpha: as for BeamSearch.
    """

    def __init__(self, settings: SearchSettings, alpha: tf.Tensor):
        samples = settings.options.beam_size
        super().__init__(settings, samples, alpha)  # so all samples are completed
        self.first_hypotheses = samples

    def extend(self, state: SearchState, logits: tf.Tensor, banned: tf.Tensor | None) -> Extensions:
        settings, config = self.settings, self.settings.options.sampling
        ids = tf.range(logits.shape[-1])
        is_special = (ids == settings.pad_id) | (ids == settings.bos_id)
        choices = tf.where(is_special, NONE, without(logits, banned))
        uniform = uniform_numbers(state, config.seed, settings.options.beam_size)
        return sampled_extensions(state.alive.log_prob, logits, choices, uniform, config)


def uniform_numbers(state: SearchState, seed: int, samples: int) -> tf.Tensor:
    """Draws a number in [0, 1) for each hypothesis: float32 [B, K].

    A sentence gets the same numbers whichever other sentences are still running.
    """
    sentences = tf.reduce_max(state.sentences) + 1
    numbers = tf.random.stateless_uniform([sentences, samples], tf.stack([seed, state.position]))
    return tf.gather(numbers, state.sentences)


def sampled_extensions(
    alive_log_probs: tf.Tensor,
    logits: tf.Tensor,
    choices: tf.Tensor,
    uniform: tf.Tensor,
    config: SamplingConfig,
) -> Extensions:
    """Extends every hypothesis by a token sampled with a random number in [0, 1), float32 [B, K].

    `choices` are the logits, with -inf for banned tokens. A hypothesis without choices ends with
    log probability -inf. The other log probabilities are the model's, at any temperature.
    """
    vocab_size = logits.shape[-1]
    has_choice = tf.reduce_max(choices, axis=-1) > NONE  # [B, K]
    alive_log_probs = tf.where(has_choice, alive_log_probs, NONE)
    ranked, ids = tf.math.top_k(choices, min(config.top_k or vocab_size, vocab_size))  # [B, K, R]
    total = tf.cumsum(tf.nn.softmax(ranked / config.temperature), axis=-1)  # [B, K, R]
    # A token may be sampled if those before it sum to less than top_p; the first always may.
    before = tf.pad(total[:, :, :-1], [[0, 0], [0, 0], [1, 0]])
    allowed = tf.cast(before < config.top_p, tf.int32)
    last = tf.reduce_sum(allowed, axis=-1, keepdims=True) - 1  # [B, K, 1]
    threshold = uniform[:, :, None] * tf.gather(total, last, batch_dims=2)
    passed = tf.reduce_sum(tf.cast(total <= threshold, tf.int32), axis=-1, keepdims=True)
    tokens = tf.gather(ids, tf.minimum(passed, last), batch_dims=2)[:, :, 0]  # [B, K]
    return forced_extensions(alive_log_probs, logits, tokens, count=logits.shape[1])
