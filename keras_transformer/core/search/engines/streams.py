"""Runs several batches in parallel, each on its share of the processor's cores.

Most decoding operations are so small that two threads spend more time waiting for each other than
working. Two batches on one thread each do not wait: on two cores they take a third less time
(docs/diary.md). A single sentence is faster on one thread, too.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

MOST_STREAMS = 4  # each holds its batch's caches
NVIDIA_DRIVER = Path("/proc/driver/nvidia")


def cores() -> int:
    """Returns the number of cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def processor_streams() -> int:
    """Returns the number of batches that the processor runs in parallel."""
    return min(cores(), MOST_STREAMS)


def threads_of_stream() -> int:
    """Returns the number of threads for each of them."""
    return math.ceil(cores() / processor_streams())


def streams() -> int:
    """Returns the number of batches that TensorFlow runs in parallel: one on an accelerator."""
    import tensorflow as tf

    return 1 if tf.config.get_visible_devices("GPU") else processor_streams()


def share_cores(device: str = "auto") -> None:
    """Limits TensorFlow's operations to a stream's share of the cores; call before the first one.

    TF_NUM_INTRAOP_THREADS in the environment takes precedence. A GPU has one stream.

    Args:
        device: as in store.model_path.ModelPath.
    """
    if device == "cpu" or not NVIDIA_DRIVER.exists():
        os.environ.setdefault("TF_NUM_INTRAOP_THREADS", str(threads_of_stream()))


def in_streams(function: Callable[[Any], Any], batches: Iterable, count: int) -> Iterator:
    """Yields the function's results in the order of the batches, `count` of them in parallel."""
    batches = list(batches)
    if len(batches) < 2:
        yield from map(function, batches)
    else:
        with ThreadPoolExecutor(count) as pool:
            yield from pool.map(function, batches)  # which cancels the rest after an error
