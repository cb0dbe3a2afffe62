"""Tables (.tsv, .csv) and lines of JSON (.jsonl): the named columns are translated.

A column is the name of one, which the first line of a table has, or its number, from 1. With
numbers alone, the first line of a table is like all others. A cell may have several lines. What is
not translated stays as it is written. A translation is written so that it stays within its cell.
"""

import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from keras_transformer.documents.formats import read_document
from keras_transformer.documents.segments import Document, Segment
from keras_transformer.errors import InputError, require
from keras_transformer.fields import shown, whole_number

Parts = list[str | Segment]

_LINE_END = re.compile(r"\r\n?|\n|\Z")  # of .csv
_QUOTED = re.compile(r'"([^"]*(?:""[^"]*)*)"')
_QUOTED_CHARACTER = re.compile(r'""|[^"]')
# A character between the quotes of JSON: half a surrogate pair is none if it has its other half.
_JSON_CHARACTER = re.compile(
    r"""\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}
    | \\u[0-9a-fA-F]{4} | \\. | [^\\]
    """,
    re.VERBOSE,
)
_JSON_SPACE = re.compile(r"[ \t\n\r]*")
_JSON = json.JSONDecoder(parse_int=float)  # an int may not have some thousand digits


def read_tsv(text: str, language: str, columns: Sequence[str] = ()) -> Document:
    """Reads a table whose cells have tabs between them, and neither tabs nor line ends in them.

    Args:
        text: the table.
        language: of the cells.
        columns: names or numbers of those to be translated.

    Raises:
        InputError: for a name that is not that of one column, and, naming it, for a line without
            such a column, or with a cell that no name is above.
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
            parts += _cell(cell, language, cell, _in_tsv) if place in chosen.places else [cell]
        parts.append(line[len(content) :])
    return _document(parts)


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
            chosen = _chosen(columns, [cell.text for cell in cells])
            is_header = chosen.names is not None
        if cells:
            chosen.check([cell.text for cell in cells], number)
        for place, cell in enumerate(cells):
            parts.append(separator if place else "")
            if place in chosen.places and not is_header:
                parts += _csv_parts(cell, language, separator)
            else:
                parts.append(cell.source)
        parts.append(line_end)
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
    require(columns, "columns", "must name the keys to be translated", "none")
    parts: Parts = []
    for number, line in enumerate(_lines(text), start=1):
        content = line.strip()
        before, _, after = line.partition(content) if content else (line, "", "")
        parts.append(before)
        if content:
            parts += _json_parts(content, number, columns, language)
        parts.append(after)
    return _document(parts)


def _lines(text: str) -> list[str]:
    """The lines with their ends. There are further characters that str.splitlines takes for one."""
    return [line for line in re.split(r"(?<=\n)", text) if line]


def _cell(text: str, language: str, written: Sequence[str], embed: Callable[[str], str]) -> Parts:
    """The parts of a cell.

    Args:
        text: of the cell.
        language: of the text.
        written: for each character of the text, what the table has for it.
        embed: writes translated text as the table does.
    """
    parts: Parts = []
    place = 0
    for part in read_document(text, "text", language).parts:
        end = place + len(part if isinstance(part, str) else part.source)
        source = "".join(written[place:end])
        if isinstance(part, Segment):
            parts.append(dataclasses.replace(part, source=source, embed=embed))
        else:
            parts.append(source)
        place = end
    return parts


def _in_tsv(text: str) -> str:
    """Writes text without what ends a cell."""
    return re.sub("[\t\r\n]", " ", text)


class _CsvCell(NamedTuple):
    """A cell of comma-separated values."""

    source: str  # with its quotes
    text: str


def _csv_rows(text: str, separator: str) -> Iterator[tuple[int, list[_CsvCell], str]]:
    """Yields the number of the first line of each row, its cells, and its line end."""
    number, place = 1, 0
    while place < len(text):
        start = place
        cells: list[_CsvCell] = []
        line_end = _LINE_END.match(text, place)  # an empty line has no cells
        while line_end is None:
            cell = _csv_cell(text, place, separator, number)
            cells.append(cell)
            place += len(cell.source)
            line_end = _LINE_END.match(text, place)
            if line_end is None:
                place += len(separator)
        yield number, cells, line_end[0]
        place = line_end.end()
        number += len(re.findall(r"\r\n?|\n", text[start:place]))


def _csv_cell(text: str, place: int, separator: str, number: int) -> _CsvCell:
    """The cell at a place in a row that begins in the line of a number."""
    if not text.startswith('"', place):
        unquoted = re.compile(f"[^\r\n{separator}]*").match(text, place)[0]
        return _CsvCell(unquoted, unquoted)
    rule, line = "must be comma-separated values", f"line {number}"
    quoted = _QUOTED.match(text, place)
    begun = text[place : place + 80]
    require(quoted is not None, None, rule, f"a cell without a quote at its end, {begun!r}", line)
    end = quoted.end()
    has_ended = text.startswith(separator, end) or _LINE_END.match(text, end)
    require(has_ended, None, rule, f"text after the quotes of a cell, {begun!r}", line)
    return _CsvCell(quoted[0], quoted[1].replace('""', '"'))


def _csv_parts(cell: _CsvCell, language: str, separator: str) -> Parts:
    """The parts of a cell that is translated; it gets quotes only where its translation needs some.

    Without them it is a segment as a whole, with the spaces around its text.
    """
    if cell.source.startswith('"'):
        written = _QUOTED_CHARACTER.findall(cell.source[1:-1])
        return ['"', *_cell(cell.text, language, written, _in_quotes), '"']
    document = read_document(cell.text, "text", language)
    if not document.segments:
        return [cell.source]
    (segment,) = document.segments
    before, _, after = cell.text.partition(segment.source)

    def embed(text: str) -> str:
        translated = f"{before}{text}{after}"
        needs_quotes = any(character in translated for character in f'"\r\n{separator}')
        return f'"{_in_quotes(translated)}"' if needs_quotes else translated

    return [dataclasses.replace(segment, source=cell.source, embed=embed)]


def _in_quotes(text: str) -> str:
    """Writes text as it stands between the quotes of a cell."""
    return text.replace('"', '""')


class _Member(NamedTuple):
    """A member of an object or a list of JSON."""

    name: str | None  # None in a list
    value: Any
    start: int  # of the value, in the text of the JSON
    end: int


def _json_parts(content: str, number: int, columns: Sequence[str], language: str) -> Parts:
    line = f"line {number}"
    try:
        row = _JSON.decode(content)
    except (ValueError, RecursionError) as error:
        raise InputError(None, "must be JSON", error, line) from None
    require(isinstance(row, dict), None, "must be an object of JSON", content[:80], line)
    for name in columns:
        require(name in row, None, f"must have the key {name!r}", sorted(row), line)
    parts: Parts = []
    done = 0  # characters that are in `parts`
    for member in _members(content, 0):
        if member.name not in columns:
            continue
        is_list = isinstance(member.value, list)
        texts = list(_members(content, member.start)) if is_list else [member]
        rule = "must be a text or a list of texts"
        are_texts = all(isinstance(text.value, str) for text in texts)
        require(are_texts, member.name, rule, content[member.start : member.end], line)
        for text in texts:
            start, end = text.start + 1, text.end - 1  # without its quotes
            written = _JSON_CHARACTER.findall(content, start, end)
            parts += [content[done:start], *_cell(text.value, language, written, _in_json)]
            done = end
    return [*parts, content[done:]]


def _members(content: str, opening: int) -> Iterator[_Member]:
    """Yields the members of the object or list that begins at a place in the text of a JSON."""
    is_object = content[opening] == "{"
    place = _JSON_SPACE.match(content, opening + 1).end()
    while content[place] not in "]}":
        name = None
        if is_object:
            name, place = _JSON.raw_decode(content, place)
            colon = content.index(":", place)
            place = _JSON_SPACE.match(content, colon + 1).end()
        value, end = _JSON.raw_decode(content, place)
        yield _Member(name, value, place, end)
        place = _JSON_SPACE.match(content, end).end()
        if content[place] == ",":
            place = _JSON_SPACE.match(content, place + 1).end()


def _in_json(text: str) -> str:
    """Writes text as it stands between the quotes of JSON; half a surrogate pair as its number."""
    written = json.dumps(text, ensure_ascii=False)[1:-1]
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


def _document(parts: Parts) -> Document:
    return Document(tuple(part for part in parts if part != ""))
