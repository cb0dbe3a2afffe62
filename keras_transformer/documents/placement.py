"""Puts the marks of a sentence into its translation, by what is aligned with what.

The translation is cut into units, which are words and punctuation marks. An element comes to be
around consecutive units within its parent: those that agree best with the units that are aligned to
its words. An insertion comes before the unit that is aligned to the word after it, or after that of
the word before it; a break takes the place of the space there.
"""

import bisect
import dataclasses
import functools
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from keras_transformer.documents.marked import (
    CLOSING,
    OPENING,
    Break,
    Element,
    Insertion,
    MarkedSentence,
)
from keras_transformer.documents.segments import Mark, Piece
from keras_transformer.documents.sentences import Span, is_unspaced

_PUNCTUATION_WEIGHT = 0.5  # its alignment is less reliable than that of words


class Link(NamedTuple):
    """A part of a sentence, and the part of its translation that comes from it."""

    source: Span
    target: Span


class _Slot(NamedTuple):
    """Where an insertion comes in the translation."""

    unit: int  # that it comes before; it may be the number of units
    is_before: bool  # whether it comes before the space there
    is_aligned: bool  # whether alignment has found it, and not only its place in the sentence


@dataclasses.dataclass
class _Placed:
    """An element, and the units of the translation that it is around, from start to end."""

    element: Element
    start: int
    end: int
    children: list["_Placed"] = dataclasses.field(default_factory=list)
    insertions: list[tuple[_Slot, Insertion]] = dataclasses.field(default_factory=list)


def place(sentence: MarkedSentence, translation: str, links: Sequence[Link]) -> list[Piece]:
    """Puts the marks of a sentence into a translation of its `model_text`.

    Args:
        sentence: with its marks.
        translation: of `sentence.model_text`.
        links: between `sentence.model_text` and the translation; any number of them.

    Returns:
        The translation, cut where marks are: each mark of the sentence once, and those of elements
        properly nested.
    """
    if translation == sentence.model_text:
        return sentence.unchanged()
    if not sentence.marks:
        return [translation] if translation else []
    return _Placement(sentence, translation, links).pieces()


def units(text: str) -> list[Span]:
    """The words and punctuation marks of a text; in scripts without spaces, its characters."""
    spans: list[Span] = []
    place = 0
    for kind, characters in groupby(text, _kind):
        length = sum(1 for _ in characters)
        end = place + length
        if kind == "accent" and spans and spans[-1][1] == place:
            spans[-1] = (spans[-1][0], end)
        elif kind == "word":
            # What has an accent in it is one word.
            joined = spans and spans[-1][1] == place and _kind(text[place - 1]) == "accent"
            joined = joined and not is_unspaced(text[spans[-1][0]])
            start = spans.pop()[0] if joined else place
            spans.append((start, end))
        elif kind != "space":
            spans += [(start, start + 1) for start in range(place, end)]
        place = end
    return spans


@functools.lru_cache(maxsize=4096)
def _kind(character: str) -> str:
    if character.isspace():
        return "space"
    if unicodedata.category(character).startswith("M"):
        return "accent"
    if is_unspaced(character):
        return "unspaced"
    return "word" if character.isalnum() or character == "_" else "punctuation"


