"""What is decided about the marks of a translation, and how it is written with them.

Between its units (alignment.py) a translation has gaps, which are spaces or nothing: gaps[k] is
before unit k, and the last one, of one more than there are units, is after all of them.

    unit    0       1        2         3
          |Die|   |Taste|  |drücken|  |.|
    gap  0     1         2          3    4

An element is around the units from `start` to `end` - 1, with the gaps between them; those at its
edges are outside of it. An insertion is in one gap, before or after the space there, and a break
is in place of a gap.
"""

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

from keras_transformer.documents.alignment import Alignment
from keras_transformer.documents.marked import CLOSING, OPENING, Element, Insertion
from keras_transformer.documents.segments import Mark, Piece


class Slot(NamedTuple):
    """Where an insertion comes in the translation."""

    unit: int  # that it comes before: the number of its gap
    is_before: bool  # whether it comes before the space there
    is_aligned: bool  # whether alignment has found it, and not only its place in the sentence


@dataclasses.dataclass
class Placed:
    """An element, and the units of the translation that it is around, from start to end."""

    element: Element
    start: int
    end: int
    children: list["Placed"] = dataclasses.field(default_factory=list)
    insertions: list[tuple[Slot, Insertion]] = dataclasses.field(default_factory=list)


def gaps_of(alignment: Alignment) -> list[Piece]:
    """What is before each unit of a translation, and after the last one."""
    text = alignment.translation
    edges = [0, *(place for unit in alignment.targets for place in unit), len(text)]
    return [text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]


def touches(insertion: Insertion, text: str) -> tuple[bool, bool]:
    """Whether an insertion has no space before it in its sentence's text, and none after it."""
    before, after = text[: insertion.start][-1:], text[insertion.end :][:1]
    return not before.isspace(), not after.isspace()


class Writer:
    """Writes a translation with its marks.

    Args:
        alignment: of the sentence and its translation.
        gaps: those of the translation, with breaks in place of some; at least one.
    """

    def __init__(self, alignment: Alignment, gaps: list[Piece]):
        self.alignment = alignment
        self.gaps = gaps
        self.written: list[Piece] = []

    def pieces(self, root: Placed) -> list[Piece]:
        """The whole translation, if `root` is what is around all of it."""
        self._append(self.gaps[0])
        self._write(root)
        if self.alignment.targets:
            self._append(self.gaps[-1])
        return self.written

    def _write(self, root: Placed) -> None:
        """Writes an element and what is in it, however deep, without the gaps around it."""
        running = [self._steps(root)]
        while running:
            child = next(running[-1], None)
            if child is None:
                running.pop()
            else:
                running.append(self._steps(child))

    def _steps(self, placed: Placed) -> Iterator[Placed]:
        """Writes an element, and gives those in it at the point where they are to be written."""
        self._append(placed.element.opening)
        children = {child.start: child for child in placed.children if child.start < child.end}
        unit = placed.start
        yield from self._steps_before(unit, placed)
        while unit < placed.end:
            if unit in children:
                yield children[unit]
                unit = children[unit].end
            else:
                self._append(self.alignment.word(unit))
                unit += 1
            yield from self._steps_before(unit, placed)
        self._append(placed.element.closing)

    def _steps_before(self, unit: int, placed: Placed) -> Iterator[Placed]:
        """Writes what comes before a unit in an element: its gap, insertions, empty elements."""
        is_inner = placed.start < unit < placed.end
        here = [item for item in placed.insertions if item[0].unit == unit]
        after = [
            (child.element.first, child, None)
            for child in placed.children
            if child.start == unit == child.end
        ]
        for slot, insertion in here:
            if slot.is_before and is_inner:
                self._write_insertion(slot, insertion, placed)
            else:
                after.append((insertion.first, slot, insertion))
        if is_inner:
            self._append(self.gaps[unit])
        for _, item, insertion in sorted(after, key=lambda numbered: numbered[0]):
            if insertion is None:
                yield item
            else:
                self._write_insertion(item, insertion, placed)

    def _write_insertion(self, slot: Slot, insertion: Insertion, placed: Placed) -> None:
        """Writes an insertion; a space that was beside it is beside it again."""
        text, unit, gap = self.alignment.sentence.text, slot.unit, self.gaps[slot.unit]
        touches_before, touches_after = touches(insertion, text)
        begins_in_space = text[insertion.start : insertion.end][:1].isspace()
        if begins_in_space and self.written and str(self.written[-1]).isspace():
            self.written.pop()
        previous = self.alignment.word(unit - 1) if unit > placed.start else ""
        following = self.alignment.word(unit) if unit < placed.end else ""
        # A word is not joined to what touched a punctuation mark that the translation lacks.
        lost_before = text[: insertion.start][-1:] in tuple(OPENING) and previous.isalnum()
        lost_after = text[insertion.end :][:1] in tuple(CLOSING) and following.isalnum()
        if not touches_before and previous and not (gap == "" and previous in OPENING):
            self._append(text[insertion.start - 1])
        elif lost_before:
            self._append(" ")
        self.written += self.alignment.sentence.pieces(insertion)
        if slot.is_before and placed.start < unit < placed.end and gap != "":
            return  # the gap follows
        is_likely = slot.is_aligned or not following.isalnum()
        is_glued = touches_after and is_likely and not lost_after
        if not is_glued and following and not (gap == "" and following in CLOSING):
            self._append(" " if touches_after else text[insertion.end])

    def _append(self, piece: Piece | None) -> None:
        """Writes a piece; a space only where none is, and no break either."""
        is_space = isinstance(piece, str) and piece.isspace()
        if piece and not (is_space and self._ends_in_space()):
            self.written.append(piece)

    def _ends_in_space(self) -> bool:
        last = self.written[-1] if self.written else ""
        if isinstance(last, Mark):
            last = self.alignment.sentence.text[last.start : last.end]
        return last[-1:].isspace()
