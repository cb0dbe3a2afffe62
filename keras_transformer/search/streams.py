"""Several batches at a time, each on its share of the processor's cores.

Most operations of decoding are so small that two threads spend more time waiting for each other
than working. Two batches on a thread each do not wait: on two cores they are done a third sooner
(docs/measurements/decoding.md), and so is a single sentence on one thread.
"""

import contextlib
import math
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

MOST_STREAMS = 4  # each holds the caches of its batch


def cores() -> int:
    """How many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # macOS has none
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def streams() -> int:
    """How many batches TensorFlow computes at a time: one on an accelerator, which is fast then."""
    import tensorflow as tf

    return 1 if tf.config.list_physical_devices("GPU") else min(cores(), MOST_STREAMS)


def share_cores() -> None:
    """Gives the operations of each stream their share of the cores; before TensorFlow's first one.

    TF_NUM_INTRAOP_THREADS in the environment overrules it.
    """
    if "TF_NUM_INTRAOP_THREADS" in os.environ or streams() == 1:
        return
    import tensorflow as tf

    with contextlib.suppress(RuntimeError):  # TensorFlow has begun already
        tf.config.threading.set_intra_op_parallelism_threads(math.ceil(cores() / streams()))


def in_streams(function: Callable[[Any], Any], batches: Iterable, count: int) -> Iterator:
    """Yields the function's results in the order of the batches, `count` computed at a time."""
    batches = list(batches)
    if len(batches) < 2:
        yield from map(function, batches)
    else:
        with ThreadPoolExecutor(count) as pool:
            yield from pool.map(function, batches)  # which cancels the rest after an error