class _Placement:
    """The placement of the marks of one sentence."""

    def __init__(self, sentence: MarkedSentence, translation: str, links: Sequence[Link]):
        self.sentence = sentence
        self.translation = translation
        self.sources = units(sentence.model_text)
        self.targets = units(translation)
        self.links = [link for link in links if link.source[0] < link.source[1]]
        self._split_equal_words()
        # For each unit, the parts of the source that it is aligned to, with so many characters.
        self.aligned: list[list[tuple[Span, int]]] = [[] for _ in self.targets]
        for link in self.links:
            unit = bisect.bisect_right(self.targets, link.target[0], key=lambda span: span[1])
            while unit < len(self.targets) and self.targets[unit][0] < link.target[1]:
                length = _overlap(link.target, self.targets[unit])
                self.aligned[unit].append((link.source, length))
                unit += 1
        edges = [0, *(place for unit in self.targets for place in unit), len(translation)]
        # Before each unit, and after the last one; a break takes the place of one.
        self.gaps: list[Piece] = [
            translation[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)
        ]
        self.written: list[Piece] = []

    def pieces(self) -> list[Piece]:
        """The translation with the marks."""
        root = _Placed(self.sentence.root, 0, len(self.targets))
        self._fill(root)
        self._append(self.gaps[0])
        self._write(root)
        if self.targets:
            self._append(self.gaps[-1])
        return self.written

    def _split_equal_words(self) -> None:
        """Lets marks within a word, as in H<sub>2</sub>O, be within the same word of the target."""
        places = self.sentence.places
        marks = self.sentence.marks
        marked = {places[place] for mark in marks for place in (mark.start, mark.end)}
        for start, end in list(self.sources):
            inner = sorted(place for place in marked if start < place < end)
            if not inner:
                continue
            word = self.sentence.model_text[start:end]
            equal = [unit for unit in self.targets if self.translation[slice(*unit)] == word]
            if not equal:
                continue
            parts = list(pairwise([start, *inner, end]))
            _replace(self.sources, (start, end), parts)
            for unit in equal:
                shifted = [
                    (first - start + unit[0], last - start + unit[0]) for first, last in parts
                ]
                _replace(self.targets, unit, shifted)
                self.links = [link for link in self.links if not _overlap(link.target, unit)]
                self.links += map(Link, parts, shifted)

    # Which units an element is around.

    def _fill(self, root: _Placed) -> None:
        """Places all that is in an element; breaks last, as they take what space is left."""
        breaks: list[tuple[Break, _Placed]] = []
        remaining = [root]
        while remaining:
            parent = remaining.pop()
            self._place_elements(parent)
            for part in parent.element.children:
                if isinstance(part, Insertion):
                    parent.insertions.append((self._slot(part, parent), part))
                elif isinstance(part, Break):
                    breaks.append((part, parent))
            remaining += parent.children
        breaks.sort(key=lambda item: item[0].first)
        for found, parent in breaks:
            self._place_break(found, parent)

    def _place_elements(self, parent: _Placed) -> None:
        """Finds the units of the elements that are directly in one."""
        elements = [child for child in parent.element.children if isinstance(child, Element)]
        free = [True] * len(self.targets)
        parent.children = [_Placed(element, parent.start, parent.start) for element in elements]
        weights = {id(child): self._weights(child.element, parent) for child in parent.children}

        def best(child: _Placed) -> tuple[float, Span]:
            return _best_span(weights[id(child)], child.element, parent, free)

        # The surest first, as the others cannot be around its units. Elements that go on in another
        # sentence have only one end to be chosen, and come before all others.
        scores = {id(child): best(child)[0] for child in parent.children}
        for child in sorted(
            parent.children, key=lambda child: (not _is_open(child.element), -scores[id(child)])
        ):
            score, span = best(child)
            if score <= 0:
                span = self._likely_span(child.element, parent, free)
            child.start, child.end = span
            free[slice(*span)] = [False] * (child.end - child.start)

    def _range(self, part: Element | Insertion | Break) -> Span:
        """Where a part is in the text that was translated; whole words if it is within one."""
        start, end = self.sentence.places[part.start], self.sentence.places[part.end]
        if start == end:
            return start, end
        starts = [first for first, last in self.sources if first < start < last]
        ends = [last for first, last in self.sources if first < end < last]
        return (starts or [start])[0], (ends or [end])[0]

    def _weights(self, element: Element, parent: _Placed) -> list[float]:
        """How well each unit agrees with being in an element that is in another one."""
        start, end = self._range(element)
        outer = self._range(parent.element)
        beside = [
            unit
            for unit in self.sources
            if _overlap(unit, outer) and not (start <= unit[0] and unit[1] <= end)
        ]
        if start < end and not beside:  # nothing else is in the other one
            return [1.0] * len(self.targets)
        return self._agreement((start, end))

    def _agreement(self, span: Span) -> list[float]:
        """How well each unit agrees with part of the source, from -1 to 1; 0 if not aligned."""
        found = []
        for unit, sources in zip(self.targets, self.aligned, strict=True):
            total = sum(length for _, length in sources)
            inside = sum(
                length * _overlap(source, span) / (source[1] - source[0])
                for source, length in sources
            )
            agreement = 2 * inside / total - 1 if total else 0.0
            is_word = any(map(str.isalnum, self.translation[slice(*unit)]))
            found.append(agreement if is_word else agreement * _PUNCTUATION_WEIGHT)
        return found

    def _likely_span(self, element: Element, parent: _Placed, free: Sequence[bool]) -> Span:
        """A place for an element of whose words none is aligned: about where it was."""
        if element.opening is None:
            return parent.start, parent.start
        if element.closing is None:
            return parent.end, parent.end
        start, end = self._range(element)
        units = [unit for unit in range(parent.start, parent.end) if free[unit]]
        if start < end and units:
            wanted = self._proportional((start, end))
            nearest = min(units, key=lambda unit: abs(unit - wanted))
            return nearest, nearest + 1
        slot = self._outside(self._proportional_slot((start, end)), parent)
        return slot, slot

    def _proportional(self, span: Span) -> int:
        """The unit that is as far along in the translation as a span is in the source."""
        distances = [abs(sum(unit) - self._twice_the_place(span)) for unit in self.targets]
        return min(range(len(distances)), key=distances.__getitem__, default=0)

    def _proportional_slot(self, span: Span) -> int:
        """The unit that comes after what is as far along."""
        return sum(sum(unit) < self._twice_the_place(span) for unit in self.targets)

    def _twice_the_place(self, span: Span) -> float:
        return sum(span) / max(len(self.sentence.model_text), 1) * len(self.translation)

    def _outside(self, slot: int, parent: _Placed) -> int:
        """The nearest place in an element that is not in one of its children."""
        children = parent.children
        begins = [child.end for child in children if child.element.opening is None]
        ends = [child.start for child in children if child.element.closing is None]
        slot = min([max([slot, parent.start, *begins]), parent.end, *ends])
        for child in children:
            if child.start < slot < child.end:
                return child.start if slot - child.start < child.end - slot else child.end
        return slot

    # Where insertions and breaks come.

    def _slot(self, insertion: Insertion, parent: _Placed) -> _Slot:
        """Where an insertion comes: what is at the edge of an element stays there."""
        start, end = self._range(parent.element)
        place = self.sentence.places[insertion.start]
        before, after = self._neighbours(place)
        if place <= start:
            is_aligned = self._counterpart(after, parent) == parent.start
            return _Slot(self._outside(parent.start, parent), False, is_aligned)
        if place >= end:
            return _Slot(self._outside(parent.end, parent), True, True)
        choices = [(after, False), (before, True)]
        touches_before, touches_after = self._touches(insertion)
        if before == after or (touches_before and not touches_after):
            choices.reverse()
        for source, is_before in choices:
            unit = self._counterpart(source, parent)
            if unit is not None:
                slot = self._outside(unit + is_before, parent)
                return _Slot(slot, is_before, slot == unit + is_before)
        slot = self._outside(self._proportional_slot((place, place)), parent)
        return _Slot(slot, False, False)

    def _neighbours(self, place: int) -> tuple[Span | None, Span | None]:
        """The units of the source before and after a place; the same if it is within one."""
        before = [unit for unit in self.sources if unit[0] < place]
        after = [unit for unit in self.sources if unit[1] > place]
        return before[-1] if before else None, after[0] if after else None

    def _touches(self, insertion: Insertion) -> tuple[bool, bool]:
        """Whether an insertion has no space before it, and none after it."""
        text = self.sentence.text
        before, after = text[: insertion.start][-1:], text[insertion.end :][:1]
        return not before.isspace(), not after.isspace()

    def _counterpart(self, source: Span | None, parent: _Placed) -> int | None:
        """The unit of an element that a unit of the source is aligned with, if there is one."""
        if source is None:
            return None
        agreement = self._agreement(source)
        found = range(parent.start, parent.end)
        found = [unit for unit in found if self.aligned[unit] and agreement[unit] >= 0]
        word = self.sentence.model_text[slice(*source)]
        equal = [unit for unit in found if self.translation[slice(*self.targets[unit])] == word]
        wanted = self._proportional(source)
        return min(equal or found, key=lambda unit: abs(unit - wanted), default=None)

    def _place_break(self, found: Break, parent: _Placed) -> None:
        """Puts a break in place of a space, or at the end of its element if none is left."""
        place = self.sentence.places[found.end]
        _, after = self._neighbours(place)
        wanted = self._counterpart(after, parent)
        if wanted is None:
            wanted = self._proportional((place, place))
        slots = [k for k in range(parent.start + 1, parent.end) if isinstance(self.gaps[k], str)]
        slots = [slot for slot in slots if self.gaps[slot].isspace()] or slots
        if slots:
            nearest = min(slots, key=lambda slot: abs(slot - wanted))
            self.gaps[nearest] = self.sentence.marks[found.first]
        else:
            insertion = Insertion(found.start, found.end, found.first, found.last)
            slot = _Slot(self._outside(parent.end, parent), True, False)
            parent.insertions.append((slot, insertion))

    # The translation with its marks.

    def _write(self, root: _Placed) -> None:
        """Writes an element and what is in it, however deep, without the gaps around it."""
        running = [self._steps(root)]
        while running:
            child = next(running[-1], None)
            if child is None:
                running.pop()
            else:
                running.append(self._steps(child))

    def _steps(self, placed: _Placed) -> Iterator[_Placed]:
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
                self._append(self.translation[slice(*self.targets[unit])])
                unit += 1
            yield from self._steps_before(unit, placed)
        self._append(placed.element.closing)

    def _steps_before(self, unit: int, placed: _Placed) -> Iterator[_Placed]:
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

    def _write_insertion(self, slot: _Slot, insertion: Insertion, placed: _Placed) -> None:
        """Writes an insertion; a space that was beside it is beside it again."""
        text, unit, gap = self.sentence.text, slot.unit, self.gaps[slot.unit]
        touches_before, touches_after = self._touches(insertion)
        begins_in_space = text[insertion.start : insertion.end][:1].isspace()
        if begins_in_space and self.written and str(self.written[-1]).isspace():
            self.written.pop()
        previous = self.translation[slice(*self.targets[unit - 1])] if unit > placed.start else ""
        following = self.translation[slice(*self.targets[unit])] if unit < placed.end else ""
        if not touches_before and previous and not (gap == "" and previous in OPENING):
            self._append(text[insertion.start - 1])
        self.written += self.sentence.pieces(insertion)
        if slot.is_before and placed.start < unit < placed.end and gap != "":
            return  # the gap follows
        is_glued = touches_after and (slot.is_aligned or not following.isalnum())
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
            last = self.sentence.text[last.start : last.end]
        return last[-1:].isspace()


