"""Rows of Table 3 as bin/sweep.py trains them, and as they were measured.

A reduced row has everything divided alike, so that the ratios stay the paper's. With layers divided
by 2 and widths by 8 the base model has N=3, d_model=64, d_ff=256, h=8 and d_k=d_v=8; row C1 has N=1
where the paper has 2 of 6, and row A1 one head of 64. Heads are not divided, as their number is the
subject of rows A. Dropout and label smoothing stay as they are.
"""

from typing import Any

from keras_transformer.analysis.paper import SETTINGS, TABLE_3, Variation
from keras_transformer.analysis.text_table import table_of
from keras_transformer.config import TransformerConfig
from keras_transformer.errors import require
from keras_transformer.presets import preset

DIVIDED_WIDTHS = ("d_model", "d_ff", "d_k", "d_v")
PAPER_COLUMNS = {
    "paper: PPL": "paper_perplexity:.2f",
    "BLEU": "paper_bleu:.1f",
    "params 10^6": "paper_parameters_millions",
}


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
