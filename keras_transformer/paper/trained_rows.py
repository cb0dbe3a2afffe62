"""Rows of the paper's tables as they were trained: which there are, smaller ones, what they gave.

bin/sweep.py trains rows of Table 3. A reduced row has everything divided alike, so that the ratios
stay the paper's. With layers divided by 2 and widths by 8 the base model has N=3, d_model=64,
d_ff=256, h=8 and d_k=d_v=8; row C1 has N=1 where the paper has 2 of 6, and row A1 one head of 64.
Heads are not divided, as their number is the subject of rows A.
"""

import dataclasses
import shlex
from pathlib import Path
from typing import Any

from keras_transformer.config import TransformerConfig
from keras_transformer.errors import InputError, require
from keras_transformer.evaluation.results import RESULTS, read_results, read_training
from keras_transformer.fields import Count
from keras_transformer.files import read_json, to_path
from keras_transformer.paper.complexity import count_parameters
from keras_transformer.paper.published import SETTINGS, TABLE_3, Variation
from keras_transformer.presets import PRESETS, preset
from keras_transformer.text_table import table_of
from keras_transformer.training.model_directory import read_description

# Settings of a training run that are flags of their own.
FLAGS = ("tokens_per_batch", "accumulate_steps", "precision", "seed")
DIVIDED_WIDTHS = ("d_model", "d_ff", "d_k", "d_v")
PAPER_COLUMNS = {
    "paper: PPL": "paper_perplexity:.2f",
    "BLEU": "paper_bleu:.1f",
    "params 10^6": "paper_parameters_millions",
}
# What tables use of a row that was written, beside its settings; see `trained_row`.
_ROW = {
    **{"row": str, "task": str, "model_dir": str, "full_size": bool, "parameters": Count},
    **{"steps": Count | None, "minutes": float | None, "data": str | None},
    **{"perplexity": float | None, "bleu": float | None, "commands": dict[str, str | None]},
    **{"validation?": RESULTS, "test?": RESULTS},
}


def find_model_dirs(folders: list[str]) -> list[Path]:
    """The model directories among `folders`, and those directly inside of other `folders`."""
    found = []
    for folder in map(to_path, folders):
        configs = list(folder.glob("config.json")) or sorted(folder.glob("*/config.json"))
        rule = "--model_dirs must name directories that bin/train.py or bin/sweep.py made"
        require(bool(configs), rule, folder)
        found += [path.parent for path in configs]
    return found


def read_measured(path: str | Path) -> list[dict[str, Any]]:
    """Reads rows that were written as JSON, such as the table.json of bin/sweep.py."""
    try:
        return read_json(path, list[_ROW])
    except InputError as error:
        rule = "--measured must be a table.json of bin/sweep.py"
        raise InputError(f"{rule}. Received: {error}") from None


def trained_row(model_dir: str | Path) -> dict[str, Any]:
    """Reads what is known of a trained model; None stands for what has not been measured.

    "full_size" says whether the settings of Table 3 are the preset's. Perplexity and BLEU are of
    the validation split; "validation" and "test" are the results of bin/evaluate.py.
    """
    description, stand = read_description(model_dir), read_training(model_dir)
    settings, original = _settings(description.model, description.training), {}
    if description.preset in PRESETS:
        original = _settings(*preset(description.preset, description.model.vocab_size))
    shown = {name: settings[name] for name in SETTINGS.values()}
    results = {split: read_results(model_dir, split) for split in ("validation", "test")}
    validation = results["validation"] or {}
    evaluated = validation or results["test"] or {}
    row = {
        "row": description.preset,
        "task": description.task,
        "model_dir": str(model_dir),
        **shown,
        "full_size": shown.items() <= original.items(),
        "vocab_size": description.model.vocab_size,
        "parameters": count_parameters(description.model),
        "tokens_per_batch": description.training.tokens_per_batch,
        "steps": validation.get("step", stand["steps"]),
        "minutes": stand["minutes"],
        "perplexity": validation.get("perplexity", stand["perplexity"]),
        "bleu": validation.get("bleu"),
        **results,
        "data": _data(evaluated),
    }
    data_dir = evaluated.get("data_dir", "DATA_DIR")
    commands = {"train": _training(row, data_dir, settings, original) if original else None}
    for split, found in results.items():
        commands[split] = _evaluation(model_dir, split, found) if found else None
    return {**row, "commands": commands}


