"""What computes with the texts of an Excel workbook: formulas, lists, filters, tables, pivots.

Sheets may be too large for a tree, so they are read by patterns. xlsx_followed.py lets what is
found here follow the translations.
"""

import dataclasses
import functools
import posixpath
import re
from collections.abc import Iterator, Mapping
from html import unescape
from typing import NamedTuple
from xml.parsers import expat

from keras_transformer.kit.documents.office.archive import Package
from keras_transformer.kit.documents.office.formulas import (
    MOST_COLUMNS,
    MOST_ROWS,
    Flow,
    Reference,
    is_pattern,
    key_of,
    read_formula,
    read_reference,
)
from keras_transformer.kit.documents.office.open_xml import type_of
from keras_transformer.kit.documents.office.seen_texts import Cells, Corners, SeenTexts, Table

SHEET = type_of("worksheet")
STRINGS = type_of("sharedStrings")
COMPUTING = type_of("worksheet|table|main|pivotCacheDefinition|pivotCacheRecords|pivotTable")
_CACHE = type_of("pivotCacheDefinition")

FORMULAS = r"f|formula[12]?|definedName|calculatedColumnFormula|totalsRowFormula"
NAMED = re.compile(
    r"<(?:[\w.-]+:)?(?:tableColumn|filter|customFilter|cacheField|dataField|pivotField|s)\s[^<>]*>"
)
NAME = re.compile(r"""(\s(?:name|val|v|totalsRowLabel)=)("[^"]*"|'[^']*')""")
LIST = re.compile(r'"(?:[^"]|"")*"')
_TAGS = re.compile(
    rf"""<(?:[\w.-]+:)?(?P<tag>{FORMULAS}|row|c|v|dataValidation|conditionalFormatting|cfRule
    |autoFilter|filterColumn|filter|customFilter|table|tableColumn)
    (?P<attributes>(?:\s[^<>]*?)?)(?P<end>/?)>(?P<text>[^<]*)""",
    re.VERBOSE,
)
_ATTRIBUTE = re.compile(r"""(?:^|\s)(?:[\w.-]+:)?([\w.-]+)\s*=\s*("[^"]*"|'[^']*')""")
_COMPUTING = re.compile(r"<(?:[\w.-]+:)?(?:f|formula[12]?|autoFilter)[\s>]")
_CODE = re.compile("_x([0-9a-fA-F]{4})_")
_ROW = re.compile(r"""(?:^|\s)r=["'](\d+)["']""")
_CELL = re.compile(r"""(?:^|\s)r=["']([A-Z]{1,3})(\d+)["']""")
_TYPE = re.compile(r"""(?:^|\s)t=["'](\w+)["']""")


class Item(NamedTuple):
    """A text of a cell: the bytes of its element, and its text."""

    start: int
    end: int
    text: str


def items_in(content: bytes) -> list[Item]:
    """Returns the texts of cells in a member; none if it is not well-formed."""
    found: list[Item] = []
    texts: list[str] = []
    start = readings = 0
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True

    def begin(name: str, attributes: dict[str, str]) -> None:
        nonlocal start, readings
        local = name.rpartition(":")[2]
        if local in ("si", "is"):
            texts.clear()
            start = parser.CurrentByteIndex
        readings += local == "rPh"
        parser.CharacterDataHandler = texts.append if local == "t" and not readings else None

    def end(name: str) -> None:
        nonlocal readings
        local = name.rpartition(":")[2]
        parser.CharacterDataHandler = None
        readings -= local == "rPh"
        if local in ("si", "is"):
            place = parser.CurrentByteIndex
            if content[place - 2 : place] != b"/>":
                place = content.index(b">", place) + 1
            found.append(Item(start, place, text_from("".join(texts))))

    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    try:
        parser.Parse(content, True)
    except expat.ExpatError:
        return []
    return found


def text_from(written: str) -> str:
    """Returns a text, given how Excel writes it: "_x000a_" for a line break."""
    return _CODE.sub(lambda match: chr(int(match[1], 16)), written).replace("\r\n", "\n")


@dataclasses.dataclass
class Computing:
    """What computes with the texts of a workbook.

    Attributes:
        seen: the formulas, and the keys of the texts that stay.
        lists: the keys of the values in each list of allowed values.
        headings: the keys of the headings of tables.
    """

    seen: SeenTexts = dataclasses.field(default_factory=SeenTexts)
    lists: list[list[str]] = dataclasses.field(default_factory=list)
    headings: set[str] = dataclasses.field(default_factory=set)


def computing_in(package: Package, types: Mapping[str, str]) -> Computing:
    """Reads what computes in a workbook, given the types of its members by their names."""
    found = Computing()
    sheets, tables = _places(package, types)
    for name, type in types.items():
        if COMPUTING.fullmatch(type):
            text = package.text(name)
            if _CACHE.fullmatch(type):
                _add_cache(found.seen, text)
            elif not SHEET.fullmatch(type) or _COMPUTING.search(text):
                _MemberReader(found, sheets.get(name) or tables.get(name, "")).read(text)
    found.seen.settle()
    if found.seen.sees_cells:
        strings = [name for name, type in types.items() if STRINGS.fullmatch(type)]
        _keep_seen(found.seen, package, strings[-1:], sheets)
    return found


