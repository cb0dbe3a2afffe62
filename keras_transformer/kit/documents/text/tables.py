"""Tables (.tsv, .csv) and JSON Lines (.jsonl): the named columns are translated.

A column is named by its heading in the first line of a table, or by its number, counting from 1. If
all columns are given by number, the first line is translated like the others. A cell may have
several lines. Text that is not translated stays unchanged, except that .csv cells are quoted where
needed, and a line of .jsonl with text to translate is rewritten. A translation stays within its
cell.

For a review, a last column or key `confidence` has the least confidence in a sentence of each line.
"""

import csv
import dataclasses
import io
import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from keras_transformer.kit.documents.formats import read_document
from keras_transformer.kit.documents.tree.segment_builder import joined
from keras_transformer.kit.documents.tree.segments import (
    Document,
    Part,
    ReviewUnit,
    embedded,
    has_language,
)
from keras_transformer.support.errors import InputError, require
from keras_transformer.support.fields import shown, whole_number

Parts = list[Part]
_Row = tuple[int, list[str], str]  # the number of its first line, its cells, and its line end
CONFIDENCE = "confidence"  # the name of the column, or the key


def read_tsv(
    text: str, language: str, columns: Sequence[str] = (), is_reviewed: bool = False
) -> Document:
    """Reads a table whose cells are separated by tabs and contain neither tabs nor line ends.

    Args:
        text: the table.
        language: the language of the cells.
        columns: the names or numbers of the columns to translate.
        is_reviewed: whether a last column has the confidence in each line's translations.

    Raises:
        InputError: if a name does not belong to exactly one column, or if a line, which the error
            names, lacks such a column or has more cells than the first line has names.
    """

    def parts_of(cells: Sequence[str], places: Container[int]) -> Parts:
        row: Parts = []
        for place, cell in enumerate(cells):
            row.append("\t" if place else "")
            row += _cell(cell, language, _in_tsv) if place in places else [cell]
        return row

    return _read_rows(_tsv_rows(text), columns, parts_of, "\t" if is_reviewed else None)


def read_csv(
    text: str, language: str, columns: Sequence[str] = (), is_reviewed: bool = False
) -> Document:
    """Reads comma-separated values, or values with another separator found in the first line.

    The arguments and errors are those of `read_tsv`.
    """
    first_line = text.partition("\n")[0]
    separator = max(",;\t", key=first_line.count)

    def parts_of(cells: Sequence[str], places: Container[int]) -> Parts:
        row: Parts = []
        for place, cell in enumerate(cells):
            row.append(separator if place else "")
            if place in places:
                row += _csv_parts(cell, language, separator)
            elif cell:
                row.append(_csv_row([cell], separator))
        return row if has_language(row) else [_csv_row(cells, separator)]

    rows = _csv_rows(text, separator)
    return _read_rows(rows, columns, parts_of, separator if is_reviewed else None)


def _read_rows(
    rows: Iterable[_Row],
    columns: Sequence[str],
    parts_of: Callable[[Sequence[str], Container[int]], Parts],
    separator: str | None,
) -> Document:
    """Reads the rows of a table.

    Args:
        rows: all rows.
        columns: the names or numbers of the columns to translate.
        parts_of: returns the parts of a row, given its cells and the places of those to translate.
        separator: of the column for the confidence that is added; None to add none.
    """
    rows = list(rows)
    width = max((len(cells) for _, cells, _ in rows), default=0)
    parts: Parts = []
    chosen = None
    for number, cells, line_end in rows:
        is_header = False
        if chosen is None:
            chosen = _chosen(columns, cells)
            is_header = chosen.names is not None
        if cells:
            chosen.check(cells, number)
        row = parts_of(cells, () if is_header else chosen.places)
        if separator is not None and cells:
            before = separator * (width - len(cells) + 1)  # the row may lack cells
            row = _with_heading(cells, row, before) if is_header else [_reviewed(row, before)]
        parts += [*row, line_end]
    return Document(joined(parts))


