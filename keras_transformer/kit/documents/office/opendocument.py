"""OpenDocument texts, presentations and spreadsheets (.odt, .odp, .ods), as LibreOffice's.

Paragraphs and headings are translated, including those in tables, headers, notes, comments, text
boxes and slides, and alternative texts. Spans of text and links are elements, except spans that
only record an editing session. A field that repeats text from elsewhere, such as a cross-reference,
is translated by itself, so it gets the same translation as that text. Other fields, code, tracked
deletions, and cells whose text is computed stay.

In a text (.odt), a paragraph of the body with a doubtful translation gets a comment.
"""

import copy
import functools
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from keras_transformer.kit.documents.office.archive import Archive, Package, Reader, read_archive
from keras_transformer.kit.documents.office.formulas import key_of
from keras_transformer.kit.documents.office.ods_formulas import kept_texts
from keras_transformer.kit.documents.office.open_xml import read_properties
from keras_transformer.kit.documents.text.html import add_text
from keras_transformer.kit.documents.text.xml_source import (
    XmlElement,
    XmlSource,
    with_ranges,
    write_text,
)
from keras_transformer.kit.documents.tree.notes import is_note, text_of_note
from keras_transformer.kit.documents.tree.review import PROGRAM, comment_on
from keras_transformer.kit.documents.tree.segment_builder import Found, SegmentBuilder
from keras_transformer.kit.documents.tree.segments import Parts, Piece, ReviewUnit

_MAIN = "content.xml"
_TEXTS = re.compile(r"(.+/)?(content|styles)\.xml")
_PROPERTIES = "meta.xml"
_PARAGRAPHS = ("text:p", "text:h")
# Elements that only contain text.
_NAMES = (
    *("svg:title", "svg:desc", "text:index-title-template"),
    *("presentation:header-decl", "presentation:footer-decl"),
)
# Names of attributes, without prefix, that people see; by elements.
_ATTRIBUTES = {
    "text:list-level-style-number": ("num-prefix", "num-suffix"),
    "text:outline-level-style": ("num-prefix", "num-suffix"),
    **dict.fromkeys(
        ("form:button", "form:checkbox", "form:radio", "form:fixed-text", "form:frame"),
        ("label", "title"),
    ),
}
_AROUND = ("text:span", "text:a", "text:meta", "text:ruby", "text:ruby-base")
_SPACES = {"text:s": " ", "text:tab": "\t", "text:line-break": "\n"}
# Fields that repeat text from elsewhere, or have text of their own.
_TRANSLATED_FIELDS = (
    *("text:placeholder", "text:text-input", "text:conditional-text", "text:execute-macro"),
    *("text:bookmark-ref", "text:reference-ref", "text:sequence-ref", "text:chapter"),
    *("text:title", "text:subject", "text:description"),
)
_NOT_FIELDS = ("text:note", "text:note-citation", "text:ruby-text")
_CODE = re.compile(r"(Source|Preformatted)_20_Text|.*[Cc]ode|Teletype")
_SESSION = re.compile(r"officeooo:(paragraph-)?rsid")  # an editing session
# Positions of text: "super 58%", "33% 58%".
_SUPERSCRIPT, _SUBSCRIPT = re.compile("super|[1-9]"), re.compile("sub|-")
_OFFICE = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
_TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
_DUBLIN_CORE = "http://purl.org/dc/elements/1.1/"


def read(
    content: bytes, target: str | None, most_markup: int, is_reviewed: bool = False
) -> Archive:
    """Reads a document that will be translated into the language `target`, if known.

    If it is reviewed, doubtful paragraphs will get comments.
    """
    read_member = functools.partial(_read_member, target, False)

    def find_readers(package: Package) -> dict[str, Reader]:
        package.require_member(_MAIN)
        readers = {name: read_member for name in package.names if _TEXTS.fullmatch(name)}
        readers[_MAIN] = functools.partial(_read_member, target, is_reviewed)
        return readers | {_PROPERTIES: read_properties}

    return read_archive(content, find_readers, most_markup)


def _read_member(target: str | None, has_comments: bool, text: str, left: Counter[str]) -> Parts:
    reader = _Reader(XmlSource(text), target, left, has_comments)
    return reader.xml.parts(reader.found_in(reader.xml.root))


