"""Writes a translation with its sentence's marks, as placed by placement.py.

The units of a translation (alignment.py) are separated by gaps, which are spaces or empty: gaps[k]
is before unit k, and an additional gap follows the last unit.

    unit    0       1        2         3
          |Die|   |Taste|  |drücken|  |.|
    gap  0     1         2          3    4

An element surrounds the units from `start` to `end` - 1 and the gaps between them, but not the gaps
at its edges. An insertion is in one gap, before or after its space, and a break replaces a gap.
"""

from collections import defaultdict
from collections.abc import Sequence

from keras_transformer.kit.documents.tree.alignment import Alignment
from keras_transformer.kit.documents.tree.marked import CLOSING, OPENING, Element, Insertion
from keras_transformer.kit.documents.tree.segments import Mark, Piece


def gaps_of(alignment: Alignment) -> list[Piece]:
    """Returns the text before each unit of a translation, and after the last one."""
    text = alignment.translation
    edges = [0, *(place for unit in alignment.targets for place in unit), len(text)]
    return [text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]


class Writer:
    """Writes a translation with its marks.

    Args:
        alignment: the alignment of the sentence and its translation.
        gaps: the translation's gaps, at least one; some may be replaced by breaks.
    """

    def __init__(self, alignment: Alignment, gaps: list[Piece]):
        self.alignment = alignment
        self.gaps = gaps
        self.written: list[Piece] = []

    def pieces(self, root: Element) -> list[Piece]:
        """Returns the whole translation, given the root element."""
        self._append(self.gaps[0])
        self._write(root)
        if self.alignment.targets:
            self._append(self.gaps[-1])
        return self.written

    def _write(self, element: Element) -> None:
        """Writes an element and its content, without the gaps around it."""
        self._append(element.opening)
        inner = {child.start: child for child in element.elements if child.start < child.end}
        parts: dict[int, list[Element | Insertion]] = defaultdict(list)  # in the gaps, by unit
        for part in element.children:
            if isinstance(part, Element) and part.start == part.end:
                parts[part.start].append(part)
            elif isinstance(part, Insertion) and part.slot:
                parts[part.slot.unit].append(part)
        unit = element.start
        self._write_before(unit, element, parts[unit])
        while unit < element.end:
            if unit in inner:
                self._write(inner[unit])
                unit = inner[unit].end
            else:
                self._append(self.alignment.word(unit))
                unit += 1
            self._write_before(unit, element, parts[unit])
        self._append(element.closing)

    def _write_before(
        self, unit: int, element: Element, parts: Sequence[Element | Insertion]
    ) -> None:
        """Writes everything before a unit in an element: its gap, insertions, empty elements."""
        is_inner = element.start < unit < element.end
        after: list[Element | Insertion] = []
        for part in parts:
            if isinstance(part, Insertion) and part.slot.is_before and is_inner:
                self._write_insertion(part, element)
            else:
                after.append(part)
        if is_inner:
            self._append(self.gaps[unit])
        for part in after:
            if isinstance(part, Element):
                self._write(part)
            else:
                self._write_insertion(part, element)

    def _write_insertion(self, insertion: Insertion, element: Element) -> None:
        """Writes an insertion, keeping the space next to it."""
        unit, is_before, is_aligned = insertion.slot
        gap = self.gaps[unit]
        before, after = insertion.before, insertion.after
        if insertion.text[:1].isspace() and self.written and str(self.written[-1]).isspace():
            self.written.pop()
        previous = self.alignment.word(unit - 1) if unit > element.start else ""
        following = self.alignment.word(unit) if unit < element.end else ""
        # Do not join a word to an insertion that touched a punctuation mark missing here.
        lost_before = before in tuple(OPENING) and previous.isalnum()
        lost_after = after in tuple(CLOSING) and following.isalnum()
        if before.isspace() and previous and not (gap == "" and previous in OPENING):
            self._append(before)
        elif lost_before:
            self._append(" ")
        self.written += [piece for piece in insertion.pieces if piece != ""]
        if is_before and element.start < unit < element.end and gap != "":
            return  # the gap follows
        is_likely = is_aligned or not following.isalnum()
        is_glued = not after.isspace() and is_likely and not lost_after
        if not is_glued and following and not (gap == "" and following in CLOSING):
            self._append(after if after.isspace() else " ")

    def _append(self, piece: Piece | None) -> None:
        """Writes a piece; omits a space after another space or a break."""
        is_space = isinstance(piece, str) and piece.isspace()
        if piece and not (is_space and self._ends_in_space()):
            self.written.append(piece)

    def _ends_in_space(self) -> bool:
        last = self.written[-1] if self.written else ""
        return (last.text if isinstance(last, Mark) else last)[-1:].isspace()
