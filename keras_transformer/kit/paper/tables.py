"""Tables 1 to 4 of the paper beside this project's figures, as data and as text."""

from typing import Any, NamedTuple

from keras_transformer.core.presets import PRESETS, preset
from keras_transformer.kit.paper import published
from keras_transformer.kit.paper.complexity import VOCABULARY, paper_training_costs
from keras_transformer.kit.paper.path_length import path_lengths
from keras_transformer.kit.paper.trained_rows import PAPER_COLUMNS, commands_again, measured_table
from keras_transformer.support.text_table import table_of

Rows = list[dict[str, Any]]

NOT_RUN = "not run here"


class LayerFigures(NamedTuple):
    """The figures for a row of Table 1."""

    path: str  # its key in the result of `path_lengths`
    growth: dict[str, tuple[float, float]]  # layer -> exponents of n and d in its measured time


# Measured on two cores of an EPYC at 5deef84 (docs/diary.md), with r = 64 and k = 5.
LAYERS = {
    "Self-Attention": LayerFigures("self-attention", {"self-attention": (1.94, 1.32)}),
    "Recurrent": LayerFigures("recurrent", {"LSTM": (0.94, 1.70), "GRU": (0.96, 1.75)}),
    "Convolutional": LayerFigures(
        "convolutional", {"convolution": (0.95, 1.53), "separable": (0.83, 1.26)}
    ),
    "Self-Attention (restricted)": LayerFigures(
        "restricted self-attention", {"restricted": (0.82, 1.06)}
    ),
}
# The sizes n, k and r for which paths are counted.
PATH_LENGTH, PATH_KERNEL, PATH_WINDOW = 128, 3, 16
# The vocabulary sizes that give the printed parameter counts; the paper does not state them.
FITTING_VOCABULARY = dict.fromkeys(published.TABLE_3, 41_000) | {"big": 36_000}
# The training column of Table 4 -> the data directory here.
PARSING_DATA = {"WSJ only, discriminative": "wsj", "semi-supervised": "semi_supervised"}

NOTE_1 = """\
Paths are counted (paper/path_length.py) for contiguous kernels, which see (k - 1) / 2 to each
side; O(log_k(n)) needs dilated ones. A neighbourhood of r sees r / 2. The time was measured with
k = 5 and r = 64 (docs/diary.md)."""
NOTE_2 = """\
Model FLOPs: the matrix products for 25,000 tokens per side and step, in sentences of 25, with
37,000 ids; a step is three forward passes. Share: of the 9.5 TFLOP/s that each GPU sustains."""
NOTE_3 = """\
Parameters: the paper does not state the vocabulary for its counts. With 41,000 ids, every row comes
out as printed except big, whose 213 million mean 36,000; section 5.1 says "about 37000". Blank
settings are the base model's; row E learns its positions. The paper's PPL and BLEU are on
newstest2013, for the last checkpoint, without averaging. Each row:"""
NOTE_4 = "The Wall Street Journal's trees are licensed. Each Transformer:"


class Table(NamedTuple):
    """A table of the paper with this project's figures."""

    data: Rows | dict[str, Rows]  # plain JSON values
    text: str  # the same for readers, with the commands that reproduce the figures


def table_1() -> Table:
    """Returns Table 1: the paper's terms, counted path lengths, and measured growth."""
    lengths = path_lengths(PATH_LENGTH, PATH_KERNEL, PATH_WINDOW)
    rows = []
    for printed in published.TABLE_1:
        here = LAYERS[printed.layer]
        row = printed._asdict()
        row["maximum_path"] = lengths[here.path]
        row["measured"] = {name: {"n": n, "d": d} for name, (n, d) in here.growth.items()}
        row["growth"] = "; ".join(f"{name}: n^{n}, d^{d}" for name, (n, d) in here.growth.items())
        rows.append(row)
    columns = {
        "layer": "layer",
        "complexity": "paper_complexity",
        "sequential": "paper_sequential_operations",
        "maximum path": "paper_maximum_path",
        f"path at n={PATH_LENGTH}, k={PATH_KERNEL}, r={PATH_WINDOW}": "maximum_path",
        "measured growth of time": "growth",
    }
    return Table(rows, _text(columns, rows, NOTE_1, []))


