"""Searches compiled by XLA: a whole batch, from its ids to its hypotheses, in one program.

A search starts hundreds of small operations for each token. In a program of XLA they cost far less,
but a program has fixed shapes, and takes seconds to compile (xla_programs.py). So batches are
padded to a short list of shapes.

In a program, sentences leave only once: the last quarter of a batch goes on alone. A program has
room for 1.5 times the source at first, and then for the longest target: with that from the
beginning, each step takes longer, and with more growth, compiling does.

Sampling is not compiled: it draws numbers for as many sentences as are left. Neither are required
phrases, whose searches are seldom the same shape, nor int8 products, which XLA lacks.
"""

import bisect
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_transformer.core.config import EOS_ID, PAD_ID
from keras_transformer.core.search.engines.graphs import ALPHA, NUMBER, SearchGraphs, Tensors
from keras_transformer.core.search.hypotheses import Hypotheses
from keras_transformer.core.search.search_loop import Begun, begin
from keras_transformer.core.search.state import SearchState

# The graphs that can be compiled, and their inputs besides source and prefix.
SEARCHES = {
    "search_ids": (NUMBER, ALPHA),
    "aligned_search_ids": (NUMBER, ALPHA),
    "greedy_ids": (),
    "aligned_greedy_ids": (),
}
LENGTHS = (8, 16, 32, 64, 128, 256)  # of sources and prefixes
ROWS = (1, 8, 32, 128)
MANY_ROWS = 32  # from which the last sentences of a batch go on alone


class Shape(NamedTuple):
    """The search that a program computes, and the shapes of its inputs."""

    name: str  # of the graph
    rows: int  # B
    length: int  # S
    prefix_length: int  # P

    def holds(self, other: "Shape") -> bool:
        """Whether batches of another shape can be padded to this one."""
        return self.name == other.name and all(
            mine >= others for mine, others in zip(self[1:], other[1:], strict=True)
        )

    @property
    def signature(self) -> list[tf.TensorSpec]:
        """The inputs of the program."""
        source = tf.TensorSpec([self.rows, self.length], tf.int32)
        prefix = tf.TensorSpec([self.rows, self.prefix_length], tf.int32)
        return [source, prefix, *SEARCHES[self.name]]


def smallest_shape(
    name: str, inputs: dict[str, tf.Tensor], most_rows: int = ROWS[-1]
) -> Shape | None:
    """Returns the smallest shape that a batch can be padded to; None if it cannot be compiled.

    Args:
        name: the graph.
        inputs: its inputs.
        most_rows: the largest number of rows.
    """
    if name not in SEARCHES:
        return None
    rows, length = inputs["source"].shape
    prefix_length = inputs["prefix"].shape[1]
    if rows > most_rows or max(length, prefix_length) > LENGTHS[-1]:
        return None
    return Shape(
        name,
        ROWS[bisect.bisect_left(ROWS, rows)],
        LENGTHS[bisect.bisect_left(LENGTHS, length)],
        # Most searches have no prefix, which is one column of padding.
        1 if prefix_length == 1 else LENGTHS[bisect.bisect_left(LENGTHS, prefix_length)],
    )


class StaticSearch(SearchGraphs):
    """The graphs of a model for a fixed shape.

    Args:
        graphs: those for any shape.
        length: S, the padded length of the sources.
    """

    for_xla = True

    def __init__(self, graphs: SearchGraphs, length: int):
        super().__init__(graphs.model, graphs.settings, constraints=False)
        longest = min(length + self.settings.options.extra_length, self.limits.target)
        # Most translations end within the first capacity. Steps with more room take longer.
        self._capacities = sorted({min(length * 3 // 2 + 8, longest), longest})

    def run(self, step, cache, max_lengths, strategy, prefix, aligned, first) -> Hypotheses:
        begun = begin(step, cache, max_lengths, strategy, prefix, aligned, first)
        state = begun.state
        rows = prefix.shape[0]
        last_rows = rows // 4 if rows >= MANY_ROWS else 0
        for capacity in self._capacities:
            state = steps_within(begun, state, capacity, last_rows)
        results = strategy.results(state)
        if last_rows == 0:
            return results
        _, last = tf.math.top_k(tf.cast(state.running, tf.int32), last_rows)  # the running ones
        state = steps_within(begun, rows_of(state, last), self._capacities[-1])
        return tf.nest.map_structure(
            lambda whole, part: tf.tensor_scatter_nd_update(whole, last[:, None], part),
            results,
            strategy.results(state),
        )


def steps_within(begun: Begun, state: SearchState, capacity: int, rows: int = 0) -> SearchState:
    """Takes steps until at most `rows` sentences are running, or all have `capacity` tokens."""

    def goes_on(state):
        running = tf.math.count_nonzero(state.running, dtype=tf.int32)
        return (running > rows) & (state.position < capacity)

    (state,) = tf.while_loop(
        cond=goes_on,
        body=lambda state: [begun.step(state)],
        loop_vars=[begun.with_room(state, capacity)],
    )
    return state


def rows_of(state: SearchState, rows: tf.Tensor) -> SearchState:
    """Returns the state of some of the sentences, int32 [b]."""
    chosen = tf.nest.map_structure(lambda part: tf.gather(part, rows), state._replace(position=()))
    return chosen._replace(position=state.position)


class Program:
    """A compiled search, called like its graph.

    Args:
        graphs: the graphs of a model.
        shape: the graph to compile, and for which shape. Batches may be smaller.
    """

    def __init__(self, graphs: SearchGraphs, shape: Shape):
        self.shape = shape
        static = StaticSearch(graphs, shape.length)
        self._search = tf.function(
            static.named[shape.name].python_function,
            input_signature=shape.signature,
            autograph=False,
            jit_compile=True,
        )
        numbers = {"guaranteed": tf.constant(1), "alpha": tf.constant(0.0)}
        empty = {"source": tf.fill([1, 1], EOS_ID), "prefix": tf.fill([1, 1], PAD_ID)}
        self(**empty, **(numbers if SEARCHES[shape.name] else {}))  # compiles

    def __call__(self, source: tf.Tensor, prefix: tf.Tensor, **numbers: tf.Tensor) -> Tensors:
        rows, length = source.shape
        sources = np.full([self.shape.rows, self.shape.length], PAD_ID, np.int32)
        sources[:, 0] = EOS_ID  # an empty sentence is finished from the beginning
        sources[:rows, :length] = source
        prefixes = np.full([self.shape.rows, self.shape.prefix_length], PAD_ID, np.int32)
        prefixes[:rows, : prefix.shape[1]] = prefix
        outputs = self._search(tf.constant(sources), tf.constant(prefixes), **numbers)
        written = max(outputs["length"].numpy().max(), 0)
        return {
            name: tensor[:rows, :, :written] if tensor.shape.rank == 3 else tensor[:rows]
            for name, tensor in outputs.items()
        }