def _is_open(element: Element) -> bool:
    """Whether an element begins in an earlier sentence or ends in a later one."""
    return element.opening is None or element.closing is None


def _best_span(
    weights: Sequence[float], element: Element, parent: _Placed, free: Sequence[bool]
) -> tuple[float, Span]:
    """The consecutive free units with the largest sum of weights, and that sum."""
    best, span = 0.0, (parent.start, parent.start)
    total, start = 0.0, parent.start
    units: Sequence[int] = range(parent.start, parent.end)
    if element.opening is not None and element.closing is None:  # it reaches to the end
        units = range(parent.end - 1, parent.start - 1, -1)
    for unit in units:
        if not free[unit]:
            if _is_open(element):
                break
            total, start = 0.0, unit + 1
            continue
        total += weights[unit]
        if total > best:
            best = total
            span = (unit, parent.end) if units.step < 0 else (start, unit + 1)
        if total <= 0 and not _is_open(element):
            total, start = 0.0, unit + 1
    return best, span


def _overlap(one: Span, other: Span) -> int:
    """How many characters two spans share."""
    return max(min(one[1], other[1]) - max(one[0], other[0]), 0)


def _replace(spans: list[Span], span: Span, parts: Sequence[Span]) -> None:
    place = spans.index(span)
    spans[place : place + 1] = parts
