"""The race: from two text files to 40.0 BLEU, on two cores.

    make race CORPORA=FOLDER   # FOLDER/multi30k/raw has the published files, such as train.en.gz

For each seed: prepares the data, trains one model, scores it on test_2016_flickr, and prints a JSON
line with the BLEU, the minutes and the minutes of the processor. The last line has their means.
docs/guides/results.md has the rules.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from timing import check_positive, log, run

from keras_transformer.support.errors import require

ROOT = Path(__file__).resolve().parent.parent
GOAL = 40.0  # BLEU, mean of the seeds
SPLITS = {"train": "train", "validation": "val", "test": "test_2016_flickr"}

# What an entry changes, besides the library: flags of prepare_data and train.
PREPARATION = ["--vocab_size=8000"]
RECIPE = ["--preset=own_text"]
STEPS = 6300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", required=True, type=Path, help="Multi30k's raw text")
    parser.add_argument("--work_dir", type=Path, default=Path("runs/race"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--train_steps", type=int, default=STEPS)
    options = parser.parse_args()
    check_positive(options, "train_steps")
    require(not options.work_dir.exists(), "--work_dir", "must not exist yet", options.work_dir)
    laps = []
    for seed in options.seeds:
        laps.append(
            lap(options.folder, options.work_dir / f"seed{seed}", seed, options.train_steps)
        )
        print(json.dumps(laps[-1]), flush=True)
    mean = {name: statistics.mean(each[name] for each in laps) for name in laps[0]}
    del mean["seed"]
    print(json.dumps({**mean, "seeds": len(laps), "reached": mean["bleu"] >= GOAL}))


def lap(folder: Path, work: Path, seed: int, steps: int) -> dict[str, float]:
    """Trains with one seed, from text to score; the clock starts before the preparation."""
    data, model = f"--data_dir={work / 'data'}", f"--model_dir={work / 'model'}"
    files = [
        f"--{split}_{side}={folder / name}.{language}.gz"
        for split, name in SPLITS.items()
        for side, language in (("source", "en"), ("target", "de"))
    ]
    start, used = time.monotonic(), processor_seconds()
    program("prepare_data", "--dataset=files", data, *PREPARATION, *files)
    program("train", data, model, *RECIPE, f"--train_steps={steps}", f"--seed={seed}")
    score = program("evaluate", data, model, "--choose_alpha")
    minutes = (time.monotonic() - start) / 60
    processor_minutes = (processor_seconds() - used) / 60
    return {
        "seed": seed,
        "bleu": score["bleu"],
        "minutes": round(minutes, 2),
        "processor_minutes": round(processor_minutes, 2),
    }


def program(name: str, *flags: str) -> dict:
    """Runs a program of this checkout; returns the result that it prints as its last line."""
    log(" ".join(["python", f"bin/{name}.py", *flags]))
    command = [sys.executable, str(ROOT / "bin" / f"{name}.py"), *flags]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:  # it has said why
        sys.exit(done.returncode)
    return json.loads(done.stdout.splitlines()[-1])


def processor_seconds() -> float:
    """Returns the processor time of all programs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    run(main)
