"""The search: extends hypotheses by one token per step, as pure functions over a step function.

It knows neither the model nor the text: `step_fn` computes the logits for the next token of every
hypothesis, and the source position it comes from; the cache is its state, such as
cache.SearchCache. A strategy decides how hypotheses are extended, which of them are kept, and when
a sentence's search ends:

    BeamSearch           beam_search.py     keeps the best ones
    ConstrainedSearch    constraints.py     keeps those that contain required phrases, too
    Sampling             sampling.py        extends each by a random token
    GreedySearch         greedy_search.py   extends one by the most probable token

A sentence also stops at its maximum length. Finished sentences leave the batch between rounds of
steps (rounds.py); a sentence's result does not depend on the others.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import tensorflow as tf

from keras_transformer.core.search.candidates import Extensions
from keras_transformer.core.search.config import SearchSettings
from keras_transformer.core.search.hypotheses import Hypotheses
from keras_transformer.core.search.restrictions import banned_logits
from keras_transformer.core.search.rounds import search_in_rounds
from keras_transformer.core.search.state import (
    Cache,
    FirstInputs,
    SearchState,
    resized,
)

# (ids int32 [B, K], cache, position int32 scalar)
#     -> (logits, source position of the next token int32 [B, K], cache)
# Logits are float32 [B, K, V]; for greedy search, matrices.ScaledRows of [B, V].
StepFunction = Callable[[tf.Tensor, Cache, tf.Tensor], tuple[Any, tf.Tensor, Cache]]


class Kept(NamedTuple):
    """The hypotheses that a step keeps of its extensions."""

    alive: Hypotheses
    finished: Hypotheses | tuple[()]
    last_ids: tf.Tensor  # int32 [B, K], last tokens of the alive hypotheses
    parents: tf.Tensor  # int32 [B, K], the hypotheses that they extend
    goes_on: tf.Tensor  # bool [B], whether more steps could change the sentence's result


class Strategy(Protocol):
    """How a search extends hypotheses, and which of them it keeps.

    Attributes:
        settings: the options, forbidden sequences and special ids.
        phrases: int32 [B, P, M], padded: phrases that hypotheses must contain; () if none.
    """

    settings: SearchSettings
    phrases: tf.Tensor | tuple[()]

    def start(self, empty: Hypotheses) -> tuple[Hypotheses, Hypotheses | tuple[()]]:
        """Returns the alive and finished hypotheses before the first step.

        Args:
            empty: K empty hypotheses with log probability 0 for each sentence.
        """

    def extend(self, state: SearchState, logits: Any, banned: tf.Tensor | None) -> Extensions:
        """Extends the alive hypotheses; `banned` as in candidates.py."""

    def forced(
        self,
        free: Extensions,
        state: SearchState,
        logits: Any,
        tokens: tf.Tensor,
        is_forced: tf.Tensor,
    ) -> Extensions:
        """Replaces the extensions of some sentences by tokens of their prefixes.

        Args:
            free: the extensions without regard to the prefix.
            state: the state before the step.
            logits: of the step function.
            tokens: int32 [B, 1], the token that extends all hypotheses of a sentence.
            is_forced: bool [B, 1], whether it does.
        """

    def keep(self, state: SearchState, extensions: Extensions, source_positions: tf.Tensor) -> Kept:
        """Chooses among the extensions. Sentences that are not running keep their hypotheses.

        Args:
            state: the state before the step.
            extensions: all of them.
            source_positions: int32 [B, K], where the new tokens of alive hypotheses come from.
        """

    def results(self, state: SearchState) -> Hypotheses:
        """Returns the results of the sentences."""


def search(
    step_fn: StepFunction,
    cache: Cache,
    max_lengths: tf.Tensor,
    strategy: Strategy,
    prefix: tf.Tensor | None = None,
    aligned: bool = False,
    first: FirstInputs | None = None,
) -> Hypotheses:
    """Searches for the hypotheses of each sentence.

    Args:
        step_fn: see StepFunction.
        cache: for the first position. Axis 2 of a tensor may grow.
        max_lengths: int32 [B], the maximum length of a hypothesis, EOS included. With 0, a sentence
            gets the empty hypothesis.
        strategy: how to extend hypotheses.
        prefix: int32 [B, P], padded, P at least 1: tokens that hypotheses begin with, without EOS.
        aligned: whether to keep the alignment, and the log probability of each token.
        first: the first inputs; None for BOS at position 0.

    Returns:
        Padded to the longest.
    """
    begun = begin(step_fn, cache, max_lengths, strategy, prefix, aligned, first)
    pad_id = strategy.settings.pad_id
    # The batch may be empty.
    longest = tf.reduce_max(tf.concat([begun.state.max_lengths, [1]], axis=0))
    results = search_in_rounds(
        begun.state,
        begun.step,
        begun.with_room,
        results_of=lambda state: resized(strategy.results(state), longest, pad_id),
    )
    written = tf.reduce_max(tf.concat([[0], tf.reshape(results.length, [-1])], axis=0))
    return resized(results, written, pad_id)


class Begun(NamedTuple):
    """A search before its first step."""

    state: SearchState
    step: Callable[[SearchState], SearchState]  # takes a step
    with_room: Callable[[SearchState, Any], SearchState]  # makes room for positions below a number


def begin(
    step_fn: StepFunction,
    cache: Cache,
    max_lengths: tf.Tensor,
    strategy: Strategy,
    prefix: tf.Tensor | None = None,
    aligned: bool = False,
    first: FirstInputs | None = None,
) -> Begun:
    """Begins a search; the arguments are those of `search`."""
    max_lengths = tf.convert_to_tensor(max_lengths, tf.int32)
    if first is None:
        first = FirstInputs(tf.fill(tf.shape(max_lengths), strategy.settings.bos_id), position=0)
    state = initial_state(cache, max_lengths, strategy, prefix, aligned, first.ids)

    def with_room(state, capacity):
        hypotheses = state.alive, state.finished
        alive, finished = resized(hypotheses, capacity, strategy.settings.pad_id)
        cache = state.cache.with_room(first.position + capacity)
        return state._replace(alive=alive, finished=finished, cache=cache)

    def step_at(ids, cache, position):
        return step_fn(ids, cache, first.position + position)

    return Begun(state, lambda state: search_step(state, step_at, strategy), with_room)


def initial_state(
    cache: Cache,
    max_lengths: tf.Tensor,
    strategy: Strategy,
    prefix: tf.Tensor | None,
    aligned: bool,
    first_ids: tf.Tensor,
) -> SearchState:
    """Returns the state before the first step, with the first inputs, int32 [B]."""
    settings = strategy.settings
    batch, beams = tf.size(max_lengths), settings.options.beam_size
    if prefix is None:
        prefix = tf.zeros([batch, 0], tf.int32)
    ids = tf.fill([batch, beams, 1], settings.pad_id)
    empty = Hypotheses(ids, *[()] * (len(Hypotheses._fields) - 1))
    empty = empty._replace(log_prob=tf.zeros([batch, beams]))
    if aligned:
        by_token = {"alignment": tf.zeros_like(ids), "token_log_prob": tf.zeros(tf.shape(ids))}
        empty = empty._replace(**by_token)
    alive, finished = strategy.start(empty)
    return SearchState(
        position=tf.constant(0),
        running=max_lengths > 0,
        sentences=tf.range(batch),
        max_lengths=max_lengths,
        prefix=tf.cast(prefix, tf.int32),
        phrases=strategy.phrases,
        last_ids=tf.repeat(first_ids[:, None], beams, axis=1),
        alive=alive,
        finished=finished,
        cache=cache,
    )


def search_step(state: SearchState, step_fn: StepFunction, strategy: Strategy) -> SearchState:
    """Extends every hypothesis by one token."""
    settings = strategy.settings
    logits, source_positions, cache = step_fn(state.last_ids, state.cache, state.position)
    banned = None
    if settings.is_restricted:
        banned = banned_logits(state.alive.ids, state.position, state.max_lengths, settings)
    extensions = strategy.extend(state, logits, banned)
    extensions = with_prefix(extensions, state, logits, strategy)
    kept = strategy.keep(state, extensions, source_positions)
    if settings.options.beam_size > 1:
        cache = cache.reordered(kept.parents)
    position = state.position + 1
    return state._replace(
        position=position,
        running=state.running & (position < state.max_lengths) & kept.goes_on,
        last_ids=kept.last_ids,
        alive=kept.alive,
        finished=kept.finished,
        cache=cache,
    )


def with_prefix(
    free: Extensions, state: SearchState, logits: Any, strategy: Strategy
) -> Extensions:
    """Replaces extensions by the prefix's token, if it has one at this position."""
    prefix = state.prefix
    if prefix.shape[1] == 0:
        return free
    column = tf.minimum(state.position, tf.shape(prefix)[1] - 1)
    tokens = prefix[:, column][:, None]  # [B, 1]
    is_forced = (tokens != strategy.settings.pad_id) & (state.position == column)
    return strategy.forced(free, state, logits, tokens, is_forced)
