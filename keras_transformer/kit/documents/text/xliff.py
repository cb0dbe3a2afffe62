"""XLIFF 1.2 and 2.0: units without a translation are filled; everything else stays unchanged.

A unit's text is translated into its empty `<target>`, or into a new one after the source. Tags
within a source are marks: pairs such as `<g>`, `<pc>` and `<mrk>`, and single tags such as `<x/>`
and `<ph>`, whose content is code. The words in a `<mrk>` with translate="no" or mtype="protected"
are not translated.

A `<target>` is empty if it has no text and no tags other than `<mrk>`: some editors number the
sentences there before they are translated.

A doubtful translation gets a state: in XLIFF 1.2, its `<target>` has "needs-review-translation".
The states of a `<segment>` in XLIFF 2 have no such value: "initial" has it as its subState.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping

from keras_transformer.kit.documents.text.xml_source import XmlElement, XmlSource, write_text
from keras_transformer.kit.documents.tree.review import PROGRAM
from keras_transformer.kit.documents.tree.segment_builder import Found
from keras_transformer.kit.documents.tree.segments import (
    Document,
    Mark,
    MarkKind,
    Piece,
    ReviewUnit,
    Segment,
)
from keras_transformer.support.errors import require

UNITS = ("trans-unit", "segment")  # in XLIFF 1.2 and 2.0; each has a source and a target
# The attributes for the languages of source and target, in versions 1.2 and 2.0.
LANGUAGES = (("source-language", "target-language"), ("srcLang", "trgLang"))
TEXT_TAGS = ("g", "pc", "mrk")  # inline tags that contain text; the content of others is code
# The attributes of a doubtful translation's <target> or <segment>. The part of a subState before
# the colon names the program that defines it.
TARGET_STATE = {"state": "needs-review-translation"}
SEGMENT_STATE = {"state": "initial", "subState": f"{PROGRAM}:needs-review-translation"}


@dataclasses.dataclass(frozen=True)
class Unit:
    """A source, and the place for its translation."""

    source: Segment
    # The bytes that are replaced: the <target> or the place for a new one, in XLIFF 2 together
    # with what is before it in the <segment>.
    place: tuple[int, int]
    before: str  # what is written before the translation
    doubtful: str  # the same, if the translation is doubtful
    after: str  # the closing tag
    target: str  # the translation, without tags
    has_target: bool
    is_locked: bool  # by translate="no"
    languages: tuple[str, str] | None  # of source and target, if the file names both

    def to_review(self) -> ReviewUnit:
        """Returns the translation with its tags."""

        def write(translation: str, doubt: float | None) -> str:
            before = self.before if doubt is None else self.doubtful
            return f"{before}{translation}{self.after}"

        return ReviewUnit((self.source,), write)


def read(text: str, language: str) -> Document:
    """Reads an XLIFF file.

    The segments stand in the places of the targets, so their own source is empty.

    Args:
        text: the file.
        language: the language of the sources. It does not matter, as they are not split here.

    Raises:
        InputError: if the file is not well-formed or declares entities (the error names the line),
            or if it has no `<xliff>`.
    """
    xml = XmlSource(text)
    return Document(
        xml.parts(
            Found(*unit.place, [unit.to_review()])
            for unit in _units(xml)
            if not (unit.is_locked or unit.has_target) and unit.source.text.strip()
        )
    )


def units(text: str) -> list[Unit]:
    """Returns the units of an XLIFF file.

    Raises:
        InputError: as for `read`.
    """
    return list(_units(XmlSource(text)))


def _units(xml: XmlSource) -> Iterator[Unit]:
    is_xliff = xml.root.local == "xliff"
    require(is_xliff, None, "must be an <xliff>", f"<{xml.root.local}>", "the document")
    return _units_in(xml, xml.root, False, None)


def _units_in(
    xml: XmlSource, element: XmlElement, is_locked: bool, languages: tuple[str, str] | None
) -> Iterator[Unit]:
    """Yields the units in an element; they inherit languages and locks from their parents."""
    attributes = element.attributes
    is_locked = {"yes": False, "no": True}.get(attributes.get("translate"), is_locked)
    for source, target in LANGUAGES:
        if element.local in ("file", "xliff") and source in attributes and target in attributes:
            languages = (attributes[source], attributes[target])
    if element.local in UNITS:
        yield _unit(xml, element, is_locked, languages)
        return
    for child in element.elements:
        yield from _units_in(xml, child, is_locked, languages)


def _unit(
    xml: XmlSource, element: XmlElement, is_locked: bool, languages: tuple[str, str] | None
) -> Unit:
    """Reads a unit. The sources of suggestions are not its direct children."""
    source, target = element.child("source"), element.child("target")
    pieces = [] if source is None else _pieces(xml, source)
    prefix = xml.prefix(element)
    if target is None:
        last = element.child("seg-source") or source or element
        start = end = last.end
        tag, text, has_target = f"<{prefix}target>", "", False
    else:
        start, end = target.start, target.end
        tag = xml.source(start, target.content_start).removesuffix("/>").removesuffix(">") + ">"
        text = _text(target)
        has_code = any(child.local != "mrk" for child in target.walk() if child is not target)
        has_target = has_code or text.strip() != ""
    if element.local == "segment":
        opening = xml.source(element.start, element.content_start)
        between = xml.source(element.content_start, start)
        before = f"{opening}{between}{tag}"
        doubtful = f"{_with_attributes(opening, SEGMENT_STATE)}{between}{tag}"
        start = element.start
    else:
        before, doubtful = tag, _with_attributes(tag, TARGET_STATE)
    return Unit(
        source=Segment("", pieces, write_text),
        place=(start, end),
        before=before,
        doubtful=doubtful,
        after=f"</{prefix}target>",
        target=text,
        has_target=has_target,
        is_locked=is_locked,
        languages=languages,
    )


def _with_attributes(tag: str, values: Mapping[str, str]) -> str:
    """Returns an opening tag with attributes, which replace those with the same names."""
    for name in values:
        tag = re.sub(rf"""\s+{name}\s*=\s*("[^"]*"|'[^']*')""", "", tag)
    name = re.match(r"<[^\s/>]+", tag)
    written = "".join(f' {name}="{value}"' for name, value in values.items())
    return f"{tag[: name.end()]}{written}{tag[name.end() :]}"


def _pieces(xml: XmlSource, element: XmlElement) -> list[Piece]:
    """Returns the text and the tags in a source."""
    pieces: list[Piece] = []
    for child in element.children:
        if isinstance(child, str):
            pieces.append(child)
        elif child.name == "":  # a comment
            continue
        elif child.local not in TEXT_TAGS or _is_protected(child) or child.is_alone:
            text = _text(child) if child.local in TEXT_TAGS else ""
            pieces.append(Mark(xml.source(child.start, child.end), text=text))
        else:
            opening = Mark(xml.source(child.start, child.content_start), MarkKind.OPEN)
            closing = Mark(xml.source(child.content_end, child.end), MarkKind.CLOSE)
            pieces += [opening, *_pieces(xml, child), closing]
    return pieces


def _text(element: XmlElement) -> str:
    """Returns the text in an element, without code."""
    texts = (
        child if isinstance(child, str) else _text(child)
        for child in element.children
        if isinstance(child, str) or child.local in TEXT_TAGS
    )
    return "".join(texts)


def _is_protected(element: XmlElement) -> bool:
    """Whether the words in a <mrk> must stay untranslated."""
    return element.attributes.get("translate") == "no" or (
        element.attributes.get("mtype") == "protected"
    )
