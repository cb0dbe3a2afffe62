"""What computes with the texts of an Excel workbook, and how it follows their translations.

Cells get their translations first. Then literals in formulas, lists of allowed values, headings of
tables, filters and the caches of pivot tables get those of the cells with the same text. A cell
whose translation formulas could not tell from another gets its own text back (seen_texts.py).

Sheets may be too large for a tree, so they are read by patterns.
"""

import functools
import io
import posixpath
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from html import unescape
from typing import NamedTuple
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

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
    with_texts,
)
from keras_transformer.kit.documents.office.open_xml import type_of
from keras_transformer.kit.documents.office.seen_texts import (
    Cells,
    Corners,
    SeenTexts,
    Table,
    alike,
    may_be_compared,
)
from keras_transformer.kit.documents.text.encodings import decoded
from keras_transformer.support.markup import well_formed

MOST_CHARACTERS = 32_767  # of a cell
_SHEET = type_of("worksheet")
_STRINGS = type_of("sharedStrings")
_CACHE = type_of("pivotCacheDefinition")
_FOLLOWING = type_of("worksheet|table|main|pivotCacheDefinition|pivotCacheRecords|pivotTable")

_FORMULAS = r"f|formula[12]?|definedName|calculatedColumnFormula|totalsRowFormula"
_TAGS = re.compile(
    rf"""<(?:[\w.-]+:)?(?P<tag>{_FORMULAS}|row|c|v|dataValidation|conditionalFormatting|cfRule
    |autoFilter|filterColumn|filter|customFilter|table|tableColumn)
    (?P<attributes>(?:\s[^<>]*?)?)(?P<end>/?)>(?P<text>[^<]*)""",
    re.VERBOSE,
)
_ATTRIBUTE = re.compile(r"""(?:^|\s)(?:[\w.-]+:)?([\w.-]+)\s*=\s*("[^"]*"|'[^']*')""")
_COMPUTING = re.compile(r"<(?:[\w.-]+:)?(?:f|formula[12]?|autoFilter)[\s>]")
_WRITTEN_FORMULA = re.compile(
    rf"(<(?P<prefix>[\w.-]+:)?(?P<tag>{_FORMULAS})(?:\s[^<>]*)?(?<!/)>)([^<]+)"
)
_NAMED = re.compile(
    r"<(?:[\w.-]+:)?(?:tableColumn|filter|customFilter|cacheField|dataField|pivotField|s)\s[^<>]*>"
)
_NAME = re.compile(r"""(\s(?:name|val|v|totalsRowLabel)=)("[^"]*"|'[^']*')""")
_CODE = re.compile("_x([0-9a-fA-F]{4})_")
_LIST = re.compile(r'"(?:[^"]|"")*"')
_LONGEST_LIST = 255  # characters
_IN_HEADING = re.compile(r"[\w .%/()&-]+")  # what a structured reference writes without escapes


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


