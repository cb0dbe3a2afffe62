"""Puts a sentence's marks into its translation, by word alignment.

An element is put around consecutive units within its parent: those that best match the units
aligned to its words. An insertion is put before the unit aligned to the word after it, or after the
unit aligned to the word before it; a break replaces the space there.

    <b>Press</b> {key} to begin.        a sentence with an element, an insertion {key}
    Press to begin.                     is its model_text: units Press 0, to 1, begin 2, . 3
    Zum Beginn drücken.                 is the translation: units Zum 0, Beginn 1, drücken 2, . 3

"drücken" is aligned to "Press", and "Zum" to "to". So <b> surrounds unit 2, from 2 to 3. {key} is
followed by "to", whose counterpart is unit 0: {key} is put before it, in gap 0.

    {key} Zum Beginn <b>drücken</b>.

Placement works from the outermost element inwards; within each, it places elements first, then
insertions. It maintains these invariants:

- The units of an element are units of its parent, and no units of the other elements in its parent.
- A slot in an element is at one of its edges, or between two of its units; it is not within an
  element in it.
- Each element and each insertion of the sentence is placed once, except that an element that only
  formats its words is dropped if no unit is left that is aligned to them, and a subscript or a
  superscript if the units aligned to it do not have its text. The content stays.

If no word is left for bold, it would end up on a wrong one, so it is dropped. A link or a tracked
change has a purpose on a neighbouring word, too. Without any alignment, a position is a better
guess than nothing.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

from keras_transformer.kit.documents.tree.alignment import Alignment
from keras_transformer.kit.documents.tree.marked import (
    Element,
    Insertion,
    MarkedSentence,
    Part,
    Slot,
)
from keras_transformer.kit.documents.tree.placed import Writer, gaps_of
from keras_transformer.kit.documents.tree.segments import Piece
from keras_transformer.use.translate.answers import Link, Span


def place(sentence: MarkedSentence, translation: str, links: Sequence[Link]) -> list[Piece]:
    """Puts the marks of a sentence into a translation of its `model_text`.

    Args:
        sentence: the sentence with its marks.
        translation: the translation of `sentence.model_text`.
        links: any number of links between `sentence.model_text` and the translation.

    Returns:
        The translation, split at its marks: each mark of the sentence once, with elements properly
            nested; without the marks of formatting whose words the translation lacks.
    """
    if translation == sentence.model_text:
        return list(sentence.pieces)
    if not sentence.has_marks:
        return [translation] if translation else []
    placer = _Placer(Alignment(sentence, translation, links))
    placer.place_all()
    return Writer(placer.alignment, placer.gaps).pieces(sentence.root)


class _Room:
    """The units of an element, and which of them its child elements have taken.

    Args:
        parent: the element.
        alignment: the alignment of the sentence and its translation.
    """

    def __init__(self, parent: Element, alignment: Alignment):
        self._first, self._last = parent.start, parent.end  # slots outside open elements
        self._around: dict[int, Span] = {}  # for each slot within a child, the child's units
        self._free: dict[bool, list[int]] = {True: [], False: []}  # words, punctuation marks
        for unit in range(parent.start, parent.end):
            self._free[alignment.is_word(unit)].append(unit)

    def is_free(self, first: int, last: int) -> bool:
        """Whether no child has any of the units from `first` to `last` - 1."""
        return last - first == sum(
            bisect_left(units, last) - bisect_left(units, first) for units in self._free.values()
        )

    def nearest(self, wanted: int, is_word: bool) -> int | None:
        """Returns the free unit nearest to another one, of a kind if there are any of it."""
        return _nearest(self._free[is_word] or self._free[not is_word], wanted)

    def take(self, element: Element, span: Span) -> None:
        """Gives units to a child element."""
        element.start, element.end = span
        for units in self._free.values():
            del units[bisect_left(units, element.start) : bisect_left(units, element.end)]
        if element.opening is None:
            self._first = max(self._first, element.end)
        if element.closing is None:
            self._last = min(self._last, element.start)
        self._around |= dict.fromkeys(range(element.start + 1, element.end), span)

    def outside(self, slot: int) -> int:
        """Returns the nearest slot outside the children."""
        slot = min(max(slot, self._first), self._last)
        start, end = self._around.get(slot, (slot, slot))
        return start if slot - start < end - slot else end


class _Placer:
    """Finds the places of one sentence's marks.

    Args:
        alignment: the alignment of the sentence and its translation.
    """

    def __init__(self, alignment: Alignment):
        self.alignment = alignment
        self.gaps = gaps_of(alignment)  # some are replaced by breaks
        self._dropped: set[Element] = set()
        # The gaps within the translation that no break has replaced: spaces, and empty ones.
        self._free_gaps: dict[bool, list[int]] = {True: [], False: []}
        for unit in range(1, len(alignment.targets)):
            self._free_gaps[self.gaps[unit] != ""].append(unit)

    def place_all(self) -> None:
        """Places all marks; breaks come last, as they take the remaining spaces."""
        root = self.alignment.sentence.root
        root.end = len(self.alignment.targets)
        breaks: list[tuple[Insertion, Element, _Room]] = []
        self._place_in(root, breaks)
        for found, parent, room in breaks:
            self._place_break(found, parent, room)

    def _place_in(self, parent: Element, breaks: list[tuple[Insertion, Element, _Room]]) -> None:
        """Places an element's content, and adds its breaks to `breaks` in order."""
        room = _Room(parent, self.alignment)
        self._place_elements(parent.elements, parent, room)
        parent.children = list(self._without_dropped(parent.children))
        for part in parent.children:
            if isinstance(part, Element):
                self._place_in(part, breaks)
            elif isinstance(part, Insertion) and part.is_break:
                breaks.append((part, parent, room))
            elif isinstance(part, Insertion):
                part.slot = self._slot(part, parent, room)

    def _without_dropped(self, parts: Iterable[Part]) -> Iterator[Part]:
        """Replaces dropped elements by their content."""
        for part in parts:
            if part in self._dropped:
                yield from self._without_dropped(part.children)
            else:
                yield part

    def _place_elements(self, elements: list[Element], parent: Element, room: _Room) -> None:
        """Finds the units of elements in another one."""
        weights = {element: self._weights(element, parent) for element in elements}

        def best(element: Element) -> tuple[float, Span]:
            if element.is_open:
                return self._best_edge(weights[element], element, parent, room)
            return self._best_run(weights[element], parent, room)

        # The most certain first, as it excludes the others from its units. Elements that continue
        # in another sentence have only one end to choose, and precede all others.
        scores = {element: best(element)[0] for element in elements}
        dropped: list[Element] = []
        for element in sorted(
            elements, key=lambda element: (not element.is_open, -scores[element])
        ):
            score, span = best(element)
            if element.is_script:
                span = span if score > 0 and self._is_equal(element, span) else None
            elif score <= 0 or self._is_around_no_word(element, span):
                span = self._likely_span(weights[element], element, parent, room)
            if span is None:
                dropped.append(element)
            else:
                room.take(element, span)
        for element in dropped:
            self._dropped.add(element)
            self._place_elements(element.elements, parent, room)

    def _weights(self, element: Element, parent: Element) -> dict[int, float]:
        """Scores how well the units of an element's parent fit into it, if aligned to it."""
        span, outer = self.alignment.range_of(element), self.alignment.range_of(parent)
        if span[0] < span[1] and self.alignment.covers(span, outer):
            return dict.fromkeys(range(parent.start, parent.end), 1.0)
        agreement = self.alignment.agreement(span)
        return {unit: agreement[unit] for unit in agreement if parent.start <= unit < parent.end}

    def _best_run(
        self, weights: Mapping[int, float], parent: Element, room: _Room
    ) -> tuple[float, Span]:
        """Returns the run of free units with the largest total weight, and this total."""
        best, span = 0.0, (parent.start, parent.start)
        total, start, end = 0.0, parent.start, parent.start  # of the run before the next unit
        for unit, weight in weights.items():
            if not room.is_free(unit, unit + 1):
                continue
            total += self.alignment.disagreement(end, unit)
            if total <= 0 or not room.is_free(end, unit):
                total, start = 0.0, unit
            total, end = total + weight, unit + 1
            if total > best:
                best, span = total, (start, end)
        return best, span

    def _best_edge(
        self, weights: Mapping[int, float], element: Element, parent: Element, room: _Room
    ) -> tuple[float, Span]:
        """Returns the same for an open element, which begins or ends where its parent does."""
        begins = element.opening is not None
        best, span = 0.0, (parent.start, parent.start)
        total = 0.0
        units = range(parent.start, parent.end)
        for unit in reversed(units) if begins else units:
            if not room.is_free(unit, unit + 1):
                break
            total += weights.get(unit, self.alignment.disagreement(unit, unit + 1))
            if total > best:
                best = total
                span = (unit, parent.end) if begins else (parent.start, unit + 1)
        return best, span

    def _is_equal(self, element: Element, span: Span) -> bool:
        """Whether units have the text of an element."""
        units = self.alignment.targets[slice(*span)]
        text = self.alignment.translation[units[0][0] : units[-1][1]]
        return text == self.alignment.sentence.model_text[slice(*element.span)].strip()

    def _is_around_no_word(self, element: Element, span: Span) -> bool:
        """Whether a closed element with words, such as a link, would only contain punctuation."""
        if element.is_open:
            return False
        text = self.alignment.sentence.model_text[slice(*self.alignment.range_of(element))]
        return any(map(str.isalnum, text)) and not any(map(self.alignment.is_word, range(*span)))

    def _likely_span(
        self, weights: Mapping[int, float], element: Element, parent: Element, room: _Room
    ) -> Span | None:
        """Chooses a span for an element if no run of units matches it; None to drop the element.

        It is a word that is also aligned to other words, such as "im" for "in <b>the</b>", or else
        a word near the element's old position.
        """
        if element.opening is None:
            return parent.start, parent.start
        if element.closing is None:
            return parent.end, parent.end
        start, end = self.alignment.range_of(element)
        if start < end:
            wanted = self.alignment.proportional((start, end))
            has_word = any(map(str.isalnum, self.alignment.sentence.model_text[start:end]))
            aligned = [
                unit
                for unit in weights
                if room.is_free(unit, unit + 1) and self.alignment.is_word(unit) == has_word
            ]
            if aligned:
                unit = max(aligned, key=lambda unit: (weights[unit], -abs(unit - wanted)))
                return unit, unit + 1
            if element.is_formatting and self.alignment.is_known:
                return None
            nearest = room.nearest(wanted, has_word)
            if nearest is not None:
                return nearest, nearest + 1
        slot = room.outside(self.alignment.proportional_slot((start, end)))
        return slot, slot

    def _slot(self, insertion: Insertion, parent: Element, room: _Room) -> Slot:
        """Returns an insertion's place: at its element's edge if it was there, or at its word."""
        start, end = self.alignment.range_of(parent)
        before, after = self.alignment.neighbours(insertion.place)
        if insertion.place <= start:
            is_aligned = self._counterpart(after, parent) == parent.start
            return Slot(room.outside(parent.start), False, is_aligned)
        if insertion.place >= end:
            unit = self._counterpart(before, parent) if insertion.ends_word else None
            slot = parent.end if unit is None else unit + 1
            return Slot(room.outside(slot), True, True)
        choices = [(after, False), (before, True)]
        touches_before_alone = not insertion.before.isspace() and insertion.after.isspace()
        if before == after or insertion.ends_word or touches_before_alone:
            choices.reverse()
        for source, is_before in choices:
            unit = self._counterpart(source, parent)
            if unit is not None:
                slot = room.outside(unit + is_before)
                return Slot(slot, is_before, slot == unit + is_before)
        place = insertion.place
        slot = room.outside(self.alignment.proportional_slot((place, place)))
        return Slot(slot, False, False)

    def _counterpart(self, source: Span | None, parent: Element) -> int | None:
        """Returns the unit in an element that is aligned to a source unit, if any."""
        return self.alignment.counterpart(source, parent.start, parent.end)

    def _place_break(self, found: Insertion, parent: Element, room: _Room) -> None:
        """Replaces a space by a break, or puts the break at its element's end if none is left."""
        _, after = self.alignment.neighbours(found.place)
        wanted = self._counterpart(after, parent)
        if wanted is None:
            wanted = self.alignment.proportional((found.place, found.place))
        for is_space in (True, False):
            slots = self._free_gaps[is_space]
            nearest = _nearest(slots, wanted, parent.start + 1, parent.end)
            if nearest is not None:
                (self.gaps[nearest],) = found.pieces
                del slots[bisect_left(slots, nearest)]
                return
        found.slot = Slot(room.outside(parent.end), True, False)


def _nearest(
    numbers: Sequence[int], wanted: int, first: float = 0, last: float = math.inf
) -> int | None:
    """Returns the number nearest to another one, of those from `first` to below `last` in order."""
    low, high = bisect_left(numbers, first), bisect_left(numbers, last)
    after = bisect_left(numbers, wanted, low, high)
    near = numbers[max(after - 1, low) : min(after + 1, high)]
    return min(near, key=lambda number: abs(number - wanted), default=None)
