"""PowerPoint presentations (.pptx): slides, their tables, diagrams and charts, notes, comments.

Of layouts and masters, text is translated unless it is in a placeholder, as that is a prompt for
the author: "Click to edit the title".
"""

from collections import Counter

from keras_transformer.documents.archive import Archive, Package, Reader, read_archive
from keras_transformer.documents.drawings import DRAWINGS, found_in, read_drawing
from keras_transformer.documents.open_xml import readers_by_type, type_of, types_in
from keras_transformer.documents.segments import Parts
from keras_transformer.documents.xml_source import XmlElement, XmlSource

_MAIN = type_of(r"(presentation|slideshow|template|addin)(\.macroEnabled)?\.main")


def read(content: bytes, most_markup: int) -> Archive:
    """Reads a presentation."""
    return read_archive(content, _find_readers, most_markup)


def _find_readers(package: Package) -> dict[str, Reader]:
    readers = {
        type_of("slide|notesSlide"): read_drawing,
        type_of("slideLayout|slideMaster|notesMaster|handoutMaster"): _read_layout,
        type_of("comments"): _read_comments,
        **DRAWINGS,
    }
    return readers_by_type(types_in(package, "PowerPoint", _MAIN), readers)


def _read_layout(text: str, left: Counter[str]) -> Parts:
    xml = XmlSource(text)
    shapes = [shape for shape in xml.root.walk() if shape.name == "p:sp" and not _has_prompt(shape)]
    return xml.parts(found for shape in shapes for found in found_in(xml, shape, left))


def _has_prompt(shape: XmlElement) -> bool:
    return any(element.name == "p:ph" for element in shape.walk())


def _read_comments(text: str, left: Counter[str]) -> Parts:
    """Reads comments: texts, or in newer versions paragraphs."""
    xml = XmlSource(text)
    texts = [element for element in xml.root.walk() if element.name == "p:text"]
    if texts:
        return xml.parts(found for element in texts for found in xml.content(element))
    return xml.parts(found_in(xml, xml.root, left))
