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

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from keras_transformer.decoding.candidates import (
    NONE,
    Extensions,
    best_extensions,
    forced_extensions,
    sampled_extensions,
)
from keras_transformer.decoding.search_state import (
    Alive,
    BeamSearchConfig,
    Cache,
    Hypotheses,
    SearchState,
    choose,
    initial_state,
    lengthened,
    no_results,
    state_shapes,
)

# Caches grow by so many positions; between rounds of at most so many steps.
ROUND_STEPS = 8

# step_fn(ids int32 [B, K], cache, position int32 scalar) -> (logits float32 [B, K, V], cache)
StepFunction = Callable[[tf.Tensor, Cache, tf.Tensor], tuple[tf.Tensor, Cache]]
# reserve(cache, capacity int32 scalar) -> the cache, with room for positions below the capacity
Reserve = Callable[[Cache, tf.Tensor], Cache]


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


def make_room(
    state: SearchState, capacity: tf.Tensor, reserve: Reserve, config: BeamSearchConfig
) -> SearchState:
    """Makes everything long enough for hypotheses of `capacity` tokens, int32 scalar."""
    return state._replace(
        alive=lengthened(state.alive, capacity, config),
        finished=lengthened(state.finished, capacity, config),
        cache=reserve(state.cache, capacity),
    )


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
