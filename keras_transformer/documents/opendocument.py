"""OpenDocument texts and presentations (.odt, .odp), as written by LibreOffice.

Paragraphs and headings are translated, including those in tables, headers, notes, comments, text
boxes and slides, and alternative texts. Spans of text and links are elements, except spans that
only record an editing session. Fields, code and tracked deletions stay.
"""

import re
from collections.abc import Iterator, Sequence

from keras_transformer.documents.archive import Archive, read_archive
from keras_transformer.documents.html import add_text, write_text
from keras_transformer.documents.segment_builder import Found, SegmentBuilder
from keras_transformer.documents.segments import Parts, Piece, Segment
from keras_transformer.documents.xml_source import XmlElement, XmlSource, with_ranges

_MAIN = "content.xml"
_TEXTS = re.compile(r"(Object [^/]+/)?(content|styles)\.xml")
_PARAGRAPHS = ("text:p", "text:h")
_ALTERNATIVES = ("svg:title", "svg:desc")
_AROUND = ("text:span", "text:a", "text:meta")
_SPACES = {"text:s": " ", "text:tab": "\t", "text:line-break": "\n"}
_CODE = re.compile(r"(Source|Preformatted)_20_Text|.*[Cc]ode|Teletype")
_SESSION = re.compile(r"officeooo:(paragraph-)?rsid")  # an editing session


def read(content: bytes) -> Archive:
    """Reads a text document or a presentation."""
    return read_archive(_MAIN, {_TEXTS: _read_member}, content)


def _read_member(text: str) -> Parts:
    reader = _Reader(XmlSource(text))
    return reader.xml.parts(reader.found_in(reader.xml.root))


class _Reader:
    def __init__(self, xml: XmlSource):
        self.xml = xml
        self._sessions = set(_session_styles(xml.root))

    def found_in(self, element: XmlElement) -> Iterator[Found]:
        """Yields the paragraphs and other translatable text in an element."""
        for child in element.elements:
            if child.name in _PARAGRAPHS:
                yield from self._paragraph(child)
            elif child.name in _ALTERNATIVES:
                yield from self.xml.content(child)
            elif child.name != "text:tracked-changes" and not _is_placeholder(child):
                yield from self.found_in(child)

    def _paragraph(self, paragraph: XmlElement) -> Iterator[Found]:
        if _CODE.fullmatch(paragraph.attributes.get("text:style-name", "")):
            return
        builder = SegmentBuilder(_write)
        self._add(builder, paragraph)
        yield Found(paragraph.content_start, paragraph.content_end, builder.parts())

    def _add(self, builder: SegmentBuilder, element: XmlElement) -> None:
        place = element.content_start
        for child in element.elements:
            add_text(builder, self.xml.source(place, child.start))
            place = child.end
            source = self.xml.source(child.start, child.end)
            style = child.attributes.get("text:style-name", "")
            if child.name in _SPACES:
                builder.space(source, text=_SPACES[child.name])
            elif child.name not in _AROUND or child.is_alone or _CODE.fullmatch(style):
                parts = self.xml.parts(self.found_in(child), child.start, child.end)
                has_language = any(isinstance(part, Segment) for part in parts)
                is_read = not has_language and not child.name.startswith(("office:", "text:note"))
                builder.kept(source, child.text if is_read else "", parts if has_language else ())
            else:
                opening = self.xml.source(child.start, child.content_start)
                closing = self.xml.source(child.content_end, child.end)
                if style in self._sessions and child.name == "text:span":
                    builder.silent(opening)
                    self._add(builder, child)
                    builder.silent(closing)
                else:
                    builder.begin(child.name, opening)
                    self._add(builder, child)
                    builder.end(child.name, closing)
        add_text(builder, self.xml.source(place, element.content_end))


def _write(pieces: Sequence[Piece]) -> str:
    return write_text(with_ranges(pieces))


def _is_placeholder(element: XmlElement) -> bool:
    """Whether only the author of a presentation sees it: "Click to add a title"."""
    return element.attributes.get("presentation:placeholder") == "true"


def _session_styles(root: XmlElement) -> Iterator[str]:
    """Yields the names of styles that only record an editing session."""
    for style in root.walk():
        if style.name == "style:style" and style.attributes.get("style:family") == "text":
            names = [name for one in style.elements for name in one.attributes]
            inherits = "style:parent-style-name" in style.attributes
            if names and not inherits and all(map(_SESSION.fullmatch, names)):
                yield style.attributes.get("style:name", "")
