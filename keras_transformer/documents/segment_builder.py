"""Makes a segment of what a reader finds within a paragraph: words, spaces, tags, code spans.

A reader calls the methods of SegmentBuilder in the order of the document; it need not know whether
a tag has a partner. `parts` are then the segment, and beside it what need not be in it: a link
around the whole text, the spaces before it, an image after it. The fewer marks a segment has, the
fewer must be placed in its translation.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import groupby

from keras_transformer.documents.segments import Mark, MarkKind, Parts, Piece, Segment


def joined(parts: Iterable[str | Segment]) -> Parts:
    """Parts of a document with strings in turn made one, and without empty strings."""
    result: list[str | Segment] = []
    for is_text, group in groupby(parts, key=lambda part: isinstance(part, str)):
        if is_text:
            result.append("".join(group))
        else:
            result.extend(group)
    return tuple(part for part in result if part != "")


class OpenTags:
    """The names of the tags that have begun and not ended, the innermost last."""

    def __init__(self):
        self.names: list[Hashable] = []
        self._numbers: Counter[Hashable] = Counter()

    def __contains__(self, name: Hashable) -> bool:
        return self._numbers[name] > 0

    def begin(self, name: Hashable) -> None:
        self.names.append(name)
        self._numbers[name] += 1

    def end(self, name: Hashable) -> int:
        """Ends the innermost tag of this name, and those within it. Returns how many these are."""
        if name not in self:
            return 0
        ended = 1
        while self._pop() != name:
            ended += 1
        return ended

    def _pop(self) -> Hashable:
        name = self.names.pop()
        self._numbers[name] -= 1
        return name


@dataclasses.dataclass(eq=False)
class _Found:
    """What a paragraph has at one place."""

    source: str  # as the document writes it
    text: str = ""  # what it reads as
    is_language: bool = False  # is translated
    is_space: bool = False  # reads as one space, or as nothing beside another space
    parts: Parts = ()  # its source in parts, if there is language in it
    written: str = ""  # what it is written as beside translated text, if that is not its source
    kind: MarkKind = MarkKind.WHOLE
    partner: int | None = None  # of an OPEN one: the place of its partner
    around_language: bool = True  # of an OPEN one: there is language before its partner
    is_element: bool = False  # two tags and what is between them

    @property
    def can_stay_outside(self) -> bool:
        """Whether it can be left out at the edge of a segment: there is nothing to be read."""
        return self.is_space or (self.kind is MarkKind.WHOLE and not self.text)


class SegmentBuilder:
    """Collects the pieces of a paragraph, and makes a segment of them.

    Args:
        write: that of its segment.

    Attributes:
        last_character: that is read so far; "" if there is none.
    """

    def __init__(self, write: Callable[[Sequence[Piece]], str]):
        self._write = write
        self._pieces: list[_Found] = []
        self._open_tags = OpenTags()
        self._open_places: list[int] = []  # of the open tags, in the same order
        self._language_before: list[int] = []  # for each of them: pieces of language before it
        self.last_character = ""
        self._language = 0  # pieces of language up to here

    def word(self, source: str, text: str) -> None:
        """A word, several, or a part of one."""
        self._language += 1
        self.last_character = text[-1:] or self.last_character
        self._pieces.append(_Found(source, text, is_language=True))

    def space(self, source: str, written: str = "") -> None:
        """White space, however the document writes it: a line break, indentation, <br>.

        Args:
            source: as the document writes it.
            written: what it is written as beside translated text, if that is not its source.
        """
        self.last_character = " "
        if self._pieces and self._pieces[-1].is_space:
            self._pieces[-1].source += source
        else:
            self._pieces.append(_Found(source, " ", is_space=True, written=written))

    def kept(self, source: str, text: str = "", parts: Parts = ()) -> None:
        """What is not translated: an image, a code span.

        Args:
            source: as the document writes it.
            text: the words that it stands for, if any.
            parts: the source in parts, if there is language in it.
        """
        self.last_character = text[-1:] or self.last_character
        self._pieces.append(_Found(source, text, parts=parts))

    def begin(self, name: Hashable, source: str, parts: Parts = ()) -> None:
        """A tag that lasts until `end` is called with its name, if ever."""
        self._open_tags.begin(name)
        self._open_places.append(len(self._pieces))
        self._language_before.append(self._language)
        self._pieces.append(_Found(source, parts=parts))

    def end(self, name: Hashable, source: str, written: str = "") -> None:
        """The partner of the innermost open tag of this name.

        Tags that began within it have no partner; nor has this one, if no tag of its name is open.

        Args:
            name: of the tag.
            source: as the document writes it.
            written: what it is written as beside translated text, if that is not its source.
        """
        piece = _Found(source, written=written)
        ended = self._open_tags.end(name)
        if ended:
            piece.kind = MarkKind.CLOSE
            first = self._pieces[self._open_places[-ended]]
            first.kind = MarkKind.OPEN
            first.partner = len(self._pieces)
            first.around_language = self._language > self._language_before[-ended]
            del self._open_places[-ended:], self._language_before[-ended:]
        self._pieces.append(piece)

    def parts(self) -> list[str | Segment]:
        """All pieces: strings, and the segment if there is a letter to be translated."""
        first, last = self._bounds()
        before, after = self._pieces[:first], self._pieces[last:]
        inner = self._merged(first, last)
        language = (piece.text for piece in inner if piece.is_language)
        if any(character.isalpha() for text in language for character in text):
            return [*_parts_of(before), _segment(inner, self._write), *_parts_of(after)]
        return _parts_of(self._pieces)

    def _bounds(self) -> tuple[int, int]:
        """The range of the pieces that the segment needs."""
        pieces = self._pieces
        first, last = 0, len(pieces)
        while first < last:
            if pieces[first].can_stay_outside:
                first += 1
            elif pieces[last - 1].can_stay_outside:
                last -= 1
            elif pieces[first].partner == last - 1 and not pieces[last - 1].written:
                first, last = first + 1, last - 1
            else:
                break
        return first, last

    def _merged(self, first: int, last: int) -> list[_Found]:
        """The pieces of a range; a pair of tags around no language becomes one of them."""
        merged = []
        while first < last:
            piece = self._pieces[first]
            end = first + 1
            if not piece.around_language:
                end = piece.partner + 1
                piece = _joined(self._pieces[first:end])
            merged.append(piece)
            first = end
        return merged


def _joined(pieces: list[_Found]) -> _Found:
    """One piece of several in which no language is."""
    source = "".join(piece.source for piece in pieces)
    text = "".join(piece.text for piece in pieces)
    parts = tuple(_parts_of(pieces)) if any(piece.parts for piece in pieces) else ()
    if text.isspace():
        return _Found(source, " ", is_space=True, parts=parts, is_element=True)
    return _Found(source, text, parts=parts, is_element=True)


def _parts_of(pieces: Iterable[_Found]) -> list[str | Segment]:
    parts: list[str | Segment] = []
    for piece in pieces:
        parts.extend(piece.parts or (piece.source,))
    return parts


def _segment(pieces: list[_Found], write: Callable[[Sequence[Piece]], str]) -> Segment:
    """The segment of pieces. Its text neither begins nor ends with a space, nor has two in turn."""
    read = [number for number, piece in enumerate(pieces) if piece.text and not piece.is_space]
    texts: list[str] = []
    marks: list[Mark] = []
    end = 0
    after_space = True
    for number, piece in enumerate(pieces):
        is_doubled = piece.is_space and after_space and not piece.is_element
        if is_doubled and marks and marks[-1].end == end:
            marks[-1] = _with_space(marks[-1], piece.source)
            continue
        text = "" if piece.is_space and (after_space or number > read[-1]) else piece.text
        start, end = end, end + len(text)
        source = piece.written or piece.source
        if not piece.is_language and not (source == text == " "):
            marks.append(Mark(source, start, end, piece.kind, piece.parts))
        if text:
            texts.append(text)
            after_space = piece.is_space
    source = "".join(piece.source for piece in pieces)
    return Segment(source, "".join(texts), tuple(marks), write)


def _with_space(mark: Mark, space: str) -> Mark:
    """A mark with the space after it, which is not read, as one was read before the mark."""
    parts = (*mark.parts, space) if mark.parts else ()
    return dataclasses.replace(mark, source=mark.source + space, parts=parts)