def table_2(trained: Rows) -> Table:
    """Returns Table 2, with the keys "systems", "measured" and "training_cost".

    These are the paper's rows, ours, and the costs of the paper's training runs.

    Args:
        trained: rows from `trained_row`; those with BLEU on the test split are used.
    """
    measured = _tested(trained, "bleu", ["signature", "paper_bleu"])
    systems = [{**system._asdict(), "command": None, "ours": None} for system in published.TABLE_2]
    base, big = systems[-2:]
    base["command"] = [
        _full_size_commands("en-de", "base", 100_000, "--checkpoint=average:5"),
        _full_size_commands("en-fr", "base", 100_000, "--checkpoint=average:5"),
    ]
    big["command"] = [
        _full_size_commands("en-de", "big", 300_000, "--checkpoint=average:20"),
        _full_size_commands("en-fr", "big_en_fr", 300_000, "--checkpoint=average:20"),
    ]
    wmt14 = [row for row in measured if "wmt14" in (row["data"] or "")]
    base["ours"] = _full_size_scores(wmt14, ["base"], "paper_bleu")
    big["ours"] = _full_size_scores(wmt14, ["big", "big_en_fr"], "paper_bleu")
    costs = paper_training_costs()
    system_columns = {
        "system": "name",
        "En-De": "bleu_de:.2f",
        "En-Fr": "bleu_fr:.2f",
        "FLOPs En-De": "flops_de:.1e",
        "FLOPs En-Fr": "flops_fr:.1e",
        "En-De, version 1": "bleu_de_v1",
        "En-Fr, version 1": "bleu_fr_v1",
        "ours": "ours",
    }
    cost_columns = {
        "training": "model",
        "hours": "hours",
        "GPUs": "gpus",
        "time x GPUs x rate": "estimated_flops:.1e",
        "model FLOPs": "model_flops:.1e",
        "share": "utilization:.0%",
    }
    score_columns = {
        "as the paper scored": "paper_bleu:.2f",
        "sacreBLEU": "bleu:.2f",
        "signature": "signature",
    }
    parts = [
        _text(system_columns, systems, "Each Transformer:", base["command"] + big["command"]),
        _text(cost_columns, costs, NOTE_2, []),
        _tested_text(score_columns, measured),
    ]
    data = {"systems": systems, "measured": measured, "training_cost": costs}
    return Table(data, "\n\n".join(parts))


def table_3(trained: Rows) -> Table:
    """Returns Table 3: the paper's figures, ours, and the commands.

    Translation presets that are not in the paper come last.

    Args:
        trained: rows from `trained_row`; those of translation presets are used.
    """
    translating = [row for row in trained if row.get("task") != "parsing" and row["row"] in PRESETS]
    rows = []
    measured_rows = []
    for name in dict.fromkeys([*published.TABLE_3, *(row["row"] for row in translating)]):
        printed = published.TABLE_3.get(name, published.Variation())
        fitting_vocabulary = FITTING_VOCABULARY.get(name)
        measured = []
        for trained_row in translating:
            if trained_row["row"] == name:
                command = commands_again(trained_row, "validation")
                measured.append({**trained_row, "command": command})
        steps = 1000 * (printed.thousand_steps or 100)
        row = {"row": name, **printed._asdict()}
        row["parameters"] = _count_preset(name, VOCABULARY)
        row["parameters_fitting"] = _count_preset(name, fitting_vocabulary)
        row["fitting_vocabulary"] = fitting_vocabulary
        row["command"] = _full_size_commands("en-de", name, steps, "--split=validation")
        row["ours"] = "below" if measured else NOT_RUN
        row["measured"] = measured
        rows.append(row)
        measured_rows += measured
    columns = {
        "row": "row",
        **published.SETTINGS,
        **PAPER_COLUMNS,
        "params, V=37,000": "parameters:,",
        "params, fitting V": "parameters_fitting:,",
        "fitting V": "fitting_vocabulary:,",
        "ours": "ours",
    }
    text = _text(columns, rows, NOTE_3, [f"{row['row']:5} {row['command']}" for row in rows])
    if measured_rows:
        commands = [f"  {row['row']:5} {row['command']}" for row in measured_rows]
        text = "\n".join([text, "", measured_table(measured_rows), "What was measured:", *commands])
    return Table(rows, text)


