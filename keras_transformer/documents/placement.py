"""Puts the marks of a sentence into its translation, by what is aligned with what.

An element comes to be around consecutive units within its parent: those that agree best with the
units that are aligned to its words. An insertion comes before the unit that is aligned to the word
after it, or after that of the word before it; a break takes the place of the space there.

    <b>Press</b> {key} to begin.        a sentence with an element, an insertion {key}
    Press to begin.                     is its model_text: units Press 0, to 1, begin 2, . 3
    Zum Beginn drücken.                 is the translation: units Zum 0, Beginn 1, drücken 2, . 3

"drücken" is aligned to "Press", and "Zum" to "to". So <b> is around the unit 2, from 2 to 3. After
{key} there is "to", whose counterpart is the unit 0: {key} comes before it, in the gap 0.

    {key} Zum Beginn <b>drücken</b>.

This is done from the outermost element inwards, and in each of them for its elements first, then
for insertions. It holds all the time:

- The units of an element are units of its parent, and no units of the other elements in its parent.
- A slot in an element is at one of its edges, or between two of its units; it is not within an
  element in it.
- Each element and each insertion of the sentence is placed once.
"""

from collections.abc import Sequence

from keras_transformer.documents.alignment import Alignment, overlap
from keras_transformer.documents.marked import Element, Insertion, MarkedSentence, Slot
from keras_transformer.documents.placed import Writer, gaps_of
from keras_transformer.documents.segments import Piece
from keras_transformer.translate.answers import Link, Span


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
    if not sentence.has_marks:
        return [translation] if translation else []
    placer = _Placer(Alignment(sentence, translation, links))
    placer.place_all()
    return Writer(placer.alignment, placer.gaps).pieces(sentence.root)


