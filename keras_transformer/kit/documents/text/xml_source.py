"""XML as a tree that records the place of each element in the text.

It is parsed by Python's expat. Source that is not translated is never rewritten: the order and
quotes of attributes, white space, and numeric character references are kept.

A document may declare any prefix for a namespace, or none. Names are therefore compared with the
prefixes of the table below: a Word paragraph is "w:p", even if it is written as <ns0:p> or <p>.
"""

import dataclasses
import functools
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from xml.parsers import expat
from xml.sax.saxutils import escape

from keras_transformer.kit.documents.tree.segment_builder import Found, with_found
from keras_transformer.kit.documents.tree.segments import Parts, Piece, Segment, writing_with
from keras_transformer.support.errors import InputError, require
from keras_transformer.support.markup import well_formed

_MOST_NESTED = 200  # elements
_MOST_BYTES = 4  # of a character in UTF-8
_VALUE_START = re.compile("=\\s*[\"']")
_NO_ATTRIBUTES: dict[str, str] = {}
MOST_MARKUP = 1_200_000  # tags and attributes; each takes 120 to 260 bytes of memory
_OPEN_XML = ("http://schemas.openxmlformats.org/", "/2006")
_STRICT_OPEN_XML = ("http://purl.oclc.org/ooxml/", "")  # files saved as "Strict Open XML"
_OPEN_DOCUMENT = "urn:oasis:names:tc:opendocument:xmlns:"
_PREFIXES = {
    **{
        f"{start}{name.format(year)}": prefix
        for start, year in (_OPEN_XML, _STRICT_OPEN_XML)
        for name, prefix in {
            "wordprocessingml{}/main": "w",
            "drawingml{}/main": "a",
            "drawingml{}/wordprocessingDrawing": "wp",
            "drawingml{}/picture": "pic",
            "drawingml{}/chart": "c",
            "presentationml{}/main": "p",
            "spreadsheetml{}/main": "x",
            "officeDocument{}/math": "m",
        }.items()
    },
    "http://schemas.openxmlformats.org/package/2006/content-types": "ct",
    "http://schemas.openxmlformats.org/markup-compatibility/2006": "mc",
    "http://schemas.microsoft.com/office/drawing/2014/chartex": "cx",
    "http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments": "xtc",
    "urn:schemas-microsoft-com:vml": "v",
    **{
        f"{_OPEN_DOCUMENT}{name}:1.0": prefix
        for name, prefix in {
            "office": "office",
            "text": "text",
            "table": "table",
            "drawing": "draw",
            "style": "style",
            "presentation": "presentation",
            "form": "form",
            "svg-compatible": "svg",
            "xsl-fo-compatible": "fo",
            "container": "container",
        }.items()
    },
    "http://openoffice.org/2009/office": "officeooo",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://www.idpf.org/2007/opf": "opf",
    "http://www.daisy.org/z3986/2005/ncx/": "ncx",
    "http://www.w3.org/2001/04/xmlenc#": "enc",
    "http://www.w3.org/XML/1998/namespace": "xml",
}
_NAMESPACE = re.compile(rb"""\sxmlns[^\s=>]*\s*=\s*("[^"]*"|'[^']*')""")
_START = re.compile(r"<[^\s/>]+")
_TAG_NAME = re.compile(rb"<(?P<name>[^\s/>]+)")
_TAG = re.compile(rb"""(?:[^"'>]|"[^"]*"|'[^']*')*+>""")

_ATTRIBUTE = re.compile(
    rb"""\s(?P<name>[^\s=/>]+)\s*=\s*(?P<quote>["'])(?P<value>(?:(?!(?P=quote)).)*)""", re.DOTALL
)


@functools.lru_cache(maxsize=4096)
def _name_of(expanded: str) -> str:
    """Returns a name with the prefix of _PREFIXES, given its namespace, a space and its name."""
    namespace, _, local = expanded.rpartition(" ")
    return f"{_PREFIXES.get(namespace, namespace)}:{local}" if namespace else local