def _add_cache(seen: SeenTexts, text: str) -> None:
    """Adds the fields and items of a pivot table."""
    seen.is_compared = True
    names = [
        text_from(unescape(match[2][1:-1]))
        for tag in NAMED.finditer(text)
        for match in NAME.finditer(tag[0])
    ]
    keys = set(map(key_of, names))
    seen.literals |= keys
    if re.search(r"\sformula=", text):  # of a field that is computed
        seen.kept |= keys


def _keep_seen(
    seen: SeenTexts, package: Package, strings: list[str], sheets: Mapping[str, str]
) -> None:
    """Keeps the texts of cells that formulas look inside of.

    Args:
        seen: the formulas, to which the texts are added.
        package: the workbook.
        strings: the name of the member with the texts of all sheets, if there is one.
        sheets: the keys of the names of sheets, by their members.
    """
    texts = [item.text for name in strings for item in items_in(package.text(name).encode("utf-8"))]
    for name, sheet in sheets.items():
        text = package.text(name)
        inner = iter(items_in(text.encode("utf-8")) if "inlineStr" in text else ())
        for number, column, row in _strings_in(text):
            item = next(inner, None) if number is None else None
            if seen.is_seen(Cells(sheet, (column, row, column, row))):
                if item is not None:
                    seen.kept.add(key_of(item.text))
                elif number is not None and number < len(texts):
                    seen.kept.add(key_of(texts[number]))


def _strings_in(text: str) -> Iterator[tuple[int | None, int, int]]:
    """Yields the number of the text, the column and the row of each cell of a sheet with a text.

    The number is None if the text is in the cell.
    """
    kind = ""
    for match, column, row in _tags_in(text):
        if match["tag"] == "c":
            type = _TYPE.search(match["attributes"])
            kind = type[1] if type else ""
            if kind == "inlineStr":
                yield None, column, row
        elif match["tag"] == "v" and kind == "s" and match["text"].strip().isdecimal():
            yield int(match["text"]), column, row


def _tags_in(text: str) -> Iterator[tuple[re.Match, int, int]]:
    """Yields the tags of a member with the text after each, and the place of the latest cell.

    A cell is next to the one before it unless it says so.
    """
    column = row = 0
    for match in _TAGS.finditer(text):
        if match["tag"] == "row":
            number = _ROW.search(match["attributes"])
            row, column = int(number[1]) if number else row + 1, 0
        elif match["tag"] == "c":
            cell = _CELL.search(match["attributes"])
            if cell is None:
                row, column = max(row, 1), column + 1
            else:
                row, column = int(cell[2]), _column_number(cell[1])
        yield match, column, row


@functools.lru_cache(maxsize=MOST_COLUMNS)
def _column_number(letters: str) -> int:
    return read_reference(None, f"{letters}1").corners[0]


def _attributes(tag: str) -> dict[str, str]:
    return {match[1]: unescape(match[2][1:-1]) for match in _ATTRIBUTE.finditer(tag)}


def _corners(ranges: str) -> Corners | None:
    """Returns the corners around ranges such as "A1:B2 D4"."""
    if not re.fullmatch(r"\s*[$A-Za-z0-9:\s]+", ranges):
        return None
    found = [read_reference(None, each).corners for each in ranges.split()]
    left, top, right, bottom = zip(*found, strict=True)
    return min(left), min(top), max(right), max(bottom)


def entries(source: str) -> list[str]:
    """Returns the values of a list of allowed values, which is one text: "yes,no"."""
    return [entry.strip() for entry in source[1:-1].replace('""', '"').split(",")]


