"""PowerPoint presentations (.pptx): text of slides, tables and diagrams, notes, titles of charts.

Paragraphs consist of runs, as in Word (docx.py). Slide numbers and dates stay.
"""

import re
from collections.abc import Iterator

from keras_transformer.documents.archive import Archive, read_archive
from keras_transformer.documents.runs import Runs
from keras_transformer.documents.segment_builder import Found
from keras_transformer.documents.segments import Parts
from keras_transformer.documents.xml_source import XmlElement, XmlSource

_MAIN = "ppt/presentation.xml"
_TEXTS = re.compile(
    r"ppt/(slides/slide|notesSlides/notesSlide|charts/chart|diagrams/data|diagrams/drawing)\d*\.xml"
)
# Notes of the spelling checker.
_CHECKED = re.compile(r"""\s(?:lang|altLang|dirty|err|smtClean)=("[^"]*"|'[^']*')""")


def read(content: bytes) -> Archive:
    """Reads a presentation."""
    return read_archive(_MAIN, {_TEXTS: read_drawing}, content)


def read_drawing(text: str) -> Parts:
    """Reads a slide, a chart or a diagram."""
    xml = XmlSource(text)
    return xml.parts(_found_in(xml, xml.root))


def _found_in(xml: XmlSource, element: XmlElement) -> Iterator[Found]:
    for child in element.elements:
        if child.name == "a:p":
            yield from _paragraph(xml, child)
        else:
            if child.name == "p:cNvPr":
                yield from xml.attributes(child, ("descr", "title"))
            yield from _found_in(xml, child)


def _paragraph(xml: XmlSource, paragraph: XmlElement) -> Iterator[Found]:
    properties, ending = paragraph.child("a:pPr"), paragraph.child("a:endParaRPr")
    start = properties.end if properties else paragraph.content_start
    end = ending.start if ending else paragraph.content_end
    runs = Runs(("<a:r>", "</a:r>"), ("<a:t>", "</a:t>"))
    for child in paragraph.elements:
        if child in (properties, ending):
            continue
        if child.name == "a:r":
            _add_run(xml, runs, child)
        elif child.name == "a:br":
            runs.space(xml.source(child.start, child.end), "\n")
        else:  # a field, a formula
            shown = child.child("a:t")
            runs.kept(xml.source(child.start, child.end), shown.text if shown else "")
    segment = runs.segment(xml.source(start, end))
    if segment is not None:
        yield Found(start, end, [segment])


def _add_run(xml: XmlSource, runs: Runs, run: XmlElement) -> None:
    properties, text = run.child("a:rPr"), run.child("a:t")
    written = xml.source(properties.start, properties.end) if properties else ""
    plain = _CHECKED.sub("", written)
    if properties and properties.attributes.get("noProof") == "1":
        runs.kept(xml.source(run.start, run.end), text.text if text else "")
    elif text:
        runs.text("" if plain == "<a:rPr/>" else plain, text.text)