def read_jsonl(
    text: str, language: str, columns: Sequence[str] = (), is_reviewed: bool = False
) -> Document:
    """Reads JSON objects, one per line, whose values to translate are texts or lists of texts.

    Args:
        text: the lines.
        language: the language of the texts.
        columns: the keys whose values are translated.
        is_reviewed: whether a last key has the confidence in each line's translations.

    Raises:
        InputError: if a line, which the error names, is not an object, lacks such a key, or already
            has the one for the confidence.
    """
    require(columns, "columns", "must name the keys to be translated", "none")
    parts: Parts = []
    for number, line in enumerate(_lines(text), start=1):
        content = line.strip()
        before, _, after = line.partition(content) if content else (line, "", "")
        parts.append(before)
        if content:
            parts += _json_parts(content, number, columns, language, is_reviewed)
        parts.append(after)
    return Document(joined(parts))


def _lines(text: str) -> list[str]:
    """Returns the lines with their ends. str.splitlines would also split at other characters."""
    return [line for line in re.split(r"(?<=\n)", text) if line]


def _tsv_rows(text: str) -> Iterator[_Row]:
    for number, line in enumerate(_lines(text), start=1):
        content = line.removesuffix("\n").removesuffix("\r")
        yield number, content.split("\t") if content else [], line[len(content) :]


def _with_heading(cells: Sequence[str], row: Parts, before: str) -> Parts:
    """Adds the name of the column for the confidence to the names of a table.

    Raises:
        InputError: if there is such a column.
    """
    rule = f"must have no column {CONFIDENCE!r}, which the review adds"
    require(CONFIDENCE not in cells, None, rule, ", ".join(cells), "line 1")
    return [*row, f"{before}{CONFIDENCE}"]


def _reviewed(row: Parts, before: str) -> ReviewUnit:
    """Adds the confidence to a row; the cell is empty if it is unknown."""

    def write(row: str, confidence: float | None) -> str:
        return f"{row}{before}{'' if confidence is None else _shown(confidence)}"

    return ReviewUnit(joined(row), write, shows_any=True)


def _shown(confidence: float) -> str:
    return f"{confidence:.3f}"


def _cell(text: str, language: str, escape: Callable[[str], str]) -> Parts:
    """Returns the parts of a cell's text, each escaped for the table by `escape`."""
    return list(embedded(read_document(text, "text", language), escape))


def _in_tsv(text: str) -> str:
    """Replaces the characters that would end a cell."""
    return re.sub("[\t\r\n]", " ", text)


def _csv_rows(text: str, separator: str) -> Iterator[_Row]:
    lines = list(io.StringIO(text, newline=""))
    rows = csv.reader(lines, delimiter=separator, strict=True)
    while rows.line_num < len(lines):
        number = rows.line_num + 1
        try:
            cells = next(rows)
        except csv.Error as error:
            rule = "must be comma-separated values"
            raise InputError(None, rule, error, f"line {number}") from None
        last = lines[rows.line_num - 1]
        yield number, cells, last[len(last.rstrip("\r\n")) :]


def _csv_row(cells: Sequence[str], separator: str) -> str:
    """Writes a row without its line end."""
    row = io.StringIO(newline="")
    # Python 3.11 quotes cells with line ends only if their characters are in `lineterminator`.
    csv.writer(row, delimiter=separator, lineterminator="\r\n").writerow(cells)
    return row.getvalue().removesuffix("\r\n")


def _csv_parts(text: str, language: str, separator: str) -> Parts:
    """Returns the parts of a translated cell, which is quoted only where needed."""
    segments = read_document(text, "text", language).segments
    if len(segments) > 1:  # on several lines
        return ['"', *_cell(text, language, _in_quotes), '"']
    if not segments:
        return [_csv_row([text], separator)] if text else []
    (segment,) = segments
    before, _, after = text.partition(segment.source)

    def embed(translation: str) -> str:
        return _csv_row([f"{before}{translation}{after}"], separator)

    return [dataclasses.replace(segment, source=embed(segment.source), embed=embed)]