class _MemberReader:
    """Reads the formulas, lists, filters and headings of a sheet, a table or the workbook."""

    def __init__(self, computing: Computing, sheet: str):
        self._computing = computing
        self._seen = computing.seen
        self._sheet = sheet
        self._around: dict[str, str] = {}  # attributes of the validation or format
        self._rule: dict[str, str] = {}  # of the rule of a format
        self._filtered: Corners | None = None
        self._column = 0  # the number of the filter's, within its cells
        self._table: dict[str, str] = {}
        self._columns: list[str] = []

    def read(self, text: str) -> None:
        """Reads the whole member."""
        is_in_cell = False
        for match, column, row in _tags_in(text):
            tag = match["tag"]
            if tag == "c":
                is_in_cell = True
            elif tag == "f" and (match["end"] or not match["text"]):
                continue
            elif tag == "f" and is_in_cell:
                self._add_cell_formula(match, column, row)
            elif tag == "f":  # a later tag says which cells it is about
                self._add_rule(unescape(match["text"]), None)
            elif tag not in ("row", "v"):
                is_in_cell = False
                self._add_other(tag, _attributes(match["attributes"]), unescape(match["text"]))
        if self._table:
            self._add_table()

    def _add_table(self) -> None:
        keys = tuple(map(key_of, self._columns))
        self._computing.headings.update(keys)
        self._seen.is_compared = True
        if self._table.get("tableType", "worksheet") != "worksheet":  # a query names the headings
            self._seen.kept.update(keys)
        corners = _corners(self._table.get("ref", "")) or (0, 0, 0, 0)
        if self._table.get("headerRowCount") == "0":
            corners = corners[0], corners[1] - 1, *corners[2:]
        for name in ("name", "displayName"):
            table = Table(Cells(self._sheet, corners), keys)
            self._seen.tables[key_of(self._table.get(name, ""))] = table

    def _add_cell_formula(self, match: re.Match, column: int, row: int) -> None:
        cells = _corners(_attributes(match["attributes"]).get("ref", ""))
        corners = cells or (column, row, column, row)
        spread = corners[2] - corners[0], corners[3] - corners[1]
        formula = read_formula(unescape(match["text"]))
        self._seen.add(formula, self._sheet, corners, spread)

    def _add_other(self, tag: str, attributes: dict[str, str], text: str) -> None:
        if tag in ("dataValidation", "conditionalFormatting"):
            self._around, self._rule = attributes, {}
        elif tag == "cfRule":
            self._rule = attributes
        elif tag.startswith("formula"):
            self._add_rule(text, _corners(self._around.get("sqref", "")))
        elif tag == "definedName":
            formula = read_formula(text)
            self._seen.add_name(attributes.get("name", ""), formula, self._sheet)
        elif tag in ("calculatedColumnFormula", "totalsRowFormula"):
            self._seen.add(read_formula(text), self._sheet)
        elif tag == "autoFilter":
            self._filtered = _corners(attributes.get("ref", ""))
        elif tag == "filterColumn":
            self._column = int(attributes.get("colId") or 0)
        elif tag in ("filter", "customFilter"):
            self._add_filter(attributes)
        elif tag == "table":
            self._table = attributes
        else:
            self._columns.append(text_from(attributes.get("name", "")))

    def _add_rule(self, source: str, corners: Corners | None) -> None:
        """Adds a formula of a validation or of a format, for cells if they are known."""
        if LIST.fullmatch(source) and not self._rule:
            keys = [key_of(entry) for entry in entries(source)]
            self._computing.lists.append(keys)
            self._seen.literals.update(keys)
            self._seen.is_compared = True
            return
        formula = read_formula(source)
        spread = MOST_COLUMNS, MOST_ROWS
        if corners is not None:
            spread = corners[2] - corners[0], corners[3] - corners[1]
        if self._rule.get("type") == "cellIs" and corners is not None and formula.result.texts:
            cells = Reference(None, corners, (False,) * 4)
            flow = Flow((cells, *formula.result.references), formula.result.texts)
            is_equality = self._rule.get("operator") in ("equal", "notEqual")
            (formula.compared if is_equality else formula.inside).append(flow)
        self._seen.add(formula, self._sheet, None, spread)

    def _add_filter(self, attributes: dict[str, str]) -> None:
        value = attributes.get("val", "")
        if not any(map(str.isalpha, value)):
            return
        self._seen.is_compared = True
        self._seen.literals.add(key_of(value))
        operator = attributes.get("operator", "equal")
        if operator not in ("equal", "notEqual") or is_pattern(value):
            self._seen.kept.add(key_of(value))
            if self._filtered is not None:
                left, top, _, bottom = self._filtered
                column = left + self._column
                cells = Cells(self._sheet, (column, top + 1, column, bottom))
                self._seen.look_inside(cells)


def _places(package: Package, types: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the keys of the names of sheets, by their members, and those of tables' sheets."""
    names: dict[str, str] = {}
    for book in types:
        related = _related(package, book)
        if type_of("(sheet|template|addin).*main").fullmatch(types[book]) and related:
            for match in re.finditer(r"<(?:[\w.-]+:)?sheet\s[^<>]*>", package.text(book)):
                attributes = _attributes(match[0])
                names[related.get(attributes.get("id", ""), "")] = key_of(
                    attributes.get("name", "")
                )
    sheets = {name: names.get(name, name) for name, type in types.items() if SHEET.fullmatch(type)}
    tables = {
        member: sheet
        for name, sheet in sheets.items()
        for member in _related(package, name).values()
    }
    return sheets, tables


def _related(package: Package, name: str) -> dict[str, str]:
    """Returns the members to which a member refers, by their ids."""
    folder, file = posixpath.split(name)
    relations = f"{folder}/_rels/{file}.rels"
    if relations not in package.names:
        return {}
    found = {}
    for match in re.finditer(r"<(?:[\w.-]+:)?Relationship\s[^<>]*>", package.text(relations)):
        attributes = _attributes(match[0])
        path = posixpath.normpath(posixpath.join("/", folder, attributes.get("Target", "")))
        found[attributes.get("Id", "")] = path.lstrip("/")
    return found
