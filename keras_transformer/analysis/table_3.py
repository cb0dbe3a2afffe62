"""Table 3 beside this project: parameters counted, and what trained models reached."""

from typing import Any

from keras_transformer.analysis.complexity import count_parameters
from keras_transformer.analysis.paper import TABLE_3
from keras_transformer.analysis.text_table import fixed, text_table
from keras_transformer.analysis.trained_rows import SETTINGS, again
from keras_transformer.presets import preset

SYMBOLS = ("N", "d_model", "d_ff", "h", "d_k", "d_v", "P_drop", "eps_ls")
VOCABULARY = 37_000  # of section 5.1
# The vocabulary whose parameters come out as printed; the paper does not give it.
FITTING_VOCABULARY = dict.fromkeys(TABLE_3, 41_000) | {"big": 36_000}
NOT_RUN = (None, None, None, None, "not run here")
FOOTNOTE = """\
Parameters: the paper gives no vocabulary for its counts. With 41,000 ids every row comes out as
printed, but big, whose 213 million mean 36,000; section 5.1 says "about 37000". Blank settings are
the base model's; row E learns its positions. The paper's PPL and BLEU are on newstest2013, of the
last checkpoint, not averaged."""


def table_3(trained: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Table 3 as data: the paper's figures, ours, and how to make them again.

    Args:
        trained: of trained_rows.trained_row; those of other presets than the table's come last.
    """
    rows = []
    for name in dict.fromkeys([*TABLE_3, *_others(trained)]):
        printed = TABLE_3.get(name)
        vocab_size = FITTING_VOCABULARY.get(name)
        rows.append(
            {
                "row": name,
                "parameters": _parameters(name, VOCABULARY),
                "parameters_fitting": vocab_size and _parameters(name, vocab_size),
                "fitting_vocabulary": vocab_size,
                "paper_parameters_millions": printed and printed.parameters_millions,
                "paper_perplexity": printed and printed.perplexity,
                "paper_bleu": printed and printed.bleu,
                "command": _command(name),
                "measured": [
                    {**row, "command": again(row, "validation")}
                    for row in trained
                    if row["row"] == name
                ],
            }
        )
    return rows


def show_table_3(rows: list[dict[str, Any]]) -> str:
    """Lays out the rows of `table_3`, with the commands under them."""
    header = ("row", *SYMBOLS, "paper: PPL", "BLEU", "params 10^6", "V=37,000", "V=41,000")
    lines = []
    for row in rows:
        printed = TABLE_3.get(row["row"], [None] * len(SYMBOLS))[: len(SYMBOLS)]
        first = (
            *(row["row"], *printed, fixed(row["paper_perplexity"], 2), fixed(row["paper_bleu"], 1)),
            *(row["paper_parameters_millions"], _millions(row["parameters"], 1)),
            _fitting(row),
        )
        measured = [_measured(found) for found in row["measured"]] or [NOT_RUN]
        lines += [(*first, *measured[0])]
        lines += [
            (f"{row['row']} again", *[None] * (len(first) - 1), *each) for each in measured[1:]
        ]
    header = (*header, "ours: steps", "PPL dev", "BLEU dev", "params 10^6", "measured on")
    commands = "\n".join(f"  {row['row']:5} {row['command']}" for row in rows)
    trained = "\n".join(
        f"  {row['row']:5} {found['command']}" for row in rows for found in row["measured"]
    )
    measured = f"\nWhat was measured:\n{trained}" if trained else ""
    return f"{text_table(header, lines)}\n{FOOTNOTE}\nEach row:\n{commands}{measured}"


def sweep_table(trained: list[dict[str, Any]]) -> str:
    """Rows as trained beside the paper's figures, as text and Markdown."""
    header = ("row", *SYMBOLS, "steps", "PPL dev", "BLEU dev", "params 10^6")
    rows = []
    for row in trained:
        printed = TABLE_3[row["row"]]
        rows.append(
            (
                *(row["row"], *(row[name] for name in SETTINGS), row["steps"]),
                *(fixed(row["perplexity"], 2), fixed(row["bleu"], 1)),
                _millions(row["parameters"], 2),
                *(fixed(printed.perplexity, 2), fixed(printed.bleu, 1)),
                printed.parameters_millions,
            )
        )
    return text_table((*header, "paper: PPL", "BLEU", "params 10^6"), rows)


def _measured(row: dict[str, Any]) -> tuple:
    size = "full size" if row["full_size"] else f"N={row['num_layers']} d_model={row['d_model']}"
    return (
        *(row["steps"], fixed(row["perplexity"], 2), fixed(row["bleu"], 1)),
        *(_millions(row["parameters"], 2), f"{row['data'] or 'validation split'}, {size}"),
    )


def _others(trained: list[dict[str, Any]]) -> list[str]:
    """Presets of translation models that Table 3 does not have."""
    return [row["row"] for row in trained if row.get("task") != "parsing"]


def _command(name: str) -> str:
    data = "--data_dir=runs/en-de/data"
    of_row = f"{data} --model_dir=runs/en-de/{name}"
    steps = TABLE_3[name].thousand_steps if name in TABLE_3 else None
    return (
        f"python bin/train.py {of_row} --preset={name} --train_steps={steps or 100}000 && "
        f"python bin/evaluate.py {of_row} --split=validation"
    )


def _parameters(name: str, vocab_size: int) -> int:
    return count_parameters(preset(name, vocab_size)[0])["total"]


def _fitting(row: dict[str, Any]) -> str | None:
    """Millions at the vocabulary that fits, marked where it is not that of the column."""
    if row["fitting_vocabulary"] is None:
        return None
    millions = f"{row['parameters_fitting'] / 1e6:.1f}"
    return millions if row["fitting_vocabulary"] == 41_000 else f"{millions} (V=36,000)"


def _millions(parameters: int, digits: int) -> str:
    return fixed(parameters / 1e6, digits)
