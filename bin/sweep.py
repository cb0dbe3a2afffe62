"""Trains rows of Table 3 one after another, at reduced size, and writes the table.

    python bin/sweep.py --data_dir=runs/multi30k/data --model_dir=runs/sweep --rows=A,C,D,E \\
        --train_steps=1000 --tokens_per_batch=3000 --config warmup_steps=400

bin/train.py trains each row in MODEL_DIR/ROW, and bin/evaluate.py scores its last checkpoint, not
averaged, on the validation split. A second run skips finished rows and resumes the interrupted one.
A failing row is reported, and the others continue. TensorBoard's HParams tab (--logdir=MODEL_DIR)
compares the rows' settings and BLEU.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from command.run import as_typed, run

from absl import flags

from keras_transformer.support.fields import LARGEST_SEED

FLAGS = flags.FLAGS
flags.DEFINE_string("data_dir", None, "Prepared data with a validation split.", required=True)
flags.DEFINE_string("model_dir", None, "Directory with a subdirectory for each row.", required=True)
flags.DEFINE_list("rows", "base,A,C,D,E", "Rows of Table 3 (A1), or groups of them (A).")
flags.DEFINE_integer("divide_layers", 2, "Divisor of the number of layers.", lower_bound=1)
flags.DEFINE_integer("divide_widths", 8, "Divisor of d_model, d_ff, d_k and d_v.", lower_bound=1)
flags.DEFINE_integer("train_steps", 100_000, "Steps per row.", lower_bound=1)
flags.DEFINE_float("train_minutes", None, "Time limit per row, in minutes.", lower_bound=0.001)
flags.DEFINE_integer("tokens_per_batch", 25000, "Padded tokens per side of a step.", lower_bound=1)
flags.DEFINE_float("checkpoint_minutes", 2, "Minutes between checkpoints.", lower_bound=0.001)
flags.DEFINE_multi_string("config", [], "KEY=VALUE to override in every row. Repeatable.")
flags.DEFINE_integer("beam_size", 4, "Beam size for scoring.", lower_bound=1)
flags.DEFINE_integer("seed", 1, "Seed for every row.", lower_bound=0, upper_bound=LARGEST_SEED)


def main():
    from keras_transformer.kit.paper.trained_rows import reduced_settings, select_rows, trained_row
    from keras_transformer.support.errors import InputError, require
    from pipelines.batches.data_set import DataSet

    rule = "must be a local folder, for the logs of the rows"
    require("://" not in FLAGS.model_dir, "model_dir", rule, FLAGS.model_dir)
    settings = {}
    for row in select_rows(FLAGS.rows):
        settings[row] = reduced_settings(row, FLAGS.divide_layers, FLAGS.divide_widths)
    has_validation = "validation" in DataSet.open(FLAGS.data_dir).metadata.splits
    rule = "must have a validation split"
    require(has_validation, "data_dir", rule, f"{FLAGS.data_dir}, without one")

    root = Path(FLAGS.model_dir)
    check_folder(root)
    root.mkdir(parents=True, exist_ok=True)
    trained = []
    failed = {}
    for number, row in enumerate(settings, start=1):
        model_dir = root / row
        print(f"row {row} ({number} of {len(settings)}), log: {model_dir}.log", file=sys.stderr)
        try:
            train_and_score(model_dir, row, settings[row])
            trained.append(trained_row(model_dir))
        except InputError as error:
            failed[row] = str(error)
            print(f"row {row} failed: {error}", file=sys.stderr)
        table = write_tables(root, trained)
    require(len(trained) > 0, "rows", "must have at least one that succeeds", failed)
    print(table, file=sys.stderr)
    return {"table": str(root / "table.md"), "rows": trained, "failed": failed}


def check_folder(root: Path) -> None:
    """Raises InputError for a data or model directory, or one whose table is not a sweep's."""
    from keras_transformer.support.errors import require

    foreign = [name for name in ("metadata.json", "config.json") if (root / name).exists()]
    is_sweep = any(root.glob("*.log")) or any(root.glob("*/sweep.json"))
    if not is_sweep:
        foreign += [name for name in ("table.md", "table.json") if (root / name).exists()]
    rule = "must be a separate directory or that of an earlier sweep"
    require(not foreign, "model_dir", rule, f"{root}, which holds {', '.join(foreign)}")


