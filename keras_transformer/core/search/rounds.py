"""Runs a search in rounds of steps, between which finished sentences leave the batch.

A sentence's result does not depend on the others, so the search can continue with the running ones
only.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

ROUND_STEPS = 8  # maximum steps per round; caches grow by this many positions before it


def search_in_rounds(
    state: Any,
    step: Callable[[Any], Any],
    with_room: Callable[[Any, tf.Tensor], Any],
    results_of: Callable[[Any], Any],
) -> Any:
    """Runs steps until all sentences have finished.

    Args:
        state: a SearchState before the first step, or another named tuple of nested structures of
            tensors [B, ...], whose third axis may grow, with the fields `position`, `running` and
            `sentences`.
        step: takes a step: state -> state.
        with_room: gives a state room for positions below an int32 scalar.
        results_of: returns the results of a state's sentences: nested structures of tensors
            [B, ...], whose other axes do not depend on the state.

    Returns:
        The results of all sentences.
    """
    results = results_of(state)  # all of them will be replaced
    shapes = _shapes(state)._replace(position=tf.TensorShape([]))

    def search_round(state, results):
        end = (state.position // ROUND_STEPS + 1) * ROUND_STEPS

        def goes_on(state):
            # Dropping sentences copies the caches: it pays once an eighth of the rows has finished.
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
    """Returns the static shapes that hold at every step."""

    def shape(tensor):  # [B, K, ...]; the first axis shrinks, and the third may grow
        dims = tensor.shape.as_list()
        return tf.TensorShape([None, *dims[1:2], *[None for _ in dims[2:3]], *dims[3:]])

    return tf.nest.map_structure(shape, parts)


def _retire(state: Any, results: Any, results_of: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Moves the results of finished sentences to `results`, and drops these from the batch."""
    stopped, running = tf.where(~state.running)[:, 0], tf.where(state.running)[:, 0]
    sentences = tf.gather(state.sentences, stopped)[:, None]
    results = tf.nest.map_structure(
        lambda whole, part: tf.tensor_scatter_nd_update(whole, sentences, tf.gather(part, stopped)),
        results,
        results_of(state),
    )
    rows = state._replace(position=())  # every part has a batch axis now
    rows = tf.cond(
        tf.size(stopped) > 0,
        lambda: tf.nest.map_structure(lambda part: tf.gather(part, running), rows),
        lambda: rows,
    )
    return rows._replace(position=state.position), results
