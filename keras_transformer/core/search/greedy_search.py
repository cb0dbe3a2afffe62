"""Greedy search: the strategy that takes the most probable token at each step, without scores.

It finds the same hypothesis as BeamSearch with one beam, in less time: tokens are chosen by their
logits, without normalization, and there is only one hypothesis, so nothing is ranked.
"""

import tensorflow as tf

from keras_transformer.core.search.candidates import Extensions, largest_logits, without
from keras_transformer.core.search.config import SearchSettings
from keras_transformer.core.search.hypotheses import Hypotheses
from keras_transformer.core.search.matrices import ScaledRows
from keras_transformer.core.search.search_loop import Kept
from keras_transformer.core.search.state import NONE, SearchState, written


class GreedySearch:
    """Finds one hypothesis for each sentence; see search_loop.Strategy for its functions.

    Its results are Hypotheses, K = 1, without scores. In place of log probabilities, it sums the
    logits of the chosen tokens: the sum is -inf if no token was allowed, and NaN if a logit was.
    """

    phrases = ()

    def __init__(self, settings: SearchSettings):
        self.settings = settings

    def start(self, empty: Hypotheses) -> tuple[Hypotheses, tuple[()]]:
        return empty._replace(token_log_prob=()), ()

    def extend(
        self, state: SearchState, logits: ScaledRows, banned: tf.Tensor | None
    ) -> Extensions:
        values = without(logits.values[:, None], banned)  # [B, 1, V]
        tokens, largest = largest_logits(values)  # [B, 1] each; scaling a row keeps its argmax
        return Extensions(
            tokens=tokens,
            parents=tf.zeros_like(tokens),
            log_probs=state.alive.log_prob + largest * logits.scales,
        )

    def forced(
        self,
        free: Extensions,
        state: SearchState,
        logits: ScaledRows,
        tokens: tf.Tensor,
        is_forced: tf.Tensor,
    ) -> Extensions:
        # Restrictions do not apply in a prefix, so its tokens are always allowed.
        return free._replace(
            tokens=tf.where(is_forced, tokens, free.tokens),
            log_probs=tf.where(is_forced, state.alive.log_prob, free.log_probs),
        )

    def keep(self, state: SearchState, extensions: Extensions, source_positions: tf.Tensor) -> Kept:
        tokens, parents, total = extensions  # [B, 1] each
        alive = state.alive
        is_here = tf.range(tf.shape(alive.ids)[2]) == state.position  # [L]
        # Finished sentences keep their hypotheses until they leave.
        is_written = is_here & state.running[:, None, None]  # [B, 1, L]
        kept = alive._replace(
            ids=tf.where(is_written, tokens[:, :, None], alive.ids),
            log_prob=tf.where(state.running[:, None], total, alive.log_prob),
            alignment=written(alive.alignment, is_written, source_positions),
        )
        goes_on = (tokens != self.settings.eos_id) & (total != NONE)  # [B, 1]
        return Kept(kept, (), tokens, parents, goes_on[:, 0])

    def results(self, state: SearchState) -> Hypotheses:
        alive = state.alive
        is_end = alive.ids == self.settings.eos_id  # [B, 1, L]
        until_end = tf.argmax(is_end, axis=2, output_type=tf.int32) + 1  # [B, 1]
        lengths = tf.where(tf.reduce_any(is_end, axis=2), until_end, state.max_lengths[:, None])
        exists = alive.log_prob != NONE  # [B, 1]
        return alive._replace(
            ids=tf.where(exists[:, :, None], alive.ids, self.settings.pad_id),
            length=tf.where(exists, lengths, 0),
            log_prob=(),
            is_finite=~tf.math.is_nan(alive.log_prob),
        )