class XlsxFormulas:
    """Collects what computes with texts, and lets it follow their translations.

    Attributes:
        kept: the keys of the texts that stay.
    """

    def __init__(self, package: Package, types: Mapping[str, str], content: bytes):
        self._types = types
        self._content = content
        self._seen = SeenTexts()
        self._lists: list[list[str]] = []  # keys
        self._headings: set[str] = set()
        sheets, tables = _places(package, types)
        for name, type in types.items():
            if _FOLLOWING.fullmatch(type):
                text = package.text(name)
                if _CACHE.fullmatch(type):
                    self._add_cache(text)
                elif not _SHEET.fullmatch(type) or _COMPUTING.search(text):
                    self._add_member(text, sheets.get(name) or tables.get(name, ""))
        self._seen.settle()
        if self._seen.sees_cells:
            self._keep_seen(package, sheets)
        self.kept = self._seen.kept

    def _add_cache(self, text: str) -> None:
        """Adds the fields and items of a pivot table."""
        self._seen.is_compared = True
        names = [
            text_from(unescape(match[2][1:-1]))
            for tag in _NAMED.finditer(text)
            for match in _NAME.finditer(tag[0])
        ]
        keys = set(map(key_of, names))
        self._seen.literals |= keys
        if re.search(r"\sformula=", text):  # of a field that is computed
            self._seen.kept |= keys

    def _add_member(self, text: str, sheet: str) -> None:
        """Adds the formulas, lists, filters and headings of a sheet, a table or the workbook."""
        reader = _MemberReader(self._seen, sheet)
        for match in _TAGS.finditer(text):
            reader.add(match)
        reader.end()
        self._lists += reader.lists
        self._headings |= reader.headings

    def _keep_seen(self, package: Package, sheets: Mapping[str, str]) -> None:
        """Keeps the texts of cells that formulas look inside of."""
        texts: list[Item] = []
        for name, type in self._types.items():
            if _STRINGS.fullmatch(type):
                texts = items_in(package.text(name).encode("utf-8"))
        kept: set[int] = set()
        for name, sheet in sheets.items():
            text = package.text(name)
            inner = items_in(text.encode("utf-8")) if "inlineStr" in text else []
            waiting = iter(inner)
            for kind, column, row, value in _strings_in(text):
                is_seen = self._seen.is_seen(Cells(sheet, (column, row, column, row)))
                if kind == "inlineStr":
                    item = next(waiting, None)
                    if is_seen and item is not None:
                        self._seen.kept.add(key_of(item.text))
                elif is_seen and value.isdecimal():
                    kept.add(int(value))
        self._seen.kept.update(key_of(texts[number].text) for number in kept if number < len(texts))

    def finish(self, left: Counter[str], members: dict[str, bytes | bytearray]) -> None:
        """Changes translated members, and adds others that follow them; see archive.Finish."""
        items = {
            name: items_in(content)
            for name, content in members.items()
            if _STRINGS.fullmatch(self._types[name]) or _SHEET.fullmatch(self._types[name])
        }
        is_long = any(len(item.text) > MOST_CHARACTERS for some in items.values() for item in some)
        if not self._seen.is_compared and not is_long:
            return
        with zipfile.ZipFile(io.BytesIO(self._content)) as archive:
            sources = {
                name: decoded(archive.read(name), "xml", name).encode("utf-8") for name in items
            }
            pairs = {
                name: list(zip(items_in(source), items[name], strict=False))
                for name, source in sources.items()
            }
            texts = [(old.text, new.text) for found in pairs.values() for old, new in found]
            translations = self._alike(texts)
            for name, found in pairs.items():
                members[name] = self._with_kept(
                    sources[name], members[name], found, translations, left
                )
            cited = self._seen.literals | self._headings
            new = {
                key: text for key, text in translations.items() if key in cited and text is not None
            }
            exact = {old: text for old, text in texts if key_of(old) in new}
            if any(old != text for old, text in exact.items()):
                for name, type in self._types.items():
                    if _FOLLOWING.fullmatch(type):
                        content = members.get(name) or archive.read(name)
                        text = decoded(bytes(content), "xml", name)
                        followed = _followed(text, new, exact)
                        if followed != text:
                            members[name] = followed.encode("utf-8")

    def _alike(self, texts: list[tuple[str, str]]) -> dict[str, str]:
        """Returns the translations of the texts that may be translated, by their keys."""

        def may_be(text: str, translation: str) -> bool:
            key = key_of(text)
            return (
                may_be_compared(text, translation)
                and len(translation) <= MOST_CHARACTERS
                and (key not in entries or "," not in translation)
                and (key not in self._headings or _is_heading(translation))
            )

        entries = {key for keys in self._lists for key in keys}
        kept = set(self._seen.kept)
        while True:
            found = alike(texts, kept, self._seen.literals | self._headings, may_be)
            long = [
                keys
                for keys in self._lists
                if not kept.issuperset(keys)
                and len(",".join(found.get(key, key) for key in keys)) > _LONGEST_LIST
            ]
            if not long:
                return found
            kept.update(*long)

    def _with_kept(
        self,
        source: bytes,
        translated: bytes | bytearray,
        pairs: list[tuple[Item, Item]],
        translations: Mapping[str, str],
        left: Counter[str],
    ) -> bytearray:
        """Returns a translated member in which some texts are as in its source."""
        result, place = bytearray(), 0
        for old, new in pairs:
            is_long = len(new.text) > MOST_CHARACTERS
            is_kept = self._seen.is_compared and key_of(old.text) not in translations
            if (is_long or is_kept) and new.text != old.text:
                left["long" if is_long else "formula"] += 1
                result += translated[place : new.start] + source[old.start : old.end]
                place = new.end
        return result + translated[place:]


