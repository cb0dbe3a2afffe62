"""Beam search with a length penalty (section 6.1): the strategy that keeps the best hypotheses.

Hypotheses are ranked by length_penalty.py. Each step considers the 2K best one-token extensions of
a sentence's K alive hypotheses: at most K of them are EOS, so at least K hypotheses stay alive. A
sentence stops when no alive hypothesis can still enter its best `guaranteed`; with
`early_stopping`, when none could enter the best K at its current length.

With one beam the search is greedy: the only candidate is the most probable token, and EOS ends it.
"""

import tensorflow as tf

from keras_transformer.core.search.candidates import Extensions, best_extensions, forced_extensions
from keras_transformer.core.search.config import SearchSettings
from keras_transformer.core.search.hypotheses import Hypotheses
from keras_transformer.core.search.length_penalty import penalized
from keras_transformer.core.search.search_loop import Kept
from keras_transformer.core.search.state import (
    NONE,
    SearchState,
    choose,
    merged,
    only_existing,
    select,
    written,
)


class BeamSearch:
    """Finds the K best hypotheses; see search_loop.Strategy for its functions.

    Args:
        settings: the options, forbidden sequences and special ids.
        guaranteed: int32 scalar, how many of the hypotheses must be the best ones. The others are
            the best that were seen, not necessarily the best that exist.
        alpha: float32 scalar, the length penalty's.

    Its results are Hypotheses. If none ended in EOS within the maximum length, they are unfinished
    ones of that length. A sentence with a maximum length of 0 has the empty one, with score 0.
    """

    first_hypotheses = 1  # with which each sentence begins
    phrases = ()

    def __init__(self, settings: SearchSettings, guaranteed: tf.Tensor, alpha: tf.Tensor):
        self.settings = settings
        self.guaranteed = guaranteed
        self.alpha = alpha
        beams = settings.options.beam_size
        # C, the number of extensions that a step considers for each sentence. With 2K of them, at
        # least K are not EOS. Greedy search needs only the best one.
        self.candidates = 2 * beams if beams > 1 else 1

    def start(self, empty: Hypotheses) -> tuple[Hypotheses, Hypotheses]:
        is_first = tf.range(self.settings.options.beam_size) < self.first_hypotheses
        alive = empty._replace(log_prob=tf.where(is_first, empty.log_prob, NONE))
        none = tf.fill(tf.shape(empty.log_prob), NONE)
        length = tf.zeros(tf.shape(none), tf.int32)
        return alive, empty._replace(length=length, score=none, log_prob=none)

    def extend(self, state: SearchState, logits: tf.Tensor, banned: tf.Tensor | None) -> Extensions:
        return best_extensions(state.alive.log_prob, logits, self.candidates, banned)

    def forced(
        self,
        free: Extensions,
        state: SearchState,
        logits: tf.Tensor,
        tokens: tf.Tensor,
        is_forced: tf.Tensor,
    ) -> Extensions:
        tokens = tf.repeat(tokens, self.settings.options.beam_size, axis=1)  # [B, K]
        count = free.tokens.shape[1] or tf.shape(free.tokens)[1]  # C, with phrases any

        def with_forced():
            extensions = forced_extensions(state.alive.log_prob, logits, tokens, count)
            return choose(is_forced, extensions, free)

        return tf.cond(tf.reduce_any(is_forced), with_forced, lambda: free)

    def keep(self, state: SearchState, extensions: Extensions, source_positions: tf.Tensor) -> Kept:
        tokens, parents, log_probs = extensions  # [B, C] each
        alive, position = state.alive, state.position + 1
        ended = tokens == self.settings.eos_id  # [B, C]
        here = tf.range(tf.shape(alive.ids)[2]) == state.position  # [L]
        aligned = alive._replace(alignment=written(alive.alignment, here, source_positions))
        extended = select(aligned, parents)  # [B, C, ...]
        token_log_prob = log_probs - extended.log_prob
        extended = extended._replace(
            ids=tf.where(here, tokens[:, :, None], extended.ids),
            log_prob=log_probs,
            token_log_prob=written(extended.token_log_prob, here, token_log_prob),
        )
        length = tf.fill(tf.shape(tokens), position)
        scores = penalized(log_probs, tf.cast(position, tf.float32), self.alpha)
        scores = tf.where(ended, scores, NONE)
        alive_log_probs = tf.where(ended, NONE, log_probs)
        scores, alive_log_probs, best = self.choose(state, extended.ids, scores, alive_log_probs)
        finished = self.finish(state.finished, extended._replace(length=length, score=scores))
        alive = select(extended, best)._replace(log_prob=alive_log_probs)
        # Finished sentences keep their hypotheses until they leave.
        alive, finished = choose(state.running, (alive, finished), (state.alive, state.finished))
        longest = position if self.settings.options.early_stopping else state.max_lengths
        return Kept(
            alive=alive,
            finished=finished,
            last_ids=select(tokens, best),
            parents=select(parents, best),
            goes_on=self.can_improve(alive, finished, longest),
        )

    def choose(
        self, state: SearchState, ids: tf.Tensor, scores: tf.Tensor, log_probs: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Chooses the K extensions that stay alive.

        Args:
            state: the state before the step.
            ids: int32 [B, C, L], the extended hypotheses.
            scores: float32 [B, C], -inf unless they ended.
            log_probs: float32 [B, C], -inf if they ended.

        Returns:
            The scores, -inf for hypotheses that are not acceptable; the log probabilities of the
            chosen ones, float32 [B, K], and their indices, int32 [B, K].
        """
        log_probs, best = tf.math.top_k(log_probs, self.settings.options.beam_size)
        return scores, log_probs, best

    def finish(self, finished: Hypotheses, new: Hypotheses) -> Hypotheses:
        """Returns which finished hypotheses are kept.

        Args:
            finished: those so far.
            new: the extensions of a step, [B, C, L], with score -inf unless they ended.
        """
        return merged(finished, new, self.settings.options.beam_size)

    def can_improve(self, alive: Hypotheses, finished: Hypotheses, longest: tf.Tensor) -> tf.Tensor:
        """Whether an extension of an alive hypothesis could enter the best finished: bool [B].

        Log probabilities are at most 0 and only decrease, and the penalty grows with the length
        (alpha is not negative): no extension of at most `longest` tokens, int32 [B] or a scalar,
        scores above log P(best alive) / lp(longest). It must beat the last of the best
        `guaranteed`, which is -inf while there are fewer.

        With the maximum length, no better hypothesis is missed. `early_stopping` uses the current
        length and all K finished hypotheses, the default rule in Hugging Face's search: a longer
        hypothesis that would win by the length penalty may be lost.
        """
        options = self.settings.options
        rank = options.beam_size if options.early_stopping else self.guaranteed
        best_alive = tf.reduce_max(alive.log_prob, axis=1)  # [B]
        bound = penalized(best_alive, tf.cast(longest, tf.float32), self.alpha)
        # XLA would compile a slice anew for each rank.
        return bound > tf.gather(finished.score, rank - 1, axis=1)

    def results(self, state: SearchState) -> Hypotheses:
        """Returns each sentence's finished hypotheses, or its alive ones if it has none."""
        alive = state.alive
        length = tf.broadcast_to(state.max_lengths[:, None], tf.shape(alive.log_prob))
        score = penalized(alive.log_prob, tf.cast(length, tf.float32), self.alpha)
        return self.existing(state.finished, alive._replace(length=length, score=score))

    def existing(self, finished: Hypotheses, unfinished: Hypotheses) -> Hypotheses:
        """Returns each sentence's finished hypotheses, or the unfinished ones if it has none."""
        best = choose(finished.score[:, 0] > NONE, finished, unfinished)
        return only_existing(best, self.settings.pad_id)
