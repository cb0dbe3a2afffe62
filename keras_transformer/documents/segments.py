"""A document as the text that is translated, and all else, which stays as it is.

A format (plain.py, markdown.py, html.py and others) reads a document into parts in their order:
strings, which come back as they are, and Segments, each of which is a paragraph, a heading, a cell
of a table or the like. What is in a segment and is no language, such as a tag, a code span or a
line break, is a Mark: it leaves the text before the translation and returns to it afterwards.
"""

import dataclasses
from collections.abc import Callable
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
    within a paragraph does; or of what it is written as, as a URL does.
    """

    source: str  # as the document writes it
    start: int
    end: int
    kind: MarkKind = MarkKind.WHOLE


def as_written(text: str) -> str:
    """The `escape` of a format in which no character has a meaning of its own."""
    return text


@dataclasses.dataclass(frozen=True)
class Segment:
    """A piece of language.

    OPEN and CLOSE marks are in pairs and properly nested: a format makes a WHOLE mark of a tag
    without its partner.
    """

    source: str  # all of it as the document writes it: comes back if no sentence is changed
    text: str  # what it reads as: without marks, and with entities and escapes decoded
    marks: tuple[Mark, ...] = ()  # in the order of the document
    escape: Callable[[str], str] = as_written  # writes translated text as the document writes text


@dataclasses.dataclass(frozen=True)
class Document:
    """A document that a format has read: what is kept, and what is translated, in its order.

    The sources of all parts together are the document.
    """

    parts: tuple[str | Segment, ...]

    @property
    def source(self) -> str:
        """The document as it was."""
        return "".join(part if isinstance(part, str) else part.source for part in self.parts)

    @property
    def segments(self) -> list[Segment]:
        """What is translated."""
        return [part for part in self.parts if isinstance(part, Segment)]