def again(row: dict[str, Any], split: str) -> str:
    """The commands that train a row's model again and measure its scores on `split`."""
    return " && ".join(filter(None, map(row["commands"].get, ("train", split))))


def _settings(*configs: Any) -> dict[str, Any]:
    return {name: value for each in configs for name, value in dataclasses.asdict(each).items()}


def _training(
    row: dict[str, Any], data_dir: str, settings: dict[str, Any], original: dict[str, Any]
) -> str:
    flags = {"data_dir": data_dir, "model_dir": row["model_dir"], "preset": row["row"]}
    for name, value in settings.items():
        if name in FLAGS:
            flags[name] = value
        elif value != original[name]:
            flags[f"config={name}"] = value
    return _command("train", {**flags, "train_steps": row["steps"]})


def _evaluation(model_dir: str | Path, split: str, results: dict[str, Any]) -> str:
    names = ("data_dir", "checkpoint", "beam_size", "alpha")
    of_results = {name: results[name] for name in names if name in results}
    return _command("evaluate", {"model_dir": model_dir, "split": split, **of_results})


def _command(program: str, flags: dict[str, Any]) -> str:
    return f"python bin/{program}.py {shlex.join(f'--{name}={flags[name]}' for name in flags)}"


def _data(results: dict[str, Any]) -> str | None:
    """The data of an evaluation, in words: "tfds:wmt14_translate/de-en en-de"."""
    if "dataset" not in results:
        return None
    languages = "-".join(filter(None, results.get("languages") or ()))
    named = results["dataset"] not in ("files", "treebank")
    source = results["dataset"] if named else results.get("data_dir")
    return f"{source} {languages}".strip()


def select_rows(names: list[str]) -> list[str]:
    """Expands names of rows and letters of groups; each row once, in the order of Table 3."""
    known = [*TABLE_3, *dict.fromkeys(row[0] for row in TABLE_3 if row[1:].isdecimal())]
    for name in names or [""]:
        require(name in known, f"--rows must be of Table 3's {', '.join(known)}", repr(name))
    return [row for row in TABLE_3 if row in names or (row[1:].isdecimal() and row[0] in names)]


def reduced_settings(row: str, divide_layers: int, divide_widths: int) -> dict[str, int]:
    """The settings of TransformerConfig that make preset `row` smaller, without remainders."""
    full, _ = preset(row, TransformerConfig.vocab_size)
    divisors = {"num_layers": divide_layers} | dict.fromkeys(DIVIDED_WIDTHS, divide_widths)
    settings = {}
    for name, divisor in divisors.items():
        settings[name], rest = divmod(getattr(full, name), divisor)
        flag = "layers" if name == "num_layers" else "widths"
        rule = f"--divide_{flag} must divide {name}={getattr(full, name)} of row {row}"
        require(rest == 0, rule, divisor)
    return settings


def measured_table(trained: list[dict[str, Any]]) -> str:
    """Rows of trained_rows.trained_row beside the paper's figures, as text and Markdown."""
    measured = {"steps": "steps", "PPL dev": "perplexity:.2f", "BLEU dev": "bleu:.1f"}
    columns = {"row": "row", **SETTINGS, **measured, "parameters": "parameters:,", **PAPER_COLUMNS}
    rows = [{**TABLE_3.get(row["row"], Variation())._asdict(), **row} for row in trained]
    return table_of({**columns, "measured on": "data"}, rows)
