"""Kills a training run again and again, and compares it with one that was left alone.

    python benchmarks/soak.py --data_dir=runs/multi30k/data --work_dir=runs/soak --kills=30 \\
        -- --preset=tiny --tokens_per_batch=3000 --train_steps=600 --checkpoint_steps=10

What follows `--` goes to bin/train.py, with --deterministic. Both runs must end with the same
weights and the same curves, bit for bit. Three kills of four are SIGKILL, at a random moment after
a random step; the others are SIGTERM, which must end with exit code 0. Prints one JSON line.
"""

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from timing import InputError, log, run

TRAIN = Path(__file__).resolve().parent.parent / "bin" / "train.py"
EXACT = ("loss", "perplexity", "gradient_norm", "padding", "learning_rate", "skipped")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--work_dir", required=True, type=Path, help="both runs; made anew")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    parser.add_argument("train", nargs="*", help="flags of bin/train.py")
    arguments = parser.parse_args()
    if arguments.kills < 1:
        raise InputError(f"--kills must be at least 1. Received: {arguments.kills}")
    whole, parts = (arguments.work_dir / name for name in ("whole", "killed"))
    for folder in (whole, parts):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    words = [f"--data_dir={arguments.data_dir}", "--deterministic", *arguments.train]
    result = finish(start(whole, words), whole)
    log(f"left alone: {result['step']} steps, loss {result['loss']}")
    rng = random.Random(arguments.seed)
    steps = sorted(rng.randrange(1, result["step"]) for _ in range(arguments.kills))
    kills = [end_at(start(parts, words), parts, step, rng) for step in steps]
    finish(start(parts, words), parts)
    answer = {"steps": result["step"], "kills": kills.count(-signal.SIGKILL)}
    answer |= {"terminations": kills.count(0), "equal": equal(whole, parts)}
    print(json.dumps(answer))
    if not answer["equal"]:
        raise InputError("a killed run must end like one left alone. Received: another end")


def start(model_dir, words):
    """A training process, whose messages go to a file beside its model."""
    command = [sys.executable, str(TRAIN), f"--model_dir={model_dir}", *words]
    with open(model_dir / "stderr", "ab") as errors:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)


def finish(process, model_dir):
    output, _ = process.communicate()
    if process.returncode != 0:
        last = (model_dir / "stderr").read_text(errors="replace").strip().splitlines()[-1]
        raise InputError(f"bin/train.py must end well. Received: {last}")
    return json.loads(output.splitlines()[-1])


def end_at(process, model_dir, step, rng) -> int:
    """Ends a run after `step`, up to a second later; returns its exit code.

    Where the run before had come as far, this one may not even have begun to train.
    """
    while process.poll() is None and steps_of(model_dir)[-1] < step:
        time.sleep(0.01)
    time.sleep(rng.random())
    number = rng.choice([signal.SIGKILL] * 3 + [signal.SIGTERM])
    process.send_signal(number)
    process.communicate()
    log(f"{signal.Signals(number).name} at step {steps_of(model_dir)[-1]}: {process.returncode}")
    return process.returncode


def events(model_dir):
    """The complete lines of a run's log."""
    path = model_dir / "training_log.jsonl"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def steps_of(model_dir):
    return [0, *(line["step"] for line in events(model_dir))]


def equal(whole, parts) -> bool:
    """Whether weights and curves are the same to the last bit."""
    from keras_transformer.training.checkpoints import read_weights

    weights = [read_weights(folder, "latest")[0] for folder in (whole, parts)]
    curves = [
        {line["step"]: [line[name] for name in EXACT] for line in events(folder) if is_curve(line)}
        for folder in (whole, parts)
    ]
    same = all(np.array_equal(one, other) for one, other in zip(*weights, strict=True))
    return same and curves[0] == curves[1]


def is_curve(line):
    return line["event"] == "training"


if __name__ == "__main__":
    run(main)
