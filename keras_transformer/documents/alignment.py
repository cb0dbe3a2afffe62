"""Finds which units of a translation come from which units of its sentence.

Both are split into units, which are words and punctuation marks:

    sentence.model_text   "Press the button."      sources  Press the button .
    translation           "Die Taste drücken."     targets  Die Taste drücken .

A model links parts of the two texts, depending on its subwords. So a unit of the translation is
aligned to parts of the source, each weighted by the number of linked characters. All unit numbers
here count units of the translation: 0 is "Die". All spans are spans of characters, in either text.
"""

import bisect
import functools
import unicodedata
from collections.abc import Sequence
from itertools import groupby, pairwise

from keras_transformer.documents.marked import Element, MarkedSentence
from keras_transformer.documents.sentences import is_unspaced
from keras_transformer.translate.answers import Link, Span

_PUNCTUATION_WEIGHT = 0.5  # its alignment is less reliable than a word's


def units(text: str) -> list[Span]:
    """Returns a text's words and punctuation marks, or its characters in scripts without spaces."""
    spans: list[Span] = []
    place = 0
    for kind, characters in groupby(text, _kind):
        length = sum(1 for _ in characters)
        end = place + length
        if kind == "accent" and spans and spans[-1][1] == place:
            spans[-1] = (spans[-1][0], end)
        elif kind == "word":
            # Letters with combining accents belong to one word.
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


class Alignment:
    """The alignment of a sentence and its translation.

    Attributes:
        sentence: the sentence with its marks.
        translation: the translation of `sentence.model_text`.
        sources: the units of `sentence.model_text`, as spans in it.
        targets: the units of the translation, likewise.
        aligned: for each target, the spans in `sentence.model_text` that it is aligned to, and the
            number of its aligned characters.

    Args:
        links: any number of links between `sentence.model_text` and the translation.
    """

    def __init__(self, sentence: MarkedSentence, translation: str, links: Sequence[Link]):
        self.sentence = sentence
        self.translation = translation
        self.sources = units(sentence.model_text)
        self.targets = units(translation)
        links = self._with_equal_words([link for link in links if link.source[0] < link.source[1]])
        self.aligned: list[list[tuple[Span, int]]] = [[] for _ in self.targets]
        for link in links:
            unit = bisect.bisect_right(self.targets, link.target[0], key=lambda span: span[1])
            while unit < len(self.targets) and self.targets[unit][0] < link.target[1]:
                length = overlap(link.target, self.targets[unit])
                self.aligned[unit].append((link.source, length))
                unit += 1

    def word(self, unit: int) -> str:
        """Returns the text of a unit of the translation."""
        return self.translation[slice(*self.targets[unit])]

    def is_word(self, unit: int) -> bool:
        """Whether a unit of the translation is a word rather than a punctuation mark."""
        return any(map(str.isalnum, self.word(unit)))

    def _with_equal_words(self, links: list[Link]) -> list[Link]:
        """Links words that contain marks, such as H<sub>2</sub>O, to the same words translated.

        Returns:
            The links, with these words' own links replaced.
        """
        for start, end in list(self.sources):
            inner = sorted(place for place in self.sentence.places if start < place < end)
            if not inner:
                continue
            word = self.sentence.model_text[start:end]
            equal = [span for span in self.targets if self.translation[slice(*span)] == word]
            if not equal:
                continue
            parts = list(pairwise([start, *inner, end]))
            _replace(self.sources, (start, end), parts)
            for span in equal:
                shifted = [
                    (first - start + span[0], last - start + span[0]) for first, last in parts
                ]
                _replace(self.targets, span, shifted)
                links = [link for link in links if not overlap(link.target, span)]
                links += map(Link, parts, shifted)
        return links

    def range_of(self, element: Element) -> Span:
        """Returns an element's span in the translated text, widened to whole words."""
        start, end = element.span
        if start == end:
            return start, end
        starts = [first for first, last in self.sources if first < start < last]
        ends = [last for first, last in self.sources if first < end < last]
        return (starts or [start])[0], (ends or [end])[0]

    def agreement(self, span: Span) -> list[float]:
        """Scores how well each unit matches a source span, from -1 to 1; 0 if not aligned."""
        found = []
        for unit, sources in enumerate(self.aligned):
            total = sum(length for _, length in sources)
            inside = sum(
                length * overlap(source, span) / (source[1] - source[0])
                for source, length in sources
            )
            agreement = 2 * inside / total - 1 if total else 0.0
            found.append(agreement if self.is_word(unit) else agreement * _PUNCTUATION_WEIGHT)
        return found

    def proportional(self, span: Span) -> int:
        """Returns the unit at a source span's relative position in the translation."""
        distances = [abs(sum(unit) - self._twice_the_place(span)) for unit in self.targets]
        return min(range(len(distances)), key=distances.__getitem__, default=0)

    def proportional_slot(self, span: Span) -> int:
        """Returns the unit after a source span's relative position."""
        return sum(sum(unit) < self._twice_the_place(span) for unit in self.targets)

    def _twice_the_place(self, span: Span) -> float:
        return sum(span) / max(len(self.sentence.model_text), 1) * len(self.translation)

    def neighbours(self, place: int) -> tuple[Span | None, Span | None]:
        """Returns the source units before and after a place; the same unit twice if within one."""
        before = [unit for unit in self.sources if unit[0] < place]
        after = [unit for unit in self.sources if unit[1] > place]
        return before[-1] if before else None, after[0] if after else None

    def counterpart(self, source: Span | None, first: int, last: int) -> int | None:
        """Returns the unit from `first` to `last` - 1 that is aligned to a source unit, if any."""
        if source is None:
            return None
        agreement = self.agreement(source)
        found = range(first, last)
        found = [unit for unit in found if self.aligned[unit] and agreement[unit] >= 0]
        word = self.sentence.model_text[slice(*source)]
        equal = [unit for unit in found if self.word(unit) == word]
        wanted = self.proportional(source)
        return min(equal or found, key=lambda unit: abs(unit - wanted), default=None)


def overlap(one: Span, other: Span) -> int:
    """Counts the characters that two spans share."""
    return max(min(one[1], other[1]) - max(one[0], other[0]), 0)


def _replace(spans: list[Span], span: Span, parts: Sequence[Span]) -> None:
    place = spans.index(span)
    spans[place : place + 1] = parts
