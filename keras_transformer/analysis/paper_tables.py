"""Tables 1, 2 and 4 of the paper beside this project's figures. Table 3 has its own module."""

import json
from pathlib import Path
from typing import Any

from keras_transformer.analysis.complexity import SENTENCE_TOKENS, paper_training_costs
from keras_transformer.analysis.paper import TABLE_1, TABLE_2, TABLE_4
from keras_transformer.analysis.path_length import path_lengths
from keras_transformer.analysis.text_table import fixed, text_table
from keras_transformer.analysis.trained_rows import again
from keras_transformer.errors import InputError

NOT_RUN = "not run here"

# Rows of Table 1 -> their name in analysis/path_length.py, and the layers that
# benchmarks/layers.py times.
_LAYERS = {
    "Self-Attention": ("self-attention", ("self-attention",)),
    "Recurrent": ("recurrent", ("LSTM", "GRU")),
    "Convolutional": ("convolutional", ("convolution", "separable")),
    "Self-Attention (restricted)": ("restricted self-attention", ("restricted",)),
}
PATH_SIZES = {"length": 128, "kernel": 3, "window": 16}  # n, k and r for which paths are counted
LAYERS_COMMAND = "python benchmarks/layers.py > runs/layers.json"


def read_layers(path: str | Path) -> dict[str, Any]:
    """Reads the output of benchmarks/layers.py: layer -> its fitted exponents.

    Raises:
        InputError: if the file has none.
    """
    try:
        return json.loads(Path(path).read_text(encoding="utf-8").splitlines()[-1])["layers"]
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        rule = "--layers must be the output of benchmarks/layers.py"
        raise InputError(f"{rule}. Received: {path} ({error})") from None


