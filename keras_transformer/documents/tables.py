"""Tables (.tsv, .csv) and lines of JSON (.jsonl): the named columns are translated.

A column is named by its heading in the first line of a table, or by its number, from 1. If all are
numbers, the first line is translated like the others. A cell may have several lines. Text that is
not translated stays; in .csv, cells get quotation marks where they need them, and in .jsonl, a line
with a text to translate is written anew. A translation stays within its cell.
"""

import csv
import dataclasses
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from keras_transformer.documents.formats import read_document
from keras_transformer.documents.segment_builder import joined
from keras_transformer.documents.segments import Document, Segment, embedded
from keras_transformer.errors import InputError, require
from keras_transformer.fields import shown, whole_number

Parts = list[str | Segment]


def read_tsv(text: str, language: str, columns: Sequence[str] = ()) -> Document:
    """Reads a table whose cells have tabs between them, and neither tabs nor line ends in them.

    Args:
        text: the table.
        language: of the cells.
        columns: names or numbers of those to be translated.

    Raises:
        InputError: a name does not belong to exactly one column; or a line, which the error names,
            lacks such a column or has more cells than the first line has names.
    """
    parts: Parts = []
    chosen = None
    for number, line in enumerate(_lines(text), start=1):
        content = line.removesuffix("\n").removesuffix("\r")
        cells = content.split("\t")
        if chosen is None:
            chosen = _chosen(columns, cells)
            if chosen.names is not None:
                parts.append(line)
                continue
        if content:
            chosen.check(cells, number)
        for place, cell in enumerate(cells):
            parts.append("\t" if place else "")
            parts += _cell(cell, language, _in_tsv) if place in chosen.places else [cell]
        parts.append(line[len(content) :])
    return Document(joined(parts))


def read_csv(text: str, language: str, columns: Sequence[str] = ()) -> Document:
    """Reads comma-separated values, or those with the separator that the first line shows.

    The arguments and errors are those of `read_tsv`.
    """
    first_line = text.partition("\n")[0]
    separator = max(",;\t", key=first_line.count)
    parts: Parts = []
    chosen = None
    for number, cells, line_end in _csv_rows(text, separator):
        is_header = False
        if chosen is None:
            chosen = _chosen(columns, cells)
            is_header = chosen.names is not None
        if cells:
            chosen.check(cells, number)
        row: Parts = []
        for place, cell in enumerate(cells):
            row.append(separator if place else "")
            if place in chosen.places and not is_header:
                row += _csv_parts(cell, language, separator)
            elif cell:
                row.append(_csv_row([cell], separator))
        parts += row if _has_segment(row) else [_csv_row(cells, separator)]
        parts.append(line_end)
    return Document(joined(parts))


def read_jsonl(text: str, language: str, columns: Sequence[str] = ()) -> Document:
    """Reads objects of JSON, one a line, whose values are texts, or lists of texts.

    Args:
        text: the lines.
        language: of the texts.
        columns: the keys whose values are translated.

    Raises:
        InputError: a line, which the error names, is not an object, or lacks such a key.
    """
    require(columns, "columns", "must name the keys to be translated", "none")
    parts: Parts = []
    for number, line in enumerate(_lines(text), start=1):
        content = line.strip()
        before, _, after = line.partition(content) if content else (line, "", "")
        parts.append(before)
        if content:
            parts += _json_parts(content, number, columns, language)
        parts.append(after)
    return Document(joined(parts))


def _lines(text: str) -> list[str]:
    """The lines with their ends. str.splitlines would also split at other characters."""
    return [line for line in re.split(r"(?<=\n)", text) if line]


def _cell(text: str, language: str, escape: Callable[[str], str]) -> Parts:
    """The parts of a cell's text, all of which `escape` writes as the table does."""
    return list(embedded(read_document(text, "text", language), escape))


def _has_segment(parts: Parts) -> bool:
    return any(isinstance(part, Segment) for part in parts)


def _in_tsv(text: str) -> str:
    """Replaces the characters that would end a cell."""
    return re.sub("[\t\r\n]", " ", text)


def _csv_rows(text: str, separator: str) -> Iterator[tuple[int, list[str], str]]:
    """Yields the number of the first line of each row, its cells, and its line end."""
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
    # The writer of Python 3.11 puts a cell in quotes for the characters of its own line end alone.
    csv.writer(row, delimiter=separator, lineterminator="\r\n").writerow(cells)
    return row.getvalue().removesuffix("\r\n")


def _csv_parts(text: str, language: str, separator: str) -> Parts:
    """The parts of a cell that is translated. It has quotes only where it needs them."""
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
    """Writes text as it stands between the quotes of a cell."""
    return text.replace('"', '""')


def _json_parts(content: str, number: int, columns: Sequence[str], language: str) -> Parts:
    """The parts of a line, which stays as it is if it has no text to translate."""
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
    parts.append("}")
    return parts if _has_segment(parts) else [content]


def _as_json(value: Any, ensure_ascii: bool) -> str:
    """Writes a value as JSON, in which half a surrogate pair, which UTF-8 lacks, is its number."""
    written = json.dumps(value, ensure_ascii=ensure_ascii)
    return re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", written)


class _Chosen(NamedTuple):
    """The columns of a table that are translated."""

    places: set[int]  # from 0
    names: Sequence[str] | None  # those of all columns, if the first row has names

    def check(self, cells: Sequence[str], number: int) -> None:
        """Refuses a row, by the number of its line, of which it is not clear what is where."""
        least, line = max(self.places) + 1, f"line {number}"
        require(least <= len(cells), None, f"must have at least {least} columns", len(cells), line)
        if self.names is not None:
            most = len(self.names)
            rule = f"must have at most {most} columns, as many as the first line"
            further = "".join(cells[most : most + 1])[:80]
            require(len(cells) <= most, None, rule, f"{len(cells)}, the next one {further!r}", line)


def _chosen(columns: Sequence[str], first_row: Sequence[str]) -> _Chosen:
    """Finds columns by their numbers, or by their names in the first row."""
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
