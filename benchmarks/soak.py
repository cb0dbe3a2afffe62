"""Kills a training run many times, and compares it with an uninterrupted run.

    make soak          (or: python benchmarks/soak.py --data_dir=runs/multi30k/data \\
        --work_dir=runs/soak --kills=30 \\
        -- --preset=tiny --tokens_per_batch=3000 --train_steps=600 --checkpoint_steps=10)

The flags after `--` are passed to bin/train.py, with --deterministic. Both runs must end with the
same weights and the same curves, bit for bit. On average, three of four kills are SIGKILL, at a
random time after a random step, or during startup if that step was reached before; the others are
SIGTERM, after which the exit code must be 0. If the program itself is interrupted, the same command
resumes with the remaining kills. Prints one JSON line.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from timing import InputError, check_positive, require, run
from tqdm import tqdm

TRAIN = Path(__file__).resolve().parent.parent / "bin" / "train.py"
EXACT = ("loss", "perplexity", "gradient_norm", "padding", "learning_rate", "skipped")
OURS = ("data_dir", "model_dir", "train_minutes")  # not allowed after `--`
LAST = 0.95  # latest kill, as a share of the run; after it, the run might end first
STEP_SECONDS = 1.0  # longest delay of a kill after its step
START_SECONDS = 15.0  # the same during startup: imports, restoring, tracing and a step
POLL_SECONDS = 0.05


class Kill(NamedTuple):
    """The time and the signal of a kill."""

    part: float  # share of all steps to take first
    delay: float  # then, as a share of STEP_SECONDS or START_SECONDS
    number: signal.Signals


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--work_dir", required=True, type=Path, help="for both runs, and soak.json")
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1, help="seed for the times")
    parser.add_argument("train", nargs="*", help="flags for bin/train.py, after --")
    arguments = parser.parse_args()
    check(arguments)
    words = [f"--data_dir={arguments.data_dir}", "--deterministic", *arguments.train]
    state = begin(arguments.work_dir, {"words": words, "seed": arguments.seed})
    whole, parts = (arguments.work_dir / name for name in ("whole", "killed"))
    with tqdm(total=arguments.kills + 2, desc="soak", unit="run") as bar:
        if state["left_alone"] is None:
            shutil.rmtree(whole, ignore_errors=True)
            state["left_alone"] = finish(whole, words, bar)
            write(arguments.work_dir, state)
        bar.update()
        steps = state["left_alone"]["step"]
        bar.update(len(state["ends"]))
        for kill in moments(arguments.kills, arguments.seed)[len(state["ends"]) :]:
            state["ends"].append(end_at(parts, words, kill, max(1, int(steps * kill.part)), bar))
            write(arguments.work_dir, state)
            bar.update()
        finish(parts, words, bar)
        bar.update()
    ends = {name: state["ends"].count(name) for name in ("SIGKILL", "SIGTERM", "finished")}
    weights, curves = same_weights(whole, parts), same_curves(whole, parts)
    print(json.dumps({"steps": steps, **ends, "equal_weights": weights, "equal_curves": curves}))
    (arguments.work_dir / "soak.json").unlink()  # the next soak starts from the beginning
    require(weights and curves, None, "must end like an undisturbed run", "another result", parts)


def check(arguments) -> None:
    from pipelines.data_set import DataSet

    check_positive(arguments, "kills")
    for word in arguments.train:
        rule = f"must be flags after -- other than --{', --'.join(OURS)}"
        require(word.partition("=")[0].lstrip("-") not in OURS, "train", rule, word)
    DataSet.open(arguments.data_dir)


def moments(kills: int, seed: int) -> list[Kill]:
    """Draws random kills, ordered by step."""
    rng = random.Random(seed)
    parts = sorted(LAST * rng.random() for _ in range(kills))
    numbers = [signal.SIGKILL] * 3 + [signal.SIGTERM]
    return [Kill(part, rng.random(), rng.choice(numbers)) for part in parts]


def begin(work_dir: Path, settings: dict) -> dict:
    """Returns the saved state of an unfinished soak with these settings, or a new soak's state."""
    path = work_dir / "soak.json"
    if path.exists():
        state = json.loads(path.read_text())
        if state["settings"] == settings:
            return state
    for name in ("whole", "killed"):
        shutil.rmtree(work_dir / name, ignore_errors=True)
    try:
        work_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        rule = "must be a folder that can be written to"
        raise InputError("--work_dir", rule, f"{work_dir} ({error.strerror})") from None
    return {"settings": settings, "left_alone": None, "ends": []}


