"""A document as translatable segments and the source between them.

A format (plain.py, markdown.py, html.py and others) splits a document into parts in order: strings,
which stay unchanged, and Segments, each a paragraph, a heading, a table cell or the like. Formats
that can mark doubtful translations put the segments that share a mark into a ReviewUnit. A segment
consists of pieces: text, and marks. A mark is something in a segment that is not language, such as
a code span or a line break: it is removed before translation and restored afterwards. Two marks
with pieces between them are an element; elements are properly nested.

    A <b>red</b> `x`.      ["A ", Mark(<b>, OPEN), "red", Mark(</b>, CLOSE), " ", Mark(`x`), "."]
"""

import dataclasses
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import Enum

from keras_transformer.use.translate.answers import Span


class MarkKind(Enum):
    """The role of a mark."""

    OPEN = "open"  # begins an element, as <b> does
    CLOSE = "close"
    WHOLE = "whole"  # stands alone: <br>, `code`, {{name}}, a line break


@dataclasses.dataclass(eq=False, slots=True)
class Mark:
    """Something in a segment that is not translated.

    A placeholder has no source: it is written like text in its new place.

    A mark may contain language, such as the alternative text of an image. Then `parts` is its
    source with these segments.

    The opening mark of an element may say that the element only formats its words, as <b> does. The
    element is then dropped if these words have no translation. A subscript or a superscript is
    dropped unless the translation has the same characters, such as the 2 of H2O.
    """

    source: str | None  # as the document writes it
    kind: MarkKind = MarkKind.WHOLE
    text: str = ""  # how it reads: " " for a line break, words for a code span
    parts: "Parts" = ()  # empty if the mark contains no language
    name: Hashable = ""  # of its element, as given to SegmentBuilder.begin
    is_formatting: bool = False
    is_script: bool = False  # a subscript or a superscript

    @property
    def is_break(self) -> bool:
        """Whether it replaces a space."""
        return self.text.isspace()


Piece = str | Mark  # text as it reads, or a mark


def text_of(pieces: Iterable[Piece]) -> str:
    """Returns the text of pieces."""
    return "".join(piece if isinstance(piece, str) else piece.text for piece in pieces)


def with_places(pieces: Iterable[Piece]) -> Iterator[tuple[Piece, int, int]]:
    """Yields pieces with their starts and ends in their text."""
    start = 0
    for piece in pieces:
        end = start + len(piece if isinstance(piece, str) else piece.text)
        yield piece, start, end
        start = end


def ends_of_elements(pieces: Iterable[Piece]) -> dict[int, int]:
    """Returns the number of the closing mark of each element, by that of its opening mark."""
    ends: dict[int, int] = {}
    waiting: list[int] = []
    for number, piece in enumerate(pieces):
        kind = None if isinstance(piece, str) else piece.kind
        if kind is MarkKind.OPEN:
            waiting.append(number)
        elif kind is MarkKind.CLOSE:
            ends[waiting.pop()] = number
    return ends


def writing_with(escape: Callable[[str], str]) -> Callable[[Sequence[Piece]], str]:
    """Returns the `write` of a format that escapes text independently of its context."""

    def write(pieces: Sequence[Piece]) -> str:
        return "".join(
            escape(piece) if isinstance(piece, str) else piece.source for piece in pieces
        )

    return write


