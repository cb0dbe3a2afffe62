"""Runs all steps, from data to translations, in about ten minutes on two cores; needs no data.

Runs the other programs one after the other: prepare_data, train, average_checkpoints, evaluate
(twice), export, translate. It prints each command, so that you can run it yourself. If it was
stopped, the same command continues.
"""

from command import as_typed, run, show_curves  # isort: skip  (first: it makes the checkout importable)

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from absl import flags

from keras_transformer.files.paths import to_path
from keras_transformer.files.replacing import write_file

FLAGS = flags.FLAGS
flags.DEFINE_string("work_dir", "runs/quickstart", "The folder for data, model and export.")
flags.DEFINE_integer("grammar_pairs", 100_000, "Number of training pairs.", lower_bound=1)
flags.DEFINE_float("train_minutes", 7, "Minutes of training.", lower_bound=0.01)
flags.DEFINE_integer("train_steps", 100_000, "Largest number of training steps.", lower_bound=1)

SENTENCES = [
    "The old woman reads the book.",
    "The teacher has bought a new car.",
    "The children do not want to play in the garden.",
]


def main():
    start = time.monotonic()
    work = to_path(FLAGS.work_dir)
    data = str(work / "data")
    model = str(work / "model")
    export = str(work / "export")

    program(
        "prepare_data",
        "--dataset=grammar",
        f"--data_dir={data}",
        f"--grammar_pairs={FLAGS.grammar_pairs}",
        "--vocab_size=2000",
    )
    trained = program(
        "train",
        f"--data_dir={data}",
        f"--model_dir={model}",
        "--preset=tiny",
        "--tokens_per_batch=2048",
        "--config=num_layers=2",
        "--config=warmup_steps=500",
        "--config=learning_rate_scale=1.5",
        f"--train_minutes={FLAGS.train_minutes}",
        f"--train_steps={FLAGS.train_steps}",
        f"--checkpoint_minutes={FLAGS.train_minutes / 12}",
    )
    averaged = program("average_checkpoints", f"--model_dir={model}", "--last=5")
    averaged_model = [f"--model_dir={model}", f"--checkpoint={averaged['checkpoint']}"]
    evaluated = [*averaged_model, f"--data_dir={data}"]
    test = program("evaluate", *evaluated, "--split=test")
    test_compositional = program("evaluate", *evaluated, "--split=test_compositional")
    program("export", *averaged_model, f"--export_dir={export}", "--overwrite")
    translations = translate(work, export)

    for sentence, translation in zip(SENTENCES, translations, strict=True):
        print(f"  {sentence}\n    -> {translation}", file=sys.stderr)
    show_curves(model)
    return {
        "bleu": test["bleu"],
        "bleu_compositional": test_compositional["bleu"],
        "signature": test["signature"],
        "perplexity": test["perplexity"],
        "steps": trained["step"],
        "train_seconds": round(60 * trained["minutes"], 1),
        "seconds": round(time.monotonic() - start, 1),
        "data_dir": data,
        "model_dir": model,
        "saved_model": export,
        "translations": dict(zip(SENTENCES, translations, strict=True)),
    }


def translate(work: Path, export: str) -> list[str]:
    """Translates SENTENCES with the exported SavedModel."""
    source = work / "sentences.txt"
    target = work / "translations.txt"
    write_file(source, "".join(f"{line}\n" for line in SENTENCES))
    program("translate", f"--saved_model={export}", f"--input={source}", f"--output={target}")
    return target.read_bytes().decode("utf-8").split("\n")[: len(SENTENCES)]


def program(name: str, *arguments: str) -> dict[str, Any]:
    """Runs bin/NAME.py and returns its result; ends this program with its exit code if it fails."""
    command = [sys.executable, str(Path(__file__).with_name(f"{name}.py")), *arguments]
    print(f"\n$ {as_typed(name, *arguments)}", file=sys.stderr, flush=True)
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=sys.stderr, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(done.returncode)
    line = done.stdout.splitlines()[-1]
    print(line, file=sys.stderr)
    return json.loads(line)


if __name__ == "__main__":
    run(main)