class _Placer:
    """Finds where the marks of one sentence come.

    Args:
        alignment: of the sentence and its translation.
    """

    def __init__(self, alignment: Alignment):
        self.alignment = alignment
        self.gaps = gaps_of(alignment)  # breaks take the place of some

    def place_all(self) -> None:
        """Places all that is in the sentence; breaks last, as they take what space is left."""
        root = self.alignment.sentence.root
        root.end = len(self.alignment.targets)
        breaks: list[tuple[Insertion, Element]] = []
        self._place_in(root, breaks)
        for found, parent in breaks:
            self._place_break(found, parent)

    def _place_in(self, parent: Element, breaks: list[tuple[Insertion, Element]]) -> None:
        """Places what is in an element but breaks, which are added to others, in their order."""
        self._place_elements(parent)
        for part in parent.children:
            if isinstance(part, Element):
                self._place_in(part, breaks)
            elif isinstance(part, Insertion) and part.is_break:
                breaks.append((part, parent))
            elif isinstance(part, Insertion):
                part.slot = self._slot(part, parent)

    def _place_elements(self, parent: Element) -> None:
        """Finds the units of the elements that are directly in one."""
        elements = parent.elements
        free = [True] * len(self.alignment.targets)
        weights = {element: self._weights(element, parent) for element in elements}
        for element in elements:
            element.start = element.end = parent.start

        def best(element: Element) -> tuple[float, Span]:
            return _best_span(weights[element], element, parent, free)

        # The surest first, as the others cannot be around its units. Elements that go on in another
        # sentence have only one end to be chosen, and come before all others.
        scores = {element: best(element)[0] for element in elements}
        for element in sorted(
            elements, key=lambda element: (not element.is_open, -scores[element])
        ):
            score, span = best(element)
            if score <= 0 or self._is_around_no_word(element, span):
                span = self._likely_span(element, parent, free)
            element.start, element.end = span
            free[slice(*span)] = [False] * (element.end - element.start)

    def _weights(self, element: Element, parent: Element) -> list[float]:
        """How well each unit agrees with being in an element that is in another one."""
        start, end = self.alignment.range_of(element)
        outer = self.alignment.range_of(parent)
        beside = [
            unit
            for unit in self.alignment.sources
            if overlap(unit, outer) and not (start <= unit[0] and unit[1] <= end)
        ]
        if start < end and not beside:  # nothing else is in the other one
            return [1.0] * len(self.alignment.targets)
        return self.alignment.agreement((start, end))

    def _is_around_no_word(self, element: Element, span: Span) -> bool:
        """Whether a closed element with words, as a link, would be around punctuation alone."""
        if element.is_open:
            return False
        text = self.alignment.sentence.model_text[slice(*self.alignment.range_of(element))]
        return any(map(str.isalnum, text)) and not any(map(self.alignment.is_word, range(*span)))

    def _likely_span(self, element: Element, parent: Element, free: Sequence[bool]) -> Span:
        """A place for an element of whose words none is aligned: the word about where it was."""
        if element.opening is None:
            return parent.start, parent.start
        if element.closing is None:
            return parent.end, parent.end
        start, end = self.alignment.range_of(element)
        units = [unit for unit in range(parent.start, parent.end) if free[unit]]
        if start < end and units:
            wanted = self.alignment.proportional((start, end))
            text = self.alignment.sentence.model_text[start:end]
            has_word = any(map(str.isalnum, text))
            similar = [unit for unit in units if self.alignment.is_word(unit) == has_word]
            nearest = min(similar or units, key=lambda unit: abs(unit - wanted))
            return nearest, nearest + 1
        slot = self._outside(self.alignment.proportional_slot((start, end)), parent)
        return slot, slot

    def _outside(self, slot: int, parent: Element) -> int:
        """The nearest place in an element that is not in one of its elements."""
        elements = parent.elements
        begins = [element.end for element in elements if element.opening is None]
        ends = [element.start for element in elements if element.closing is None]
        slot = min([max([slot, parent.start, *begins]), parent.end, *ends])
        for element in elements:
            if element.start < slot < element.end:
                is_nearer_start = slot - element.start < element.end - slot
                return element.start if is_nearer_start else element.end
        return slot

    def _slot(self, insertion: Insertion, parent: Element) -> Slot:
        """Where an insertion comes: at the edge of its element if it is there, or at its word."""
        start, end = self.alignment.range_of(parent)
        before, after = self.alignment.neighbours(insertion.place)
        if insertion.place <= start:
            is_aligned = self._counterpart(after, parent) == parent.start
            return Slot(self._outside(parent.start, parent), False, is_aligned)
        if insertion.place >= end:
            unit = self._counterpart(before, parent) if insertion.ends_word else None
            slot = parent.end if unit is None else unit + 1
            return Slot(self._outside(slot, parent), True, True)
        choices = [(after, False), (before, True)]
        touches_before_alone = not insertion.before.isspace() and insertion.after.isspace()
        if before == after or insertion.ends_word or touches_before_alone:
            choices.reverse()
        for source, is_before in choices:
            unit = self._counterpart(source, parent)
            if unit is not None:
                slot = self._outside(unit + is_before, parent)
                return Slot(slot, is_before, slot == unit + is_before)
        place = insertion.place
        slot = self._outside(self.alignment.proportional_slot((place, place)), parent)
        return Slot(slot, False, False)

    def _counterpart(self, source: Span | None, parent: Element) -> int | None:
        """The unit of an element that a unit of the source is aligned with, if there is one."""
        return self.alignment.counterpart(source, parent.start, parent.end)

    def _place_break(self, found: Insertion, parent: Element) -> None:
        """Puts a break in place of a space, or at the end of its element if none is left."""
        _, after = self.alignment.neighbours(found.place)
        wanted = self._counterpart(after, parent)
        if wanted is None:
            wanted = self.alignment.proportional((found.place, found.place))
        slots = [k for k in range(parent.start + 1, parent.end) if isinstance(self.gaps[k], str)]
        slots = [slot for slot in slots if self.gaps[slot].isspace()] or slots
        if slots:
            nearest = min(slots, key=lambda slot: abs(slot - wanted))
            (self.gaps[nearest],) = found.nodes
        else:
            found.slot = Slot(self._outside(parent.end, parent), True, False)


def _best_span(
    weights: Sequence[float], element: Element, parent: Element, free: Sequence[bool]
) -> tuple[float, Span]:
    """The consecutive free units with the largest sum of weights, and that sum."""
    best, span = 0.0, (parent.start, parent.start)
    total, start = 0.0, parent.start
    units: Sequence[int] = range(parent.start, parent.end)
    if element.opening is not None and element.closing is None:  # it reaches to the end
        units = range(parent.end - 1, parent.start - 1, -1)
    for unit in units:
        if not free[unit]:
            if element.is_open:
                break
            total, start = 0.0, unit + 1
            continue
        total += weights[unit]
        if total > best:
            best = total
            span = (unit, parent.end) if units.step < 0 else (start, unit + 1)
        if total <= 0 and not element.is_open:
            total, start = 0.0, unit + 1
    return best, span
