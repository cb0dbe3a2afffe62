"""Tables 1 to 4 of the paper beside this project's figures, each as data and as text."""

import json
from pathlib import Path
from typing import Any

from keras_transformer.errors import InputError
from keras_transformer.files import to_path
from keras_transformer.paper import published
from keras_transformer.paper.complexity import VOCABULARY, count_parameters, paper_training_costs
from keras_transformer.paper.path_length import path_lengths
from keras_transformer.paper.trained_rows import PAPER_COLUMNS, again, measured_table
from keras_transformer.presets import PRESETS, preset
from keras_transformer.text_table import table_of

Rows = list[dict[str, Any]]

NOT_RUN = "not run here"
# Rows of Table 1 -> their name in paper/path_length.py, and the layers that
# benchmarks/layers.py times.
LAYERS = {
    "Self-Attention": ("self-attention", ("self-attention",)),
    "Recurrent": ("recurrent", ("LSTM", "GRU")),
    "Convolutional": ("convolutional", ("convolution", "separable")),
    "Self-Attention (restricted)": ("restricted self-attention", ("restricted",)),
}
LAYERS_COMMAND = "python benchmarks/layers.py > runs/layers.json"
# The vocabulary that gives the printed number of parameters; the paper does not tell it.
FITTING_VOCABULARY = dict.fromkeys(published.TABLE_3, 41_000) | {"big": 36_000}

NOTE_1 = """\
Paths are counted (paper/path_length.py) for contiguous kernels, which see (k - 1) / 2 to each
side; O(log_k(n)) needs dilated ones. A neighbourhood of r sees r / 2. Growth, measured again:"""
NOTE_2 = """\
Model FLOPs: matrix products of 25,000 tokens a side and step, in sentences of 25, 37,000 ids,
three forward passes a step; share: of what the GPUs sustain, 9.5 TFLOP/s each."""
NOTE_3 = """\
Parameters: the paper gives no vocabulary for its counts. With 41,000 ids every row comes out as
printed, but big, whose 213 million mean 36,000; section 5.1 says "about 37000". Blank settings are
the base model's; row E learns its positions. The paper's PPL and BLEU are on newstest2013, of the
last checkpoint, not averaged. Each row:"""
NOTE_4 = "The Wall Street Journal's trees are licensed. Each Transformer:"


def read_layers(path: str | Path) -> dict[str, Any]:
    """Reads the output of benchmarks/layers.py: layer -> its fitted exponents."""
    try:
        layers = json.loads(to_path(path).read_bytes().splitlines()[-1])["layers"]
        return {name: {**exponents} for name, exponents in layers.items()}
    except Exception as error:  # content of any kind
        rule = "--layers must be the output of benchmarks/layers.py"
        raise InputError(f"{rule}. Received: {path} ({error})") from None


def table_1(layers: dict[str, Any]) -> tuple[Rows, str]:
    """Table 1: the paper's terms, path lengths counted, and exponents measured (read_layers)."""
    n, k, r = 128, 3, 16  # for which paths are counted
    lengths, rows = path_lengths(n, k, r), []
    for printed in published.TABLE_1:
        path, timed = LAYERS[printed.layer]
        measured = {
            name: {letter: layers[name].get(f"{letter}_exponent") for letter in "nd"}
            for name in timed
            if name in layers
        }
        growth = (f"{name}: n^{of['n']}, d^{of['d']}" for name, of in measured.items())
        rows.append(
            {
                **printed._asdict(),
                "maximum_path": lengths[path],
                "measured": measured,
                "growth": "; ".join(growth) or NOT_RUN,
                "command": LAYERS_COMMAND,
            }
        )
    columns = {
        **{"layer": "layer", "complexity": "paper_complexity"},
        **{"sequential": "paper_sequential_operations", "maximum path": "paper_maximum_path"},
        **{f"path at n={n}, k={k}, r={r}": "maximum_path", "measured growth of time": "growth"},
    }
    again_shown = "python bin/paper_tables.py --table=1 --layers=runs/layers.json"
    return rows, _text(columns, rows, NOTE_1, [LAYERS_COMMAND, again_shown])


def table_2(trained: Rows) -> tuple[dict[str, Rows], str]:
    """Table 2: {"systems": the paper's rows, "measured": ours, "training_cost": the paper's}.

    Of the rows of trained_rows.trained_row, those with BLEU of the test split are taken.
    """
    measured = _tested(trained, "bleu", "signature", "paper_bleu")
    systems = [{**system._asdict(), "command": None, "ours": None} for system in published.TABLE_2]
    base, big = systems[-2:]
    base["command"] = [
        _commands(name, "base", 100_000, "--checkpoint=average:5") for name in ("en-de", "en-fr")
    ]
    big["command"] = [
        _commands("en-de", "big", 300_000, "--checkpoint=average:20"),
        _commands("en-fr", "big_en_fr", 300_000, "--checkpoint=average:20"),
    ]
    wmt14 = [row for row in measured if "wmt14" in (row["data"] or "")]
    base["ours"] = _full_size(wmt14, ["base"], "paper_bleu")
    big["ours"] = _full_size(wmt14, ["big", "big_en_fr"], "paper_bleu")
    columns = {
        **{"system": "name", "En-De": "bleu_de:.2f", "En-Fr": "bleu_fr:.2f"},
        **{"FLOPs En-De": "flops_de:.1e", "FLOPs En-Fr": "flops_fr:.1e"},
        **{"En-De, version 1": "bleu_de_v1", "En-Fr, version 1": "bleu_fr_v1", "ours": "ours"},
    }
    costs = paper_training_costs()
    cost_columns = {
        **{"training": "model", "hours": "hours", "GPUs": "gpus"},
        **{"time x GPUs x rate": "estimated_flops:.1e", "model FLOPs": "model_flops:.1e"},
        "share": "utilization:.0%",
    }
    scores = {"as the paper scored": "paper_bleu:.2f", "sacreBLEU": "bleu:.2f"}
    text = [
        _text(columns, systems, "Each Transformer:", base["command"] + big["command"]),
        _text(cost_columns, costs, NOTE_2),
        _tested_text({**scores, "signature": "signature"}, measured),
    ]
    data = {"systems": systems, "measured": measured, "training_cost": costs}
    return data, "\n\n".join(text)