def table_1(layers: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Table 1 as data: the terms, path lengths counted, and exponents measured.

    Args:
        layers: result of read_layers, or None.
    """
    lengths, rows = path_lengths(**PATH_SIZES), []
    for layer in TABLE_1:
        path, timed = _LAYERS[layer.name]
        rows.append(
            {
                "layer": layer.name,
                "paper_complexity": layer.complexity,
                "paper_sequential_operations": layer.sequential,
                "paper_maximum_path": layer.path,
                "maximum_path": lengths[path],
                "measured": {
                    name: {letter: layers[name].get(f"{letter}_exponent") for letter in "nd"}
                    for name in timed
                    if layers and name in layers
                },
                "command": LAYERS_COMMAND,
            }
        )
    return rows


def show_table_1(rows: list[dict[str, Any]]) -> str:
    """Lays out the rows of `table_1`."""
    n, k, r = PATH_SIZES.values()
    header = ("layer", "complexity", "sequential", "maximum path", f"path at n={n}, k={k}, r={r}")
    lines = [
        (
            *(row["layer"], row["paper_complexity"], row["paper_sequential_operations"]),
            *(row["paper_maximum_path"], row["maximum_path"], _exponents(row["measured"])),
        )
        for row in rows
    ]
    return (
        f"{text_table((*header, 'measured growth of time'), lines)}\n"
        "Paths are counted by reachability (analysis/path_length.py). O(log_k(n)) needs dilated\n"
        "kernels; contiguous ones, counted here, see (k - 1) / 2 to each side a layer, and a\n"
        "neighbourhood of r sees r / 2. Growth, measured again:\n"
        f"  {LAYERS_COMMAND}\n  python bin/paper_tables.py --table=1 --layers=runs/layers.json"
    )


def table_2(trained: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Table 2 as data.

    Args:
        trained: rows of trained_rows.trained_row; those with BLEU of the test split are taken.

    Returns:
        {"systems": the paper's rows, "measured": ours, "training_cost": of the paper's trainings}.
    """
    ours = [
        {
            **{name: row[name] for name in ("row", "model_dir", "full_size", "steps", "data")},
            **{name: row["test"].get(name) for name in ("bleu", "signature", "paper_bleu")},
            "command": again(row, "test"),
        }
        for row in trained
        if row["test"] and "bleu" in row["test"]
    ]
    systems = [{**system._asdict(), "command": _COMMANDS_2.get(system.name)} for system in TABLE_2]
    return {"systems": systems, "measured": ours, "training_cost": paper_training_costs()}


_PAIRS = {"en-de": ("base", "big"), "en-fr": ("base", "big_en_fr")}
_COMMANDS_2 = {
    name: [
        f"python bin/train.py --data_dir=runs/{pair}/data --model_dir=runs/{pair}/{presets[place]} "
        f"--preset={presets[place]} --train_steps={steps} && python bin/evaluate.py "
        f"--data_dir=runs/{pair}/data --model_dir=runs/{pair}/{presets[place]} "
        f"--checkpoint=average:{averaged}"
        for pair, presets in _PAIRS.items()
    ]
    for place, (name, steps, averaged) in enumerate(
        [("Transformer (base model)", 100_000, 5), ("Transformer (big)", 300_000, 20)]
    )
}


def show_table_2(table: dict[str, list[dict[str, Any]]]) -> str:
    """Lays out `table_2`, with the commands under it."""
    header = ("system", "En-De", "En-Fr", "FLOPs En-De", "FLOPs En-Fr", "version 1", "ours")
    lines = [
        (
            *(row["name"], fixed(row["bleu_de"], 2), fixed(row["bleu_fr"], 2)),
            *(_flops(row["flops_de"]), _flops(row["flops_fr"]), _version_1(row)),
            None if row["command"] is None else _reproduced(row["name"], table["measured"]),
        )
        for row in table["systems"]
    ]
    header_cost = ("training", "paper's estimate", "time x GPUs x rate", "model FLOPs", "share")
    costs = [
        (
            f"{cost['model']}: {cost['hours']:g} h x {cost['gpus']} {cost['gpu']}",
            next(_flops(row.flops_de) for row in TABLE_2 if f"({cost['model']}" in row.name),
            *(_flops(cost["estimated_flops"]), _flops(cost["model_flops"])),
            f"{cost['utilization']:.0%}",
        )
        for cost in table["training_cost"]
    ]
    commands = [f"  {c}" for row in table["systems"] for c in row["command"] or ()]
    return "\n".join(
        [
            text_table(header, lines),
            *("Each Transformer:", *commands, "", text_table(header_cost, costs)),
            "Rates in TFLOP/s: K80 2.8, K40 3.7, M40 6.0, P100 9.5. Model FLOPs: matrix products",
            f"of 25,000 tokens a side and step, in sentences of {SENTENCE_TOKENS}, 37,000 ids,",
            "three forward passes a step; share: of the sustained rate. Again:",
            "  python bin/paper_tables.py --table=2",
            *_show_measured_2(table["measured"]),
        ]
    )


def _show_measured_2(measured: list[dict[str, Any]]) -> list[str]:
    if not measured:
        return ["Measured here, test split: nothing among --model_dirs and --measured."]
    header = ("measured here", "steps", "as the paper scored", "sacreBLEU", "signature", "on")
    lines = [
        (
            *(row["row"] + (" (full size)" if row["full_size"] else ""), row["steps"]),
            *(fixed(row["paper_bleu"], 2), fixed(row["bleu"], 2), row["signature"], row["data"]),
        )
        for row in measured
    ]
    return ["", text_table(header, lines), "Again:", *(f"  {row['command']}" for row in measured)]


def table_4(trained: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Table 4 as data: {"parsers": the paper's rows, "measured": ours with their test F1}."""
    presets = {"WSJ only, discriminative": "wsj", "semi-supervised": "semi_supervised"}
    parsers = []
    for parser in TABLE_4:
        ours = "Transformer" in parser.name
        command = _parsing_command(presets[parser.training]) if ours else None
        parsers.append({**parser._asdict(), "command": command})
    measured = [
        {
            **{name: row[name] for name in ("row", "model_dir", "steps", "minutes", "data")},
            "f1": row["test"]["f1"],
            "command": again(row, "test"),
        }
        for row in trained
        if row["test"] and "f1" in row["test"]
    ]
    return {"parsers": parsers, "measured": measured}


def _parsing_command(kind: str) -> str:
    of_row = f"--data_dir=runs/{kind}/data --model_dir=runs/{kind}/model"
    return (
        f"python bin/train.py {of_row} --preset=parsing_{kind} && "
        f"python bin/evaluate.py {of_row} --beam_size=21 --alpha=0.3"
    )


def show_table_4(table: dict[str, list[dict[str, Any]]]) -> str:
    """Lays out `table_4`, with the commands under it."""
    lines = [
        (row["name"], row["training"], row["f1"], NOT_RUN if row["command"] else None)
        for row in table["parsers"]
    ]
    commands = [f"  {row['command']}" for row in table["parsers"] if row["command"]]
    shown = [
        text_table(("parser", "training", "WSJ 23 F1", "ours"), lines),
        *("The Wall Street Journal's trees are licensed. Each Transformer:", *commands),
    ]
    if table["measured"]:
        header = ("measured here", "F1 test", "steps", "minutes", "on")
        lines = [
            (row["row"], fixed(row["f1"], 2), row["steps"], row["minutes"], row["data"])
            for row in table["measured"]
        ]
        shown += ["", text_table(header, lines), "Again:"]
        shown += [f"  {row['command']}" for row in table["measured"]]
    return "\n".join(shown)


def _exponents(measured: dict[str, dict[str, float | None]]) -> str:
    shown = (f"{name}: n^{found['n']}, d^{found['d']}" for name, found in measured.items())
    return "; ".join(shown) or NOT_RUN


def _flops(value: float | None) -> str | None:
    return None if value is None else f"{value:.1e}".replace("e+", "e")


def _version_1(row: dict[str, Any]) -> str | None:
    scores = {"En-De": row["bleu_de_v1"], "En-Fr": row["bleu_fr_v1"]}
    return ", ".join(f"{pair} {bleu}" for pair, bleu in scores.items() if bleu) or None


def _reproduced(system: str, measured: list[dict[str, Any]]) -> str:
    """Scores of full-size models of WMT14, the paper's own data; NOT_RUN if there are none."""
    presets = ("base",) if "base" in system else ("big", "big_en_fr")
    scores = [
        f"{row['data'].split()[-1]} {row['paper_bleu']:.2f}"
        for row in measured
        if row["row"] in presets and row["full_size"] and "wmt14" in (row["data"] or "")
        if row["paper_bleu"] is not None
    ]
    return ", ".join(scores) or NOT_RUN
