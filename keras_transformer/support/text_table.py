"""Tables that read well both as text and as Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any


def text_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Lays out rows under a header; numeric columns are right-aligned, None is empty."""
    columns = []
    for name, *cells in zip(header, *rows, strict=True):
        columns.append(_column(name, ["" if cell is None else str(cell) for cell in cells]))
    lines = zip(*columns, strict=True)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _column(name: str, texts: list[str]) -> list[str]:
    """Returns a column with its header and rule, all padded to the same width."""
    width = max(3, *[len(text) for text in (name, *texts)])
    if all(_is_number(text) for text in texts if text):
        rule = "-" * (width - 1) + ":"
        return [text.rjust(width) for text in (name, rule, *texts)]
    rule = "-" * width
    return [text.ljust(width) for text in (name, rule, *texts)]


def table_of(columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Lays out rows of named values.

    Args:
        columns: header -> the name of a value in a row, or "NAME:FORMAT", such as "bleu:.2f".
        rows: name -> value.
    """
    lines = []
    for row in rows:
        cells = []
        for column in columns.values():
            name, _, spec = column.partition(":")
            cells.append(None if row[name] is None else format(row[name], spec))
        lines.append(cells)
    return text_table(list(columns), lines)


def _is_number(text: str) -> bool:
    return text.removeprefix("-").replace(",", "").replace(".", "", 1).isdecimal()