def write(work_dir: Path, state: dict) -> None:
    temporary = work_dir / "soak.json.tmp"
    temporary.write_text(json.dumps(state))
    os.replace(temporary, work_dir / "soak.json")


class Training:
    """A training process, which is killed at the end of the context."""

    def __init__(self, model_dir: Path, words: list[str]):
        self.log = model_dir / "training_log.jsonl"
        self.errors = model_dir.with_name(f"{model_dir.name}.stderr")
        self.log_before, self.step_before = self._identity(), self.step()
        model_dir.mkdir(exist_ok=True)
        command = [sys.executable, str(TRAIN), f"--model_dir={model_dir}", *words]
        with open(self.errors, "ab") as errors:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, text=True
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def _identity(self):
        return self.log.stat().st_ino if self.log.exists() else None

    def begun(self) -> bool:
        """Whether this process trains and handles signals, which it does once it has a new log."""
        return self._identity() != self.log_before

    def step(self) -> int:
        return max((line["step"] for line in events(self.log.parent)), default=0)

    def wait(self, bar, until=lambda: False) -> bool:
        """Waits until `until()` or the process's end; returns whether it is still running."""
        shown = None
        while self.process.poll() is None and not until():
            if (step := self.step()) != shown:
                shown = step
                bar.set_postfix_str(f"step {step}")
            time.sleep(POLL_SECONDS)
        return self.process.poll() is None

    def result(self) -> dict:
        """Returns the result of a process that must have succeeded."""
        output, _ = self.process.communicate()
        code, said = self.process.returncode, "".join(output.splitlines()[-1:])
        # SIGTERM may arrive after the result was printed, just before the exit.
        too_late = code == -signal.SIGTERM and '"stopped": "train_steps"' in said
        if code != 0 and not too_late:
            lines = self.errors.read_text(errors="replace").strip().splitlines()
            last = lines[-1] if lines else "nothing said"
            received = f"exit code {code}, {last} ({self.errors})"
            raise InputError(None, "must exit with code 0", received, "bin/train.py")
        return json.loads(said)


def finish(model_dir: Path, words: list[str], bar) -> dict:
    """Trains to the end, and returns the result."""
    with Training(model_dir, words) as training:
        training.wait(bar)
        return training.result()


def end_at(model_dir: Path, words: list[str], kill: Kill, step: int, bar) -> str:
    """Ends a run after `step`; returns the signal, or "finished" if it came too late."""
    with Training(model_dir, words) as training:
        there = training.step_before >= step
        # Before training begins, a process does not handle SIGTERM.
        started = training.begun if kill.number == signal.SIGTERM else lambda: True
        runs = training.wait(bar, lambda: training.step() >= step and started())
        if runs:
            in_start = there and kill.number == signal.SIGKILL
            time.sleep(kill.delay * (START_SECONDS if in_start else STEP_SECONDS))
            training.process.send_signal(kill.number)
        training.process.wait()
        if training.process.returncode == -signal.SIGKILL:
            end = "SIGKILL"
        else:
            end = "SIGTERM" if training.result()["stopped"] == "SIGTERM" else "finished"
        tqdm.write(f"{end} at step {training.step()}", file=sys.stderr)
        return end


def events(model_dir: Path) -> list[dict]:
    """Reads the complete lines of a run's log."""
    path = model_dir / "training_log.jsonl"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def same_weights(whole: Path, parts: Path) -> bool:
    from keras_transformer.training.checkpoint_weights import read_checkpoint

    kept = [read_checkpoint(folder, "latest")[0] for folder in (whole, parts)]
    pairs = zip(*kept, strict=True)
    return all(np.array_equal(one, other, equal_nan=True) for one, other in pairs)


def same_curves(whole: Path, parts: Path) -> bool:
    return curves(whole) == curves(parts)


def curves(model_dir: Path) -> dict[int, list]:
    """Returns {step: values that do not depend on the clock} for each point of the curves."""
    lines = (line for line in events(model_dir) if line["event"] == "training")
    return {line["step"]: [line[name] for name in EXACT] for line in lines}


if __name__ == "__main__":
    run(main)
