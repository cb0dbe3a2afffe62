"""Beam search with a length penalty (section 6.1), as pure functions over a step function.

The search knows neither the model nor the text: `step_fn` gives the logits of the next token of
every beam, and the cache is whatever nested structure of tensors the step function keeps. A
hypothesis Y, its EOS counted, scores

    log P(Y) / lp(Y),    lp(Y) = ((5 + |Y|) / 6)^alpha     (Wu et al. 2016, equation 14).

Each step extends the K alive hypotheses of a sentence by the 2K best tokens: at most K of them are
EOS, so that at least K hypotheses stay alive whatever finishes. A sentence stops at its maximum
length, or when no alive hypothesis can still enter its best `n_best`. Sentences that have stopped
leave the batch, a round of steps at a time; what a sentence gets does not depend on the others.

With one beam the search is greedy: the only candidate is the most probable token, and EOS ends it.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from keras_transformer.config import BOS_ID, EOS_ID, PAD_ID
from keras_transformer.decoding.candidates import (
    NONE,
    Extensions,
    SamplingConfig,
    best_extensions,
    forced_extensions,
    sampled_extensions,
)
from keras_transformer.errors import InputError

# Caches grow by so many positions; between rounds of at most so many steps.
ROUND_STEPS = 8


@dataclasses.dataclass(frozen=True)
class BeamSearchConfig:
    """What decides the outcome of a search, given the probabilities."""

    beam_size: int = 4  # K, section 6.1; 1 is greedy search
    alpha: float = 0.6  # length penalty, section 6.1; 0 ranks by log-probability
    n_best: int | None = None  # how many of the K must be exact; None for all
    sampling: SamplingConfig | None = None  # K random hypotheses instead of the best
    bos_id: int = BOS_ID  # the first input of every hypothesis, not a part of it
    eos_id: int = EOS_ID  # ends a hypothesis, and counts in its length
    pad_id: int = PAD_ID  # fills up what is returned

    def __post_init__(self):
        if self.beam_size < 1:
            raise InputError(f"--beam_size must be at least 1. Received: {self.beam_size}")
        # Not `alpha < 0`: NaN compares false with everything.
        if not 0 <= self.alpha < math.inf:
            raise InputError(f"--alpha must be a number of at least 0. Received: {self.alpha}")
        if self.n_best is not None and not 1 <= self.n_best <= self.beam_size:
            rule = f"--n_best must be from 1 to the beam size, {self.beam_size}"
            raise InputError(f"{rule}. Received: {self.n_best}")

    @property
    def candidates(self) -> int:
        """Extensions considered at a step for each sentence."""
        if self.sampling is not None:
            return self.beam_size
        return 1 if self.beam_size == 1 else 2 * self.beam_size

    @property
    def decisive(self) -> int:
        """Rank, from 0, of the finished hypothesis that alive ones must beat."""
        every = self.n_best is None or self.sampling is not None
        return (self.beam_size if every else self.n_best) - 1


class Cache(NamedTuple):
    """What a step function keeps from step to step: any nested structures of tensors."""

    per_beam: Any = ()  # [B, K, ...], each row that of a hypothesis: follows it
    per_sentence: Any = ()  # [B, ...], shared by a sentence's hypotheses


# step_fn(ids int32 [B, K], cache, position int32 scalar) -> (logits float32 [B, K, V], cache)
StepFunction = Callable[[tf.Tensor, Cache, tf.Tensor], tuple[tf.Tensor, Cache]]
# reserve(cache, capacity int32 scalar) -> the cache, with room for positions below the capacity
Reserve = Callable[[Cache, tf.Tensor], Cache]


class Hypotheses(NamedTuple):
    """Hypotheses of each sentence, K or fewer, best first.

    Those that do not exist have score -inf and length 0.
    """

    ids: tf.Tensor  # int32 [B, K, T], with EOS, padded
    token_log_probs: tf.Tensor  # float32 [B, K, T], natural logarithm, 0 at padding
    lengths: tf.Tensor  # int32 [B, K], EOS counted
    scores: tf.Tensor  # float32 [B, K], log-probability / length penalty
    log_probs: tf.Tensor  # float32 [B, K], sum of token_log_probs


class Alive(NamedTuple):
    """Hypotheses without EOS, all of the same length, best first."""

    ids: tf.Tensor  # int32 [B, K, L], padded; L grows from round to round
    token_log_probs: tf.Tensor  # float32 [B, K, L]
    log_probs: tf.Tensor  # float32 [B, K]


class Sentences(NamedTuple):
    """What is known of the sentences still in the batch."""

    index: tf.Tensor  # int32 [B], their places in what is returned
    max_lengths: tf.Tensor  # int32 [B]
    prefix: tf.Tensor  # int32 [B, P], padded


class SearchState(NamedTuple):
    """What a step of the search hands to the next; B shrinks from round to round."""

    position: tf.Tensor  # int32 scalar, number of steps made
    running: tf.Tensor  # bool [B], whether the sentence is still searched
    last_ids: tf.Tensor  # int32 [B, K], the next inputs: last tokens of the alive hypotheses
    sentences: Sentences
    alive: Alive
    finished: Hypotheses  # with EOS, the best so far; [B, K, L] as alive
    cache: Cache  # rows in the order of the alive hypotheses


def beam_search(
    step_fn: StepFunction,
    cache: Cache,
    max_lengths: tf.Tensor,
    config: BeamSearchConfig,
    reserve: Reserve = lambda cache, capacity: cache,
    prefix: tf.Tensor | None = None,
) -> Hypotheses:
    """Searches the K best hypotheses of each sentence.

    Args:
        step_fn: gives the logits, or log-probabilities, of the token after `ids`; see StepFunction.
        cache: what step_fn wants at position 0. Axis 2 of a tensor may grow.
        max_lengths: int32 [B], the most tokens of a hypothesis, EOS counted. A sentence of 0 gets
            the empty hypothesis, with score 0.
        config: beam size, penalty and special ids.
        reserve: called before each round of steps; for caches that are allocated ahead.
        prefix: int32 [B, P], padded, P at least 1: tokens that a sentence's hypotheses begin
            with, without EOS.

    Returns:
        The hypotheses in the order of the sentences, padded to the longest. Where none ended in
        EOS within the maximum length, unfinished ones of that length are given. Those after the
        best `n_best` are the best that were found, not always the best there are.
    """
    max_lengths = tf.convert_to_tensor(max_lengths, tf.int32)
    if prefix is None:
        prefix = tf.zeros([tf.shape(max_lengths)[0], 0], tf.int32)
    state = initial_state(cache, max_lengths, prefix, config)
    shapes = state_shapes(state)

    def advance(state: SearchState) -> list[SearchState]:
        return [search_step(state, step_fn, config)]

    def search_round(state: SearchState, results: Hypotheses) -> tuple[SearchState, Hypotheses]:
        end = (state.position // ROUND_STEPS + 1) * ROUND_STEPS
        state = make_room(state, end, reserve, config)
        (state,) = tf.while_loop(
            cond=lambda state: round_goes_on(state, end),
            body=advance,
            loop_vars=[state],
            shape_invariants=[shapes],
        )
        return retire(state, results, config)

    _, results = tf.while_loop(
        cond=lambda state, results: tf.size(state.running) > 0,
        body=search_round,
        loop_vars=(state, no_results(max_lengths, config)),
        shape_invariants=(shapes, shapes.finished),
    )
    longest = tf.reduce_max(tf.concat([[0], tf.reshape(results.lengths, [-1])], axis=0))
    return results._replace(
        ids=results.ids[:, :, :longest], token_log_probs=results.token_log_probs[:, :, :longest]
    )


def length_penalty(length: tf.Tensor, alpha: float) -> tf.Tensor:
    """lp = ((5 + length) / 6)^alpha, float32 of the shape of `length`."""
    return tf.pow((5.0 + tf.cast(length, tf.float32)) / 6.0, alpha)


def initial_state(
    cache: Cache, max_lengths: tf.Tensor, prefix: tf.Tensor, config: BeamSearchConfig
) -> SearchState:
    """One alive hypothesis a sentence: the empty one. The other K - 1 do not exist yet.

    Where hypotheses are drawn at random, there are K empty ones.
    """
    batch, beams = tf.shape(max_lengths)[0], config.beam_size
    none = tf.fill([batch, beams], NONE)
    first = tf.concat([tf.zeros([batch, 1]), none[:, 1:]], axis=1)
    if config.sampling is not None:
        first = tf.zeros([batch, beams])
    finished = no_results(tf.zeros_like(max_lengths), config)
    return SearchState(
        position=tf.constant(0),
        running=max_lengths > 0,
        last_ids=tf.fill([batch, beams], config.bos_id),
        sentences=Sentences(tf.range(batch), max_lengths, tf.cast(prefix, tf.int32)),
        alive=Alive(finished.ids, finished.token_log_probs, first),
        finished=finished,
        cache=cache,
    )


def no_results(max_lengths: tf.Tensor, config: BeamSearchConfig) -> Hypotheses:
    """K hypotheses a sentence that do not exist, with room for the longest there may be."""
    batch, beams = tf.shape(max_lengths)[0], config.beam_size
    longest = tf.reduce_max(tf.concat([max_lengths, [1]], axis=0))  # the batch may be empty
    none = tf.fill([batch, beams], NONE)
    return Hypotheses(
        ids=tf.fill([batch, beams, longest], config.pad_id),
        token_log_probs=tf.zeros([batch, beams, longest]),
        lengths=tf.zeros([batch, beams], tf.int32),
        scores=none,
        log_probs=none,
    )


def make_room(
    state: SearchState, capacity: tf.Tensor, reserve: Reserve, config: BeamSearchConfig
) -> SearchState:
    """Makes everything long enough for hypotheses of `capacity` tokens, int32 scalar."""
    return state._replace(
        alive=lengthened(state.alive, capacity, config),
        finished=lengthened(state.finished, capacity, config),
        cache=reserve(state.cache, capacity),
    )


def lengthened(hypotheses, length: tf.Tensor, config: BeamSearchConfig):
    """Pads, or cuts, the tokens of Alive or Hypotheses to `length`, int32 scalar."""
    ids, token_log_probs = hypotheses.ids, hypotheses.token_log_probs
    width = [[0, 0], [0, 0], [0, tf.maximum(length - tf.shape(ids)[2], 0)]]
    return hypotheses._replace(
        ids=tf.pad(ids, width, constant_values=config.pad_id)[:, :, :length],
        token_log_probs=tf.pad(token_log_probs, width)[:, :, :length],
    )


def state_shapes(state: SearchState) -> SearchState:
    """The static shapes of a SearchState that hold at every step."""

    def shape(tensor):  # [B, K, ...], where the first axis shrinks and the third may grow
        dims = tensor.shape.as_list()
        return tf.TensorShape([None, *dims[1:2], *[None for _ in dims[2:3]], *dims[3:]])

    return tf.nest.map_structure(shape, state)._replace(position=tf.TensorShape([]))


def round_goes_on(state: SearchState, end: tf.Tensor) -> tf.Tensor:
    """Whether to go on without a pause for dropping sentences: bool scalar.

    Dropping copies the caches: it pays when an eighth of the rows has stopped.
    """
    rows = tf.size(state.running)
    still_running = tf.math.count_nonzero(state.running, dtype=tf.int32)
    return (state.position < end) & (still_running * 8 > rows * 7)


def search_step(state: SearchState, step_fn: StepFunction, config: BeamSearchConfig) -> SearchState:
    """Extends every hypothesis by one token."""
    logits, cache = step_fn(state.last_ids, state.cache, state.position)
    extensions = extend(state, logits, config)
    candidates = candidate_hypotheses(state, extensions, config)
    ended = extensions.tokens == config.eos_id
    finished = merge_finished(state.finished, candidates, ended, config)
    log_probs, best = tf.math.top_k(
        tf.where(ended, NONE, extensions.log_probs), config.beam_size
    )  # [B, K]
    ids, token_log_probs, last_ids, parents = (
        tf.gather(part, best, batch_dims=1)
        for part in (
            candidates.ids,
            candidates.token_log_probs,
            extensions.tokens,
            extensions.parents,
        )
    )
    alive = Alive(ids, token_log_probs, log_probs)

    # Sentences that have stopped keep what they had, until they leave.
    alive, finished = tf.nest.map_structure(
        lambda new, old: choose(state.running, new, old),
        (alive, finished),
        (state.alive, state.finished),
    )
    length = state.position + 1
    max_lengths = state.sentences.max_lengths
    running = state.running & (length < max_lengths)
    running &= can_improve(alive, finished, max_lengths, config)
    if config.beam_size > 1:
        cache = cache._replace(per_beam=reorder(cache.per_beam, parents))
    return SearchState(length, running, last_ids, state.sentences, alive, finished, cache)


def extend(state: SearchState, logits: tf.Tensor, config: BeamSearchConfig) -> Extensions:
    """Extends the alive hypotheses: by the prefix, where there is one, or as the search does.

    Args:
        state: before the step.
        logits: float32 [B, K, V].
        config: of the search.
    """
    alive, prefix = state.alive.log_probs, state.sentences.prefix
    if config.sampling is None:
        free = best_extensions(alive, logits, config.candidates)
    else:
        seed = tf.stack([config.sampling.seed, state.position])
        sentences = tf.reduce_max(state.sentences.index) + 1  # a sentence's numbers stay its own
        uniform = tf.random.stateless_uniform([sentences, config.beam_size], seed)
        uniform = tf.gather(uniform, state.sentences.index)
        free = sampled_extensions(alive, logits, uniform, config.sampling)
    if prefix.shape[1] == 0:
        return free
    column = tf.minimum(state.position, tf.shape(prefix)[1] - 1)
    token = prefix[:, column]  # [B]
    is_forced = (token != config.pad_id) & (state.position == column)
    forced = forced_extensions(alive, logits, token, config.candidates)
    return tf.nest.map_structure(lambda one, other: choose(is_forced, one, other), forced, free)


def candidate_hypotheses(
    state: SearchState, extensions: Extensions, config: BeamSearchConfig
) -> Hypotheses:
    """Makes whole hypotheses, [B, C, L], of the extensions."""
    length = state.position + 1
    here = tf.range(tf.shape(state.alive.ids)[2]) == state.position  # [L]

    def with_last(before, last):
        return tf.where(here, last[:, :, None], tf.gather(before, extensions.parents, batch_dims=1))

    return Hypotheses(
        ids=with_last(state.alive.ids, extensions.tokens),
        token_log_probs=with_last(state.alive.token_log_probs, extensions.token_log_probs),
        lengths=tf.fill(tf.shape(extensions.tokens), length),
        scores=extensions.log_probs / length_penalty(length, config.alpha),
        log_probs=extensions.log_probs,
    )


def merge_finished(
    finished: Hypotheses, candidates: Hypotheses, ended: tf.Tensor, config: BeamSearchConfig
) -> Hypotheses:
    """Adds the candidates that have ended, bool [B, C], and keeps the K best."""
    new = candidates._replace(scores=tf.where(ended, candidates.scores, NONE))
    both = tf.nest.map_structure(
        lambda *parts: tf.concat(parts, axis=1), finished, new
    )  # [B, K + C, ...]
    # Of equals, top_k takes the first: who finished earlier stays.
    _, best = tf.math.top_k(both.scores, config.beam_size)  # [B, K]
    return tf.nest.map_structure(lambda part: tf.gather(part, best, batch_dims=1), both)


def can_improve(
    alive: Alive, finished: Hypotheses, max_lengths: tf.Tensor, config: BeamSearchConfig
) -> tf.Tensor:
    """Whether a continuation of an alive hypothesis could enter the best finished ones.

    Log-probabilities are at most 0 and only fall, and the penalty grows with the length (alpha is
    not negative): no continuation scores above log P(best alive) / lp(maximum length). While fewer
    than `n_best` have finished, the one to beat is -inf.

    Returns:
        bool [B].
    """
    bound = alive.log_probs[:, 0] / length_penalty(max_lengths, config.alpha)
    return bound > finished.scores[:, config.decisive]


def reorder(per_beam: Any, parents: tf.Tensor) -> Any:
    """Gives every alive hypothesis the rows of its parent.

    Args:
        per_beam: nested structure of [B, K, ...].
        parents: int32 [B, K].
    """
    return tf.nest.map_structure(lambda part: tf.gather(part, parents, batch_dims=1), per_beam)


def choose(condition: tf.Tensor, if_true: tf.Tensor, if_false: tf.Tensor) -> tf.Tensor:
    """tf.where by sentences: the condition is bool [B], the others are [B, ...]."""
    return tf.where(tf.reshape(condition, [-1] + [1] * (if_true.shape.rank - 1)), if_true, if_false)


def retire(
    state: SearchState, results: Hypotheses, config: BeamSearchConfig
) -> tuple[SearchState, Hypotheses]:
    """Takes sentences that have stopped out of the batch, and puts what they found in its place.

    Args:
        state: after a round.
        results: of all sentences, whether still searched or not.
        config: of the search.

    Returns:
        The state of the sentences still running, and the results.
    """
    stopped = tf.where(~state.running)[:, 0]
    places = tf.gather(state.sentences.index, stopped)[:, None]
    found = lengthened(best_hypotheses(state, config), tf.shape(results.ids)[2], config)
    results = tf.nest.map_structure(
        lambda whole, part: tf.tensor_scatter_nd_update(whole, places, tf.gather(part, stopped)),
        results,
        found,
    )
    rows = tf.where(state.running)[:, 0]
    kept = state._replace(position=())
    kept = tf.cond(
        tf.size(stopped) > 0,
        lambda: tf.nest.map_structure(lambda part: tf.gather(part, rows), kept),
        lambda: kept,
    )
    return kept._replace(position=state.position), results


def best_hypotheses(state: SearchState, config: BeamSearchConfig) -> Hypotheses:
    """Returns each sentence's finished hypotheses, or its alive ones where it has none."""
    alive, finished = state.alive, state.finished
    lengths = tf.broadcast_to(state.sentences.max_lengths[:, None], tf.shape(alive.log_probs))
    scores = alive.log_probs / length_penalty(lengths, config.alpha)
    unfinished = Hypotheses(alive.ids, alive.token_log_probs, lengths, scores, alive.log_probs)
    any_finished = finished.scores[:, 0] > NONE  # [B]
    best = tf.nest.map_structure(
        lambda one, other: choose(any_finished, one, other), finished, unfinished
    )
    exists = best.scores > NONE  # [B, K]
    return best._replace(
        ids=tf.where(exists[:, :, None], best.ids, config.pad_id),
        token_log_probs=tf.where(exists[:, :, None], best.token_log_probs, 0.0),
        lengths=tf.where(exists, best.lengths, 0),
    )
