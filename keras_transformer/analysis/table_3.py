"""Table 3: the paper's rows beside ours, at full size and reduced.

A reduced row has everything divided alike, so that the ratios stay the paper's. With layers divided
by 2 and widths by 8 the base model has N=3, d_model=64, d_ff=256, h=8 and d_k=d_v=8; row C1 has N=1
where the paper has 2 of 6, and row A1 one head of 64. Heads are not divided, as their number is the
subject of rows A. Dropout and label smoothing stay as they are.
"""

from typing import Any

from keras_transformer.analysis.complexity import count_parameters
from keras_transformer.analysis.paper import TABLE_3
from keras_transformer.analysis.text_table import fixed, text_table
from keras_transformer.analysis.trained_rows import SETTINGS, again
from keras_transformer.config import TransformerConfig
from keras_transformer.errors import require
from keras_transformer.presets import preset

DIVIDED_WIDTHS = ("d_model", "d_ff", "d_k", "d_v")
SYMBOLS = ("N", "d_model", "d_ff", "h", "d_k", "d_v", "P_drop", "eps_ls")
VOCABULARY = 37_000  # of section 5.1
# The vocabulary that gives the printed number of parameters; the paper does not tell it.
FITTING_VOCABULARY = dict.fromkeys(TABLE_3, 41_000) | {"big": 36_000}
NOT_RUN = (None, None, None, None, "not run here")
FOOTNOTE = """\
Parameters: the paper gives no vocabulary for its counts. With 41,000 ids every row comes out as
printed, but big, whose 213 million mean 36,000; section 5.1 says "about 37000". Blank settings are
the base model's; row E learns its positions. The paper's PPL and BLEU are on newstest2013, of the
last checkpoint, not averaged."""


def select_rows(names: list[str]) -> list[str]:
    """Expands names of rows and letters of groups; each row once, in the order of Table 3.

    Raises:
        InputError: for an unknown name, or no name.
    """
    known = [*TABLE_3, *dict.fromkeys(row[0] for row in TABLE_3 if row[1:].isdecimal())]
    for name in names or [""]:
        require(name in known, f"--rows must be of Table 3's {', '.join(known)}", repr(name))
    return [row for row in TABLE_3 if row in names or (row[1:].isdecimal() and row[0] in names)]


def reduced_settings(row: str, divide_layers: int, divide_widths: int) -> dict[str, int]:
    """The settings of TransformerConfig that make preset `row` smaller.

    Raises:
        InputError: if a division leaves a remainder.
    """
    full, _ = preset(row, TransformerConfig.vocab_size)
    divisors = {"num_layers": divide_layers} | dict.fromkeys(DIVIDED_WIDTHS, divide_widths)
    settings = {}
    for name, divisor in divisors.items():
        settings[name], rest = divmod(getattr(full, name), divisor)
        flag = "layers" if name == "num_layers" else "widths"
        rule = f"--divide_{flag} must divide {name}={getattr(full, name)} of row {row}"
        require(rest == 0, rule, divisor)
    return settings


def table_3(trained: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Table 3 as data: the paper's figures, ours, and the commands that reproduce them.

    Args:
        trained: rows of trained_rows.trained_row; other translation presets come last.
    """
    others = [row["row"] for row in trained if row.get("task") != "parsing"]
    rows = []
    for name in dict.fromkeys([*TABLE_3, *others]):
        printed = TABLE_3.get(name)
        vocab_size = FITTING_VOCABULARY.get(name)
        measured = [row for row in trained if row["row"] == name]
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
                "measured": [{**row, "command": again(row, "validation")} for row in measured],
            }
        )
    return rows


def show_table_3(rows: list[dict[str, Any]]) -> str:
    """Lays out the rows of `table_3`, with the commands under them."""
    header = (
        *("row", *SYMBOLS, "paper: PPL", "BLEU", "params 10^6", "V=37,000", "V=41,000"),
        *("ours: steps", "PPL dev", "BLEU dev", "params 10^6", "measured on"),
    )
    lines, commands, measured_commands = [], [], []
    for row in rows:
        printed = TABLE_3.get(row["row"], [None] * len(SYMBOLS))[: len(SYMBOLS)]
        first = (
            *(row["row"], *printed, fixed(row["paper_perplexity"], 2), fixed(row["paper_bleu"], 1)),
            *(row["paper_parameters_millions"], _millions(row["parameters"], 1), _fitting(row)),
        )
        further = (f"{row['row']} again", *[None] * (len(first) - 1))
        measured = [_measured(found) for found in row["measured"]] or [NOT_RUN]
        lines += [(*(further if n else first), *cells) for n, cells in enumerate(measured)]
        commands.append(f"  {row['row']:5} {row['command']}")
        measured_commands += [f"  {row['row']:5} {each['command']}" for each in row["measured"]]
    shown = [text_table(header, lines), FOOTNOTE, "Each row:", *commands]
    if measured_commands:
        shown += ["What was measured:", *measured_commands]
    return "\n".join(shown)


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


def _command(name: str) -> str:
    steps = TABLE_3[name].thousand_steps if name in TABLE_3 else None
    paths = f"--data_dir=runs/en-de/data --model_dir=runs/en-de/{name}"
    return (
        f"python bin/train.py {paths} --preset={name} --train_steps={steps or 100}000 && "
        f"python bin/evaluate.py {paths} --split=validation"
    )


def _parameters(name: str, vocab_size: int) -> int:
    return count_parameters(preset(name, vocab_size)[0])["total"]


def _fitting(row: dict[str, Any]) -> str | None:
    """Millions with the fitting vocabulary, marked where it is not that of the column."""
    if row["fitting_vocabulary"] is None:
        return None
    millions = _millions(row["parameters_fitting"], 1)
    return millions if row["fitting_vocabulary"] == 41_000 else f"{millions} (V=36,000)"


def _millions(parameters: int, digits: int) -> str:
    return fixed(parameters / 1e6, digits)