class _MemberReader:
    """Reads the tags of a member in order."""

    def __init__(self, seen: SeenTexts, sheet: str):
        self.lists: list[list[str]] = []
        self.headings: set[str] = set()
        self._seen = seen
        self._sheet = sheet
        self._column = self._row = 0
        self._is_in_cell = False
        self._around: dict[str, str] = {}  # attributes of the validation or format
        self._rule: dict[str, str] = {}  # of the rule of a format
        self._filtered: Corners | None = None
        self._table: dict[str, str] = {}
        self._columns: list[str] = []

    def add(self, match: re.Match) -> None:
        """Adds a tag and the text after it."""
        tag, attributes = match["tag"], match["attributes"]
        if tag == "row":
            self._row, self._column = int(_number(attributes) or self._row + 1), 0
        elif tag == "c":
            self._is_in_cell = True
            self._column, self._row = _position(attributes, self._column, self._row)
        elif tag in ("v", "f"):
            if tag == "f" and match["text"] and not match["end"]:
                self._add_cell_formula(_attributes(attributes), unescape(match["text"]))
        else:
            self._is_in_cell = False
            self._add_other(tag, _attributes(attributes), unescape(match["text"]))

    def end(self) -> None:
        """Ends the member."""
        if not self._table:
            return
        keys = tuple(map(key_of, self._columns))
        self.headings.update(keys)
        self._seen.is_compared = True
        if self._table.get("tableType", "worksheet") != "worksheet":  # a query names the headings
            self._seen.kept.update(keys)
        corners = _corners(self._table.get("ref", "")) or (0, 0, 0, 0)
        if self._table.get("headerRowCount") == "0":
            corners = corners[0], corners[1] - 1, *corners[2:]
        for name in ("name", "displayName"):
            table = Table(Cells(self._sheet, corners), keys)
            self._seen.tables[key_of(self._table.get(name, ""))] = table

    def _add_cell_formula(self, attributes: dict[str, str], source: str) -> None:
        if not self._is_in_cell:  # a later tag says which cells it is about
            self._add_rule(source, None)
            return
        corners = _corners(attributes.get("ref", ""))
        if corners is None:
            corners = self._column, self._row, self._column, self._row
        spread = corners[2] - corners[0], corners[3] - corners[1]
        self._seen.add(read_formula(source), self._sheet, corners, spread)

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
        if _LIST.fullmatch(source) and not self._rule:
            entries = [
                key_of(entry.strip()) for entry in source[1:-1].replace('""', '"').split(",")
            ]
            self.lists.append(entries)
            self._seen.literals.update(entries)
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
    sheets = {name: names.get(name, name) for name, type in types.items() if _SHEET.fullmatch(type)}
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


def _strings_in(text: str) -> Iterator[tuple[str, int, int, str]]:
    """Yields the type, column, row and value of each cell of a sheet with a text of its own."""
    column = row = 0
    kind = ""
    for match in _TAGS.finditer(text):
        tag, attributes = match["tag"], match["attributes"]
        if tag == "row":
            row, column = int(_number(attributes) or row + 1), 0
        elif tag == "c":
            column, row = _position(attributes, column, row)
            type = _TYPE.search(attributes)
            kind = type[1] if type else ""
            if kind == "inlineStr":
                yield kind, column, row, ""
        elif tag == "v" and kind == "s":
            yield kind, column, row, match["text"].strip()


_ROW = re.compile(r"""(?:^|\s)r=["'](\d+)["']""")
_CELL = re.compile(r"""(?:^|\s)r=["']([A-Z]{1,3})(\d+)["']""")
_TYPE = re.compile(r"""(?:^|\s)t=["'](\w+)["']""")


def _number(attributes: str) -> str | None:
    match = _ROW.search(attributes)
    return match and match[1]


def _position(attributes: str, column: int, row: int) -> tuple[int, int]:
    """Returns the column and the row of a cell, which is next to the last one unless it says so."""
    match = _CELL.search(attributes)
    if match is None:
        return column + 1, max(row, 1)
    return _column_number(match[1]), int(match[2])


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


def _entries(source: str) -> list[str]:
    """Returns the values of a list of allowed values, which is one text: "yes,no"."""
    return [entry.strip() for entry in source[1:-1].replace('""', '"').split(",")]


def _is_heading(text: str) -> bool:
    return _IN_HEADING.fullmatch(text) is not None and len(text) <= _LONGEST_LIST


def _followed(text: str, new: Mapping[str, str], exact: Mapping[str, str]) -> str:
    """Returns a member whose formulas, lists, filters and headings follow translations.

    Args:
        text: the member.
        new: the translations of texts, by their keys.
        exact: the translations of texts as cells have them.
    """

    def translation(source: str) -> str:
        return exact.get(source) or new.get(key_of(source), source)

    def formula(match: re.Match) -> str:
        source = unescape(match[4])
        written = with_texts(source, translation)
        is_rule = match["tag"].startswith("formula") or match["prefix"] == "xm:"
        if written == source and is_rule and _LIST.fullmatch(source):
            inner = ",".join(map(translation, _entries(source)))
            written = '"{}"'.format(inner.replace('"', '""'))
        return match[0] if written == source else match[1] + escape(well_formed(written))

    def name(match: re.Match) -> str:
        source = text_from(unescape(match[2][1:-1]))
        if (written := translation(source)) == source:
            return match[0]
        return match[1] + quoteattr(well_formed(written)).replace("\n", "_x000a_")

    text = _WRITTEN_FORMULA.sub(formula, text)
    return _NAMED.sub(lambda match: _NAME.sub(name, match[0]), text)