def table_3(trained: Rows) -> tuple[Rows, str]:
    """Table 3: the paper's figures, ours, and the commands; other translation presets come last."""
    translating = [row for row in trained if row.get("task") != "parsing" and row["row"] in PRESETS]
    rows = []
    for name in dict.fromkeys([*published.TABLE_3, *(row["row"] for row in translating)]):
        printed = published.TABLE_3.get(name, published.Variation())
        fitting = FITTING_VOCABULARY.get(name)
        measured = [row for row in translating if row["row"] == name]
        steps = 1000 * (printed.thousand_steps or 100)
        rows.append(
            {
                "row": name,
                **printed._asdict(),
                "parameters": count_parameters(preset(name, VOCABULARY)[0]),
                "parameters_fitting": fitting and count_parameters(preset(name, fitting)[0]),
                "fitting_vocabulary": fitting,
                "command": _commands("en-de", name, steps, "--split=validation"),
                "ours": "below" if measured else NOT_RUN,
                "measured": [{**row, "command": again(row, "validation")} for row in measured],
            }
        )
    columns = {
        **{"row": "row", **published.SETTINGS, **PAPER_COLUMNS, "params, V=37,000": "parameters:,"},
        **{"params, fitting V": "parameters_fitting:,", "fitting V": "fitting_vocabulary:,"},
        "ours": "ours",
    }
    text = _text(columns, rows, NOTE_3, [f"{row['row']:5} {row['command']}" for row in rows])
    found = [row for each in rows for row in each["measured"]]
    if found:
        commands = [f"  {row['row']:5} {row['command']}" for row in found]
        text = "\n".join([text, "", measured_table(found), "What was measured:", *commands])
    return rows, text


def table_4(trained: Rows) -> tuple[dict[str, Rows], str]:
    """Table 4: {"parsers": the paper's rows, "measured": ours with their test F1}."""
    data_dirs = {"WSJ only, discriminative": "wsj", "semi-supervised": "semi_supervised"}
    measured, parsers, search = _tested(trained, "f1"), [], "--beam_size=21 --alpha=0.3"
    for parser in published.TABLE_4:
        row = {**parser._asdict(), "command": None, "ours": None}
        if "Transformer" in parser.name:
            data = data_dirs[parser.training]
            row["command"] = _commands(data, f"parsing_{data}", 100_000, search)
            row["ours"] = _full_size(measured, [f"parsing_{data}"], "f1")
        parsers.append(row)
    columns = {"parser": "name", "training": "training", "WSJ 23 F1": "f1", "ours": "ours"}
    commands = [row["command"] for row in parsers if row["command"]]
    scores = {"F1 test": "f1:.2f", "minutes": "minutes"}
    text = [_text(columns, parsers, NOTE_4, commands), _tested_text(scores, measured)]
    return {"parsers": parsers, "measured": measured}, "\n\n".join(text)


def _commands(data: str, name: str, train_steps: int, evaluation: str) -> str:
    """Those that train a preset at full size and score it."""
    paths = f"--data_dir=runs/{data}/data --model_dir=runs/{data}/{name}"
    return (
        f"python bin/train.py {paths} --preset={name} --train_steps={train_steps} && "
        f"python bin/evaluate.py {paths} {evaluation}"
    )


def _tested(trained: Rows, *scores: str) -> Rows:
    """The rows that have the first of `scores` on the test split, with all of them."""
    names = ("row", "model_dir", "full_size", "steps", "minutes", "data")
    return [
        {
            **{name: row[name] for name in names},
            **{name: row["test"].get(name) for name in scores},
            "command": again(row, "test"),
        }
        for row in trained
        if row.get("test") and scores[0] in row["test"]
    ]


def _full_size(measured: Rows, presets: list[str], score: str) -> str:
    """What full-size models of the presets scored, and on what; NOT_RUN if there are none."""
    found = [
        f"{row[score]:.2f} on {row['data']}"
        for row in measured
        if row["row"] in presets and row["full_size"] and row[score] is not None
    ]
    return ", ".join(found) or NOT_RUN


def _tested_text(scores: dict[str, str], measured: Rows) -> str:
    if not measured:
        return "Measured here, test split: nothing among --model_dirs and --measured."
    columns = {"measured here": "row", "full size": "full_size", "steps": "steps", **scores}
    commands = [row["command"] for row in measured]
    return _text({**columns, "on": "data"}, measured, "Again:", commands)


def _text(columns: dict[str, str], rows: Rows, note: str, commands: list[str] = ()) -> str:
    return "\n".join([table_of(columns, rows), note, *(f"  {command}" for command in commands)])
