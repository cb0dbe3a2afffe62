"""A document as the text that is translated, and all else, which stays as it is.

A format (plain.py, markdown.py, html.py and others) reads a document into parts in their order:
strings, which come back as they are, and Segments, each of which is a paragraph, a heading, a cell
of a table or the like. What is in a segment and is no language, such as a tag, a code span or a
line break, is a Mark: it leaves the text before the translation and returns to it afterwards.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum


class MarkKind(Enum):
    """What a mark does to the text beside it."""

    OPEN = "open"  # begins what the next CLOSE of the same depth ends, as <b> does
    CLOSE = "close"
    WHOLE = "whole"  # stands alone: <br>, `code`, {{name}}, a line break


@dataclasses.dataclass(frozen=True)
class Mark:
    """Something in a segment that is not translated.

    `start` and `end` are places in the segment's text. The mark stands in place of
    text[start:end]: of nothing, if both are equal, as a tag does; of one space, as a line break
    within a paragraph does; or of what it reads as, as a URL or a code span does.

    A mark may hold language of its own: the alternative text of an image within a sentence. Then
    `parts` is what the mark is written as, with such segments in it.
    """

    source: str  # as the document writes it
    start: int
    end: int
    kind: MarkKind = MarkKind.WHOLE
    parts: "Parts" = ()  # if empty, there is no language in the mark


Piece = str | Mark  # of what is written: text as it reads, or a mark


def writing_with(escape: Callable[[str], str]) -> Callable[[Sequence[Piece]], str]:
    """The `write` of a format that writes each text in the same way, whatever is beside it."""

    def write(pieces: Sequence[Piece]) -> str:
        return "".join(
            escape(piece) if isinstance(piece, str) else piece.source for piece in pieces
        )

    return write


as_written = writing_with(str)  # the `write` of a format in which all characters mean themselves


@dataclasses.dataclass(frozen=True)
class Segment:
    """A piece of language.

    OPEN and CLOSE marks are in pairs and properly nested: a format makes a WHOLE mark of a tag
    without its partner.
    """

    # As the document writes it. It comes back if nothing in it is changed, unless it is empty: then
    # the segment is a place for the translation of a text that stands elsewhere, as in a catalogue.
    source: str
    text: str  # what it reads as: without marks, and with entities and escapes decoded
    marks: tuple[Mark, ...] = ()  # in the order of the document
    # Writes a translation, all of it, as its format writes text and marks.
    write: Callable[[Sequence[Piece]], str] = as_written
    # Writes that as the document does in which the format is embedded, if it is in one.
    embed: Callable[[str], str] = str

    def written(self, pieces: Sequence[Piece]) -> str:
        """Writes a translation, all of it, as the document does."""
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

    @property
    def segments(self) -> list[Segment]:
        """What is translated: the segments, each before those that its marks hold."""
        return list(_segments(self.parts))


def _segments(parts: Iterable[str | Segment]) -> Iterator[Segment]:
    for part in parts:
        if isinstance(part, Segment):
            yield part
            for mark in part.marks:
                yield from _segments(mark.parts)


def embedded(document: Document, escape: Callable[[str], str]) -> Parts:
    """The parts of a document that is written within another one, as a cell of a table is.

    Args:
        document: the inner one.
        escape: writes what the inner document writes as the outer one writes it.

    Returns:
        What is kept, and segments whose source is empty: places for their translations.
    """

    def in_outer(part: str | Segment) -> str | Segment:
        if isinstance(part, str):
            return escape(part)
        return dataclasses.replace(part, source="", embed=escape)

    return tuple(in_outer(part) for part in document.parts)