class _Reader:
    """Reads a member.

    Args:
        xml: the member.
        target: the language of the translation, if known.
        left: counts what stays; see Document.left.
        has_comments: whether a paragraph may get a comment.
    """

    def __init__(self, xml: XmlSource, target: str | None, left: Counter[str], has_comments: bool):
        self.xml = xml
        self._target = target
        self._left = left
        self._has_comments = has_comments
        self._sessions = set(_session_styles(xml.root))
        self._superscripts = set(_styles_at(xml.root, _SUPERSCRIPT))
        self._subscripts = set(_styles_at(xml.root, _SUBSCRIPT))
        self._kept = kept_texts(xml.root)

    @property
    def _inner(self) -> "_Reader":
        """The reader of what is within a paragraph, such as a note."""
        inner = copy.copy(self)
        inner._has_comments = False
        return inner

    def found_in(self, element: XmlElement) -> Iterator[Found]:
        """Yields the paragraphs and other translatable text in an element."""
        for child in element.take_elements():
            if child.name in _PARAGRAPHS:
                yield from self._paragraph(child)
            elif child.name in _NAMES:
                yield from self.xml.content(child)
            elif child.name == "style:default-style":
                yield from self._language(child)
            elif child.name == "text:tracked-changes":
                self._left["deleted"] += sum(
                    one.name == "text:deletion" and one.has_letters for one in child.walk()
                )
            elif child.name == "table:table-cell" and self._is_computed(child):
                texts = [one for one in child.elements if one.name in _PARAGRAPHS]
                self._left["formula"] += any(one.has_letters for one in texts)
                comments = [one for one in child.elements if one.name not in _PARAGRAPHS]
                for comment in comments:
                    yield from self.found_in(comment)
            elif not _is_placeholder(child):
                yield from self.xml.attributes(child, _ATTRIBUTES.get(child.name, ()))
                yield from self.found_in(child)

    def _is_computed(self, cell: XmlElement) -> bool:
        """Whether a cell's text is a formula's, a number or a date, or a formula needs it."""
        kind = cell.attributes.get("office:value-type", "string")
        if kind != "string" or "table:formula" in cell.attributes:
            return True
        return bool(self._kept) and key_of(cell.text.strip()) in self._kept

    def _language(self, style: XmlElement) -> Iterator[Found]:
        """Yields the target language, in place of the language of a default style."""
        properties = style.child("style:text-properties")
        if self._target is None or properties is None:
            return
        language, _, country = self._target.partition("-")
        values = {"language": language, "country": country.upper() or "none"}
        yield from self.xml.replaced(properties, values)

    def _paragraph(self, paragraph: XmlElement) -> Iterator[Found]:
        if _CODE.fullmatch(paragraph.attributes.get("text:style-name", "")):
            self._left["code"] += paragraph.has_letters
            return
        builder = SegmentBuilder(_write)
        self._add(builder, paragraph)
        parts = builder.parts()
        if self._has_comments:
            parts = [ReviewUnit(tuple(parts), _commented)]
        yield Found(paragraph.content_start, paragraph.content_end, parts)

    def _add(self, builder: SegmentBuilder, element: XmlElement) -> None:
        place = element.content_start
        for child in element.elements:
            add_text(builder, self.xml.source(place, child.start))
            place = child.end
            style = child.attributes.get("text:style-name", "")
            source = self.xml.source(child.start, child.end)
            if child.name in _SPACES:
                builder.space(source, text=_SPACES[child.name])
            elif style in self._superscripts and self._is_note(child):
                builder.kept(source, text_of_note(child.text, builder.last_character))
            elif child.name not in _AROUND or child.is_alone or _CODE.fullmatch(style):
                self._keep(builder, child)
            else:
                opening = self.xml.source(child.start, child.content_start)
                closing = self.xml.source(child.content_end, child.end)
                if style in self._sessions and child.name == "text:span":
                    builder.silent(opening)
                    self._add(builder, child)
                    builder.silent(closing)
                else:
                    is_span = child.name == "text:span"
                    is_script = is_span and style in self._superscripts | self._subscripts
                    builder.begin(child.name, opening, (), is_span, is_script)
                    self._add(builder, child)
                    builder.end(child.name, closing)
        add_text(builder, self.xml.source(place, element.content_end))

    def _is_note(self, span: XmlElement) -> bool:
        """Whether a superscript is the mark of a note or an exponent, without elements in it."""
        before, after = self.xml.beside(span)
        has_elements = any(one.name for one in span.elements)
        return not has_elements and span.text != "" and is_note(span.text, before, after)

    def _keep(self, builder: SegmentBuilder, element: XmlElement) -> None:
        """Adds an element that is not part of the sentence; text in it is translated."""
        text, has_letters = element.text, element.has_letters
        is_translated = element.name in _TRANSLATED_FIELDS
        found = list(self.xml.content(element) if is_translated else self._inner.found_in(element))
        if element.name in _AROUND:
            self._left["code"] += has_letters
        elif element.name.startswith("text:") and element.name not in _NOT_FIELDS and not found:
            self._left["field"] += has_letters
        is_read = is_translated or not (
            found or element.name.startswith(("office:", "text:note", "text:ruby"))
        )
        source = self.xml.source(element.start, element.end)
        parts = self.xml.parts(found, element.start, element.end) if found else ()
        builder.kept(source, text if is_read else "", parts)


def _write(pieces: Sequence[Piece]) -> str:
    return write_text(with_ranges(pieces))


def _commented(content: str, doubt: float | None) -> str:
    """Writes the content of a paragraph, after a comment if its translation is doubtful."""
    if doubt is None:
        return content
    return (
        f'<office:annotation xmlns:office="{_OFFICE}">'
        f'<dc:creator xmlns:dc="{_DUBLIN_CORE}">{PROGRAM}</dc:creator>'
        f'<text:p xmlns:text="{_TEXT}">{comment_on(doubt)}</text:p>'
        f"</office:annotation>{content}"
    )


def _is_placeholder(element: XmlElement) -> bool:
    """Whether only the author of a presentation sees it: "Click to add a title"."""
    return element.attributes.get("presentation:placeholder") == "true"


def _styles_at(root: XmlElement, position: re.Pattern) -> Iterator[str]:
    """Yields the names of styles that raise or lower text."""
    for style in root.walk():
        properties = style.child("style:text-properties") if style.name == "style:style" else None
        if properties and position.match(properties.attributes.get("style:text-position", "")):
            yield style.attributes.get("style:name", "")


def _session_styles(root: XmlElement) -> Iterator[str]:
    """Yields the names of styles that only record an editing session."""
    for style in root.walk():
        if style.name == "style:style" and style.attributes.get("style:family") == "text":
            names = [name for one in style.elements for name in one.attributes]
            inherits = "style:parent-style-name" in style.attributes
            if names and not inherits and all(map(_SESSION.fullmatch, names)):
                yield style.attributes.get("style:name", "")
