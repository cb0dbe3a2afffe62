"""Trained rows of the paper's tables: finding them, reducing them, and reading their results.

A sweep trains rows of Table 3. A reduced row is divided uniformly, which keeps the paper's ratios.
With layers divided by 2 and widths by 8, the base model has N=3, d_model=64, d_ff=256, h=8 and
d_k=d_v=8; row C1 has N=1 where the paper has 2 of 6, and row A1 has one head of 64. The number of
heads is not divided, as it is the subject of rows A.
"""

import dataclasses
import shlex
from pathlib import Path
from typing import Any

from keras_transformer.core.config import TransformerConfig
from keras_transformer.core.presets import PRESETS, preset
from keras_transformer.core.training.model_directory import read_description
from keras_transformer.kit.paper.published import SETTINGS, TABLE_3, Variation
from keras_transformer.support.errors import InputError, require
from keras_transformer.support.fields import Count
from keras_transformer.support.files.json_files import read_json
from keras_transformer.support.files.paths import to_path
from keras_transformer.support.text_table import table_of
from keras_transformer.use.store.results import RESULTS, read_results, read_training

# Settings of a training run that have their own flags in its command.
TRAINING_FLAGS = ("tokens_per_batch", "accumulate_steps", "precision", "seed")
PAPER_COLUMNS = {
    "paper: PPL": "paper_perplexity:.2f",
    "BLEU": "paper_bleu:.1f",
    "params 10^6": "paper_parameters_millions",
}
# The fields of a stored row that tables use, besides its settings; see `trained_row`.
_ROW = {
    "row": str,
    "task": str,
    "model_dir": str,
    "full_size": bool,
    "parameters": Count,
    "steps": Count | None,
    "minutes": float | None,
    "data": str | None,
    "perplexity": float | None,
    "bleu": float | None,
    "commands": dict[str, str | None],
    "validation?": RESULTS,
    "test?": RESULTS,
}


def find_model_dirs(model_dirs: list[str]) -> list[Path]:
    """Finds the directories of trained models.

    Args:
        model_dirs: model directories, and folders that contain some.

    Returns:
        The model directories, in the order of the arguments.

    Raises:
        InputError: if a folder neither is nor contains a model directory.
    """
    directories = []
    for folder in map(to_path, model_dirs):
        configs = list(folder.glob("config.json")) or sorted(folder.glob("*/config.json"))
        rule = "must name directories of trained models, or folders of these"
        require(bool(configs), "model_dirs", rule, folder)
        directories += [path.parent for path in configs]
    return directories


def read_measured(measured: str | Path) -> list[dict[str, Any]]:
    """Reads rows stored as JSON, such as the table.json of a sweep.

    Args:
        measured: the file.

    Returns:
        The rows; see `trained_row`.

    Raises:
        InputError: if the file cannot be read, or contains anything else.
    """
    try:
        return read_json(measured, list[_ROW])
    except InputError as error:
        raise InputError("measured", "must be the table.json of a sweep", str(error)) from None


def trained_row(model_dir: str | Path) -> dict[str, Any]:
    """Reads the settings and results of a trained model.

    Args:
        model_dir: the model directory.

    Returns:
        Plain JSON values; None if not measured. "full_size" tells whether the settings of Table 3
        equal the preset's. "perplexity" and "bleu" are those on the validation split; "validation"
        and "test" are the results of evaluations. "commands" has the commands that train the model
        again ("train") and evaluate it again on each split.

    Raises:
        InputError: if the folder is not a model directory, or has damaged files.
    """
    description = read_description(model_dir)
    training = read_training(model_dir)
    settings = _settings(description.model, description.training)
    preset_settings = {}
    if description.preset in PRESETS:
        preset_settings = _settings(*preset(description.preset, description.model.vocab_size))
    shown_settings = {name: settings[name] for name in SETTINGS.values()}
    validation = read_results(model_dir, "validation")
    test = read_results(model_dir, "test")
    evaluated = validation or test or {}
    row = {
        "row": description.preset,
        "task": description.task,
        "model_dir": str(model_dir),
        **shown_settings,
        "full_size": shown_settings.items() <= preset_settings.items(),
        "vocab_size": description.model.vocab_size,
        "parameters": description.model.parameters,
        "tokens_per_batch": description.training.tokens_per_batch,
        "steps": training["steps"],
        "minutes": training["minutes"],
        "perplexity": training["perplexity"],
        "bleu": None,
        "validation": validation,
        "test": test,
        "data": _data(evaluated),
    }
    if validation:
        row["steps"] = validation.get("step", training["steps"])
        row["perplexity"] = validation.get("perplexity", training["perplexity"])
        row["bleu"] = validation.get("bleu")
    training_command = None
    if preset_settings:
        data_dir = evaluated.get("data_dir", "DATA_DIR")
        training_command = _training_command(row, data_dir, settings, preset_settings)
    row["commands"] = {
        "train": training_command,
        "validation": _evaluation_command(model_dir, "validation", validation),
        "test": _evaluation_command(model_dir, "test", test),
    }
    return row


