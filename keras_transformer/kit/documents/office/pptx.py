"""PowerPoint presentations (.pptx): slides, their tables, diagrams and charts, notes, comments.

Of layouts and masters, text is translated unless it is in a placeholder, as that is a prompt for
the author: "Click to edit the title".
"""

import functools
from collections import Counter
from collections.abc import Iterator

from keras_transformer.kit.documents.office.archive import Archive, Package, Reader, read_archive
from keras_transformer.kit.documents.office.drawings import DRAWINGS, found_in, read_drawing
from keras_transformer.kit.documents.office.open_xml import readers_by_type, type_of, types_in
from keras_transformer.kit.documents.text.xml_source import XmlElement, XmlSource
from keras_transformer.kit.documents.tree.segment_builder import Found
from keras_transformer.kit.documents.tree.segments import Parts

_MAIN = type_of(r"(presentation|slideshow|template|addin)(\.macroEnabled)?\.main")


def read(content: bytes, target: str | None, most_markup: int) -> Archive:
    """Reads a presentation that will be translated into the language `target`, if known."""
    return read_archive(content, functools.partial(_find_readers, target), most_markup)


def _find_readers(target: str | None, package: Package) -> dict[str, Reader]:
    readers = {
        _MAIN: functools.partial(_read_defaults, target),
        type_of("slide|notesSlide"): read_drawing,
        type_of("slideLayout|slideMaster|notesMaster|handoutMaster"): functools.partial(
            _read_layout, target
        ),
        type_of("comments"): _read_comments,
        **DRAWINGS,
    }
    return readers_by_type(types_in(package, "PowerPoint", _MAIN), readers)


def _read_defaults(target: str | None, text: str, left: Counter[str]) -> Parts:
    """Reads the main member, whose text styles have the default language of checks."""
    xml = XmlSource(text)
    return xml.parts(_languages(xml, xml.root, target))


def _read_layout(target: str | None, text: str, left: Counter[str]) -> Parts:
    xml = XmlSource(text)
    found: list[Found] = []
    for element in xml.root.walk():
        if element.name == "p:sp" and not _has_prompt(element):
            found += found_in(xml, element, left)
        elif element.name == "p:txStyles":  # after the shapes
            found += _languages(xml, element, target)
    return xml.parts(found)


def _languages(xml: XmlSource, styles: XmlElement, target: str | None) -> Iterator[Found]:
    """Yields the target language, in place of the language of text styles."""
    for element in styles.walk():
        if element.name == "a:defRPr" and target is not None:
            yield from xml.replaced(element, {"lang": target})


def _has_prompt(shape: XmlElement) -> bool:
    return any(element.name == "p:ph" for element in shape.walk())


def _read_comments(text: str, left: Counter[str]) -> Parts:
    """Reads comments: texts, or in newer versions paragraphs."""
    xml = XmlSource(text)
    texts = list(xml.contents(("p:text",)))
    return xml.parts(texts or found_in(xml, xml.root, left))
