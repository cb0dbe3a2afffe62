"""Finds which units of a translation come from which units of its sentence.

Both are split into units, which are words and punctuation marks:

    sentence.model_text   "Press the button."      sources  Press the button .
    translation           "Die Taste drücken."     targets  Die Taste drücken .

A model links parts of the two texts, depending on its subwords. So a unit of the translation is
aligned to parts of the source, each weighted by the number of linked characters. Unit numbers count
units of the translation, except where source units are mentioned: 0 is "Die". All spans are spans
of characters, in either text. All look-ups are binary searches, as a sentence may have thousands of
marks.
"""

import functools
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import accumulate, groupby, pairwise
from operator import itemgetter

from keras_transformer.kit.documents.tree.marked import Element, MarkedSentence
from keras_transformer.kit.documents.tree.sentences import is_unspaced
from keras_transformer.use.translate.answers import Link, Span

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
        is_known: whether any units are aligned.

    Args:
        links: any number of links between `sentence.model_text` and the translation.
    """

    def __init__(self, sentence: MarkedSentence, translation: str, links: Sequence[Link]):
        self.sentence = sentence
        self.translation = translation
        self.sources = units(sentence.model_text)
        self.targets = units(translation)
        links = [link for link in links if all(start < end for start, end in link)]
        links = self._with_equal_words(links)
        self.aligned: list[list[tuple[Span, int]]] = [[] for _ in self.targets]
        for link in links:
            for unit in _overlapping(self.targets, link.target):
                self.aligned[unit].append((link.source, overlap(link.target, self.targets[unit])))
        self.is_known = any(self.aligned)
        self._units_of: list[list[int]] = [[] for _ in self.sources]  # aligned to this source unit
        for unit, sources in enumerate(self.aligned):
            for number in {n for source, _ in sources for n in self._sources_in(source)}:
                self._units_of[number].append(unit)
        weights = [self._weight(unit) if self.aligned[unit] else 0.0 for unit in self._all]
        self._weight_before = [*accumulate(weights, initial=0.0)]  # of the units before each one
        self._centers = [sum(span) / 2 for span in self.targets]

    @property
    def _all(self) -> range:
        return range(len(self.targets))

    def word(self, unit: int) -> str:
        """Returns the text of a unit of the translation."""
        return self.translation[slice(*self.targets[unit])]

    def is_word(self, unit: int) -> bool:
        """Whether a unit of the translation is a word rather than a punctuation mark."""
        return any(map(str.isalnum, self.word(unit)))

    def _weight(self, unit: int) -> float:
        return 1.0 if self.is_word(unit) else _PUNCTUATION_WEIGHT

    def _with_equal_words(self, links: list[Link]) -> list[Link]:
        """Links words that contain marks, such as H<sub>2</sub>O, to the same words translated.

        Returns:
            The links, with these words' own links replaced.
        """
        places = sorted(self.sentence.places)
        translated = {self.word(unit) for unit in self._all}
        parts: dict[Span, list[Span]] = {}  # of these words
        equal: dict[str, list[Span]] = defaultdict(list)
        for start, end in self.sources:
            word = self.sentence.model_text[start:end]
            inner = places[bisect_right(places, start) : bisect_left(places, end)]
            if inner and word in translated:
                parts[start, end] = list(pairwise([start, *inner, end]))
                equal[word].append((start, end))
        if not equal:
            return links
        self.sources = [part for span in self.sources for part in parts.get(span, [span])]
        targets: list[Span] = []
        replaced: list[Span] = []
        added: list[Link] = []
        found: Counter[str] = Counter()
        for start, end in self.targets:
            word = self.translation[start:end]
            if word not in equal:
                targets.append((start, end))
                continue
            # In their order; if there are more in the translation, the last one several times.
            source = equal[word][min(found[word], len(equal[word]) - 1)]
            found[word] += 1
            shift = start - source[0]
            shifted = [(first + shift, last + shift) for first, last in parts[source]]
            targets += shifted
            replaced.append((start, end))
            added += map(Link, parts[source], shifted)
        self.targets = targets
        return [link for link in links if not _overlapping(replaced, link.target)] + added

    def _sources_in(self, span: Span) -> range:
        """Returns the numbers of the source units in a span, or around it."""
        return _overlapping(self.sources, span)

    def range_of(self, element: Element) -> Span:
        """Returns an element's span in the translated text, widened to whole words."""
        start, end = element.span
        found = self._sources_in(element.span) if start < end else None
        if not found:
            return start, end
        return min(start, self.sources[found[0]][0]), max(end, self.sources[found[-1]][1])

    def covers(self, span: Span, other: Span) -> bool:
        """Whether a span contains all source units in another one."""
        found, wanted = self._sources_in(span), self._sources_in(other)
        return found.start <= wanted.start and wanted.stop <= found.stop

    def agreement(self, span: Span) -> dict[int, float]:
        """Scores how well units match a source span, from -1 to 1.

        Returns:
            The units aligned to anything in the span, in order, with their scores.
        """
        found = {unit for number in self._sources_in(span) for unit in self._units_of[number]}
        return {unit: self._agreement(unit, span) for unit in sorted(found)}

    def _agreement(self, unit: int, span: Span) -> float:
        total = sum(length for _, length in self.aligned[unit])
        inside = sum(
            length * overlap(source, span) / (source[1] - source[0])
            for source, length in self.aligned[unit]
        )
        return (2 * inside / total - 1) * self._weight(unit)

    def disagreement(self, first: int, last: int) -> float:
        """Returns the total score of units from `first` to `last` - 1 that are aligned elsewhere.

        Units that are not aligned score 0.
        """
        return self._weight_before[first] - self._weight_before[last]

    def proportional(self, span: Span) -> int:
        """Returns the unit at a source span's relative position in the translation."""
        place = self._proportional_place(span)
        after = bisect_left(self._centers, place)
        near = self._all[max(after - 1, 0) : after + 1]
        return min(near, key=lambda unit: abs(self._centers[unit] - place), default=0)

    def proportional_slot(self, span: Span) -> int:
        """Returns the unit after a source span's relative position."""
        return bisect_left(self._centers, self._proportional_place(span))

    def _proportional_place(self, span: Span) -> float:
        return sum(span) / 2 / max(len(self.sentence.model_text), 1) * len(self.translation)

    def neighbours(self, place: int) -> tuple[Span | None, Span | None]:
        """Returns the source units before and after a place; the same unit twice if within one."""
        before = bisect_left(self.sources, place, key=itemgetter(0)) - 1
        after = bisect_right(self.sources, place, key=itemgetter(1))
        return (
            self.sources[before] if before >= 0 else None,
            self.sources[after] if after < len(self.sources) else None,
        )

    def counterpart(self, source: Span | None, first: int, last: int) -> int | None:
        """Returns the unit from `first` to `last` - 1 that is aligned to a source unit, if any."""
        if source is None:
            return None
        agreement = self.agreement(source)
        found = [unit for unit in agreement if first <= unit < last and agreement[unit] >= 0]
        word = self.sentence.model_text[slice(*source)]
        equal = [unit for unit in found if self.word(unit) == word]
        wanted = self.proportional(source)
        return min(equal or found, key=lambda unit: abs(unit - wanted), default=None)


def overlap(one: Span, other: Span) -> int:
    """Counts the characters that two spans share."""
    return max(min(one[1], other[1]) - max(one[0], other[0]), 0)


def _overlapping(spans: Sequence[Span], span: Span) -> range:
    """Returns the numbers of the spans, ordered and disjoint, that overlap another one."""
    first = bisect_right(spans, span[0], key=itemgetter(1))
    return range(first, max(first, bisect_left(spans, span[1], key=itemgetter(0))))
