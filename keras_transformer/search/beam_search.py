"""Beam search with a length penalty (section 6.1), as pure functions over a step function.

The search knows neither the model nor the text: `step_fn` computes the logits for the next token of
every beam, and the source position it comes from; the cache is its state, such as
cache.SearchCache. A hypothesis Y, EOS included, scores

    log P(Y) / lp(Y),    lp(Y) = ((5 + |Y|) / 6)^alpha     (Wu et al. 2016, equation 14).

Each step considers the 2K best one-token extensions of a sentence's K alive hypotheses: at most K
of them are EOS, so at least K hypotheses stay alive. A sentence stops at its maximum length, or
when no alive hypothesis can still enter its best `n_best`; with `early_stopping`, when none could
enter the best K at its current length. Finished sentences leave the batch between rounds of steps;
a sentence's result does not depend on the others.

With one beam the search is greedy: the only candidate is the most probable token, and EOS ends it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import tensorflow as tf

from keras_transformer.search.candidates import (
    NONE,
    Extensions,
    best_extensions,
    given_extensions,
    sampled_extensions,
    without,
)
from keras_transformer.search.config import SearchSettings
from keras_transformer.search.constraints import (
    add_required,
    allocate_beam,
    phrase_progress,
)
from keras_transformer.search.restrictions import banned_logits
from keras_transformer.search.rounds import search_in_rounds


class Cache(Protocol):
    """The cache of a step function: a named tuple of tensors [B, ...], or nests of them."""

    def reordered(self, parents: tf.Tensor) -> "Cache":
        """Returns the cache for hypotheses that continue their parents, int32 [B, K]."""

    def with_room(self, capacity: tf.Tensor) -> "Cache":
        """Returns the cache with room for positions below `capacity`, an int32 scalar."""


class Ranking(NamedTuple):
    """How hypotheses are ranked, and how many of them must be the best."""

    n_best: tf.Tensor  # int32 scalar, number of hypotheses that must be the best ones
    alpha: tf.Tensor  # float32 scalar, the length penalty's


class Hypotheses(NamedTuple):
    """K hypotheses for each sentence, best first; missing ones have score -inf and length 0."""

    ids: tf.Tensor  # int32 [B, K, T], with EOS, padded
    lengths: tf.Tensor  # int32 [B, K], EOS included
    scores: tf.Tensor  # float32 [B, K], log probability / length penalty
    log_probs: tf.Tensor  # float32 [B, K], natural logarithm
    alignment: tf.Tensor | tuple[()] = ()  # int32 [B, K, T], source positions, if requested


class Alive(NamedTuple):
    """Hypotheses without EOS, all of the same length.

    They are ordered best first or, with required phrases, as by `allocate_beam`.
    """

    ids: tf.Tensor  # int32 [B, K, L], padded; L, the capacity, grows from round to round
    log_probs: tf.Tensor  # float32 [B, K]
    alignment: tf.Tensor | tuple[()] = ()  # int32 [B, K, L], if requested


class SearchState(NamedTuple):
    """The state of a search between steps; B shrinks from round to round."""

    position: tf.Tensor  # int32 scalar, number of steps taken
    running: tf.Tensor  # bool [B], whether the search of the sentence is running
    places: tf.Tensor  # int32 [B], indices of the sentences in the results
    max_lengths: tf.Tensor  # int32 [B]
    prefix: tf.Tensor  # int32 [B, P], padded; P is 0 without a prefix
    phrases: tf.Tensor  # int32 [B, P, M], padded; P is 0 without phrases
    last_ids: tf.Tensor  # int32 [B, K], the next inputs: last tokens of the alive hypotheses
    alive: Alive
    finished: Hypotheses  # with EOS, the best so far; [B, K, L] like alive
    cache: Cache  # rows in the order of the alive hypotheses


# (ids int32 [B, K], cache, position int32 scalar)
#     -> (logits float32 [B, K, V], alignment of the next token int32 [B, K], cache)
StepFunction = Callable[[tf.Tensor, Cache, tf.Tensor], tuple[tf.Tensor, tf.Tensor, Cache]]


def beam_search(
    step_fn: StepFunction,
    cache: Cache,
    max_lengths: tf.Tensor,
    settings: SearchSettings,
    prefix: tf.Tensor | None = None,
    phrases: tf.Tensor | None = None,
    ranking: Ranking | None = None,
    aligned: bool = False,
) -> Hypotheses:
    """Searches for the K best hypotheses for each sentence.

    Args:
        step_fn: see StepFunction.
        cache: for position 0. Axis 2 of a tensor may grow.
        max_lengths: int32 [B], the maximum length of a hypothesis, EOS included. With 0, a sentence
            gets the empty hypothesis, with score 0.
        settings: the options, forbidden sequences and special ids.
        prefix: int32 [B, P], padded, P at least 1: tokens that hypotheses begin with, without EOS.
        phrases: int32 [B, P, M], padded: phrases that hypotheses must contain (constraints.py). Not
            supported with sampling.
        ranking: how hypotheses are ranked; from the options if not given.
        aligned: whether to keep the alignment.

    Returns:
        Hypotheses padded to the longest. If none ended in EOS within the maximum length, unfinished
        ones of that length are returned, those with most of their phrases first. Beyond the best
        `n_best`, hypotheses are the best found, not necessarily the best that exist.
    """
    max_lengths = tf.convert_to_tensor(max_lengths, tf.int32)
    batch = tf.shape(max_lengths)[0]
    if prefix is None:
        prefix = tf.zeros([batch, 0], tf.int32)
    if ranking is None:
        options = settings.options
        ranking = Ranking(tf.constant(options.exact), tf.constant(options.alpha, tf.float32))

    def search(max_lengths, phrases):
        state = initial_state(cache, max_lengths, prefix, phrases, settings, aligned)
        return search_rounds(state, step_fn, settings, ranking)

    free = search(max_lengths, tf.zeros([batch, 0, 1], tf.int32))
    if phrases is None:
        return free
    # Keep hypotheses from a search without phrases that contain them anyway: a beam divided into
    # banks may lose them. Sentences that have their best ones are not searched again.
    free, has_best = complete_hypotheses(free, phrases, settings, ranking.n_best)
    constrained = search(tf.where(has_best, 0, max_lengths), phrases)
    return better_of(free, constrained, has_best, settings)


def complete_hypotheses(
    free: Hypotheses, phrases: tf.Tensor, settings: SearchSettings, n_best: tf.Tensor
) -> tuple[Hypotheses, tf.Tensor]:
    """Drops hypotheses that lack EOS or a phrase from a search without phrases.

    Returns:
        The others, the only ones with a score, and whether they include the best `n_best`: bool
        [B]. A sentence without phrases keeps all of its hypotheses.
    """
    free = resized(free, tf.maximum(tf.shape(free.ids)[2], 1), settings)
    progress = phrase_progress(free.ids, tf.shape(free.ids)[2], phrases, settings.pad_id)
    ended = tf.reduce_any(free.ids == settings.eos_id, axis=2)  # [B, K]
    needs_none = tf.reduce_all(phrases == settings.pad_id, axis=[1, 2])[:, None]  # [B, 1]
    is_complete = needs_none | (ended & tf.reduce_all(progress.occurs, axis=2))  # [B, K]
    scores = tf.where(is_complete, free.scores, NONE)
    return free._replace(scores=scores), tf.reduce_all(is_complete[:, :n_best], axis=1)


def better_of(
    free: Hypotheses, constrained: Hypotheses, has_best: tf.Tensor, settings: SearchSettings
) -> Hypotheses:
    """Merges both searches' hypotheses, and returns the K best without duplicates.

    Args:
        free: hypotheses of the search without phrases; those with a score contain the phrases.
        constrained: hypotheses of the search with phrases.
        has_best: bool [B], whether only `free` was searched.
    """
    length = tf.maximum(tf.shape(free.ids)[2], tf.shape(constrained.ids)[2])
    free, constrained = (resized(each, length, settings) for each in (free, constrained))
    found = free.scores > NONE  # [B, K]
    ended = tf.reduce_any(constrained.ids == settings.eos_id, axis=2)  # [B, K]
    same = tf.reduce_all(constrained.ids[:, :, None] == free.ids[:, None], axis=3)  # [B, K, K]
    is_known = tf.reduce_any(same & found[:, None], axis=2)  # [B, K]
    is_new = ended & ~is_known & ~has_best[:, None]
    scores = tf.where(is_new, constrained.scores, NONE)
    both = only_existing(merge(free, constrained._replace(scores=scores), settings), settings)
    # Unfinished hypotheses are ordered differently, and count only if there are no others.
    return choose(has_best | (both.scores[:, 0] > NONE), both, constrained)


def search_rounds(
    state: SearchState,
    step_fn: StepFunction,
    settings: SearchSettings,
    ranking: Ranking,
) -> Hypotheses:
    """Runs rounds of steps until all sentences are done; see `beam_search`."""
    empty = no_results(state.max_lengths, settings, tf.is_tensor(state.alive.alignment))
    longest = tf.shape(empty.ids)[2]

    def with_room_for(state, capacity):
        return state._replace(
            alive=resized(state.alive, capacity, settings),
            finished=resized(state.finished, capacity, settings),
            cache=state.cache.with_room(capacity),
        )

    def results_of(state):
        return resized(best_hypotheses(state, settings, ranking), longest, settings)

    results = search_in_rounds(
        state,
        empty,
        step=lambda state: search_step(state, step_fn, settings, ranking),
        with_room=with_room_for,
        results_of=results_of,
    )
    written = tf.reduce_max(tf.concat([[0], tf.reshape(results.lengths, [-1])], axis=0))
    return resized(results, written, settings)


def initial_state(
    cache: Cache,
    max_lengths: tf.Tensor,
    prefix: tf.Tensor,
    phrases: tf.Tensor,
    settings: SearchSettings,
    aligned: bool,
) -> SearchState:
    """Starts each sentence with one alive, empty hypothesis; with K of them when sampling."""
    finished = no_results(tf.zeros_like(max_lengths), settings, aligned)
    first = tf.zeros_like(finished.scores)
    if settings.options.sampling is None:
        first = tf.concat([first[:, :1], finished.scores[:, 1:]], axis=1)
    return SearchState(
        position=tf.constant(0),
        running=max_lengths > 0,
        places=tf.range(tf.size(max_lengths)),
        max_lengths=max_lengths,
        prefix=tf.cast(prefix, tf.int32),
        phrases=phrases,
        last_ids=tf.fill(tf.shape(first), settings.bos_id),
        alive=Alive(finished.ids, first, finished.alignment),
        finished=finished,
        cache=cache,
    )


def no_results(max_lengths: tf.Tensor, settings: SearchSettings, aligned: bool) -> Hypotheses:
    """Returns K missing hypotheses per sentence, with room for the longest possible one."""
    batch, beams = tf.shape(max_lengths)[0], settings.options.beam_size
    longest = tf.reduce_max(tf.concat([max_lengths, [1]], axis=0))  # the batch may be empty
    none = tf.fill([batch, beams], NONE)
    ids = tf.fill([batch, beams, longest], settings.pad_id)
    lengths = tf.zeros([batch, beams], tf.int32)
    return Hypotheses(ids, lengths, none, none, tf.zeros_like(ids) if aligned else ())


def search_step(
    state: SearchState,
    step_fn: StepFunction,
    settings: SearchSettings,
    ranking: Ranking,
) -> SearchState:
    """Extends every hypothesis by one token."""
    options = settings.options
    logits, aligned, cache = step_fn(state.last_ids, state.cache, state.position)
    tokens, parents, log_probs = extend(state, logits, settings)  # [B, C] each
    position = state.position + 1
    ended = tokens == settings.eos_id  # [B, C]
    here = tf.range(tf.shape(state.alive.ids)[2]) == state.position  # [L]
    ids = tf.where(here, tokens[:, :, None], select(state.alive.ids, parents))  # [B, C, L]
    alignment = with_alignment(state.alive.alignment, here, aligned)  # [B, K, L]
    alignment = select(alignment, parents)  # [B, C, L]
    lengths = tf.fill(tf.shape(tokens), position)
    scores = tf.where(ended, log_probs / length_penalty(position, ranking.alpha), NONE)
    alive_log_probs = tf.where(ended, NONE, log_probs)
    if has_phrases(state):
        progress = phrase_progress(ids, position, state.phrases, settings.pad_id)
        scores = tf.where(tf.reduce_all(progress.occurs, axis=2), scores, NONE)
        alive_log_probs, best = allocate_beam(progress, alive_log_probs, options.beam_size)
    else:
        alive_log_probs, best = tf.math.top_k(alive_log_probs, options.beam_size)  # [B, K]
    new = Hypotheses(ids, lengths, scores, log_probs, alignment)
    finished = merge(state.finished, new, settings)
    alive = Alive(select(ids, best), alive_log_probs, select(alignment, best))
    # Finished sentences keep their state until they leave.
    alive, finished = choose(state.running, (alive, finished), (state.alive, state.finished))
    if options.beam_size > 1:
        cache = cache.reordered(select(parents, best))
    longest = position if options.early_stopping else state.max_lengths
    unfinished = can_improve(alive, finished, longest, settings, ranking)
    return state._replace(
        position=position,
        running=state.running & (position < state.max_lengths) & unfinished,
        last_ids=select(tokens, best),
        alive=alive,
        finished=finished,
        cache=cache,
    )


def has_phrases(state: SearchState) -> bool:
    """Whether there are required phrases: known when the graph is traced."""
    return state.phrases.shape[1] != 0


def extend(state: SearchState, logits: tf.Tensor, settings: SearchSettings) -> Extensions:
    """Extends the alive hypotheses by the prefix, if it has a token here, or by search."""
    options, alive = settings.options, state.alive.log_probs
    banned = None
    if settings.is_restricted:
        banned = banned_logits(state.alive.ids, state.position, state.max_lengths, settings)
    if options.sampling is None:
        free = best_extensions(alive, logits, options.candidates, banned)
    else:
        uniform = uniform_numbers(state, options.sampling.seed, options.beam_size)
        ids = tf.range(logits.shape[-1])
        is_special = (ids == settings.pad_id) | (ids == settings.bos_id)
        choices = tf.where(is_special, NONE, without(logits, banned))
        free = sampled_extensions(alive, logits, choices, uniform, options.sampling)
    if has_phrases(state):
        allowed = without(logits, banned)
        required = required_tokens(state, settings)
        free = add_required(free, alive, logits, allowed, required)

    prefix = state.prefix
    if prefix.shape[1] == 0:
        return free
    count = free.tokens.shape[1] or tf.shape(free.tokens)[1]  # C, with phrases any
    column = tf.minimum(state.position, tf.shape(prefix)[1] - 1)
    token = prefix[:, column]  # [B]
    tokens = tf.repeat(token[:, None], options.beam_size, axis=1)  # [B, K]
    is_forced = (token != settings.pad_id) & (state.position == column)
    return tf.cond(
        tf.reduce_any(is_forced),
        lambda: choose(is_forced, given_extensions(alive, logits, tokens, count), free),
        lambda: free,
    )


def uniform_numbers(state: SearchState, seed: int, beams: int) -> tf.Tensor:
    """Draws a number in [0, 1) for each hypothesis: float32 [B, K].

    A sentence gets the same numbers whichever other sentences are still running.
    """
    sentences = tf.reduce_max(state.places) + 1
    numbers = tf.random.stateless_uniform([sentences, beams], tf.stack([seed, state.position]))
    return tf.gather(numbers, state.places)


def required_tokens(state: SearchState, settings: SearchSettings) -> tf.Tensor:
    """Returns the tokens that continue each phrase: int32 [B, P, K], -1 for complete phrases."""
    progress = phrase_progress(
        state.alive.ids, state.position, state.phrases, settings.pad_id
    )  # [B, K, P]
    next_place = tf.transpose(progress.counts, [0, 2, 1])  # [B, P, K]
    padded = tf.pad(
        state.phrases, [[0, 0], [0, 0], [0, 1]], constant_values=settings.pad_id
    )  # a complete phrase of M tokens continues with padding
    tokens = tf.gather(padded, next_place, batch_dims=2)  # [B, P, K]
    return tf.where(tokens == settings.pad_id, -1, tokens)


def merge(finished: Hypotheses, new: Hypotheses, settings: SearchSettings) -> Hypotheses:
    """Keeps the K best hypotheses of both."""
    both = tf.nest.map_structure(lambda *pair: tf.concat(pair, axis=1), finished, new)  # [B, K + C]
    # On ties, top_k takes the first: earlier finished hypotheses stay.
    _, best = tf.math.top_k(both.scores, settings.options.beam_size)  # [B, K]
    return select(both, best)


def can_improve(
    alive: Alive,
    finished: Hypotheses,
    longest: tf.Tensor,
    settings: SearchSettings,
    ranking: Ranking,
) -> tf.Tensor:
    """Whether an extension of an alive hypothesis could enter the best finished ones: bool [B].

    Log probabilities are at most 0 and only decrease, and the penalty grows with the length (alpha
    is not negative): no extension of at most `longest` tokens, int32 [B] or a scalar, scores above
    log P(best alive) / lp(longest). It must beat the last of the best `n_best` (of all K when
    sampling), which is -inf while there are fewer.

    With the maximum length, this is exact. `early_stopping` uses the current length and all K
    finished hypotheses, the default rule in Hugging Face's search: a longer hypothesis that would
    win by the length penalty may be lost.
    """
    options = settings.options
    is_of_all = options.sampling is not None or options.early_stopping
    n_best = options.beam_size if is_of_all else ranking.n_best
    best_alive = tf.reduce_max(alive.log_probs, axis=1)  # [B]
    bound = best_alive / length_penalty(longest, ranking.alpha)
    return bound > finished.scores[:, n_best - 1]


def best_hypotheses(state: SearchState, settings: SearchSettings, ranking: Ranking) -> Hypotheses:
    """Returns each sentence's finished hypotheses, or its alive ones if it has none."""
    alive, finished = state.alive, state.finished
    lengths = tf.broadcast_to(state.max_lengths[:, None], tf.shape(alive.log_probs))
    scores = alive.log_probs / length_penalty(lengths, ranking.alpha)
    unfinished = Hypotheses(alive.ids, lengths, scores, alive.log_probs, alive.alignment)
    best = choose(finished.scores[:, 0] > NONE, finished, unfinished)
    return only_existing(best, settings)


