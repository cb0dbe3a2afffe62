"""Measures what a machine with one GPU can show, in one run: training, translation, both engines.

    python benchmarks/gpu.py --data_dir=runs/multi30k/data --out=runs/gpu
    python benchmarks/gpu.py --data_dir=runs/quickstart/data --out=runs/trial --small

The second line is a trial on a CPU. --data_dir holds prepared pairs with a BPE vocabulary and a
test split. The stages run other programs of this project, each in its own process and within its
own time limit; they need no network. For each, this program prints one JSON line on stdout,
{"stage", "exit", "seconds", "result"}: the exit code, null if it was stopped at its limit; its
seconds; and the last line that it printed. Its log is OUT/STAGE.log, where decoding.py has a line
for each engine, also if it is stopped. Stages for which less than 20 seconds of --minutes remain
are left out. The most useful ones come first:

    step_base      benchmarks/gpu_step.py: training steps of base, and their share of the peak
    search_batch   benchmarks/decoding.py: random weights of base, compiled searches in float32 and
                   bfloat16, and CTranslate2 in float32 and float16
    train          bin/train.py: own_text on the data, to its end or its time limit
    search_file    like search_batch, the test split with this model, and also not compiled; BLEU
    warm           its first batch again, with the compiled programs on disk
    train_base     base on the data, two minutes, in packed rows; a profile of five steps
    train_plain    the same for a minute without XLA, in rows of one sentence
    memory         a compiled search in a part of the GPU's memory that does not hold its batches;
                   the log has a line for each size
    evaluate       BLEU of the trained model, by bin/evaluate.py
    export         this model as a directory for CTranslate2
    ctranslate2    BLEU of this directory on the device, by bin/evaluate.py
    step_big       training steps of big
    replicas_2     steps of base on two logical devices; and replicas_4, on four
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from timing import log, require, run

ROOT = Path(__file__).resolve().parent.parent
SHORTEST = 20  # seconds in which a stage can be useful
SLOWER = 5  # times the limits, for a trial on a CPU
PATIENCE = 45  # seconds in which a program that is asked to end saves its results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data_dir", required=True, help="prepared data (bin/prepare_data.py)")
    parser.add_argument("--out", required=True, help="folder for models, exports and logs")
    parser.add_argument("--stages", nargs="+", help="default: all")
    parser.add_argument("--minutes", type=float, default=14, help="time limit of the whole run")
    parser.add_argument("--small", action="store_true", help="use tiny sizes and the CPU")
    arguments = parser.parse_args()
    out = Path(arguments.out).resolve()
    stages = stages_of(Path(arguments.data_dir).resolve(), out, arguments.small)
    chosen = arguments.stages or list(stages)
    unknown = [name for name in chosen if name not in stages]
    require(not unknown, "--stages", f"must be among {', '.join(stages)}", ", ".join(unknown))
    out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * arguments.minutes
    for name in chosen:
        seconds, command = stages[name]
        left = end - time.monotonic()
        if left < SHORTEST:
            row = {"stage": name, "skipped": f"{left:.0f} s left"}
        else:
            limit = min(seconds * (SLOWER if arguments.small else 1), left)
            row = {"stage": name, **run_stage(command, limit, out / f"{name}.log")}
        print(json.dumps(row), flush=True)


def stages_of(data_dir: Path, out: Path, small: bool) -> dict[str, tuple[float, list[str]]]:
    """Returns each stage's time limit in seconds, and its command, by its name."""
    data, model, exported = f"--data_dir={data_dir}", f"--model_dir={out / 'model'}", out / "ct2"
    device = f"--device={'cpu' if small else 'cuda'}"
    training = ["bin/train.py", data, "--precision=bfloat16", "--sample_sentences=0"]
    if small:
        base = big = ["benchmarks/gpu_step.py", "--quick"]
        own_text = ["--preset=tiny", "--tokens_per_batch=500", "--train_steps=5"]
        base_on_data = [*own_text, "--xla=on", "--profile_steps=3,4"]
        plain = [*own_text, "--xla=off"]
        float16, few = [], ["--limit=8"]
        batch = ["--cases=batch", "--shape=small"]
        memory = [*batch, "--memory_mib=100"]
    else:
        # 384 rows of 64 tokens: equally many for each of four replicas.
        base = ["benchmarks/gpu_step.py", "--presets", "base", "--tokens=24576"]
        big = ["benchmarks/gpu_step.py", "--presets", "big"]
        own_text = ["--preset=own_text", "--train_steps=6300", "--train_minutes=2"]
        base_on_data = ["--preset=base", "--tokens_per_batch=25000", "--train_minutes=2"]
        base_on_data += ["--log_steps=20", "--profile_steps=60,64"]
        plain = ["--preset=base", "--tokens_per_batch=25000", "--train_minutes=1", "--xla=off"]
        plain += ["--log_steps=20"]
        float16, few = ["ctranslate2_float16"], []
        batch = ["--cases=batch", "--sentences=1024"]
        # Two copies of the weights take 500 MB, and the caches of 128 sentences 400.
        memory = ["--cases=batch", "--sentences=256", "--memory_mib=1000"]
    decoding = ["benchmarks/decoding.py", device, "--rounds=1", "--engines"]
    compiled = ["keras_transformer_xla", "keras_transformer_xla_bfloat16"]
    all_engines = [*compiled, "ctranslate2_float32", *float16]
    test = ["--cases=file", data, model]
    evaluate = ["bin/evaluate.py", data, device, *few]
    export = ["bin/export.py", model, "--format=ctranslate2", f"--export_dir={exported}"]
    return {
        "step_base": (110, base),
        "search_batch": (180, [*decoding, *all_engines, *batch]),
        "train": (190, [*training, model, *own_text]),
        "search_file": (200, [*decoding, "keras_transformer", *all_engines, *test, *few]),
        "warm": (60, [*decoding, compiled[0], *test, *(few or ["--limit=64"])]),
        "train_base": (190, [*training, f"--model_dir={out / 'base'}", *base_on_data]),
        "train_plain": (90, [*training, f"--model_dir={out / 'plain'}", *plain]),
        "memory": (60, [*decoding, compiled[0], *memory]),
        "evaluate": (90, [*evaluate, model]),
        "export": (60, export),
        "ctranslate2": (60, [*evaluate, f"--saved_model={exported}"]),
        "step_big": (110, big),
        "replicas_2": (150, [*base, "--replicas=2"]),
        "replicas_4": (150, [*base, "--replicas=4"]),
    }


def run_stage(command: list[str], seconds: float, log_file: Path) -> dict:
    """Runs a program for at most so many seconds: {"exit", "seconds", "result"}."""
    log(f"{log_file.stem}: {' '.join(command)}")
    begun = time.monotonic()
    with log_file.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=errors
        )
        try:
            output, _ = process.communicate(timeout=seconds)
            code = process.returncode
        except subprocess.TimeoutExpired:
            output, code = ended(process), None
    lines = output.splitlines() or [""]
    took = round(time.monotonic() - begun, 1)
    return {"exit": code, "seconds": took, "result": as_json(lines[-1])}


def ended(process: subprocess.Popen) -> str:
    """Asks a program to end, waits until it has; returns what it printed."""
    process.terminate()
    try:
        return process.communicate(timeout=PATIENCE)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0]


def as_json(line: str):
    """Returns the value of a line of JSON, or the line."""
    try:
        return json.loads(line)
    except ValueError:
        return line


if __name__ == "__main__":
    run(main)
