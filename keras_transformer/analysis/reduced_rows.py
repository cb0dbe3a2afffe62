"""Rows of Table 3 at reduced size: everything divided alike, so that their ratios stay the paper's.

With layers divided by 2 and widths by 8 the base model has N=3, d_model=64, d_ff=256, h=8 and
d_k=d_v=8; row C1 has N=1 where the paper has 2 of 6, row A1 one head of 64. Heads are not divided:
their number is what rows A are about. Dropout and label smoothing stay as they are.
"""

from keras_transformer.analysis.paper import TABLE_3
from keras_transformer.config import TransformerConfig
from keras_transformer.errors import InputError
from keras_transformer.presets import preset

DIVIDED_WIDTHS = ("d_model", "d_ff", "d_k", "d_v")


def select_rows(names: list[str]) -> list[str]:
    """Expands names of rows and letters of groups, each row once, in the order of Table 3.

    Raises:
        InputError: for a name that is neither, or no name.
    """
    known = [*TABLE_3, *dict.fromkeys(row[0] for row in TABLE_3 if row[1:].isdecimal())]
    for name in names or [""]:
        if name not in known:
            rule = f"--rows must be of Table 3's {', '.join(known)}"
            raise InputError(f"{rule}. Received: {name!r}")
    return [row for row in TABLE_3 if row in names or (row[1:].isdecimal() and row[0] in names)]


def reduced_settings(row: str, divide_layers: int, divide_widths: int) -> dict[str, int]:
    """The settings of TransformerConfig that make preset `row` smaller.

    Raises:
        InputError: where a division would leave a remainder.
    """
    full, _ = preset(row, TransformerConfig.vocab_size)
    divisors = {"num_layers": divide_layers} | dict.fromkeys(DIVIDED_WIDTHS, divide_widths)
    settings = {}
    for name, divisor in divisors.items():
        settings[name], rest = divmod(getattr(full, name), divisor)
        if rest:
            flag = "layers" if name == "num_layers" else "widths"
            rule = f"--divide_{flag} must divide {name}={getattr(full, name)} of row {row}"
            raise InputError(f"{rule}. Received: {divisor}")
    return settings