as_written = writing_with(str)  # the `write` of a format without special characters


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class Segment:
    """A translatable piece of a document."""

    # As the document writes it, and as it is written if nothing in it changes. Empty if the segment
    # is a place for the translation of text elsewhere, as in a catalogue.
    source: str
    pieces: Sequence[Piece]  # no element lacks a mark
    # Writes a whole translation in the segment's format.
    write: Callable[[Sequence[Piece]], str] = as_written
    # Writes this in the format of the outer document, if embedded in one.
    embed: Callable[[str], str] = str

    @property
    def text(self) -> str:
        """Returns the segment's text without marks, with entities and escapes decoded."""
        return text_of(self.pieces)

    def with_marks(self, spans: Sequence[Span]) -> "Segment":
        """Returns a segment with spans of the text turned into marks, except if they contain one.

        Args:
            spans: in order, without overlaps.
        """
        if not spans:
            return self
        marked: list[Piece] = []
        for piece, start, end in with_places(self.pieces):
            if isinstance(piece, Mark):
                marked.append(piece)
                continue
            place = start  # of the text that is not yet added
            for number in range(bisect_left(spans, (start, start)), len(spans)):
                first, last = spans[number]
                if last > end:
                    break
                mark = Mark(None, text=piece[first - start : last - start])
                marked += [piece[place - start : first - start], mark]
                place = last
            marked.append(piece[place - start :])
        return dataclasses.replace(self, pieces=[piece for piece in marked if piece != ""])

    def written(self, pieces: Sequence[Piece]) -> str:
        """Writes a whole translation in the document's format."""
        pieces = [
            piece.text if isinstance(piece, Mark) and piece.source is None else piece
            for piece in pieces
        ]
        return self.embed(self.write(pieces))


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class ReviewUnit:
    """Parts of a document that are reviewed together, such as the forms of a message."""

    parts: "Parts"
    # Writes the translated parts, given the least confidence in one of their sentences, if it is
    # doubtful, or if the unit shows any confidence; else None.
    write: Callable[[str, float | None], str]
    shows_any: bool = False

    @property
    def source(self) -> str:
        """Returns the unit as the document writes it."""
        return self.write(source_of(self.parts), None)

    def written(self, text: str, confidence: float | None, review_below: float) -> str:
        """Writes the translated parts; confidence below `review_below` is doubtful."""
        is_doubtful = confidence is not None and confidence < review_below
        return self.write(text, confidence if is_doubtful or self.shows_any else None)


Part = str | Segment | ReviewUnit
Parts = tuple[Part, ...]


def source_of(parts: Iterable[Part]) -> str:
    """Returns the source of parts."""
    return "".join(part if isinstance(part, str) else part.source for part in parts)


def has_language(parts: Iterable[Part]) -> bool:
    """Whether there is a segment among parts."""
    return any(isinstance(part, Segment) for part in parts)


@dataclasses.dataclass(frozen=True)
class Document:
    """A document that was read: its unchanged and translatable parts, in order.

    The sources of all parts add up to the document.
    """

    parts: Parts
    # The numbers of pieces with letters that stay as they are, by kind: "code", "equation",
    # "field", "formula", "header", "hint", "ruby", "hidden", "deleted", "protected", "long" for
    # cells whose translation would be too long, and "damaged" for members of an archive that a
    # translation would have damaged.
    left: Mapping[str, int] = dataclasses.field(default_factory=dict, kw_only=True)

    @property
    def source(self) -> str:
        """Returns the original document."""
        return source_of(self.parts)

    def written(self, translated: Iterable[str]) -> Iterator[bytes]:
        """Yields the document's bytes, given its translated parts."""
        for part in translated:
            yield part.encode("utf-8", errors="replace")

    @property
    def segments(self) -> list[Segment]:
        """Returns the segments, each before those in its marks."""
        return list(_segments(self.parts))


def _segments(parts: Iterable[Part]) -> Iterator[Segment]:
    for part in parts:
        if isinstance(part, ReviewUnit):
            yield from _segments(part.parts)
        elif isinstance(part, Segment):
            yield part
            for piece in part.pieces:
                if isinstance(piece, Mark):
                    yield from _segments(piece.parts)


def embedded(document: Document, escape: Callable[[str], str]) -> Parts:
    """Returns the parts of a document within another one, such as a table cell.

    Args:
        document: the inner document.
        escape: encodes the inner document's output for the outer one.
    """

    def in_outer(part: str | Segment) -> str | Segment:
        if isinstance(part, str):
            return escape(part)
        return dataclasses.replace(part, source=escape(part.source), embed=escape)

    return tuple(in_outer(part) for part in document.parts)
