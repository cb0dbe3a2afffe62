"""Searches compiled by XLA: a whole batch, from its ids to its hypotheses, in one program.

A search starts hundreds of small operations for each token. In a program of XLA they cost far less,
but a program has fixed shapes, and takes seconds to compile. So batches are padded to a short list
of shapes, and programs are compiled in a thread of their own, while the plain graphs answer. Their
results are the same.

In a program, sentences leave only once: the last quarter of a batch goes on alone. Sampling is not
compiled: it draws numbers for as many sentences as are left. Neither are required phrases, whose
searches are seldom the same shape, nor int8 products, which XLA lacks.

On a CPU, this pays for single sentences of models with a small softmax matrix (docs/diary.md), once
300 sentences of a length have come: compiling takes about what they would have saved. A program has
room for 1.5 times the source at first, and then for the longest target: with that from the
beginning, each step takes longer, and with more growth, compiling does.
"""

import bisect
import functools
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from absl import logging

from keras_transformer.core.config import EOS_ID, PAD_ID, TransformerConfig
from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.core.search.engines.graphs import ALPHA, NUMBER, SearchGraphs, Tensors
from keras_transformer.core.search.engines.tensorflow_engine import NO_PROGRAMS, Programs
from keras_transformer.core.search.matrices import LARGE
from keras_transformer.core.search.search_loop import Begun, begin
from keras_transformer.core.search.state import SearchState
from keras_transformer.support.errors import InputError, lacks_memory, reason
from keras_transformer.support.xla_cache import compiled

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
MOST_PROGRAMS = 12
MOST_ON_PROCESSOR = 4  # each takes about 100 MB
# On a processor, a program is compiled once this many batches of its shape have come: the program
# would by then have saved about the time that compiling takes.
ENOUGH_BATCHES = 300
# Trees have far more tokens than their sentences: most steps would be those with the most room.
MOST_EXTRA_LENGTH = 100
LOWEST_PRIORITY = 19


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

    def run(self, step, cache, max_lengths, strategy, prefix, aligned, first) -> Any:
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


class XlaPrograms:
    """The programs of a model, compiled when enough batches of a shape have come.

    They are compiled one after the other, in a thread with low priority unless somebody waits. A
    process that ends waits for the one that is being compiled. If the device has no memory for one
    of them, smaller ones are compiled.

    Args:
        make_graphs: makes the graphs of the model, in that thread.
        most_rows: the largest batch that is compiled.
        enough_batches: how many batches of a shape must come before it is compiled.
        most_programs: how many shapes are compiled.
        waits: whether the batch that is enough waits for its program.
        takes_larger: whether a larger program computes a batch while its own is missing.
    """

    def __init__(
        self,
        make_graphs: Callable[[], SearchGraphs],
        most_rows: int = ROWS[-1],
        enough_batches: int = 1,
        most_programs: int = MOST_PROGRAMS,
        waits: bool = False,
        takes_larger: bool = False,
    ):
        self._make_graphs = make_graphs
        self._most_rows = most_rows
        self._enough_batches = enough_batches
        self._most_programs = most_programs
        self._waits = waits
        self._takes_larger = takes_larger
        self._lock = threading.Lock()  # for all below
        self._batches: Counter[Shape] = Counter()
        self._requested: list[Shape] = []
        self._programs: dict[Shape, Program] = {}
        self._too_large: set[Shape] = set()  # for the device's memory
        self._thread: threading.Thread | None = None  # while it is compiling

    @property
    def ready(self) -> list[Shape]:
        """The shapes whose programs are compiled."""
        return list(self._programs)

    def find(self, name: str, inputs: dict[str, tf.Tensor]) -> Callable[..., Tensors] | None:
        """Returns the program for a batch, or None if its graph has to compute it.

        Args:
            name: the graph.
            inputs: its inputs.

        Raises:
            tf.errors.ResourceExhaustedError: if the device has no memory for the program.
        """
        shape = smallest_shape(name, inputs, self._most_rows)
        if shape is None:
            return None
        if shape not in self._programs:
            thread = self._count(shape)
            if self._waits and thread is not None:
                thread.join()
        if shape in self._too_large:
            raise tf.errors.ResourceExhaustedError(None, None, f"no memory for {shape}")
        return self._programs.get(shape) or self._larger(shape)

    def _larger(self, shape: Shape) -> Program | None:
        """Returns the smallest ready program that holds a batch, if larger ones are taken."""
        if not self._takes_larger:
            return None
        fitting = [ready for ready in self.ready if ready.holds(shape)]
        smallest = min(fitting, key=lambda ready: ready.rows * ready.length, default=None)
        return None if smallest is None else self._programs[smallest]

    def _count(self, shape: Shape) -> threading.Thread | None:
        """Counts a batch, and requests its program if there were enough.

        Returns:
            The thread that compiles, if there is one.
        """
        with self._lock:
            self._batches[shape] += 1
            is_new = shape not in self._requested and len(self._requested) < self._most_programs
            if is_new and self._batches[shape] >= self._enough_batches:
                self._requested.append(shape)
                if self._thread is None:
                    self._thread = threading.Thread(target=self._compile_requested, name="xla")
                    self._thread.start()
            return self._thread

    def _compile_requested(self) -> None:
        """Compiles programs until all requested ones are ready, or the process ends."""
        if not self._waits:
            lower_priority()
        try:
            graphs = self._make_graphs()
            while (shape := self._next()) is not None:
                try:
                    self._programs[shape] = compiled(functools.partial(Program, graphs, shape))
                except tf.errors.ResourceExhaustedError as error:
                    if not lacks_memory(error):
                        raise
                    self._too_large.add(shape)
        except Exception as error:  # such as a full disk: the graphs compute everything as ever
            logging.warning("XLA compiles no further searches: %s", reason(error))

    def _next(self) -> Shape | None:
        with self._lock:
            ended = self._too_large | self._programs.keys()
            missing = [shape for shape in self._requested if shape not in ended]
            if missing and threading.main_thread().is_alive():
                return missing[0]
            self._thread = None
            return None


def lower_priority() -> None:
    """Gives this thread the lowest priority; on other systems, it keeps that of the process."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST_PRIORITY)


def programs_for(
    xla: str,
    configs: Sequence[TransformerConfig],
    options: DecodingConfig,
    make_graphs: Callable[[], SearchGraphs],
) -> Programs:
    """Decides which searches of a model are compiled.

    Args:
        xla: "off" for none; "on" for all, each when its shape comes first; "auto" for those that
            are faster, in the background: on a GPU, all, in larger programs while their own are
            missing; on a processor, single sentences of models with small softmax matrices, whose
            steps spend most of their time starting operations.
        configs: of one model, or of the members of an ensemble.
        options: the search options.
        make_graphs: makes the graphs of the model.

    Raises:
        InputError: for "on" with sampling.
    """
    is_sampling = options.sampling is not None
    if xla == "on" and is_sampling:
        raise InputError("xla", "must be auto or off with sampling", xla)
    if xla == "on":
        return XlaPrograms(make_graphs, waits=True)
    if xla == "off" or is_sampling:
        return NO_PROGRAMS
    if tf.config.get_visible_devices("GPU"):
        return XlaPrograms(make_graphs, takes_larger=True)
    is_large = any(config.d_model * config.vocab_size >= LARGE for config in configs)
    if is_large or options.extra_length > MOST_EXTRA_LENGTH:
        return NO_PROGRAMS
    return XlaPrograms(
        make_graphs,
        most_rows=1,
        enough_batches=ENOUGH_BATCHES,
        most_programs=MOST_ON_PROCESSOR,
    )