def write_tables(root: Path, trained: list[dict[str, Any]]) -> str:
    """Writes table.md and table.json for the rows so far; returns the former."""
    from keras_transformer.kit.paper.trained_rows import measured_table

    table = measured_table(trained)
    (root / "table.md").write_text(table + "\n", encoding="utf-8")
    (root / "table.json").write_text(json.dumps(trained, indent=2) + "\n", encoding="utf-8")
    return table


def train_and_score(model_dir: Path, row: str, settings: dict[str, int]) -> None:
    """Runs the two programs for a row, unless the same commands have already finished."""
    programs = [train_command(model_dir, row, settings), evaluate_command(model_dir)]
    done = model_dir / "sweep.json"
    content = json.dumps(programs)
    if done.exists() and done.read_bytes() == content.encode("utf-8"):
        return
    for arguments in programs:
        program(model_dir.with_suffix(".log"), *arguments)
    show_score(model_dir)
    done.write_text(content, encoding="utf-8")


def train_command(model_dir: Path, row: str, settings: dict[str, int]) -> list[str]:
    """Returns the program that trains a row, with its arguments."""
    command = ["train", f"--data_dir={FLAGS.data_dir}", f"--model_dir={model_dir}"]
    command.append(f"--preset={row}")
    for name, value in settings.items():
        command.append(f"--config={name}={value}")
    for setting in FLAGS.config:
        command.append(f"--config={setting}")
    command.append(f"--train_steps={FLAGS.train_steps}")
    if FLAGS.train_minutes:
        command.append(f"--train_minutes={FLAGS.train_minutes}")
    command.append(f"--tokens_per_batch={FLAGS.tokens_per_batch}")
    command.append(f"--checkpoint_minutes={FLAGS.checkpoint_minutes}")
    command += ["--keep_checkpoints=1", "--sample_sentences=0", f"--seed={FLAGS.seed}"]
    return command


def evaluate_command(model_dir: Path) -> list[str]:
    """Returns the program that scores a row, with its arguments."""
    paths = [f"--data_dir={FLAGS.data_dir}", f"--model_dir={model_dir}"]
    return ["evaluate", *paths, "--split=validation", f"--beam_size={FLAGS.beam_size}"]


def show_score(model_dir: Path) -> None:
    """Adds BLEU to the row's curves, for comparison in TensorBoard's HParams tab."""
    import tensorflow as tf

    from keras_transformer.kit.paper.trained_rows import trained_row

    row = trained_row(model_dir)
    writer = tf.summary.create_file_writer(str(model_dir / "tensorboard" / "validation"))
    with writer.as_default():
        tf.summary.scalar("quality/bleu", row["bleu"], step=row["steps"])
    writer.close()


def program(log: Path, name: str, *arguments: str) -> dict[str, Any]:
    """Runs bin/NAME.py with its output in `log`; raises InputError with its last line."""
    from keras_transformer.support.errors import InputError

    command = [sys.executable, str(Path(__file__).with_name(f"{name}.py")), *arguments]
    with open(log, "a", encoding="utf-8") as file:
        print(f"$ {as_typed(name, *arguments)}", file=file, flush=True)
        process = subprocess.Popen(command, stdout=file, stderr=file)
        try:
            code = process.wait()
        except KeyboardInterrupt:
            process.wait()  # Ctrl-C reached it too, and it is writing a checkpoint
            raise
    if code != 0:
        last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1]
        raise InputError(None, "must succeed", f"exit code {code}: {last}", f"bin/{name}.py")


if __name__ == "__main__":
    run(main)
