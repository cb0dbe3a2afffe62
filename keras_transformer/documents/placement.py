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
        sentence: the sentence with its marks.
        translation: the translation of `sentence.model_text`.
        links: any number of links between `sentence.model_text` and the translation.

    Returns:
        The translation, split at its marks: each mark of the sentence once, with elements properly
            nested.
    """
    if translation == sentence.model_text:
        return sentence.unchanged()
    if not sentence.has_marks:
        return [translation] if translation else []
    placer = _Placer(Alignment(sentence, translation, links))
    placer.place_all()
    return Writer(placer.alignment, placer.gaps).pieces(sentence.root)


class _Placer:
    """Finds the places of one sentence's marks.

    Args:
        alignment: the alignment of the sentence and its translation.
    """

    def __init__(self, alignment: Alignment):
        self.alignment = alignment
        self.gaps = gaps_of(alignment)  # some are replaced by breaks

    def place_all(self) -> None:
        """Places all marks; breaks come last, as they take the remaining spaces."""
        root = self.alignment.sentence.root
        root.end = len(self.alignment.targets)
        breaks: list[tuple[Insertion, Element]] = []
        self._place_in(root, breaks)
        for found, parent in breaks:
            self._place_break(found, parent)

    def _place_in(self, parent: Element, breaks: list[tuple[Insertion, Element]]) -> None:
        """Places an element's content, and adds its breaks to `breaks` in order."""
        self._place_elements(parent)
        for part in parent.children:
            if isinstance(part, Element):
                self._place_in(part, breaks)
            elif isinstance(part, Insertion) and part.is_break:
                breaks.append((part, parent))
            elif isinstance(part, Insertion):
                part.slot = self._slot(part, parent)

    def _place_elements(self, parent: Element) -> None:
        """Finds the units of an element's children."""
        elements = parent.elements
        free = [True] * len(self.alignment.targets)
        weights = {element: self._weights(element, parent) for element in elements}
        for element in elements:
            element.start = element.end = parent.start

        def best(element: Element) -> tuple[float, Span]:
            return _best_span(weights[element], element, parent, free)

        # The most certain first, as it excludes the others from its units. Elements that continue
        # in another sentence have only one end to choose, and precede all others.
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
        """Scores how well each unit fits into an element within its parent."""
        start, end = self.alignment.range_of(element)
        outer = self.alignment.range_of(parent)
        beside = [
            unit
            for unit in self.alignment.sources
            if overlap(unit, outer) and not (start <= unit[0] and unit[1] <= end)
        ]
        if start < end and not beside:  # the parent contains nothing else
            return [1.0] * len(self.alignment.targets)
        return self.alignment.agreement((start, end))

    def _is_around_no_word(self, element: Element, span: Span) -> bool:
        """Whether a closed element with words, such as a link, would only contain punctuation."""
        if element.is_open:
            return False
        text = self.alignment.sentence.model_text[slice(*self.alignment.range_of(element))]
        return any(map(str.isalnum, text)) and not any(map(self.alignment.is_word, range(*span)))

    def _likely_span(self, element: Element, parent: Element, free: Sequence[bool]) -> Span:
        """Chooses a span for an element without aligned words: a word near its old position."""
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
        """Returns the nearest place in an element outside its children."""
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
        """Returns an insertion's place: at its element's edge if it was there, or at its word."""
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
        """Returns the unit in an element that is aligned to a source unit, if any."""
        return self.alignment.counterpart(source, parent.start, parent.end)

    def _place_break(self, found: Insertion, parent: Element) -> None:
        """Replaces a space by a break, or puts the break at its element's end if none is left."""
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
    """Returns the run of free units with the largest total weight, and this total."""
    best, span = 0.0, (parent.start, parent.start)
    total, start = 0.0, parent.start
    units: Sequence[int] = range(parent.start, parent.end)
    if element.opening is not None and element.closing is None:  # it extends to the end
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
