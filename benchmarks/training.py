"""Compares training steps of this library, PyTorch (eager and compiled) and OpenNMT-tf.

    make benchmark                 (or: python benchmarks/training.py --help; --quick for a trial)
    python benchmarks/training.py --opennmt_python=opennmt/bin/python

All engines have nn.Transformer's shapes, a softmax tied to the embeddings, label smoothing 0.1,
dropout 0.1 on sublayers and embeddings, and Adam. They train on random batches of full length in
float32, with their default numbers of threads. A step is timed from a batch in memory to its loss
in Python. Each engine runs in its own process, and the engines take turns for several rounds, so
that changes in the machine's speed affect all of them alike. Engines that are not installed are
skipped (opennmt_peer.py says how to install OpenNMT-tf).

Figures are medians over the rounds: target tokens per second; operations in the model's matrix
products per second, and their share of the fastest 2048x2048 product of any engine on this machine;
peak memory of the process; seconds from the start of the process to the end of the first step.
Prints tables on stderr and one JSON line on stdout.
"""

import argparse
import json
import os
import statistics
import sys

from step_clock import Work
from timing import check_positive, log, run
from workers import has_module, run_worker, step_gigaflops

OURS = "keras_transformer"
PROGRAMS = {
    OURS: ["our_step.py"],
    "pytorch": ["pytorch_peer.py"],
    "torch_compile": ["pytorch_peer.py", "compile"],
    "opennmt_tf": ["opennmt_training_peer.py"],
}
SHAPES = {
    "tiny": Work(128, 256, 4, 4, vocab_size=8000, sentences=160, length=24),
    "base": Work(512, 2048, 6, 8, vocab_size=32000, sentences=64, length=24),
}
QUICK = Work(16, 16, 1, 2, vocab_size=200, sentences=8, length=8, steps=2, matrix=256)
COLUMNS = {
    "tokens_per_second": "target tokens/s",
    "gigaflops": "GFLOP/s",
    "share_of_peak": "share of peak",
    "peak_megabytes": "peak MB",
    "first_step_seconds": "first step, s",
}


def main():
    arguments = parse()
    check_positive(arguments, "rounds")
    pythons = engines(arguments)
    works = {name: SHAPES[name] for name in arguments.shapes}
    if arguments.quick and works:
        works = {"quick": QUICK}
    result: dict = {"threads": os.cpu_count(), "rounds": arguments.rounds}
    for name, work in works.items():
        runs = measure(name, work, pythons, arguments.rounds)
        result[name] = {"work": work._asdict(), **summed_up(work, runs)}
        log(table(name, result[name]["engines"]))
    print(json.dumps(result))


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", nargs="*", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--rounds", type=int, default=3, help="runs of each engine")
    parser.add_argument("--torch_python", default=sys.executable, help="a Python with torch")
    parser.add_argument("--opennmt_python", help="a Python with OpenNMT-tf")
    parser.add_argument("--quick", action="store_true", help="use tiny sizes, for a trial run")
    return parser.parse_args()


def engines(arguments) -> dict[str, str]:
    """Returns the Python of each installed engine."""
    found = {OURS: sys.executable}
    for engine, flag, module in (
        ("pytorch", "torch_python", "torch"),
        ("torch_compile", "torch_python", "torch"),
        ("opennmt_tf", "opennmt_python", "opennmt"),
    ):
        python = getattr(arguments, flag)
        if python is None:
            log(f"{engine}: left out, as there is no --{flag}")
        elif has_module(python, module):
            found[engine] = python
        else:
            log(f"{engine}: left out, as {python} has no {module} (--{flag})")
    return found


def measure(name: str, work: Work, pythons: dict[str, str], rounds: int) -> dict[str, list[dict]]:
    """Runs each engine's process, round by round, and returns the results."""
    runs: dict[str, list[dict]] = {engine: [] for engine in pythons}
    for _ in range(rounds):
        for engine, python in pythons.items():
            program, *words = PROGRAMS[engine]
            runs[engine].append(run_worker(program, work.as_json(), *words, python=python))
            log(f"{name} {engine} {runs[engine][-1]}")
    return runs


def summed_up(work: Work, runs: dict[str, list[dict]]) -> dict:
    """Returns the medians of each engine, and how many times as fast ours is, round by round."""
    peak = max(statistics.median(run["matmul_gigaflops"] for run in of) for of in runs.values())
    found = {}
    for engine, of in runs.items():
        medians = {name: statistics.median(run[name] for run in of) for name in of[0]}
        gigaflops = step_gigaflops(work) / medians["seconds"]
        shares = {"gigaflops": round(gigaflops, 1), "share_of_peak": round(gigaflops / peak, 3)}
        found[engine] = {**medians, **shares}
    ratios = {
        engine: [
            round(their["seconds"] / our["seconds"], 3)
            for our, their in zip(runs[OURS], of, strict=True)
        ]
        for engine, of in runs.items()
        if engine != OURS
    }
    medians = {engine: statistics.median(of) for engine, of in ratios.items()}
    return {"engines": found, "times_as_fast_as": medians, "rounds_times_as_fast_as": ratios}


def table(name: str, found: dict[str, dict]) -> str:
    from keras_transformer.support.text_table import text_table

    ours = found[OURS]["seconds"]
    rows = [
        [engine, *(of[column] for column in COLUMNS), round(of["seconds"] / ours, 2)]
        for engine, of in found.items()
    ]
    return text_table((name, *COLUMNS.values(), "time, ours = 1"), rows)


if __name__ == "__main__":
    run(main)