def check_markup(text: str, others: int = 0, most: int = MOST_MARKUP) -> int:
    """Counts the tags and attributes in a text before it is parsed.

    Args:
        text: a text in XML.
        others: the count of other texts in the document.
        most: the most tags and attributes that a document may have.

    Raises:
        InputError: if the document has too many.
    """
    count = text.count("<") + sum(1 for _ in _VALUE_START.finditer(text))
    rule = f"must have at most {most:,} tags and attributes"
    require(others + count <= most, None, rule, f"{others + count:,}", "the document")
    return count


def with_last_child(text: str, child: str) -> str:
    """Returns a text in XML whose root element has a further child at its end."""
    xml = XmlSource(text)
    root = xml.root
    if root.is_alone:
        opening = xml.source(0, root.end).removesuffix("/>")
        return f"{opening}>{child}</{xml.prefix(root)}{root.local}>{xml.source(root.end)}"
    return f"{xml.source(0, root.content_end)}{child}{xml.source(root.content_end)}"


def with_namespaces(source: str, namespaces: str) -> str:
    """Returns an element's source with further declarations, for use elsewhere; see namespaces."""
    return (
        _START.sub(lambda match: match[0] + namespaces, source, count=1) if namespaces else source
    )


def write_text(pieces: Sequence[Piece]) -> str:
    """Writes text and marks in XML."""
    return writing_with(_escaped)(pieces)


def _escaped(text: str) -> str:
    return escape(well_formed(text))


