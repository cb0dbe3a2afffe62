"""Training steps of this library and of PyTorch, in turn, on the same shapes and work.

    make benchmark                 (or: python benchmarks/training.py --help)

The work: nn.Transformer's shapes, a softmax tied to the embeddings, label smoothing 0.1, dropout
0.1 on sublayers and embeddings, Adam; random full-length batches, float32. Each engine runs in a
process of its own, ours first, then PyTorch (eager, fused Adam), several times in turn, so that a
drift of the machine hits both. Prints a table on stderr and one JSON line on stdout.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

# name -> preset, sentences, tokens a side, vocabulary
SHAPES = {"tiny": ("tiny", 160, 24, 8000), "base": ("base", 64, 24, 32000)}
WARM_UP = 3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--rounds", type=int, default=3, help="runs of each engine")
    parser.add_argument("--steps", type=int, default=8, help="timed steps of a run")
    parser.add_argument("--torch_python", default=sys.executable, help="a Python that has torch")
    parser.add_argument("--worker", choices=SHAPES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(measure_ours(arguments.worker, arguments.steps)))
        return
    result = {shape: compare(shape, arguments) for shape in arguments.shapes}
    print(json.dumps({"threads": os.cpu_count(), **result}))


def compare(shape, arguments):
    """Runs both engines in turn and sums up: medians over all rounds."""
    here = Path(__file__).resolve()
    steps = ["--steps", str(arguments.steps)]
    ours = [sys.executable, str(here), "--worker", shape, *steps]
    numbers = [str(number) for number in peer_numbers(shape)]
    theirs = [arguments.torch_python, str(here.with_name("pytorch_peer.py")), *numbers, *steps]
    rounds = {"keras_transformer": [], "pytorch": []}
    for _ in range(arguments.rounds):
        for engine, command in zip(rounds, (ours, theirs), strict=True):
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            rounds[engine].append(json.loads(done.stdout.splitlines()[-1]))
            print(f"{shape} {engine} {rounds[engine][-1]}", file=sys.stderr)
    ratios = [
        a["tokens_per_second"] / b["tokens_per_second"]
        for a, b in zip(*rounds.values(), strict=True)
    ]
    medians = {
        engine: {key: statistics.median(run[key] for run in runs) for key in runs[0]}
        for engine, runs in rounds.items()
    }
    print(f"{shape}: {statistics.median(ratios):.2f} times PyTorch", file=sys.stderr)
    return {**medians, "ratio": statistics.median(ratios), "ratios": ratios}


def peer_numbers(shape):
    """What the PyTorch program is told: widths, layers, heads, vocabulary, sentences, tokens."""
    from keras_transformer.presets import preset

    name, sentences, tokens, vocab_size = SHAPES[shape]
    config, _ = preset(name, vocab_size)
    widths = (config.d_model, config.d_ff, config.num_layers, config.num_heads)
    return (*widths, vocab_size, sentences, tokens)


def measure_ours(shape, steps):
    """Target tokens a second of a training step, and its share of the matrix-product peak."""
    started = process_start()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import numpy as np
    import tensorflow as tf

    from keras_transformer.analysis.complexity import forward_flops
    from keras_transformer.presets import preset
    from keras_transformer.training.step import TrainingStep

    name, sentences, tokens, vocab_size = SHAPES[shape]
    config, training = preset(name, vocab_size)
    ids = np.random.default_rng(0).integers(4, vocab_size, size=(2, sentences, tokens))
    batch = tf.data.Dataset.from_tensors(tuple(ids.astype("int32"))).repeat()
    step, iterator = TrainingStep(config, training, tf.distribute.get_strategy()), iter(batch)
    step.run(iterator, tf.constant(1)).numpy()
    first_step = time.time() - started
    step.run(iterator, tf.constant(WARM_UP)).numpy()
    seconds = []
    for _ in range(steps):
        begun = time.perf_counter()
        step.run(iterator, tf.constant(1)).numpy()
        seconds.append(time.perf_counter() - begun)
    median = statistics.median(seconds)
    gigaflops = 3 * forward_flops(config, sentences, tokens, tokens) / median / 1e9
    peak = matmul_peak(tf)
    return {
        "tokens_per_second": round(sentences * tokens / median, 1),
        "gigaflops": round(gigaflops, 1),
        "matmul_peak_gigaflops": round(peak, 1),
        "share_of_peak": round(gigaflops / peak, 3),
        "seconds_to_first_step": round(first_step, 1),
    }


def process_start() -> float:
    """When this process was started, in seconds since the epoch; now, where that is not told."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19])
        uptime = float(Path("/proc/uptime").read_text().split()[0])
        return time.time() - uptime + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return time.time()


def matmul_peak(tf, size=2048, repeats=8) -> float:
    """float32 matrix products of `size`, the best of several, in GFLOP/s."""
    matrix = tf.random.normal([size, size])
    product = tf.function(lambda: tf.reduce_sum(tf.matmul(matrix, matrix)))
    product()
    best = float("inf")
    for _ in range(repeats):
        begun = time.perf_counter()
        product().numpy()
        best = min(best, time.perf_counter() - begun)
    return 2 * size**3 / best / 1e9


if __name__ == "__main__":
    main()