def commands_again(row: dict[str, Any], split: str) -> str:
    """Returns the commands that train a row's model again and evaluate it on `split`."""
    commands = [row["commands"].get("train"), row["commands"].get(split)]
    return " && ".join(command for command in commands if command)


def _settings(*configs: Any) -> dict[str, Any]:
    """Returns the fields of all `configs` together."""
    settings = {}
    for config in configs:
        settings.update(dataclasses.asdict(config))
    return settings


def _training_command(
    row: dict[str, Any], data_dir: str, settings: dict[str, Any], preset_settings: dict[str, Any]
) -> str:
    flags = {"data_dir": data_dir, "model_dir": row["model_dir"], "preset": row["row"]}
    for name, value in settings.items():
        if name in TRAINING_FLAGS:
            flags[name] = value
        elif value != preset_settings[name]:
            flags[f"config={name}"] = value
    flags["train_steps"] = row["steps"]
    return _command("train", flags)


def _evaluation_command(
    model_dir: str | Path, split: str, results: dict[str, Any] | None
) -> str | None:
    """Returns the command that reproduces these results; None if there are none."""
    if not results:
        return None
    flags = {"model_dir": model_dir, "split": split}
    for name in ("data_dir", "checkpoint", "beam_size", "alpha"):
        if name in results:
            flags[name] = results[name]
    return _command("evaluate", flags)


def _command(program: str, flags: dict[str, Any]) -> str:
    arguments = [f"--{name}={value}" for name, value in flags.items()]
    return f"python bin/{program}.py {shlex.join(arguments)}"


def _data(results: dict[str, Any]) -> str | None:
    """Returns a description of an evaluation's data: "tfds:wmt14_translate/de-en en-de"."""
    if "dataset" not in results:
        return None
    languages = "-".join(filter(None, results.get("languages") or ()))
    is_local = results["dataset"] in ("files", "treebank")
    source = results.get("data_dir") if is_local else results["dataset"]
    return f"{source} {languages}".strip()


def select_rows(rows: list[str]) -> list[str]:
    """Expands the letters of groups to the names of their rows.

    Args:
        rows: names of rows such as "A1", and letters of groups such as "A".

    Returns:
        The names of the rows, each once, in the order of Table 3.

    Raises:
        InputError: for a name that is not in Table 3.
    """
    groups = {name: name[0] for name in TABLE_3 if name[1:].isdecimal()}
    known = [*TABLE_3, *dict.fromkeys(groups.values())]
    for name in rows or [""]:
        require(name in known, "rows", f"must be of Table 3's {', '.join(known)}", repr(name))
    return [name for name in TABLE_3 if name in rows or groups.get(name) in rows]


def reduced_settings(row: str, divide_layers: int, divide_widths: int) -> dict[str, int]:
    """Returns the settings of TransformerConfig that make a row of Table 3 smaller.

    Args:
        row: the name of the row, which is also the name of a preset.
        divide_layers: divisor of the number of layers.
        divide_widths: divisor of d_model, d_ff, d_k and d_v.

    Returns:
        Setting -> its smaller value.

    Raises:
        InputError: if a divisor leaves a remainder.
    """
    full, _ = preset(row, TransformerConfig.vocab_size)
    widths = {"d_model": full.d_model, "d_ff": full.d_ff, "d_k": full.d_k, "d_v": full.d_v}
    settings = {"num_layers": _divided("num_layers", full.num_layers, divide_layers, "layers", row)}
    for name, width in widths.items():
        settings[name] = _divided(name, width, divide_widths, "widths", row)
    return settings


def _divided(name: str, number: int, divisor: int, divided: str, row: str) -> int:
    rule = f"must divide {name}={number} of row {row}"
    require(number % divisor == 0, f"divide_{divided}", rule, divisor)
    return number // divisor


def measured_table(trained: list[dict[str, Any]]) -> str:
    """Returns a table, in text and Markdown, of rows from `trained_row` and the paper's figures."""
    columns = {
        "row": "row",
        **SETTINGS,
        "steps": "steps",
        "PPL dev": "perplexity:.2f",
        "BLEU dev": "bleu:.1f",
        "parameters": "parameters:,",
        **PAPER_COLUMNS,
        "measured on": "data",
    }
    rows = []
    for row in trained:
        printed = TABLE_3.get(row["row"], Variation())
        rows.append({**printed._asdict(), **row})
    return table_of(columns, rows)
