"""Greedy search: the most probable token at each step, without scores.

It finds the same hypothesis as `beam_search` with one beam, in less time: tokens are chosen by
their logits, without normalization, and there is only one hypothesis, so nothing is ranked.
"""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from keras_transformer.search.beam_search import Cache, resized, with_alignment
from keras_transformer.search.candidates import NONE, largest_logits, without
from keras_transformer.search.config import SearchSettings
from keras_transformer.search.matrices import ScaledRows
from keras_transformer.search.restrictions import banned_logits
from keras_transformer.search.rounds import search_in_rounds


class Greedy(NamedTuple):
    """The only hypothesis of each sentence, K = 1."""

    ids: tf.Tensor  # int32 [B, 1, T], with EOS, padded
    lengths: tf.Tensor  # int32 [B, 1], EOS included; 0 if restrictions allowed no token
    is_finite: tf.Tensor  # bool [B, 1], False if a logit was NaN
    alignment: tf.Tensor | tuple[()]  # int32 [B, 1, T], source positions, if requested


class GreedyState(NamedTuple):
    """The state of a search between steps; B shrinks from round to round."""

    position: tf.Tensor  # int32 scalar, number of steps taken
    running: tf.Tensor  # bool [B], whether the search of the sentence is running
    places: tf.Tensor  # int32 [B], indices of the sentences in the results
    max_lengths: tf.Tensor  # int32 [B]
    prefix: tf.Tensor  # int32 [B, P], padded; P is 0 without a prefix
    last_ids: tf.Tensor  # int32 [B, 1], the next inputs
    ids: tf.Tensor  # int32 [B, 1, L], padded; L grows from round to round
    alignment: tf.Tensor | tuple[()]  # int32 [B, 1, L], if requested
    total: tf.Tensor  # float32 [B, 1], sum of chosen logits: -inf if no token was allowed, or NaN
    cache: Cache


# (ids int32 [B, 1], cache, position int32 scalar)
#     -> (logits of B rows [B, V], alignment of the next token int32 [B, 1], cache)
GreedyStepFunction = Callable[[tf.Tensor, Cache, tf.Tensor], tuple[ScaledRows, tf.Tensor, Cache]]


def greedy_search(
    step_fn: GreedyStepFunction,
    cache: Cache,
    max_lengths: tf.Tensor,
    settings: SearchSettings,
    prefix: tf.Tensor | None = None,
    aligned: bool = False,
) -> Greedy:
    """Searches for one hypothesis per sentence; see `beam_search` for the arguments."""
    max_lengths = tf.convert_to_tensor(max_lengths, tf.int32)
    state = _initial_state(cache, max_lengths, prefix, settings, aligned)
    longest = tf.reduce_max(tf.concat([max_lengths, [1]], axis=0))  # the batch may be empty

    def with_room(state, capacity):
        return resized(state, capacity, settings)._replace(cache=state.cache.with_room(capacity))

    def results_of(state):
        return resized(_found(state, settings), longest, settings)

    found = search_in_rounds(
        state,
        results_of(state),
        step=lambda state: _step(state, step_fn, settings),
        with_room=with_room,
        results_of=results_of,
    )
    written = tf.reduce_max(tf.concat([[0], tf.reshape(found.lengths, [-1])], axis=0))
    return resized(found, written, settings)


def _initial_state(
    cache: Cache,
    max_lengths: tf.Tensor,
    prefix: tf.Tensor | None,
    settings: SearchSettings,
    aligned: bool,
) -> GreedyState:
    batch = tf.size(max_lengths)
    if prefix is None:
        prefix = tf.zeros([batch, 0], tf.int32)
    return GreedyState(
        position=tf.constant(0),
        running=max_lengths > 0,
        places=tf.range(batch),
        max_lengths=max_lengths,
        prefix=tf.cast(prefix, tf.int32),
        last_ids=tf.fill([batch, 1], settings.bos_id),
        ids=tf.fill([batch, 1, 1], settings.pad_id),
        alignment=tf.zeros([batch, 1, 1], tf.int32) if aligned else (),
        total=tf.zeros([batch, 1]),
        cache=cache,
    )


def _step(state: GreedyState, step_fn: GreedyStepFunction, settings: SearchSettings) -> GreedyState:
    """Extends every hypothesis by one token."""
    logits, aligned, cache = step_fn(state.last_ids, state.cache, state.position)
    values = logits.values[:, None]  # [B, 1, V]; scaling a row keeps its argmax
    if settings.is_restricted:
        banned = banned_logits(state.ids, state.position, state.max_lengths, settings)
        values = without(values, banned)
    tokens, largest = largest_logits(values)  # [B, 1] each
    tokens, largest = _with_prefix(state, tokens, largest * logits.scales, settings)
    total = state.total + largest
    is_here = tf.range(tf.shape(state.ids)[2]) == state.position  # [L]
    # Finished sentences keep their state until they leave.
    is_written = is_here & state.running[:, None, None]  # [B, 1, L]
    position = state.position + 1
    goes_on = (tokens != settings.eos_id) & (total != NONE)  # [B, 1]
    return state._replace(
        position=position,
        running=state.running & (position < state.max_lengths) & goes_on[:, 0],
        last_ids=tokens,
        ids=tf.where(is_written, tokens[:, :, None], state.ids),
        alignment=with_alignment(state.alignment, is_written, aligned),
        total=tf.where(state.running[:, None], total, state.total),
        cache=cache,
    )


def _with_prefix(
    state: GreedyState, chosen: tf.Tensor, largest: tf.Tensor, settings: SearchSettings
) -> tuple[tf.Tensor, tf.Tensor]:
    """Replaces the chosen tokens by the prefix's, if it has one at this position."""
    prefix = state.prefix
    if prefix.shape[1] == 0:
        return chosen, largest
    column = tf.minimum(state.position, tf.shape(prefix)[1] - 1)
    given = prefix[:, column][:, None]  # [B, 1]
    is_given = (given != settings.pad_id) & (state.position == column)
    # Restrictions do not apply in a prefix, so its tokens are always allowed.
    return tf.where(is_given, given, chosen), tf.where(is_given, 0.0, largest)


def _found(state: GreedyState, settings: SearchSettings) -> Greedy:
    """Returns each sentence's target after its last step."""
    is_end = state.ids == settings.eos_id  # [B, 1, L]
    until_end = tf.argmax(is_end, axis=2, output_type=tf.int32) + 1  # [B, 1]
    lengths = tf.where(tf.reduce_any(is_end, axis=2), until_end, state.max_lengths[:, None])
    exists = state.total != NONE  # [B, 1]
    return Greedy(
        ids=tf.where(exists[:, :, None], state.ids, settings.pad_id),
        lengths=tf.where(exists, lengths, 0),
        is_finite=~tf.math.is_nan(state.total),
        alignment=state.alignment,
    )
