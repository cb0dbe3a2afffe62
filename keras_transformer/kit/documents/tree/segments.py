"""A document as translatable segments and the source between them.

A format (plain.py, markdown.py, html.py and others) splits a document into parts in order: strings,
which stay unchanged, and Segments, each a paragraph, a heading, a table cell or the like. Formats
that can mark doubtful translations put the segments that share a mark into a ReviewUnit. A segment
is a tree of text, elements such as `<b>...</b>` around nodes, and marks. A mark is something in a
segment that is not language, such as a code span or a line break: it is removed before translation
and restored afterwards.

    A <b>red</b> `x`.      ["A ", Element(<b>, </b>, ["red"]), " ", Mark(`x`), "."]
"""

import dataclasses
import math
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import Enum

from keras_transformer.use.translate.answers import Span


class MarkKind(Enum):
    """The role of a mark."""

    OPEN = "open"  # begins an element, as <b> does
    CLOSE = "close"
    WHOLE = "whole"  # stands alone: <br>, `code`, {{name}}, a line break


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
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
    name: Hashable = ""  # of the element that it begins, as given to SegmentBuilder.begin
    is_formatting: bool = False
    is_script: bool = False  # a subscript or a superscript

    @property
    def is_break(self) -> bool:
        """Whether it replaces a space."""
        return self.text.isspace()


@dataclasses.dataclass(eq=False, slots=True)
class Element:
    """A pair of marks, and the nodes between them.

    In a sentence's tree, `opening` is None if it is before the sentence, and `closing` is None if
    it is after it.
    """

    opening: Mark | None
    closing: Mark | None
    children: list["Node"]


Node = str | Mark | Element
Piece = str | Mark  # of the output: text as it reads, or a mark


def pieces_of(nodes: Iterable[Node]) -> Iterator[Piece]:
    """Yields the text and the marks of nodes in order."""
    waiting = [*nodes][::-1]  # a stack, as recursive generators pass each piece up all levels
    while waiting:
        node = waiting.pop()
        if isinstance(node, Element):
            inner = [node.opening, *node.children, node.closing]
            waiting.extend(each for each in reversed(inner) if each is not None)
        else:
            yield node


def text_of(nodes: Iterable[Node]) -> str:
    """Returns the text of nodes."""
    return "".join(piece if isinstance(piece, str) else piece.text for piece in pieces_of(nodes))


def _with_marks(
    nodes: Sequence[Node], spans: Sequence[Span], make: Callable[[str], Mark], start: int = 0
) -> tuple[list[Node], int]:
    """Turns spans of the text into marks, except spans that contain a mark.

    Args:
        nodes: a tree.
        spans: in order, without overlaps.
        make: makes a mark from its text.
        start: the place where the nodes begin.

    Returns:
        The tree with marks, and the place where it ends.
    """
    marked: list[Node] = []
    for node in nodes:
        if isinstance(node, Element):
            children, start = _with_marks(node.children, spans, make, start)
            marked.append(Element(node.opening, node.closing, children))
        elif isinstance(node, Mark):
            marked.append(node)
            start += len(node.text)
        else:
            end = start + len(node)
            place = 0  # of the text that is not yet added
            for number in range(bisect_left(spans, (start, start)), len(spans)):
                first, last = spans[number]
                if last > end:
                    break
                marked += [node[place : first - start], make(node[first - start : last - start])]
                place = last - start
            marked.append(node[place:])
            start = end
    return [node for node in marked if node != ""], start


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
    nodes: Sequence[Node]  # no element lacks a mark
    # Writes a whole translation in the segment's format.
    write: Callable[[Sequence[Piece]], str] = as_written
    # Writes this in the format of the outer document, if embedded in one.
    embed: Callable[[str], str] = str

    @property
    def text(self) -> str:
        """Returns the segment's text without marks, with entities and escapes decoded."""
        return text_of(self.nodes)

    def with_marks(self, spans: Sequence[Span]) -> "Segment":
        """Returns a segment with spans of the text turned into marks, except within marks."""
        if not spans:
            return self
        nodes, _ = _with_marks(self.nodes, spans, lambda text: Mark(None, text=text))
        return dataclasses.replace(self, nodes=nodes)

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
    # below `review_below`; else None.
    write: Callable[[str, float | None], str]
    review_below: float = math.inf

    @property
    def source(self) -> str:
        """Returns the unit as the document writes it."""
        return self.write(source_of(self.parts), None)

    def written(self, text: str, confidence: float | None) -> str:
        """Writes the translated parts; an unknown confidence is no reason for a mark."""
        is_doubtful = confidence is not None and confidence < self.review_below
        return self.write(text, confidence if is_doubtful else None)


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
            for piece in pieces_of(part.nodes):
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
