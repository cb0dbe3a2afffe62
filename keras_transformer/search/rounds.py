"""Rounds of steps of a search, between which sentences that have stopped leave the batch.

What a sentence gets does not depend on the others, so that a search goes on with those that have
not stopped yet. Both searches, of beams and greedy, make their steps here.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

ROUND_STEPS = 8  # the most steps of a round; caches grow by as many positions before it


def search_in_rounds(
    state: Any,
    results: Any,
    step: Callable[[Any], Any],
    with_room: Callable[[Any, tf.Tensor], Any],
    results_of: Callable[[Any], Any],
) -> Any:
    """Makes steps until all sentences have stopped.

    Args:
        state: a named tuple of nested structures of tensors [B, ...], whose third axis may grow.
            Three of its fields are known here: `position`, int32 scalar, the number of steps made;
            `running`, bool [B], whether a sentence is still searched; and `places`, int32 [B], of
            the sentences in the results.
        results: nested structures of tensors [B, ...], to be filled.
        step: makes a step: state -> state.
        with_room: gives a state room for positions below a number, int32 scalar.
        results_of: what the sentences of a state have found, of the structure of `results`.

    Returns:
        The results.
    """
    shapes = _shapes(state)._replace(position=tf.TensorShape([]))

    def search_round(state, results):
        end = (state.position // ROUND_STEPS + 1) * ROUND_STEPS

        def goes_on(state):
            # Dropping sentences copies the caches: it pays when an eighth of the rows has stopped.
            rows = tf.size(state.running)
            still_running = tf.math.count_nonzero(state.running, dtype=tf.int32)
            return (state.position < end) & (still_running * 8 > rows * 7)

        (state,) = tf.while_loop(
            cond=goes_on,
            body=lambda state: [step(state)],
            loop_vars=[with_room(state, end)],
            shape_invariants=[shapes],
        )
        return _retire(state, results, results_of)

    _, results = tf.while_loop(
        cond=lambda state, results: tf.size(state.running) > 0,
        body=search_round,
        loop_vars=(state, results),
        shape_invariants=(shapes, _shapes(results)),
    )
    return results


def _shapes(parts: Any) -> Any:
    """The static shapes that hold at every step."""

    def shape(tensor):  # [B, K, ...], where the first axis shrinks and the third may grow
        dims = tensor.shape.as_list()
        return tf.TensorShape([None, *dims[1:2], *[None for _ in dims[2:3]], *dims[3:]])

    return tf.nest.map_structure(shape, parts)


def _retire(state: Any, results: Any, results_of: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Takes sentences that have stopped out of the batch, and puts what they found in `results`."""
    stopped, running = tf.where(~state.running)[:, 0], tf.where(state.running)[:, 0]
    places = tf.gather(state.places, stopped)[:, None]
    results = tf.nest.map_structure(
        lambda whole, part: tf.tensor_scatter_nd_update(whole, places, tf.gather(part, stopped)),
        results,
        results_of(state),
    )
    rows = state._replace(position=())  # all of it has an axis of sentences now
    rows = tf.cond(
        tf.size(stopped) > 0,
        lambda: tf.nest.map_structure(lambda part: tf.gather(part, running), rows),
        lambda: rows,
    )
    return rows._replace(position=state.position), results