def _in_quotes(text: str) -> str:
    """Escapes text for a quoted cell."""
    return text.replace('"', '""')


def _json_parts(
    content: str, number: int, columns: Sequence[str], language: str, is_reviewed: bool
) -> Parts:
    """Returns the parts of a line, which stays unchanged if it has no text to translate."""
    line = f"line {number}"
    try:
        row = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(None, "must be JSON", error, line) from None
    require(isinstance(row, dict), None, "must be an object of JSON", content[:80], line)
    for name in columns:
        require(name in row, None, f"must have the key {name!r}", sorted(row), line)
        texts = row[name] if isinstance(row[name], list) else [row[name]]
        are_texts = all(isinstance(text, str) for text in texts)
        require(are_texts, name, "must be a text or a list of texts", row[name], line)
    rule = f"must have no key {CONFIDENCE!r}, which the review adds"
    require(not is_reviewed or CONFIDENCE not in row, None, rule, sorted(row), line)

    def write(value: Any) -> str:
        return _as_json(value, ensure_ascii="\\u" in content)

    def in_quotes(text: str) -> str:
        return write(text)[1:-1]

    parts: Parts = ["{"]
    for place, (name, value) in enumerate(row.items()):
        parts.append(f"{', ' if place else ''}{write(name)}: ")
        if name not in columns:
            parts.append(write(value))
        elif isinstance(value, str):
            parts += ['"', *_cell(value, language, in_quotes), '"']
        else:
            parts.append("[")
            for text_place, text in enumerate(value):
                parts += [', "' if text_place else '"', *_cell(text, language, in_quotes), '"']
            parts.append("]")
    if not has_language(parts):
        return [content]
    return (
        [ReviewUnit(joined(parts), _with_confidence, shows_any=True)]
        if is_reviewed
        else [*parts, "}"]
    )


def _with_confidence(text: str, confidence: float | None) -> str:
    """Closes an object, after a key for the confidence, if known."""
    added = "" if confidence is None else f', "{CONFIDENCE}": {_shown(confidence)}'
    return f"{text}{added}}}"


def _as_json(value: Any, ensure_ascii: bool) -> str:
    """Writes a value as JSON. Lone surrogates, which UTF-8 cannot encode, are escaped."""
    written = json.dumps(value, ensure_ascii=ensure_ascii)
    return re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", written)


class _Chosen(NamedTuple):
    """The columns of a table to translate."""

    places: set[int]  # from 0
    names: Sequence[str] | None  # of all columns, if the first row has names

    def check(self, cells: Sequence[str], number: int) -> None:
        """Rejects a row whose cells cannot be assigned to columns; the error gives its line."""
        least, line = max(self.places) + 1, f"line {number}"
        require(least <= len(cells), None, f"must have at least {least} columns", len(cells), line)
        if self.names is not None:
            most = len(self.names)
            rule = f"must have at most {most} columns, as many as the first line"
            further = "".join(cells[most : most + 1])[:80]
            require(len(cells) <= most, None, rule, f"{len(cells)}, the next one {further!r}", line)


def _chosen(columns: Sequence[str], first_row: Sequence[str]) -> _Chosen:
    """Finds columns by number, or by their names in the first row."""
    require(
        columns, "columns", "must name the columns to be translated, or give their numbers", "none"
    )
    if all(column.isdecimal() for column in columns):
        numbers = [whole_number(column) for column in columns]
        rule = "must be numbers that a table can have, from 1"
        require(all(numbers), "columns", rule, shown(columns))
        return _Chosen({number - 1 for number in numbers}, None)
    for column in columns:
        rule = f"must be names of the first line, {', '.join(first_row)}"
        require(column in first_row, "columns", rule, repr(column))
        rule = f"must name one column {column!r}, or columns be given by numbers"
        require(first_row.count(column) == 1, None, rule, ", ".join(first_row), "line 1")
    return _Chosen({first_row.index(column) for column in columns}, first_row)
