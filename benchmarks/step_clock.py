"""Measures a training step in the same way for every engine: time, memory, the machine's peak.

The programs that benchmarks/training.py starts share this module, which imports only the standard
library. Memory and the start time of the process are read from /proc, so that they are right
however the process was started.
"""

import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

WARM_UP = 3  # steps, of which the first one traces
IMPORTED = time.monotonic()


class Work(NamedTuple):
    """A model, its batch, and how much to measure. All sentences have `length` tokens."""

    d_model: int
    d_ff: int
    num_layers: int
    num_heads: int
    vocab_size: int
    sentences: int
    length: int
    steps: int = 8  # timed steps; fewer, but at least 3,
    seconds: float = 15.0  # if they take longer than this
    matrix: int = 2048  # size of the matrices whose product gives the peak

    def as_json(self) -> str:
        return json.dumps(self._asdict())


def main(build: Callable, multiply: Callable) -> None:
    """Runs a worker: reads a Work as JSON, and prints the result of `measure`."""
    work = Work(**json.loads(sys.argv[1]))
    print(json.dumps(measure(build, multiply, work)))


def measure(build: Callable, multiply: Callable, work: Work) -> dict[str, float]:
    """Takes steps and measures their time and memory.

    Args:
        build: build(work) returns a function that takes a step and returns when it is done.
        multiply: multiply(size) returns a function that multiplies two float32 matrices of that
            size.
        work: the work to measure.

    Returns:
        {"seconds" (of the median step), "tokens_per_second" (target tokens), "first_step_seconds"
        (from the start of the process to the end of its first step), "imported_megabytes"
        (resident memory before the model is built), "peak_megabytes" (peak resident memory up to
        the last step), "matmul_gigaflops" (the fastest of several products)}.
    """
    imported = megabytes("VmRSS")
    step = build(work)
    step()
    first = since_start()
    for _ in range(WARM_UP - 1):
        step()
    seconds: list[float] = []
    while len(seconds) < min(3, work.steps) or (
        len(seconds) < work.steps and sum(seconds) < work.seconds
    ):
        seconds.append(timed(step))
    median, peak = statistics.median(seconds), megabytes("VmHWM")
    return {
        "seconds": float(f"{median:.4g}"),
        "tokens_per_second": float(f"{work.sentences * work.length / median:.4g}"),
        "first_step_seconds": round(first, 1),
        "imported_megabytes": round(imported, 1),
        "peak_megabytes": round(peak, 1),
        "matmul_gigaflops": round(matmul_gigaflops(multiply(work.matrix), work.matrix), 1),
    }


def timed(call: Callable) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def matmul_gigaflops(product: Callable, size: int, repeats: int = 8) -> float:
    product()
    return 2 * size**3 / min(timed(product) for _ in range(repeats)) / 1e9


def megabytes(name: str) -> float:
    """Returns the resident memory of this process: now for VmRSS, its peak for VmHWM.

    ru_maxrss is used only without /proc, since it may include memory of the parent process.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) / 1024
    except (OSError, StopIteration):
        unit = 2**20 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def since_start() -> float:
    """Returns seconds since this process started, or if unknown since this module was imported."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19])
        # Not /proc/uptime, which may be a container's own, while the ticks are the machine's.
        seconds = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        seconds = -1.0
    return seconds if seconds >= 0 else time.monotonic() - IMPORTED
