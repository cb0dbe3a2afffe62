"""Tables that read well both as text and as Markdown."""

from collections.abc import Sequence


def text_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Lays out rows under a header; columns of numbers are aligned to the right.

    Args:
        header: names of the columns.
        rows: each with a cell for every column; None is an empty cell.
    """
    texts = [["" if cell is None else str(cell) for cell in row] for row in rows]
    columns = list(zip(header, *texts, strict=True))
    widths = [max(3, *map(len, column)) for column in columns]
    right = [all(map(_is_number, filter(None, column[1:]))) for column in columns]

    def line(cells):
        aligned = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(cells, widths, right, strict=True)
        ]
        return f"| {' | '.join(aligned)} |"

    rule = [
        "-" * (width - 1) + (":" if to_right else "-")
        for width, to_right in zip(widths, right, strict=True)
    ]
    return "\n".join([line(header), line(rule), *map(line, texts)])


def fixed(value: float | None, digits: int) -> str | None:
    """Writes `value` with `digits` digits after the point; None stays None."""
    return None if value is None else f"{value:.{digits}f}"


def _is_number(text: str) -> bool:
    return text.removeprefix("-").replace(".", "", 1).isdecimal()
