"""Drawings, diagrams and charts in Word, PowerPoint and Excel files (DrawingML).

Paragraphs consist of runs (runs.py). Slide numbers, dates and numbers in charts stay. An
alternative text is an attribute of a picture.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from keras_transformer.kit.documents.office.archive import Reader
from keras_transformer.kit.documents.office.open_xml import type_of
from keras_transformer.kit.documents.office.runs import EMPTY_PROPERTIES, Runs, tags_of_runs
from keras_transformer.kit.documents.text.xml_source import XmlElement, XmlSource, with_namespaces
from keras_transformer.kit.documents.tree.segment_builder import Found
from keras_transformer.kit.documents.tree.segments import Parts, Segment, has_language

# Names of attributes, without prefix, that people see; by elements.
ALTERNATIVES = {
    **dict.fromkeys(("docPr", "cNvPr"), ("descr", "title")),  # pictures and shapes
    **dict.fromkeys(("shape", "rect", "oval", "group", "image"), ("alt",)),  # VML's
    "textpath": ("string",),  # WordArt, such as a watermark
    "hlinkClick": ("tooltip",),
}
_NUMBERS = ("c:numCache", "c:numLit", "cx:numDim")
_NAMES = ("c:v", "cx:v", "cx:pt")  # of series and categories
# Notes of the spelling checker.
_CHECKED = re.compile(r"""\s(?:lang|altLang|dirty|err|smtClean)=("[^"]*"|'[^']*')""")


def read_drawing(text: str, left: Counter[str]) -> Parts:
    """Reads a slide, a chart or a diagram."""
    xml = XmlSource(text)
    return xml.parts(found_in(xml, xml.root, left))


DRAWINGS: Mapping[re.Pattern, Reader] = {
    type_of(
        "drawingml.(chart|chartshapes|diagramData|diagramDrawing)|drawing|chartex"
    ): read_drawing
}


def found_in(xml: XmlSource, element: XmlElement, left: Counter[str]) -> Iterator[Found]:
    """Yields the paragraphs, names and alternative texts in an element."""
    for child in element.take_elements():
        if child.name == "a:p":
            yield from paragraph_in(xml, child, left)
        elif child.name in _NAMES:
            yield from xml.content(child)
        elif child.name not in _NUMBERS:
            yield from xml.attributes(child, ALTERNATIVES.get(child.local, ()))
            yield from found_in(xml, child, left)


def paragraph_in(xml: XmlSource, paragraph: XmlElement, left: Counter[str]) -> Iterator[Found]:
    """Yields a paragraph, if it contains language."""
    properties, ending = paragraph.child("a:pPr"), paragraph.child("a:endParaRPr")
    start = properties.end if properties else paragraph.content_start
    end = ending.start if ending else paragraph.content_end
    runs = Runs(*tags_of_runs(xml.prefix(paragraph)))
    for child in paragraph.elements:
        if child in (properties, ending):
            continue
        if child.name == "a:r":
            _add_run(xml, runs, child)
        elif child.name == "a:br":
            runs.space(xml.source(child.start, child.end), "\n")
        else:  # a field, a formula
            left["field" if child.name == "a:fld" else "equation"] += child.has_letters
            shown = child.child("a:t")
            runs.kept(xml.source(child.start, child.end), shown.text if shown else "")
    segment = runs.segment(xml.source(start, end))
    if segment is not None:
        yield Found(start, end, [segment])


def _add_run(xml: XmlSource, runs: Runs, run: XmlElement) -> None:
    properties, text = run.child("a:rPr"), run.child("a:t")
    if text is None:
        return
    if properties is None:
        runs.text("", text.text)
        return
    tooltips = found_in(xml, properties, Counter())
    namespaces = xml.namespaces(run)
    parts = tuple(
        part if isinstance(part, Segment) else _CHECKED.sub("", part)
        for part in xml.parts(tooltips, properties.start, properties.end)
    )
    parts = (with_namespaces(parts[0], namespaces), *parts[1:])
    source = _CHECKED.sub("", xml.source(properties.start, properties.end))
    source = "" if EMPTY_PROPERTIES.fullmatch(source) else with_namespaces(source, namespaces)
    runs.text(source, text.text, parts if has_language(parts) else ())
