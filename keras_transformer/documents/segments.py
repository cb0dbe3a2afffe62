"""A document as the text that is translated, and all else, which stays as it is.

A format (plain.py, markdown.py, html.py and others) reads a document into parts in their order:
strings, which come back as they are, and Segments, each of which is a paragraph, a heading, a cell
of a table or the like. A segment is a tree: text, elements such as `<b>...</b>` around nodes, and
marks. A mark is in a segment and is no language, such as a code span or a line break: it leaves the
text before the translation and returns to it afterwards.

    A <b>red</b> `x`.      ["A ", Element(<b>, </b>, ["red"]), " ", Mark(`x`), "."]
"""

import dataclasses
import functools
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum

from keras_transformer.translate.answers import Span


class MarkKind(Enum):
    """The effect of a mark on the text beside it."""

    OPEN = "open"  # begins an element, as <b> does
    CLOSE = "close"
    WHOLE = "whole"  # stands alone: <br>, `code`, {{name}}, a line break


@dataclasses.dataclass(frozen=True, eq=False)
class Mark:
    """Something in a segment that is not translated.

    A placeholder has no source: it is written as text is, where it comes.

    A mark may hold language of its own: the alternative text of an image within a sentence. Then
    `parts` is what the mark is written as, with such segments in it.
    """

    source: str | None  # as the document writes it
    kind: MarkKind = MarkKind.WHOLE
    text: str = ""  # what it reads as: " " for a line break, words for a code span
    parts: "Parts" = ()  # if empty, there is no language in the mark

    @property
    def is_break(self) -> bool:
        """Whether it stands in place of a space."""
        return self.text.isspace()


@dataclasses.dataclass(eq=False)
class Element:
    """A pair of marks, and what is between them.

    In the tree of a sentence, `opening` is None if it is before the sentence, and `closing` if it
    is after it.
    """

    opening: Mark | None
    closing: Mark | None
    children: list["Node"]


Node = str | Mark | Element
Piece = str | Mark  # of what is written: text as it reads, or a mark


def pieces_of(nodes: Iterable[Node]) -> Iterator[Piece]:
    """Yields the text and the marks of nodes in their order."""
    for node in nodes:
        if isinstance(node, Element):
            if node.opening is not None:
                yield node.opening
            yield from pieces_of(node.children)
            if node.closing is not None:
                yield node.closing
        else:
            yield node


def text_of(nodes: Iterable[Node]) -> str:
    """The text of nodes."""
    return "".join(piece if isinstance(piece, str) else piece.text for piece in pieces_of(nodes))


def with_marks(
    nodes: Sequence[Node], spans: Sequence[Span], make: Callable[[str], Mark], start: int = 0
) -> list[Node]:
    """Makes marks of spans of the text, but not of those that another mark is in.

    Args:
        nodes: a tree.
        spans: in their order; none overlaps another one.
        make: makes a mark of its text.
        start: the place at which the nodes begin.
    """
    marked: list[Node] = []
    for node in nodes:
        end = start + len(text_of([node]))
        if isinstance(node, Element):
            children = with_marks(node.children, spans, make, start)
            node = Element(node.opening, node.closing, children)
        elif isinstance(node, str):
            for first, last in spans[bisect_left(spans, (start, start)) :]:
                if last > end:
                    break
                found = first - end + len(node)
                marked += [node[:found], make(node[found : last - end + len(node)])]
                node = node[last - end + len(node) :]
        marked.append(node)
        start = end
    return [node for node in marked if node != ""]


def writing_with(escape: Callable[[str], str]) -> Callable[[Sequence[Piece]], str]:
    """The `write` of a format that writes each text in the same way, whatever is beside it."""

    def write(pieces: Sequence[Piece]) -> str:
        return "".join(
            escape(piece) if isinstance(piece, str) else piece.source for piece in pieces
        )

    return write


as_written = writing_with(str)  # the `write` of a format in which all characters mean themselves


@dataclasses.dataclass(frozen=True, eq=False)
class Segment:
    """A piece of language."""

    # As the document writes it. It comes back if nothing in it is changed, unless it is empty: then
    # the segment is a place for the translation of a text that stands elsewhere, as in a catalogue.
    source: str
    nodes: Sequence[Node]  # no element lacks a mark
    # Writes a translation, all of it, as its format writes text and marks.
    write: Callable[[Sequence[Piece]], str] = as_written
    # Writes that as the document does in which the format is embedded, if it is in one.
    embed: Callable[[str], str] = str

    @functools.cached_property
    def text(self) -> str:
        """The words of the segment, without marks, and with entities and escapes decoded."""
        return text_of(self.nodes)

    def with_marks(self, spans: Sequence[Span]) -> "Segment":
        """A segment in which spans of the text are marks, where no other mark is."""
        nodes = with_marks(self.nodes, spans, lambda text: Mark(None, text=text))
        return dataclasses.replace(self, nodes=nodes)

    def written(self, pieces: Sequence[Piece]) -> str:
        """Writes a translation, all of it, as the document does."""
        pieces = [
            piece.text if isinstance(piece, Mark) and piece.source is None else piece
            for piece in pieces
        ]
        return self.embed(self.write(pieces))


Parts = tuple[str | Segment, ...]


@dataclasses.dataclass(frozen=True)
class Document:
    """A document that a format has read: what is kept, and what is translated, in its order.

    The sources of all parts together are the document, but for what is written into places that
    are empty in it.
    """

    parts: Parts

    @property
    def source(self) -> str:
        """The document as it was."""
        return "".join(part if isinstance(part, str) else part.source for part in self.parts)

    def written(self, translated: Iterable[str]) -> Iterator[bytes]:
        """Yields the bytes of the document, given each of its parts as it is translated."""
        for part in translated:
            yield part.encode("utf-8", errors="replace")

    @property
    def segments(self) -> list[Segment]:
        """What is translated: the segments, each before those that its marks hold."""
        return list(_segments(self.parts))


def _segments(parts: Iterable[str | Segment]) -> Iterator[Segment]:
    for part in parts:
        if isinstance(part, Segment):
            yield part
            for piece in pieces_of(part.nodes):
                if isinstance(piece, Mark):
                    yield from _segments(piece.parts)


def embedded(document: Document, escape: Callable[[str], str]) -> Parts:
    """The parts of a document that is written within another one, as a cell of a table is.

    Args:
        document: the inner one.
        escape: writes what the inner document writes as the outer one writes it.
    """

    def in_outer(part: str | Segment) -> str | Segment:
        if isinstance(part, str):
            return escape(part)
        return dataclasses.replace(part, source=escape(part.source), embed=escape)

    return tuple(in_outer(part) for part in document.parts)
