"""The state of a search: the hypotheses of each sentence, and what the next step needs."""

import math
from typing import Any, NamedTuple, Protocol

import tensorflow as tf

from keras_transformer.core.search.hypotheses import Hypotheses

# The log probability and the score of missing hypotheses.
NONE = -math.inf


class Cache(Protocol):
    """The cache of a step function: a named tuple of tensors [B, ...], or nests of them."""

    def reordered(self, parents: tf.Tensor) -> "Cache":
        """Returns the cache for hypotheses that continue their parents, int32 [B, K]."""

    def with_room(self, capacity: tf.Tensor) -> "Cache":
        """Returns the cache with room for positions below `capacity`, an int32 scalar."""


class FirstInputs(NamedTuple):
    """The first inputs of the hypotheses."""

    ids: tf.Tensor  # int32 [B], for each sentence
    position: int  # theirs, which the step function needs; the cache has earlier ones


class SearchState(NamedTuple):
    """The state of a search between steps; B shrinks from round to round."""

    position: tf.Tensor  # int32 scalar, number of steps taken
    running: tf.Tensor  # bool [B], whether the search of the sentence is running
    sentences: tf.Tensor  # int32 [B], indices of the sentences in the results
    max_lengths: tf.Tensor  # int32 [B]
    prefix: tf.Tensor  # int32 [B, P], padded; P is 0 without a prefix
    phrases: tf.Tensor | tuple[()]  # int32 [B, P, M], padded, if a strategy requires phrases
    last_ids: tf.Tensor  # int32 [B, K], the next inputs: last tokens of the alive hypotheses
    # Without EOS, all of the same length, and without scores: [B, K, L]; L, the capacity, grows
    # from round to round. Greedy search sums logits in place of log probabilities.
    alive: Hypotheses
    finished: Hypotheses | tuple[()]  # with EOS, the best so far, [B, K, L]; () in greedy search
    cache: Cache  # rows in the order of the alive hypotheses


def resized(hypotheses: Any, length: tf.Tensor, pad_id: int) -> Any:
    """Pads or truncates ids and the like, [B, K, T], in a nest to `length`, int32 scalar.

    T is the same for all of them; other tensors have two axes, and stay as they are.
    """
    first = next(part for part in tf.nest.flatten(hypotheses) if part.shape.rank == 3)
    padding = [[0, 0], [0, 0], [0, tf.maximum(length - tf.shape(first)[2], 0)]]

    def resize(part):
        if part.shape.rank < 3:
            return part
        return tf.pad(part, padding, constant_values=pad_id)[:, :, :length]

    return tf.nest.map_structure(resize, hypotheses)


def written(kept: Any, here: tf.Tensor, values: tf.Tensor) -> Any:
    """Writes values [B, K] to [B, K, L] where `here` is True; or nothing, if nothing is kept."""
    return tf.nest.map_structure(lambda part: tf.where(here, values[:, :, None], part), kept)


def select(parts: Any, chosen: tf.Tensor) -> Any:
    """Gathers hypotheses within their sentence: [B, C, ...] at int32 [B, K] -> [B, K, ...]."""
    return tf.nest.map_structure(lambda part: tf.gather(part, chosen, batch_dims=1), parts)


def choose(condition: tf.Tensor, if_true: Any, if_false: Any) -> Any:
    """tf.where per sentence: the condition is bool [B] or [B, 1], the others nests of [B, ...]."""

    def where(one, other):
        return tf.where(tf.reshape(condition, [-1] + [1] * (one.shape.rank - 1)), one, other)

    return tf.nest.map_structure(where, if_true, if_false)


def only_existing(hypotheses: Hypotheses, pad_id: int) -> Hypotheses:
    """Clears the hypotheses without a score."""
    exists = hypotheses.score > NONE  # [B, K]
    by_token = exists[:, :, None]
    return hypotheses._replace(
        ids=tf.where(by_token, hypotheses.ids, pad_id),
        length=tf.where(exists, hypotheses.length, 0),
        token_log_prob=tf.nest.map_structure(
            lambda part: tf.where(by_token, part, 0.0), hypotheses.token_log_prob
        ),
    )


def merged(first: Hypotheses, second: Hypotheses, count: int) -> Hypotheses:
    """Keeps the `count` best hypotheses of both; on ties, those of the first."""
    both = tf.nest.map_structure(lambda *pair: tf.concat(pair, axis=1), first, second)  # [B, K + C]
    _, best = tf.math.top_k(both.score, count)  # [B, K], the first on ties
    return select(both, best)
