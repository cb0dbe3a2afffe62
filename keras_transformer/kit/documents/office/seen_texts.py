"""Which texts of a workbook its formulas see, and which of them may be translated.

Texts that a formula looks inside of stay (formulas.py), and so do those from which such a text is
computed. All other texts are translated alike: equal ones, in cells, headings, formulas, lists and
filters, get equal translations, and different ones different translations. Where the translations
are not like this, the texts stay.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator

from keras_transformer.kit.documents.office.formulas import (
    MOST_COLUMNS,
    MOST_ROWS,
    Flow,
    Formula,
    Name,
    Reference,
    criterion,
    key_of,
)

_MOST_NESTED = 20  # names in formulas of names
_VARIABLE = "_xlpm."  # of LET, whose arguments count as seen
_MOST_PASSES = 50  # over all formulas; longer chains of formulas count as looking at everything
_WIDE = 256  # columns
_LONGEST_COMPARED = 255  # characters

# Left, top, right, bottom.
Corners = tuple[int, int, int, int]


@dataclasses.dataclass(frozen=True)
class Cells:
    """Cells of a sheet."""

    sheet: str
    corners: Corners


class Area:
    """A set of cells: in each column, those from the first to the last one that was added."""

    def __init__(self):
        self._rows: dict[tuple[str, int | None], tuple[int, int]] = {}  # None: of all columns
        self.is_everything = False

    def __bool__(self) -> bool:
        return self.is_everything or bool(self._rows)

    def add(self, cells: Cells | None) -> None:
        """Adds cells, or all cells of the workbook if they are unknown (None)."""
        if cells is None:
            self.is_everything = True
            return
        for column, top, bottom in _columns(cells):
            place = cells.sheet, column
            old = self._rows.get(place, (top, bottom))
            self._rows[place] = min(old[0], top), max(old[1], bottom)

    def meets(self, cells: Cells | None) -> bool:
        """Whether some of these cells are in the area; unknown ones (None) are in any."""
        if self.is_everything or cells is None or not self._rows:
            return bool(self)
        columns = [*_columns(cells), (None, cells.corners[1], cells.corners[3])]
        if columns[0][0] is None:  # a wide one
            places = [place for place in self._rows if place[0] == cells.sheet]
        else:
            places = [(cells.sheet, column) for column, _, _ in columns]
        _, top, _, bottom = cells.corners
        return any(
            place in self._rows and self._rows[place][0] <= bottom and top <= self._rows[place][1]
            for place in places
        )


def _columns(cells: Cells) -> Iterator[tuple[int | None, int, int]]:
    left, top, right, bottom = cells.corners
    if right - left >= _WIDE:
        yield None, top, bottom
    else:
        for column in range(left, right + 1):
            yield column, top, bottom


@dataclasses.dataclass(frozen=True)
class Table:
    """A table in a sheet: its cells, and the keys of its headings in their first row."""

    cells: Cells
    columns: tuple[str, ...]

    def part(self, name: Name) -> Cells:
        """Returns the cells that a reference means."""
        left, top, right, bottom = self.cells.corners
        places = [self.columns.index(key) for key in name.columns if key in self.columns]
        if places:
            left, right = left + min(places), left + max(places)
        return Cells(self.cells.sheet, (left, top + (not name.has_headings), right, bottom))


@dataclasses.dataclass(frozen=True)
class _Placed:
    """A formula with its cells, if it is in any; it is written for the first of them."""

    formula: Formula
    sheet: str
    corners: Corners | None
    spread: tuple[int, int]  # columns and rows to which its references move


class SeenTexts:
    """Collects the formulas of a workbook.

    Attributes:
        tables: its tables, by the keys of their names.
        names: the formulas of its names, by the keys of the names.
        literals: the keys of the texts in formulas.
        kept: the keys of texts that stay.
        is_compared: whether anything compares texts.
    """

    def __init__(self):
        self.tables: dict[str, Table] = {}
        self.names: dict[str, list[_Placed]] = {}
        self.literals: set[str] = set()
        self.kept: set[str] = set()
        self.is_compared = False
        self._placed: list[_Placed] = []
        self._seen = Area()

    def add(
        self,
        formula: Formula,
        sheet: str,
        corners: Corners | None = None,
        spread: tuple[int, int] = (0, 0),
    ) -> None:
        """Adds a formula.

        Args:
            formula: the formula.
            sheet: the key of its sheet.
            corners: of the cells that have it.
            spread: columns and rows to which its references move.
        """
        used = [formula.result, *formula.compared]
        known = {text for flow in used for text in flow.texts}
        for text in formula.texts:
            self.literals.update((key_of(text), key_of(criterion(text))))
        self._keep(text for text in formula.texts if text not in known)
        if formula.compared or formula.inside or formula.texts or formula.result.references:
            self._placed.append(_Placed(formula, sheet, corners, spread))
        self.is_compared = self.is_compared or bool(formula.compared or formula.texts)

    def add_name(self, name: str, formula: Formula, sheet: str) -> None:
        """Adds a name; several sheets may have one each."""
        everywhere = MOST_COLUMNS, MOST_ROWS  # it may move with the formulas that use it
        placed = _Placed(formula, sheet, None, everywhere)
        self.names.setdefault(key_of(name), []).append(placed)
        self.add(formula, sheet, None, everywhere)

    def look_inside(self, cells: Cells | None) -> None:
        """Adds cells whose texts stay; None for all."""
        self._seen.add(cells)

    def settle(self) -> None:
        """Finds the cells that formulas look inside of, once all formulas were added."""
        made = self._made()
        for placed in self._placed:
            for flow in placed.formula.inside:
                self._see(placed, flow)
            for flow in placed.formula.compared:
                if flow.is_made or self._meets(made, placed, flow):
                    self._see(placed, flow)
        self._see_sources()

    def is_seen(self, cells: Cells) -> bool:
        """Whether a formula looks inside of some of these cells."""
        return self._seen.meets(cells)

    @property
    def sees_cells(self) -> bool:
        """Whether a formula looks inside of any cell."""
        return bool(self._seen)

    def _keep(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.kept.update((key_of(text), key_of(criterion(text))))

    def _see(self, placed: _Placed, flow: Flow) -> None:
        self._keep(flow.texts)
        for cells in self._cells(placed, flow):
            self._seen.add(cells)

    def _made(self) -> Area:
        """Returns the cells whose formulas may make a text of others."""
        made = Area()
        waiting = [placed for placed in self._placed if placed.corners is not None]
        for _ in range(_MOST_PASSES):
            still = []
            for placed in waiting:
                result = placed.formula.result
                if result.is_made or self._meets(made, placed, result):
                    made.add(Cells(placed.sheet, placed.corners))
                else:
                    still.append(placed)
            if len(still) == len(waiting):
                return made
            waiting = still
        made.is_everything = True
        return made

    def _see_sources(self) -> None:
        """Adds the cells from which the formulas in seen cells take their texts."""
        waiting = [placed for placed in self._placed if placed.corners is not None]
        for _ in range(_MOST_PASSES):
            still = []
            for placed in waiting:
                if self._seen.meets(Cells(placed.sheet, placed.corners)):
                    self._see(placed, placed.formula.result)
                else:
                    still.append(placed)
            if len(still) == len(waiting):
                return
            waiting = still
        self._seen.is_everything = True

    def _meets(self, area: Area, placed: _Placed, flow: Flow) -> bool:
        return bool(area) and any(area.meets(cells) for cells in self._cells(placed, flow))

    def _cells(self, placed: _Placed, flow: Flow, depth: int = 0) -> Iterator[Cells | None]:
        """Yields the cells of a flow; None for unknown ones."""
        for reference in flow.references:
            if isinstance(reference, Reference):
                yield _cells_of(placed, reference)
            elif reference.name == "" and reference.columns:  # of the table around the formula
                yield from self._around(placed, reference)
            elif reference.name in self.tables:
                yield self.tables[reference.name].part(reference)
            elif reference.name in self.names and depth < _MOST_NESTED:
                for inner in self.names[reference.name]:
                    yield from self._cells(inner, inner.formula.result, depth + 1)
            elif not reference.name.startswith(_VARIABLE):
                yield None

    def _around(self, placed: _Placed, reference: Name) -> Iterator[Cells | None]:
        found = [table for table in self.tables.values() if table.cells.sheet == placed.sheet]
        yield from [table.part(reference) for table in found] or [None]


def _cells_of(placed: _Placed, reference: Reference) -> Cells:
    left, top, right, bottom = reference.corners
    moves, (columns, rows) = reference.moves, placed.spread
    right = max(left + columns * moves[0], right + columns * moves[2])
    bottom = max(top + rows * moves[1], bottom + rows * moves[3])
    corners = left, top, min(right, MOST_COLUMNS), min(bottom, MOST_ROWS)
    return Cells(reference.sheet or placed.sheet, corners)


def alike(
    translations: Iterable[tuple[str, str]],
    kept: Collection[str],
    fixed: Iterable[str],
    may_be: Callable[[str, str], bool],
) -> dict[str, str]:
    """Returns the translations of texts that are translated, by their keys.

    Args:
        translations: the texts of cells with their translations.
        kept: the keys of texts that stay.
        fixed: the keys of further texts, which no translation may equal.
        may_be: whether a text may get a translation.

    Returns:
        One translation for all texts with a key; for other texts, they must stay.
    """
    found: dict[str, str] = {}
    stay = set(kept)
    for text, translation in translations:
        key = key_of(text)
        known = found.setdefault(key, translation)
        if key_of(known) != key_of(translation) or not may_be(text, translation):
            stay.add(key)
    for key in fixed:
        found.setdefault(key, key)
    is_new = True
    while is_new:  # a text that stays may equal another's translation
        owners: dict[str, str] = {}
        equal: set[str] = set()
        for key, translation in found.items():
            new = key if key in stay else key_of(translation)
            if owners.setdefault(new, key) != key:
                equal |= {key, owners[new]}
        is_new = not equal <= stay
        stay |= equal
    return {key: translation for key, translation in found.items() if key not in stay}


def may_be_compared(text: str, translation: str) -> bool:
    """Whether formulas can find a translation: it is no pattern, order, number or too long."""
    if translation == text:
        return True
    return (
        any(map(str.isalpha, translation))
        and not translation.startswith(("=", "<", ">"))
        and all(sign in text for sign in "*?~" if sign in translation)
        and (len(translation) <= _LONGEST_COMPARED or len(text) > _LONGEST_COMPARED)
    )
