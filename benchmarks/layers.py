"""Measures Table 1 and section 4: layers over length n and width d, and paths through them.

    python benchmarks/layers.py        (--quick for a trial run; --help)

Times one sequence through attention (equation 1 with one head of width d, as counted in the table),
through the same attention restricted to a neighbourhood of size r, through the model's multi-head
layers with their projections, and through Keras LSTM, GRU, Conv1D and SeparableConv1D. Restricted
attention is computed in blocks (benchmarks/restricted_attention.py). Fits exponents of n and d to
the larger sizes, and compares them with those of the O() terms. Counts maximum path lengths by
reachability. Then runs the multi-head layers forward and backward on long sequences; for the
longest, full attention runs in its own process with limited memory. Prints tables on stderr and one
JSON line on stdout, and draws docs/layers.svg.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from charts import Line, Panel, draw
from timing import DOCS, check_chart, log, require, run, seconds_of

HEADS = 8


class Sizes(NamedTuple):
    """The sizes to measure. A layer's sizes after one slower than `limit` are skipped."""

    lengths: list[int]  # n, with d = --width
    widths: list[int]  # d, with n = `length`
    length: int
    path_lengths: list[int]  # n / r
    long: list[int]
    full_up_to: int  # largest of `long` for full attention in this process
    repeats: int
    limit: float  # seconds


