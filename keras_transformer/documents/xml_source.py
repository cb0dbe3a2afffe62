"""XML as a tree that records the place of each element in the text.

It is parsed by Python's expat. Source that is not translated is never rewritten: the order and
quotes of attributes, white space, and numeric character references are kept.
"""

import dataclasses
import functools
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from xml.parsers import expat
from xml.sax.saxutils import escape

from keras_transformer.documents.segment_builder import Found, with_found
from keras_transformer.documents.segments import Parts, Piece, Segment, writing_with
from keras_transformer.errors import InputError, require

_MOST_NESTED = 200  # elements
_TAG = re.compile(rb"""(?:[^"'>]|"[^"]*"|'[^']*')*+>""")

_ATTRIBUTE = re.compile(
    rb"""\s(?P<name>[^\s=/>]+)\s*=\s*(?P<quote>["'])(?P<value>(?:(?!(?P=quote)).)*)""", re.DOTALL
)


@dataclasses.dataclass(eq=False)
class XmlElement:
    """An element, or a comment, which has no name.

    Places are byte offsets in the text in UTF-8.
    """

    name: str  # as written, with its prefix
    attributes: dict[str, str]
    start: int
    content_start: int  # after its start tag
    content_end: int = 0  # before its end tag
    end: int = 0
    children: list["str | XmlElement"] = dataclasses.field(default_factory=list)

    @property
    def local(self) -> str:
        """Returns its name without the prefix."""
        return self.name.rpartition(":")[2]

    @property
    def is_alone(self) -> bool:
        """Whether it is a single tag, such as <x/>."""
        return self.content_start == self.end

    @property
    def elements(self) -> list["XmlElement"]:
        """Returns its child elements, including comments."""
        return [child for child in self.children if not isinstance(child, str)]

    @property
    def text(self) -> str:
        """Returns all text in it."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def child(self, name: str) -> "XmlElement | None":
        """Returns its last child element with a name (with or without the prefix), if any."""
        found = [child for child in self.elements if name in (child.name, child.local)]
        return found[-1] if found else None

    def walk(self) -> Iterator["XmlElement"]:
        """Yields it and all elements in it, in document order."""
        yield self
        for child in self.elements:
            yield from child.walk()


class XmlSource:
    """A text in XML.

    Attributes:
        root: the root element.

    Raises:
        InputError: naming the line, if the text is not well-formed, is nested too deeply, or
            declares entities.
    """

    def __init__(self, text: str):
        self._content = text.encode("utf-8")
        self._open = [XmlElement("", {}, 0, 0)]
        self._parser = expat.ParserCreate("utf-8")  # whatever the document declares
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._begin
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._add_text
        self._parser.CommentHandler = self._add_comment
        self._parser.EntityDeclHandler = self._refuse_entity
        try:
            self._parser.Parse(self._content, True)
        except expat.ExpatError as error:
            message, line = expat.ErrorString(error.code), f"line {error.lineno}"
            raise InputError(None, "must be well-formed XML", message, line) from None
        self.root = self._open[0].elements[-1]

    def source(self, start: int, end: int | None = None) -> str:
        """Returns the text from byte `start` to byte `end`, or to the end of the document."""
        return self._content[start:end].decode("utf-8")

    def parts(self, found: Iterable[Found], start: int = 0, end: int | None = None) -> Parts:
        """Returns the text from byte `start` to byte `end`, with the parts that were found."""
        return with_found(self.source, found, start, end)

    def content(self, element: XmlElement) -> Iterator[Found]:
        """Yields the text of an element without child elements, if it contains language."""
        if any(map(str.isalpha, element.text)) and not element.elements:
            start, end = element.content_start, element.content_end
            segment = Segment(self.source(start, end), [element.text], writing_with(escape))
            yield Found(start, end, [segment])

    def attributes(self, element: XmlElement, names: Container[str]) -> Iterator[Found]:
        """Yields the values of the named attributes that contain language."""
        for match in _ATTRIBUTE.finditer(self._content[element.start : element.content_start]):
            value = element.attributes.get(match["name"].decode("utf-8"), "")
            if match["name"].decode("utf-8") in names and any(map(str.isalpha, value)):
                start, end = (element.start + place for place in match.span("value"))
                write = writing_with(functools.partial(_in_quotes, match["quote"].decode()))
                yield Found(start, end, [Segment(self.source(start, end), [value], write)])

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        line = f"line {self._parser.CurrentLineNumber}"
        rule = f"must nest at most {_MOST_NESTED} elements"
        require(len(self._open) <= _MOST_NESTED, None, rule, name, line)
        start = self._parser.CurrentByteIndex
        element = XmlElement(name, attributes, start, self._tag_end(start))
        self._open[-1].children.append(element)
        self._open.append(element)

    def _end(self, name: str) -> None:
        element = self._open.pop()
        if self._content[element.content_start - 2 : element.content_start] == b"/>":
            element.content_end = element.end = element.content_start
        else:
            element.content_end = self._parser.CurrentByteIndex
            element.end = self._tag_end(element.content_end)

    def _add_text(self, text: str) -> None:
        self._open[-1].children.append(text)

    def _add_comment(self, text: str) -> None:
        start = self._parser.CurrentByteIndex
        end = self._content.index(b"-->", start) + len(b"-->")
        self._open[-1].children.append(XmlElement("", {}, start, end, end, end))

    def _refuse_entity(self, name: str, *declaration) -> None:
        """Rejects an entity, as every reference to it could stand for a whole text with tags."""
        line = f"line {self._parser.CurrentLineNumber}"
        raise InputError(None, "must not declare entities", name, line)

    def _tag_end(self, start: int) -> int:
        """Returns the end of the tag that begins at byte `start`; attributes may contain ">"."""
        return _TAG.match(self._content, start).end()


def _in_quotes(quote: str, text: str) -> str:
    return escape(text, {quote: f"&#{ord(quote)};"})


# A mark that begins or ends a range, such as a bookmark; both have the same name.
_RANGE = re.compile(
    r"""<\w+:(?P<kind>[\w-]+?)-?(?P<side>start|end)\b[^>]*?\s(?:w:id|office:name|text:[\w-]*)=(?P<name>
    "[^"]*"|'[^']*')""",
    re.IGNORECASE | re.VERBOSE,
)


def with_ranges(pieces: Sequence[Piece]) -> list[Piece]:
    """Reorders pieces so that no range ends before it begins, wherever its words have moved."""
    found = [None if isinstance(piece, str) else _RANGE.match(piece.source) for piece in pieces]
    later = {_range(match) for match in found if match and match["side"].lower() == "start"}
    ordered: list[Piece] = []
    waiting: dict[tuple[str, str], Piece] = {}  # ends of ranges that begin later
    for piece, match in zip(pieces, found, strict=True):
        if match and match["side"].lower() == "end" and _range(match) in later:
            waiting[_range(match)] = piece
            continue
        ordered.append(piece)
        if match and _range(match) in later:
            later.discard(_range(match))
            if _range(match) in waiting:
                ordered.append(waiting.pop(_range(match)))
    return ordered


def _range(match: re.Match) -> tuple[str, str]:
    return match["kind"].lower(), match["name"]
