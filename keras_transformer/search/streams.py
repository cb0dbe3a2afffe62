"""Several batches at a time, each on its share of the processor's cores.

Most operations of decoding are so small that two threads spend more time waiting for each other
than working. Two batches on a thread each do not wait: on two cores they are done a third sooner
(docs/measurements/decoding.md), and so is a single sentence on one thread.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

MOST_STREAMS = 4  # each holds the caches of its batch
NVIDIA_DRIVER = Path("/proc/driver/nvidia")


def cores() -> int:
    """How many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # macOS has none
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def processor_streams() -> int:
    """How many batches the processor computes at a time."""
    return min(cores(), MOST_STREAMS)


def threads_of_stream() -> int:
    """How many threads each of them has."""
    return math.ceil(cores() / processor_streams())


def streams() -> int:
    """How many batches TensorFlow computes at a time: one on an accelerator, which is fast then."""
    import tensorflow as tf

    return 1 if tf.config.list_physical_devices("GPU") else processor_streams()


def share_cores() -> None:
    """Gives TensorFlow's operations in each stream their share of the cores; before its first one.

    TF_NUM_INTRAOP_THREADS in the environment, which this sets, overrules it. A machine with an
    accelerator has one stream.
    """
    if not NVIDIA_DRIVER.exists():
        os.environ.setdefault("TF_NUM_INTRAOP_THREADS", str(threads_of_stream()))


def in_streams(function: Callable[[Any], Any], batches: Iterable, count: int) -> Iterator:
    """Yields the function's results in the order of the batches, `count` computed at a time."""
    batches = list(batches)
    if len(batches) < 2:
        yield from map(function, batches)
    else:
        with ThreadPoolExecutor(count) as pool:
            yield from pool.map(function, batches)  # which cancels the rest after an error
