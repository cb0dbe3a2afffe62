"""Tables (.tsv, .csv) and lines of JSON (.jsonl): the named columns are translated.

A column is the name of one, which the first line of a table has, or its number, from 1. With
numbers alone, the first line of a table is like all others. A cell may have several lines. What is
not translated keeps its content; cells of .csv may get other quotes, and objects of .jsonl other
spaces.
"""

import csv
import io
import json
import re
from collections.abc import Sequence

from keras_transformer.documents.formats import read_document
from keras_transformer.documents.segments import Document, Segment, embedded
from keras_transformer.errors import InputError, require

Parts = list[str | Segment]


def read_tsv(text: str, language: str, columns: Sequence[str] = ()) -> Document:
    """Reads a table whose cells have tabs between them, and neither tabs nor line ends in them.

    Args:
        text: the table.
        language: of the cells.
        columns: names or numbers of those to be translated.

    Raises:
        InputError: for a column that a line does not have, naming the line.
    """
    parts: Parts = []
    places = None
    for number, line in enumerate(_lines(text), start=1):
        content = line.removesuffix("\n").removesuffix("\r")
        cells = content.split("\t")
        if places is None:
            places, has_header = _places(columns, cells)
            if has_header:
                parts.append(line)
                continue
        if content:
            _require_columns(places, cells, number)
        for place, cell in enumerate(cells):
            parts.append("\t" if place else "")
            parts += read_document(cell, "text", language).parts if place in places else [cell]
        parts.append(line[len(content) :])
    return _document(parts)


def read_csv(text: str, language: str, columns: Sequence[str] = ()) -> Document:
    """Reads comma-separated values, or those with the separator that the first line shows.

    The arguments and errors are those of `read_tsv`.
    """
    first_line = text.partition("\n")[0]
    separator = max(",;\t", key=first_line.count)
    line_end = "\r\n" if first_line.endswith("\r") else "\n"
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    parts: Parts = []
    places = None
    try:
        for cells in rows:
            if places is None:
                places, has_header = _places(columns, cells)
                if has_header:
                    parts.append(_csv_line(cells, separator) + line_end)
                    continue
            if cells:
                _require_columns(places, cells, rows.line_num)
            for place, cell in enumerate(cells):
                parts.append(separator if place else "")
                if place in places:
                    inner = read_document(cell, "text", language)
                    parts += ['"', *embedded(inner, lambda part: part.replace('"', '""')), '"']
                else:
                    parts.append(_csv_line([cell], separator))
            parts.append(line_end)
    except csv.Error as error:
        rule = "a table must be comma-separated values"
        raise InputError(f"{rule}. Received: line {rows.line_num}: {error}") from None
    return _document(parts)


def read_jsonl(text: str, language: str, columns: Sequence[str] = ()) -> Document:
    """Reads objects of JSON, one a line, whose values are texts, or lists of texts.

    Args:
        text: the lines.
        language: of the texts.
        columns: the keys whose values are translated.

    Raises:
        InputError: for a line that is no object, or has no such key, naming the line.
    """
    require(columns, "columns must name the keys to be translated", "none")
    parts: Parts = []
    for number, line in enumerate(_lines(text), start=1):
        content = line.strip()
        if content:
            parts += _json_parts(content, number, columns, language)
            parts.append(line[line.index(content) + len(content) :])
        else:
            parts.append(line)
    return _document(parts)


def _lines(text: str) -> list[str]:
    """The lines with their ends. There are further characters that str.splitlines takes for one."""
    return [line for line in re.split(r"(?<=\n)", text) if line]


def _json_parts(content: str, number: int, columns: Sequence[str], language: str) -> Parts:
    try:
        row = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"line {number} must be JSON. Received: {error}") from None
    require(isinstance(row, dict), f"line {number} must be an object of JSON", content[:80])
    for name in columns:
        require(name in row, f"line {number} must have the key {name!r}", sorted(row))
    parts: Parts = ["{"]
    for place, (name, value) in enumerate(row.items()):
        parts.append((", " if place else "") + json.dumps(name, ensure_ascii=False) + ": ")
        if name not in columns:
            parts.append(json.dumps(value, ensure_ascii=False))
            continue
        texts = value if isinstance(value, list) else [value]
        rule = f"line {number}: {name!r} must be a text or a list of texts"
        require(all(isinstance(each, str) for each in texts), rule, repr(value))
        parts.append("[" if isinstance(value, list) else "")
        for item, each in enumerate(texts):
            inner = embedded(read_document(each, "text", language), _in_json)
            parts += [", " if item else "", '"', *inner, '"']
        parts.append("]" if isinstance(value, list) else "")
    return [*parts, "}"]


def _in_json(text: str) -> str:
    """Writes text as it stands between the quotes of JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _csv_line(cells: Sequence[str], separator: str) -> str:
    line = io.StringIO()
    csv.writer(line, delimiter=separator, lineterminator="").writerow(cells)
    return line.getvalue()


def _places(columns: Sequence[str], first_row: Sequence[str]) -> tuple[set[int], bool]:
    """Which cells of a row are translated, from 0, and whether the first row has names."""
    require(
        columns, "columns must name the columns to be translated, or give their numbers", "none"
    )
    if all(column.isdecimal() for column in columns):
        numbers = [int(column) for column in columns]
        require(min(numbers) >= 1, "columns must be numbers from 1", ",".join(columns))
        return {number - 1 for number in numbers}, False
    for column in columns:
        rule = f"columns must be names of the first line, {', '.join(first_row)}"
        require(column in first_row, rule, repr(column))
    return {first_row.index(column) for column in columns}, True


def _require_columns(places: set[int], cells: Sequence[str], number: int) -> None:
    rule = f"line {number} must have at least {max(places) + 1} columns"
    require(max(places) < len(cells), rule, len(cells))


def _document(parts: Parts) -> Document:
    return Document(tuple(part for part in parts if part != ""))