def doubled(first: int, last: int) -> list[int]:
    return [first * 2**n for n in range((last // first).bit_length())]


MEASURED = Sizes(
    doubled(128, 8192), doubled(64, 1024), 1024, [1, 2, 4, 8], doubled(1024, 16384), 4096, 5, 2.0
)
QUICK = Sizes(doubled(64, 512), doubled(32, 128), 128, [1, 2], doubled(512, 2048), 1024, 1, 0.5)


class Kind(NamedTuple):
    """A layer type and its O() term."""

    term: str
    cost: Callable[[int, int, int, int], int]  # a function of n, d, k, r


KINDS = {
    "self-attention": Kind("n^2 d", lambda n, d, k, r: n * n * d),
    "restricted": Kind("r n d", lambda n, d, k, r: r * n * d),
    "LSTM": Kind("n d^2", lambda n, d, k, r: n * d * d),
    "GRU": Kind("n d^2", lambda n, d, k, r: n * d * d),
    "convolution": Kind("k n d^2", lambda n, d, k, r: k * n * d * d),
    "separable": Kind("k n d + n d^2", lambda n, d, k, r: k * n * d + n * d * d),
    "multi-head": Kind("n^2 d + 2 n d^2", lambda n, d, k, r: n * n * d + 2 * n * d * d),
    "restricted multi-head": Kind("r n d + 2 n d^2", lambda n, d, k, r: r * n * d + 2 * n * d * d),
}


def main():
    arguments = parse()
    sizes = QUICK if arguments.quick else MEASURED
    if arguments.worker:
        print(json.dumps(within_memory(arguments, sizes.long[-1])))
        return
    check(arguments, sizes)
    over_n = sweep([(n, arguments.width) for n in sizes.lengths], arguments, sizes)
    over_d = sweep([(sizes.length, d) for d in sizes.widths], arguments, sizes)
    rows = {
        kind: {
            "term": KINDS[kind].term,
            **exponents("n", 0, kind, over_n[kind], arguments),
            **exponents("d", 1, kind, over_d[kind], arguments),
        }
        for kind in KINDS
    }
    result = {
        "layers": rows,
        "over_n": over_n,
        "over_d": over_d,
        "paths": paths(arguments, sizes),
        "long": long_sequences(arguments, sizes),
    }
    print_tables(result)
    draw(arguments.output, panels(result, arguments, sizes))
    facts = {"width": arguments.width, "r": arguments.window, "k": arguments.kernel}
    print(json.dumps({**result, **facts, "threads": os.cpu_count()}))


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--window", type=int, default=64, help="r, for restricted self-attention")
    parser.add_argument("--kernel", type=int, default=5, help="k, for the convolutions")
    parser.add_argument("--width", type=int, default=512, help="d, while n varies")
    parser.add_argument(
        "--memory_gb", type=float, help="limit for full attention (default: 80%% of free memory)"
    )
    parser.add_argument("--output", type=Path, default=DOCS / "layers.svg")
    parser.add_argument("--quick", action="store_true", help="use tiny sizes, for a trial run")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def check(arguments, sizes):
    """Rejects impossible sizes before anything is imported or measured."""
    shortest = min(*sizes.lengths, sizes.length, *sizes.long)
    window, width, memory = arguments.window, arguments.width, arguments.memory_gb
    rule = f"must be from 2 to {shortest}, the shortest n"
    require(2 <= window <= shortest, "--window", rule, window)
    require(arguments.kernel >= 2, "--kernel", "must be at least 2", arguments.kernel)
    rule = f"must be a multiple of {HEADS}, the number of heads"
    require(width >= HEADS and width % HEADS == 0, "--width", rule, width)
    require(memory is None or memory > 0, "--memory_gb", "must be positive", memory)
    check_chart("--output", arguments.output)


def sweep(sizes, arguments, limits):
    """Times every kind at each (n, d): {kind: [(n, d, seconds), ...]}."""
    found = {}
    for kind in KINDS:
        found[kind] = []
        for n, d in sizes:
            call = forward(kind, n, d, arguments)
            seconds = seconds_of(call, limits.repeats, limits.limit)
            found[kind].append((n, d, seconds))
            log(f"{kind}: n={n} d={d} {1000 * seconds:.2f} ms")
            if seconds > limits.limit:
                break
    return found


def forward(kind, n, d, arguments):
    """Returns a function that runs one random sequence through a layer."""
    import tensorflow as tf

    layer = tf.function(make_layer(kind, d, arguments))
    inputs = tf.random.stateless_normal([1, n, d], seed=[n, d])
    return lambda: layer(inputs).numpy()


def make_layer(kind, d, arguments):
    """Makes a layer, or a function, from [1, n, d] to [1, n, d]."""
    import keras
    from restricted_attention import restricted_attention

    from keras_transformer.model.attention import scaled_dot_product_attention

    def attention(inputs):
        head = inputs[:, None]  # [1, 1, n, d]
        outputs, _ = scaled_dot_product_attention(head, head, head)
        return outputs

    def restricted(inputs):
        head = inputs[:, None]  # [1, 1, n, d]
        return restricted_attention(head, head, head, arguments.window)

    if kind == "self-attention":
        return attention
    if kind == "restricted":
        return restricted
    if kind == "LSTM":
        return keras.layers.LSTM(d, return_sequences=True)
    if kind == "GRU":
        return keras.layers.GRU(d, return_sequences=True)
    if kind == "convolution":
        return keras.layers.Conv1D(d, arguments.kernel, padding="same")
    if kind == "separable":
        return keras.layers.SeparableConv1D(d, arguments.kernel, padding="same")
    if kind == "multi-head":
        return multi_head(d, None)
    return multi_head(d, arguments.window)


def multi_head(d, window):
    """Makes the model's self-attention layer with HEADS heads; no restriction for window=None."""
    from restricted_attention import RestrictedSelfAttention

    from keras_transformer.model.attention import MultiHeadAttention

    if window is None:
        layer = MultiHeadAttention(HEADS, d // HEADS)
    else:
        layer = RestrictedSelfAttention(HEADS, d // HEADS, window=window)
    layer.build((1, None, d))
    return layer


def exponents(letter, axis, kind, measured, arguments):
    """Fits the exponents of n or d for the time and for the O() term, to the larger sizes."""
    larger = measured[len(measured) // 2 :]
    sizes = [point[axis] for point in larger]
    term = [KINDS[kind].cost(n, d, arguments.kernel, arguments.window) for n, d, _ in larger]
    return {
        f"{letter}_exponent": slope(sizes, [seconds for *_, seconds in larger]),
        f"{letter}_exponent_of_term": slope(sizes, term),
    }


def slope(x, y):
    """Fits the slope of log y over log x by least squares; None for a single point."""
    import numpy as np

    return round(float(np.polyfit(np.log(x), np.log(y), 1)[0]), 2) if len(x) > 1 else None


def paths(arguments, sizes):
    """Counts maximum path lengths: {"n": [...], layer type: [...]}."""
    from keras_transformer.paper.path_length import path_lengths

    lengths = [arguments.window * factor for factor in sizes.path_lengths]
    found = [path_lengths(n, arguments.kernel, arguments.window) for n in lengths]
    return {"n": lengths, **{kind: [each[kind] for each in found] for kind in found[0]}}


def long_sequences(arguments, sizes):
    """Times multi-head layers forward and backward, in microseconds per position.

    Tries full attention at the longest length in a process with limited memory.
    """
    found: dict[str, Any] = {"n": sizes.long, "restricted": [], "full": []}
    for n in sizes.long:
        for kind, window in (("restricted", arguments.window), ("full", None)):
            if window or n <= sizes.full_up_to:
                call = forward_backward(n, arguments.width, window)
                seconds = seconds_of(call, sizes.repeats, sizes.limit)
                found[kind].append(round(1e6 * seconds / n, 2))
                log(f"{kind} forward and backward: n={n} {found[kind][-1]} us a position")
    steady = [each for n, each in zip(sizes.long, found["restricted"], strict=True) if n >= 2048]
    found["restricted_largest_over_smallest"] = round(max(steady) / min(steady), 2)
    command = [sys.executable, __file__, "--worker", f"--width={arguments.width}"]
    command += ["--quick"] * arguments.quick
    if arguments.memory_gb is not None:
        command.append(f"--memory_gb={arguments.memory_gb}")
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode > 0:
        raise RuntimeError(done.stderr)
    # If even its own small allocations fail, TensorFlow aborts without a message.
    lines = done.stdout.splitlines() or ['{"outcome": "out of memory"}']
    found["full_at_longest"] = json.loads(lines[-1])
    log(f"full at n={sizes.long[-1]}: {found['full_at_longest']}")
    return found


def forward_backward(n, d, window):
    """Returns a function that computes the gradients of a multi-head layer."""
    import tensorflow as tf

    layer = multi_head(d, window)
    inputs = tf.random.stateless_normal([1, n, d], seed=[n, d])

    @tf.function
    def gradients():
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(tf.square(layer(inputs)))
        return tape.gradient(total, [kernel.value for kernel in layer.trainable_variables])

    return lambda: gradients()[0].numpy()


def within_memory(arguments, n):
    """Tries full attention at length n with a limit on this process's further memory."""
    import tensorflow as tf

    forward_backward(64, arguments.width, None)()  # allocates what TensorFlow itself needs
    memory = arguments.memory_gb or 0.8 * kilobytes("/proc/meminfo", "MemAvailable") / 1e6
    used = kilobytes("/proc/self/status", "VmSize") * 1024
    resource.setrlimit(resource.RLIMIT_AS, (used + int(memory * 1e9),) * 2)
    scores = round(4 * HEADS * n * n / 1e9, 2)
    facts = {"memory_gb": round(memory, 1), "gb_of_scores": scores}
    try:
        seconds = seconds_of(forward_backward(n, arguments.width, None), 1, 0)
    except (tf.errors.ResourceExhaustedError, MemoryError):
        return {"outcome": "out of memory", **facts}
    return {"outcome": "ran", "seconds": round(seconds, 2), **facts}


def kilobytes(path, name):
    lines = Path(path).read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def print_tables(result):
    from keras_transformer.text_table import text_table

    names = ("term", "n_exponent", "n_exponent_of_term", "d_exponent", "d_exponent_of_term")
    header = ("layer", "O()", "n: measured", "of O()", "d: measured", "of O()")
    rows = [[kind, *(row[name] for name in names)] for kind, row in result["layers"].items()]
    log(text_table(header, rows))
    kinds = [kind for kind in result["paths"] if kind != "n"]
    header = ("maximum path length", *(f"n={n}" for n in result["paths"]["n"]))
    log(text_table(header, [[kind, *result["paths"][kind]] for kind in kinds]))


def panels(result, arguments, sizes):
    """Makes four panels: time over n, time over d, path lengths, long sequences."""
    found = []
    for letter, axis, fixed in (
        ("n", 0, f"d = {arguments.width}"),
        ("d", 1, f"n = {sizes.length}"),
    ):
        lines = []
        for colour, (kind, measured) in enumerate(result[f"over_{letter}"].items()):
            milliseconds = [(point[axis], 1000 * point[2]) for point in measured]
            lines.append(Line(kind, milliseconds, colour))
            costs = [
                KINDS[kind].cost(n, d, arguments.kernel, arguments.window) for n, d, _ in measured
            ]
            scale = milliseconds[-1][1] / costs[-1]  # equal at the largest size
            term = [(x, scale * cost) for (x, _), cost in zip(milliseconds, costs, strict=True)]
            lines.append(Line("", term, colour, dashed=True))
        title = f"One sequence, {fixed} (dashed: the O() terms)"
        found.append(Panel(title, letter, "milliseconds", lines))
    colours = {"self-attention": 0, "recurrent": 2, "convolutional": 4}
    colours |= {"convolutional, dilated": 5, "restricted self-attention": 1}
    lines = [
        Line(kind, list(zip(result["paths"]["n"], result["paths"][kind], strict=True)), colour)
        for kind, colour in colours.items()
    ]
    facts = f"k = {arguments.kernel}, r = {arguments.window}"
    found.append(Panel(f"Maximum path length, {facts}", "n", "layers or steps", lines))
    long = result["long"]
    lines = [
        Line(f"{kind} multi-head", list(zip(long["n"], long[kind], strict=False)), colour)
        for kind, colour in (("restricted", 7), ("full", 6))
    ]
    title = f"Forward and backward, d = {arguments.width}, r = {arguments.window}"
    found.append(Panel(title, "n", "microseconds a position", lines))
    return found


if __name__ == "__main__":
    run(main)
