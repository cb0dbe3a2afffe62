"""What a model directory holds for the paper's tables: its row, size, training and scores."""

import dataclasses
import json
import shlex
from pathlib import Path
from typing import Any

from keras_transformer.analysis.complexity import count_parameters
from keras_transformer.errors import InputError, require
from keras_transformer.evaluation.results import read_results, read_training
from keras_transformer.presets import PRESETS, preset
from keras_transformer.training.model_directory import ModelDescription, read_description

# The columns of Table 3 that are settings, under this project's names.
MODEL_SETTINGS = ("num_layers", "d_model", "d_ff", "num_heads", "d_k", "d_v", "dropout")
SETTINGS = (*MODEL_SETTINGS, "label_smoothing")


def find_model_dirs(folders: list[str]) -> list[Path]:
    """The model directories among `folders`, and those directly inside of other `folders`.

    Raises:
        InputError: for a folder that neither is nor holds a model directory.
    """
    found = []
    for folder in map(Path, folders):
        inside = [folder] if (folder / "config.json").exists() else sorted(folder.glob("*"))
        dirs = [path for path in inside if (path / "config.json").exists()]
        rule = "--model_dirs must name directories that bin/train.py or bin/sweep.py made"
        require(bool(dirs), rule, folder)
        found += dirs
    return found


def read_measured(path: str | Path) -> list[dict[str, Any]]:
    """Reads rows that were written as JSON, such as the table.json of bin/sweep.py.

    Raises:
        InputError: if the file holds something else.
    """
    try:
        rows = json.loads(Path(path).read_text(encoding="utf-8"))
        if all(isinstance(row["row"], str) and "test" in row for row in rows):
            return rows
        received = "other content"
    except (OSError, ValueError, TypeError, KeyError) as error:
        received = error
    rule = "--measured must be a table.json of bin/sweep.py"
    raise InputError(f"{rule}. Received: {path} ({received})")


def trained_row(model_dir: str | Path) -> dict[str, Any]:
    """Reads what is known of a trained model; None stands for what has not been measured.

    Returns:
        {"row": its preset, "task", "model_dir", each of SETTINGS, "full_size": whether it has the
        settings of its preset, "vocab_size", "parameters", "tokens_per_batch", "steps", "minutes",
        "perplexity" and "bleu" of the validation split, "validation" and "test": the results of
        bin/evaluate.py for these splits, "data": what they were measured on, "commands": those
        that reproduce the row}.

    Raises:
        InputError: for a directory that bin/train.py did not make.
    """
    description = read_description(model_dir)
    model, training = description.model, description.training
    full_size = False
    if description.preset in PRESETS:
        original, _ = preset(description.preset, model.vocab_size)
        full_size = all(getattr(original, name) == getattr(model, name) for name in MODEL_SETTINGS)
    stand = read_training(model_dir)
    results = {split: read_results(model_dir, split) for split in ("validation", "test")}
    validation = results["validation"] or {}
    steps = validation.get("step", stand["steps"])
    data_dir = (results["validation"] or results["test"] or {}).get("data_dir", "DATA_DIR")
    return {
        "row": description.preset,
        "task": description.task,
        "model_dir": str(model_dir),
        **{name: getattr(model, name) for name in MODEL_SETTINGS},
        "label_smoothing": training.label_smoothing,
        "full_size": full_size,
        "vocab_size": model.vocab_size,
        "parameters": count_parameters(model)["total"],
        "tokens_per_batch": training.tokens_per_batch,
        "steps": steps,
        "minutes": stand["minutes"],
        "perplexity": validation.get("perplexity", stand["perplexity"]),
        "bleu": validation.get("bleu"),
        **results,
        "data": _data(results["validation"] or results["test"]),
        "commands": {
            "train": _training_command(model_dir, description, steps, data_dir),
            **{split: _evaluation_command(model_dir, split, results[split]) for split in results},
        },
    }


def again(row: dict[str, Any], split: str) -> str:
    """The commands that train a row's model again and measure its scores on `split`."""
    return " && ".join(filter(None, (row["commands"]["train"], row["commands"][split])))


def _training_command(
    model_dir: str | Path, description: ModelDescription, steps: int | None, data_dir: str
) -> str | None:
    if description.preset not in PRESETS:
        return None
    originals = preset(description.preset, description.model.vocab_size)
    settings = []
    for config, original in zip((description.model, description.training), originals, strict=True):
        for name, value in dataclasses.asdict(config).items():
            if name in ("tokens_per_batch", "accumulate_steps", "precision", "seed"):
                settings.append(f"--{name}={value}")
            elif value != getattr(original, name):
                settings.append(f"--config={name}={value}")
    arguments = [f"--data_dir={data_dir}", f"--model_dir={model_dir}"]
    arguments += [f"--preset={description.preset}", *settings, f"--train_steps={steps}"]
    return f"python bin/train.py {shlex.join(arguments)}"


def _evaluation_command(
    model_dir: str | Path, split: str, results: dict[str, Any] | None
) -> str | None:
    if results is None:
        return None
    names = ("data_dir", "checkpoint", "beam_size", "alpha")
    flags = {"model_dir": model_dir, "split": split}
    flags |= {name: results[name] for name in names if name in results}
    arguments = [f"--{name}={value}" for name, value in flags.items()]
    return f"python bin/evaluate.py {shlex.join(arguments)}"


def _data(results: dict[str, Any] | None) -> str | None:
    """The data of an evaluation, in words: "tfds:wmt14_translate/de-en en-de"."""
    if results is None or "dataset" not in results:
        return None
    languages = "-".join(filter(None, results.get("languages", ())))
    named = results["dataset"] not in ("files", "treebank")
    source = results["dataset"] if named else results["data_dir"]
    return f"{source} {languages}".strip()
