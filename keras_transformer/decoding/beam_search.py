"""Beam search with a length penalty (section 6.1), as pure functions over a step function.

The search knows neither the model nor the text: `step_fn` gives the logits of the next token of
every beam, and the cache is whatever nested structure of tensors the step function keeps. A
hypothesis Y, its EOS counted, scores

    log P(Y) / lp(Y),    lp(Y) = ((5 + |Y|) / 6)^alpha     (Wu et al. 2016, equation 14).

Each step extends the K alive hypotheses of a sentence by the 2K best tokens: at most K of them are
EOS, so that at least K hypotheses stay alive whatever finishes. A sentence stops at its maximum
length, or when no alive hypothesis can still enter its set of K finished ones. What it returns then
never changes, however long the rest of its batch goes on.

With one beam the search is greedy: the only candidate is the most probable token, and EOS ends it.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from keras_transformer.config import BOS_ID, EOS_ID, PAD_ID
from keras_transformer.errors import InputError

# step_fn(ids int32 [B, K], cache, position int32 scalar) -> (logits float32 [B, K, V], cache)
StepFunction = Callable[[tf.Tensor, Any, tf.Tensor], tuple[tf.Tensor, Any]]

# The log-probability and the score of hypotheses that do not exist: slots not filled yet.
NONE = -math.inf


@dataclasses.dataclass(frozen=True)
class BeamSearchConfig:
    """What decides the outcome of a search, given the probabilities."""

    beam_size: int = 4  # K, section 6.1; 1 is greedy search
    alpha: float = 0.6  # length penalty, section 6.1; 0 ranks by log-probability
    bos_id: int = BOS_ID  # the first input of every hypothesis, not a part of it
    eos_id: int = EOS_ID  # ends a hypothesis, and counts in its length
    pad_id: int = PAD_ID  # fills up what is returned

    def __post_init__(self):
        if self.beam_size < 1:
            raise InputError(f"--beam_size must be at least 1. Received: {self.beam_size}")
        # Not `alpha < 0`: NaN compares false with everything.
        if not 0 <= self.alpha < math.inf:
            raise InputError(f"--alpha must be a number of at least 0. Received: {self.alpha}")

    @property
    def candidates(self) -> int:
        """Extensions considered at a step for each sentence."""
        return 1 if self.beam_size == 1 else 2 * self.beam_size


class Hypotheses(NamedTuple):
    """The result, for each sentence its K best hypotheses, best first.

    Where a sentence has fewer than K, the last ones have score -inf and length 0. Where none ended
    in EOS within the maximum length, unfinished ones of that length are given.
    """

    ids: tf.Tensor  # int32 [B, K, T], with EOS, padded to the longest
    lengths: tf.Tensor  # int32 [B, K], EOS counted
    scores: tf.Tensor  # float32 [B, K], log-probability / length penalty
    log_probs: tf.Tensor  # float32 [B, K], natural logarithm


class Alive(NamedTuple):
    """Hypotheses without EOS, all of the same length, best first."""

    ids: tf.Tensor  # int32 [B, K, L], padded to the largest maximum length
    log_probs: tf.Tensor  # float32 [B, K]


class Finished(NamedTuple):
    """The best hypotheses with EOS so far, best first."""

    ids: tf.Tensor  # int32 [B, K, L], padded to the largest maximum length
    lengths: tf.Tensor  # int32 [B, K], EOS counted
    scores: tf.Tensor  # float32 [B, K]
    log_probs: tf.Tensor  # float32 [B, K]


class SearchState(NamedTuple):
    """What a step of the search hands to the next."""

    position: tf.Tensor  # int32 scalar, number of steps made
    running: tf.Tensor  # bool [B], whether the sentence is still searched
    last_ids: tf.Tensor  # int32 [B, K], the next inputs: last tokens of the alive hypotheses
    alive: Alive
    finished: Finished
    cache: Any  # the step function's, rows in the order of the alive hypotheses


class Candidates(NamedTuple):
    """The best extensions of the alive hypotheses by one token, best first; C = 2K (greedy: 1)."""

    ids: tf.Tensor  # int32 [B, C, L]
    tokens: tf.Tensor  # int32 [B, C], the last token of each
    parents: tf.Tensor  # int32 [B, C], the alive hypothesis that each extends
    log_probs: tf.Tensor  # float32 [B, C]


def beam_search(
    step_fn: StepFunction, cache: Any, max_lengths: tf.Tensor, config: BeamSearchConfig
) -> Hypotheses:
    """Searches the K best hypotheses of each sentence.

    Args:
        step_fn: gives the logits, or log-probabilities, of the token after `ids`; see StepFunction.
        cache: what step_fn wants at position 0, a nested structure of tensors [B, K, ...]. Axis 2
            may grow from step to step.
        max_lengths: int32 [B], the most tokens of a hypothesis, EOS counted. A sentence of 0 gets
            the empty hypothesis, with score 0.
        config: beam size, penalty and special ids.
    """
    max_lengths = tf.convert_to_tensor(max_lengths, tf.int32)

    def advance(state: SearchState) -> list[SearchState]:
        return [search_step(state, step_fn, max_lengths, config)]

    (state,) = tf.while_loop(
        cond=lambda state: tf.reduce_any(state.running),
        body=advance,
        loop_vars=[initial_state(cache, max_lengths, config)],
        shape_invariants=[state_shapes(cache, config)],
    )
    return best_hypotheses(state, max_lengths, config)


def length_penalty(length: tf.Tensor, alpha: float) -> tf.Tensor:
    """lp = ((5 + length) / 6)^alpha, float32 of the shape of `length`."""
    return tf.pow((5.0 + tf.cast(length, tf.float32)) / 6.0, alpha)


def initial_state(cache: Any, max_lengths: tf.Tensor, config: BeamSearchConfig) -> SearchState:
    """One alive hypothesis a sentence: the empty one. The other K - 1 do not exist yet."""
    batch, beams = tf.shape(max_lengths)[0], config.beam_size
    longest = tf.reduce_max(tf.concat([max_lengths, [0]], axis=0))  # the batch may be empty
    no_ids = tf.fill([batch, beams, longest], config.pad_id)
    none = tf.fill([batch, beams], NONE)
    first = tf.concat([tf.zeros([batch, 1]), none[:, 1:]], axis=1)
    return SearchState(
        position=tf.constant(0),
        running=max_lengths > 0,
        last_ids=tf.fill([batch, beams], config.bos_id),
        alive=Alive(no_ids, first),
        finished=Finished(no_ids, tf.zeros([batch, beams], tf.int32), none, none),
        cache=cache,
    )


def state_shapes(cache: Any, config: BeamSearchConfig) -> SearchState:
    """The static shapes of a SearchState that hold at every step."""
    beams = config.beam_size

    def cache_shape(tensor):
        dims = tensor.shape.as_list()
        return tf.TensorShape([dims[0], beams, *[None for _ in dims[2:3]], *dims[3:]])

    rows, ids = tf.TensorShape([None, beams]), tf.TensorShape([None, beams, None])
    return SearchState(
        position=tf.TensorShape([]),
        running=tf.TensorShape([None]),
        last_ids=rows,
        alive=Alive(ids, rows),
        finished=Finished(ids, rows, rows, rows),
        cache=tf.nest.map_structure(cache_shape, cache),
    )


def search_step(
    state: SearchState, step_fn: StepFunction, max_lengths: tf.Tensor, config: BeamSearchConfig
) -> SearchState:
    """Extends every hypothesis by one token."""
    logits, cache = step_fn(state.last_ids, state.cache, state.position)
    candidates = extend(state, logits, config)
    finished = merge_finished(state, candidates, config)
    alive, parents, last_ids = keep_alive(candidates, config)

    # Sentences that have stopped keep what they had; their rows go on being computed.
    def if_running(new, old):
        running = tf.reshape(state.running, [-1] + [1] * (new.shape.rank - 1))
        return tf.where(running, new, old)

    alive = tf.nest.map_structure(if_running, alive, state.alive)
    finished = tf.nest.map_structure(if_running, finished, state.finished)
    length = state.position + 1
    running = (
        state.running & (length < max_lengths) & can_improve(alive, finished, max_lengths, config)
    )
    cache = cache if config.beam_size == 1 else reorder(cache, parents)
    return SearchState(length, running, last_ids, alive, finished, cache)


def extend(state: SearchState, logits: tf.Tensor, config: BeamSearchConfig) -> Candidates:
    """Finds the most probable extensions of each sentence's alive hypotheses.

    Args:
        state: before the step.
        logits: float32 [B, K, V].
        config: of the search.
    """
    beams, count = config.beam_size, config.candidates
    # The best of a sentence are among the best of each beam, and ranks within a beam are those of
    # the logits: only what top_k leaves needs normalising, not all of [B, K, V].
    per_beam = min(count, logits.shape[-1])
    best_logits, best_tokens = tf.math.top_k(logits, per_beam)  # [B, K, per_beam]
    log_total = log_sum_exp(logits, largest=best_logits[:, :, :1])  # [B, K, 1]
    # Rounding must not make a token more probable than 1: the bound of `can_improve` relies on it.
    log_probs = tf.minimum(best_logits - log_total, 0.0) + state.alive.log_probs[:, :, None]

    log_probs = tf.reshape(log_probs, [-1, beams * per_beam])  # [B, K * per_beam]
    log_probs, chosen = tf.math.top_k(log_probs, count)  # [B, C]
    tokens = tf.gather(tf.reshape(best_tokens, [-1, beams * per_beam]), chosen, batch_dims=1)
    parents = chosen // per_beam
    ids = tf.gather(state.alive.ids, parents, batch_dims=1)  # [B, C, L]
    ids = with_column(ids, state.position, tokens)
    return Candidates(ids, tokens, parents, log_probs)


def log_sum_exp(logits: tf.Tensor, largest: tf.Tensor) -> tf.Tensor:
    """log of the sum of exp(logits) over the last axis, whose largest value is known already.

    Args:
        logits: float32 [B, K, V].
        largest: float32 [B, K, 1].

    Returns:
        float32 [B, K, 1].
    """
    total = tf.reduce_sum(tf.exp(logits - largest), axis=-1, keepdims=True)
    return tf.math.log(total) + largest


def with_column(ids: tf.Tensor, position: tf.Tensor, column: tf.Tensor) -> tf.Tensor:
    """Returns ids int32 [B, C, L] with the tokens `column` int32 [B, C] at index `position`."""
    here = tf.range(tf.shape(ids)[2]) == position  # [L]
    return tf.where(here, column[:, :, None], ids)


def merge_finished(
    state: SearchState, candidates: Candidates, config: BeamSearchConfig
) -> Finished:
    """Adds the candidates that end in EOS to the finished hypotheses, and keeps the K best."""
    length = state.position + 1
    ended = candidates.tokens == config.eos_id
    scores = tf.where(ended, candidates.log_probs / length_penalty(length, config.alpha), NONE)
    lengths = tf.fill(tf.shape(scores), length)
    new = Finished(candidates.ids, lengths, scores, candidates.log_probs)
    both = tf.nest.map_structure(
        lambda *parts: tf.concat(parts, axis=1), state.finished, new
    )  # [B, K + C, ...]
    # Of equals, top_k takes the first: who finished earlier stays.
    _, best = tf.math.top_k(both.scores, config.beam_size)  # [B, K]
    return tf.nest.map_structure(lambda part: tf.gather(part, best, batch_dims=1), both)


def keep_alive(
    candidates: Candidates, config: BeamSearchConfig
) -> tuple[Alive, tf.Tensor, tf.Tensor]:
    """Keeps the K best candidates without EOS.

    Returns:
        The alive hypotheses, the parents of each int32 [B, K], and their last tokens int32 [B, K].
    """
    log_probs = tf.where(candidates.tokens == config.eos_id, NONE, candidates.log_probs)
    log_probs, best = tf.math.top_k(log_probs, config.beam_size)  # [B, K]
    ids, tokens, parents = (
        tf.gather(part, best, batch_dims=1)
        for part in (candidates.ids, candidates.tokens, candidates.parents)
    )
    return Alive(ids, log_probs), parents, tokens


def can_improve(
    alive: Alive, finished: Finished, max_lengths: tf.Tensor, config: BeamSearchConfig
) -> tf.Tensor:
    """Whether a continuation of an alive hypothesis could enter the K finished ones.

    Log-probabilities are at most 0 and only fall, and the penalty grows with the length (alpha is
    not negative): no continuation scores above log P(best alive) / lp(maximum length). While fewer
    than K have finished, the worst of them is -inf.

    Returns:
        bool [B].
    """
    bound = alive.log_probs[:, 0] / length_penalty(max_lengths, config.alpha)
    return bound > finished.scores[:, -1]


def reorder(cache: Any, parents: tf.Tensor) -> Any:
    """Gives every alive hypothesis the cache of its parent.

    Args:
        cache: nested structure of [B, K, ...].
        parents: int32 [B, K].
    """
    batch, beams = tf.shape(parents)[0], parents.shape[1]
    rows = tf.reshape(tf.range(batch)[:, None] * beams + parents, [-1])  # [B * K]

    def gather(tensor):
        shape = tf.shape(tensor)
        flat = tf.reshape(tensor, tf.concat([[batch * beams], shape[2:]], axis=0))
        return tf.reshape(tf.gather(flat, rows), shape)

    return tf.nest.map_structure(gather, cache)


def best_hypotheses(
    state: SearchState, max_lengths: tf.Tensor, config: BeamSearchConfig
) -> Hypotheses:
    """Returns each sentence's finished hypotheses, or its alive ones where it has none."""
    alive, finished = state.alive, state.finished
    lengths = tf.broadcast_to(max_lengths[:, None], tf.shape(alive.log_probs))
    scores = alive.log_probs / length_penalty(lengths, config.alpha)
    unfinished = Finished(alive.ids, lengths, scores, alive.log_probs)
    any_finished = finished.scores[:, 0] > NONE  # [B]

    def choose(if_finished, if_not):
        condition = tf.reshape(any_finished, [-1] + [1] * (if_not.shape.rank - 1))
        return tf.where(condition, if_finished, if_not)

    best = tf.nest.map_structure(choose, finished, unfinished)
    exists = best.scores > NONE  # [B, K]
    lengths = tf.where(exists, best.lengths, 0)
    longest = tf.reduce_max(tf.concat([[0], tf.reshape(lengths, [-1])], axis=0))
    ids = tf.where(exists[:, :, None], best.ids, config.pad_id)[:, :, :longest]
    return Hypotheses(ids, lengths, best.scores, best.log_probs)
