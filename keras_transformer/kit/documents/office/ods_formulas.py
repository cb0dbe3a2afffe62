"""Which texts of an OpenDocument spreadsheet stay, because its formulas see them."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from keras_transformer.kit.documents.office.formulas import Formula, key_of, read_formula
from keras_transformer.kit.documents.office.seen_texts import Cells, SeenTexts
from keras_transformer.kit.documents.text.xml_source import XmlElement

_START = re.compile(r"^(\w+:)?=?")  # "of:="
_PREDICATE = re.compile(r"\w+(?:-\w+)+\(")  # of a condition: cell-content-is-in-list("yes")
_CELLS = ("table:table-cell", "table:covered-table-cell")
_ROWS = ("table:table-header-rows", "table:table-rows", "table:table-row-group")
# Named cells, and the attribute with their addresses or their formula.
_NAMED = {
    "table:named-range": "table:cell-range-address",
    "table:named-expression": "table:expression",
    "table:database-range": "table:target-range-address",
}


class _Cell(NamedTuple):
    place: Cells  # several, if it is repeated
    element: XmlElement


def kept_texts(root: XmlElement) -> set[str]:
    """Returns the keys of the texts that stay: those in formulas, and those they look inside of."""
    seen = SeenTexts()
    cells = [cell for table in root.walk() if table.name == "table:table" for cell in _cells(table)]
    places = {id(element): place for place, element in cells}
    for element in root.walk():
        if "table:formula" in element.attributes:
            formula = _formula(element.attributes["table:formula"])
            place = places.get(id(element), Cells("", (0, 0, 0, 0)))
            seen.add(formula, place.sheet, place.corners)
        elif "table:condition" in element.attributes:  # its cells are elsewhere
            formula = _formula(_PREDICATE.sub("(", element.attributes["table:condition"]))
            seen.add(formula, "")
            if any(flow.references for flow in formula.inside):
                seen.look_inside(None)
        elif element.name == "table:filter-condition":
            seen.kept.add(key_of(element.attributes.get("table:value", "")))
        elif element.name in _NAMED:
            source = element.attributes.get(_NAMED[element.name], "")
            source = source if element.name == "table:named-expression" else f"[{source}]"
            seen.add_name(element.attributes.get("table:name", ""), _formula(source), "")
    seen.settle()
    keys = {key.strip() for key in seen.literals | seen.kept}  # cells write spaces as elements
    if seen.sees_cells:
        keys |= {key_of(element.text.strip()) for place, element in cells if seen.is_seen(place)}
    return keys - {""}


def _formula(source: str) -> Formula:
    return read_formula(_START.sub("", source), is_open=True)


def _cells(table: XmlElement) -> Iterator[_Cell]:
    """Yields the cells of a sheet."""
    sheet = key_of(table.attributes.get("table:name", ""))
    top = 1
    for row in _rows(table):
        bottom = top + _repeated(row, "rows") - 1
        left = 1
        for element in row.elements:
            if element.name in _CELLS:
                right = left + _repeated(element, "columns") - 1
                yield _Cell(Cells(sheet, (left, top, right, bottom)), element)
                left = right + 1
        top = bottom + 1


def _rows(element: XmlElement) -> Iterator[XmlElement]:
    for child in element.elements:
        if child.name == "table:table-row":
            yield child
        elif child.name in _ROWS:
            yield from _rows(child)


def _repeated(element: XmlElement, kind: str) -> int:
    value = element.attributes.get(f"table:number-{kind}-repeated", "1")
    return int(value) if value.isdecimal() else 1