@dataclasses.dataclass(eq=False, slots=True)
class XmlElement:
    """An element, or a comment, which has no name.

    Places are byte offsets in the text in UTF-8.
    """

    name: str  # with the prefix of _PREFIXES
    attributes: dict[str, str]
    start: int
    content_start: int  # after its start tag
    content_end: int = 0  # before its end tag
    end: int = 0
    children: Sequence["str | XmlElement"] = ()

    def append(self, child: "str | XmlElement") -> None:
        """Adds a child; most elements have none, and need no list."""
        if self.children:
            self.children.append(child)
        else:
            self.children = [child]

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

    def take_elements(self) -> Iterator["XmlElement"]:
        """Yields its child elements, and removes each, which frees memory."""
        children, self.children = list(reversed(self.children)), ()
        while children:
            child = children.pop()
            if not isinstance(child, str):
                yield child

    @property
    def text(self) -> str:
        """Returns all text in it."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def child(self, name: str) -> "XmlElement | None":
        """Returns its last child element with a name (with or without the prefix), if any."""
        found = [child for child in self.elements if name in (child.name, child.local)]
        return found[-1] if found else None

    @property
    def has_letters(self) -> bool:
        """Whether there are letters in its text."""
        return any(map(str.isalpha, self.text))

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
        check_markup(text)
        self._content = text.encode("utf-8")
        self._open = [XmlElement("", {}, 0, 0)]
        # Whatever encoding the document declares; a space separates namespaces from names.
        self._parser = expat.ParserCreate("utf-8", " ")
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
        finally:
            del self._parser  # it refers to this object, which would stay in memory
        self.root = self._open[0].elements[-1]

    def source(self, start: int, end: int | None = None) -> str:
        """Returns the text from byte `start` to byte `end`, or to the end of the document."""
        return self._content[start:end].decode("utf-8")

    def beside(self, element: XmlElement) -> tuple[str, str]:
        """Returns the characters before and after an element, which is within another one."""
        before = self._content[max(element.start - _MOST_BYTES, 0) : element.start]
        after = self._content[element.end : element.end + _MOST_BYTES]
        return before.decode("utf-8", "ignore")[-1:], after.decode("utf-8", "ignore")[:1]

    def prefix(self, element: XmlElement) -> str:
        """Returns the prefix of an element's name as the document writes it: "w:", or ""."""
        name = _TAG_NAME.match(self._content, element.start)["name"].decode("utf-8")
        return name[: name.rfind(":") + 1]

    def namespaces(self, element: XmlElement) -> str:
        """Returns the namespaces that an element declares: ' xmlns:d="..."', mostly ""."""
        tag = self._content[element.start : element.content_start]
        return b"".join(match[0] for match in _NAMESPACE.finditer(tag)).decode("utf-8")

    def parts(self, found: Iterable[Found], start: int = 0, end: int | None = None) -> Parts:
        """Returns the text from byte `start` to byte `end`, with the parts that were found."""
        return with_found(self.source, found, start, end)

    def content(self, element: XmlElement) -> Iterator[Found]:
        """Yields the text of an element without child elements, if it contains language."""
        if element.has_letters and not element.elements:
            start, end = element.content_start, element.content_end
            segment = Segment(self.source(start, end), [element.text], write_text)
            yield Found(start, end, [segment])

    def contents(self, names: Container[str]) -> Iterator[Found]:
        """Yields the texts of all elements with these names, as `content` does."""
        for element in self.root.walk():
            if element.name in names:
                yield from self.content(element)

    def attributes(self, element: XmlElement, names: Container[str]) -> Iterator[Found]:
        """Yields the values of the attributes with these names, without prefix, with language."""
        values = {name.rpartition(":")[2]: value for name, value in element.attributes.items()}
        for name, start, end, quote in self._values(element, names):
            value = values[name]
            if any(map(str.isalpha, value)):
                write = writing_with(functools.partial(_in_quotes, quote))
                yield Found(start, end, [Segment(self.source(start, end), [value], write)])

    def replaced(self, element: XmlElement, values: Mapping[str, str]) -> Iterator[Found]:
        """Yields the attributes with these names, without prefix, with `values[name]`."""
        for name, start, end, quote in self._values(element, values):
            yield Found(start, end, [_in_quotes(quote, values[name])])

    def _values(
        self, element: XmlElement, names: Container[str]
    ) -> Iterator[tuple[str, int, int, str]]:
        """Yields the name, the start and end of the value, and the quotes of attributes."""
        for match in _ATTRIBUTE.finditer(self._content[element.start : element.content_start]):
            prefix, _, local = match["name"].decode("utf-8").rpartition(":")
            if local in names and prefix != "xmlns":
                start, end = (element.start + place for place in match.span("value"))
                yield local, start, end, match["quote"].decode()

    def _begin(self, expanded: str, attributes: dict[str, str]) -> None:
        name = _name_of(expanded)
        line = f"line {self._parser.CurrentLineNumber}"
        rule = f"must nest at most {_MOST_NESTED} elements"
        require(len(self._open) <= _MOST_NESTED, None, rule, name, line)
        start = self._parser.CurrentByteIndex
        if attributes:
            attributes = {_name_of(key): value for key, value in attributes.items()}
        else:
            attributes = _NO_ATTRIBUTES
        element = XmlElement(name, attributes, start, self._tag_end(start))
        self._open[-1].append(element)
        self._open.append(element)

    def _end(self, name: str) -> None:
        element = self._open.pop()
        if self._content[element.content_start - 2 : element.content_start] == b"/>":
            element.content_end = element.end = element.content_start
        else:
            element.content_end = self._parser.CurrentByteIndex
            element.end = self._tag_end(element.content_end)

    def _add_text(self, text: str) -> None:
        self._open[-1].append(text)

    def _add_comment(self, text: str) -> None:
        start = self._parser.CurrentByteIndex
        end = self._content.index(b"-->", start) + len(b"-->")
        self._open[-1].append(XmlElement("", {}, start, end, end, end))

    def _refuse_entity(self, name: str, *declaration) -> None:
        """Rejects an entity, as every reference to it could stand for a whole text with tags."""
        line = f"line {self._parser.CurrentLineNumber}"
        raise InputError(None, "must not declare entities", name, line)

    def _tag_end(self, start: int) -> int:
        """Returns the end of the tag that begins at byte `start`; attributes may contain ">"."""
        return _TAG.match(self._content, start).end()


def _in_quotes(quote: str, text: str) -> str:
    return escape(well_formed(text), {quote: f"&#{ord(quote)};"})


# A mark that begins or ends a range, such as a bookmark; both have the same name.
_RANGE = re.compile(
    r"""<(?:[\w.-]+:)?(?P<kind>[\w-]+?)-?(?P<side>start|end)\b[^>]*?\s
    (?:[\w.-]+:)?(?:id|name|[\w-]+-id)=(?P<name>"[^"]*"|'[^']*')""",
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
