"""Which searches of a model are compiled by XLA, and when.

Compiling takes seconds. So programs are compiled in a thread of their own, while the plain graphs
answer. Their results are the same.

On a CPU, this pays for single sentences of models with a small softmax matrix (docs/diary.md), once
300 sentences of a length have come: compiling takes about what they would have saved.
"""

import functools
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence

import tensorflow as tf
from absl import logging

from keras_transformer.core.config import TransformerConfig
from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.core.search.engines.graphs import SearchGraphs, Tensors
from keras_transformer.core.search.engines.tensorflow_engine import NO_PROGRAMS, Programs
from keras_transformer.core.search.engines.xla_search import ROWS, Program, Shape, smallest_shape
from keras_transformer.core.search.matrices import LARGE
from keras_transformer.support.errors import InputError, lacks_memory, reason
from keras_transformer.support.xla_cache import compiled

MOST_PROGRAMS = 12
MOST_ON_PROCESSOR = 4  # each takes about 100 MB
# On a processor, a program is compiled once this many batches of its shape have come: the program
# would by then have saved about the time that compiling takes.
ENOUGH_BATCHES = 300
# Trees have far more tokens than their sentences: most steps would be those with the most room.
MOST_EXTRA_LENGTH = 100
LOWEST_PRIORITY = 19


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