def only_existing(hypotheses: Hypotheses, settings: SearchSettings) -> Hypotheses:
    """Clears the hypotheses without a score."""
    exists = hypotheses.scores > NONE  # [B, K]
    return hypotheses._replace(
        ids=tf.where(exists[:, :, None], hypotheses.ids, settings.pad_id),
        lengths=tf.where(exists, hypotheses.lengths, 0),
    )


def length_penalty(length: tf.Tensor, alpha: tf.Tensor | float) -> tf.Tensor:
    """lp = ((5 + length) / 6)^alpha, float32 in the shape of `length`."""
    return tf.pow((5.0 + tf.cast(length, tf.float32)) / 6.0, alpha)


def with_alignment(alignment: Any, here: tf.Tensor, aligned: tf.Tensor) -> Any:
    """Writes source positions, int32 [B, K], where `here` is True, if alignments are kept."""
    return tf.nest.map_structure(lambda kept: tf.where(here, aligned[:, :, None], kept), alignment)


def resized(hypotheses: Any, length: tf.Tensor, settings: SearchSettings) -> Any:
    """Pads or truncates ids and alignment in a named tuple to `length`, int32 scalar."""
    width = [[0, 0], [0, 0], [0, tf.maximum(length - tf.shape(hypotheses.ids)[2], 0)]]

    def resize(part):
        return tf.pad(part, width, constant_values=settings.pad_id)[:, :, :length]

    ids, alignment = tf.nest.map_structure(resize, (hypotheses.ids, hypotheses.alignment))
    return hypotheses._replace(ids=ids, alignment=alignment)


def select(parts: Any, chosen: tf.Tensor) -> Any:
    """Gathers hypotheses within their sentence: [B, C, ...] at int32 [B, K] -> [B, K, ...]."""
    return tf.nest.map_structure(lambda part: tf.gather(part, chosen, batch_dims=1), parts)


def choose(condition: tf.Tensor, if_true: Any, if_false: Any) -> Any:
    """tf.where per sentence: the condition is bool [B], the others are nests of [B, ...]."""

    def where(one, other):
        return tf.where(tf.reshape(condition, [-1] + [1] * (one.shape.rank - 1)), one, other)

    return tf.nest.map_structure(where, if_true, if_false)
