"""Beam search for several length penalties at once, from which evaluation chooses one.

Which hypotheses stay alive depends on their log probabilities alone. The length penalty's alpha
only ranks finished ones, and decides when the search of a sentence ends. So one search, which goes
on until it can end for every alpha, finds the best hypothesis for each: the same that a search with
this alpha finds.
"""

import dataclasses

import tensorflow as tf

from keras_transformer.core.search.beam_search import BeamSearch
from keras_transformer.core.search.config import SearchSettings
from keras_transformer.core.search.hypotheses import Hypotheses
from keras_transformer.core.search.length_penalty import penalized
from keras_transformer.core.search.state import SearchState, select


class AlphaSearch(BeamSearch):
    """Finds the best hypothesis for each alpha; see search_loop.Strategy for its functions.

    Args:
        settings: the options, forbidden sequences and special ids. Their early_stopping, which
            looks at more than the best hypothesis, is ignored.
        alphas: float32 [A].

    Its results are Hypotheses [B, A], in the order of `alphas`.
    """

    def __init__(self, settings: SearchSettings, alphas: tf.Tensor):
        options = dataclasses.replace(settings.options, early_stopping=False)
        # With alpha 0, the score of an extension is its log probability.
        super().__init__(settings._replace(options=options), tf.constant(1), tf.constant(0.0))
        self.alphas = alphas

    def start(self, empty: Hypotheses) -> tuple[Hypotheses, Hypotheses]:
        alive, finished = super().start(empty)
        return alive, self._for_each(finished)

    def finish(self, finished: Hypotheses, new: Hypotheses) -> Hypotheses:
        # All of them have the same length, so the most probable one is the best for each alpha.
        best = tf.argmax(new.score, axis=1, output_type=tf.int32)[:, None]  # [B, 1]
        new = self._for_each(select(new, best))
        new = new._replace(score=self._penalized(new.score, new.length))
        is_better = new.score > finished.score  # [B, A]

        def better(one, other):
            condition = is_better[:, :, None] if one.shape.rank == 3 else is_better
            return tf.where(condition, one, other)

        return tf.nest.map_structure(better, new, finished)

    def can_improve(self, alive: Hypotheses, finished: Hypotheses, longest: tf.Tensor) -> tf.Tensor:
        best_alive = tf.reduce_max(alive.log_prob, axis=1)[:, None]  # [B, 1]
        bound = self._penalized(best_alive, longest[:, None])  # [B, A]
        return tf.reduce_any(bound > finished.score, axis=1)

    def results(self, state: SearchState) -> Hypotheses:
        alive = state.alive
        length = tf.broadcast_to(state.max_lengths[:, None], tf.shape(alive.log_prob))
        best = self._for_each(alive._replace(length=length))
        score = self._penalized(best.log_prob, best.length)
        return self.existing(state.finished, best._replace(score=score))

    def _for_each(self, hypotheses: Hypotheses) -> Hypotheses:
        """Repeats each sentence's first hypothesis for every alpha: [B, A, ...]."""
        count = tf.size(self.alphas)
        return tf.nest.map_structure(lambda part: tf.repeat(part[:, :1], count, axis=1), hypotheses)

    def _penalized(self, log_probs: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
        return penalized(log_probs, tf.cast(lengths, tf.float32), self.alphas)