def table_4(trained: Rows) -> Table:
    """Returns Table 4: {"parsers": the paper's rows, "measured": ours with their test F1}.

    Args:
        trained: rows from `trained_row`; those with F1 on the test split are used.
    """
    measured = _tested(trained, "f1", [])
    parsers = []
    for parser in published.TABLE_4:
        row = {**parser._asdict(), "command": None, "ours": None}
        if "Transformer" in parser.name:
            data = PARSING_DATA[parser.training]
            name = f"parsing_{data}"
            row["command"] = _full_size_commands(data, name, 100_000, "--beam_size=21 --alpha=0.3")
            row["ours"] = _full_size_scores(measured, [name], "f1")
        parsers.append(row)
    commands = [row["command"] for row in parsers if row["command"]]
    columns = {"parser": "name", "training": "training", "WSJ 23 F1": "f1", "ours": "ours"}
    parts = [
        _text(columns, parsers, NOTE_4, commands),
        _tested_text({"F1 test": "f1:.2f", "minutes": "minutes"}, measured),
    ]
    return Table({"parsers": parsers, "measured": measured}, "\n\n".join(parts))


def _count_preset(name: str, vocab_size: int | None) -> int | None:
    """Returns the number of parameters of a preset with this vocabulary; None if it is unknown."""
    if vocab_size is None:
        return None
    config, _ = preset(name, vocab_size)
    return config.parameters


def _full_size_commands(data: str, name: str, train_steps: int, evaluation: str) -> str:
    """Returns the commands that train a preset at full size and evaluate it."""
    paths = f"--data_dir=runs/{data}/data --model_dir=runs/{data}/{name}"
    return (
        f"python bin/train.py {paths} --preset={name} --train_steps={train_steps} && "
        f"python bin/evaluate.py {paths} {evaluation}"
    )


def _tested(trained: Rows, score: str, further_results: list[str]) -> Rows:
    """Returns the rows with `score` on the test split, with that split's `further_results`."""
    tested = []
    for row in trained:
        results = row.get("test")
        if not results or score not in results:
            continue
        shown = {name: row[name] for name in ("row", "model_dir", "full_size", "steps", "minutes")}
        shown["data"] = row["data"]
        for name in (score, *further_results):
            shown[name] = results.get(name)
        shown["command"] = commands_again(row, "test")
        tested.append(shown)
    return tested


def _full_size_scores(measured: Rows, presets: list[str], score: str) -> str:
    """Returns the scores of the presets' full-size models, and their data; NOT_RUN if none."""
    scores = []
    for row in measured:
        if row["row"] in presets and row["full_size"] and row[score] is not None:
            scores.append(f"{row[score]:.2f} on {row['data']}")
    return ", ".join(scores) or NOT_RUN


def _tested_text(score_columns: dict[str, str], measured: Rows) -> str:
    if not measured:
        return "Measured here, test split: nothing among the trained models and measured results."
    columns = {
        "measured here": "row",
        "full size": "full_size",
        "steps": "steps",
        **score_columns,
        "on": "data",
    }
    return _text(columns, measured, "To measure again:", [row["command"] for row in measured])


def _text(columns: dict[str, str], rows: Rows, note: str, commands: list[str]) -> str:
    """Returns a table, with a note and commands below it."""
    lines = [table_of(columns, rows), note]
    lines += [f"  {command}" for command in commands]
    return "\n".join(lines)
