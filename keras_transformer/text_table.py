"""Tables that read well both as text and as Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any


def text_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Lays out rows under a header; columns of numbers are aligned to the right, None is empty."""
    columns = []
    for name, *cells in zip(header, *rows, strict=True):
        texts = ["" if cell is None else str(cell) for cell in cells]
        to_right = all(map(_is_number, filter(None, texts)))
        width = max(3, *map(len, (name, *texts)))
        rule = "-" * (width - 1) + (":" if to_right else "-")
        columns.append(
            [f"{text:{'>' if to_right else '<'}{width}}" for text in (name, rule, *texts)]
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in zip(*columns, strict=True))


def table_of(columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Lays out rows that have names for their values.

    `columns` are header -> the name of the value in a row, or "NAME:FORMAT", as "bleu:.2f".
    """
    fields = [column.partition(":")[::2] for column in columns.values()]
    cells = [
        [None if row[name] is None else format(row[name], spec) for name, spec in fields]
        for row in rows
    ]
    return text_table(list(columns), cells)


def _is_number(text: str) -> bool:
    return text.removeprefix("-").replace(",", "").replace(".", "", 1).isdecimal()
