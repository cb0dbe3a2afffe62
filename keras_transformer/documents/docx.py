"""Word documents (.docx): paragraphs of the body, tables, headers, notes, comments and text boxes.

Runs with the same properties are joined (runs.py); translated runs lose their language, which Word
uses to check spelling. Links, tracked insertions and link fields are elements. Text that is
deleted, moved away, hidden, code or marked "no proofing" stays, as do other fields and pictures;
their alternative texts are translated.
"""

import re
from collections.abc import Iterator, Sequence

from keras_transformer.documents.archive import Archive, read_archive
from keras_transformer.documents.pptx import read_drawing
from keras_transformer.documents.runs import Runs
from keras_transformer.documents.segment_builder import Found
from keras_transformer.documents.segments import Parts, Segment
from keras_transformer.documents.xml_source import XmlElement, XmlSource

_MAIN = "word/document.xml"
_TEXTS = re.compile(r"word/(document|header|footer|footnotes|endnotes|comments)\d*\.xml")
_DRAWINGS = re.compile(r"word/(charts/chart|diagrams/data|diagrams/drawing)\d*\.xml")

_AROUND = ("w:hyperlink", "w:ins", "w:moveTo", "w:smartTag", "w:sdtContent", "w:dir", "w:bdo")
_SPACES = {"w:tab": "\t", "w:ptab": "\t", "w:br": "\n", "w:cr": "\n"}
_SILENT = ("w:proofErr", "w:lastRenderedPageBreak", "w:softHyphen", "w:rPr", "")
_CODE = re.compile(
    r"(source|html|inline)?_?-?code(char|text|block)?|verbatim\w*|html(preformatted|code)|"
    r"(source|preformatted|plain)text\w*",
    re.IGNORECASE,
)
_CHECKED_LANGUAGE = re.compile(r"\s*<w:lang\b[^>]*/>")


def read(content: bytes) -> Archive:
    """Reads a document."""
    return read_archive(_MAIN, {_TEXTS: _read_member, _DRAWINGS: read_drawing}, content)


def _read_member(text: str) -> Parts:
    reader = _Reader(XmlSource(text))
    return reader.xml.parts(reader.found_in(reader.xml.root))


class _Reader:
    def __init__(self, xml: XmlSource):
        self.xml = xml

    def found_in(self, element: XmlElement) -> Iterator[Found]:
        """Yields the paragraphs and other translatable text in an element."""
        for child in element.elements:
            if child.name == "w:p":
                yield from self._paragraph(child)
            else:
                if child.name in ("wp:docPr", "pic:cNvPr"):
                    yield from self.xml.attributes(child, ("descr", "title"))
                yield from self.found_in(child)

    def _paragraph(self, paragraph: XmlElement) -> Iterator[Found]:
        properties = paragraph.child("w:pPr")
        start = properties.end if properties else paragraph.content_start
        end = paragraph.content_end
        segment = None
        if not _is_code(properties, "w:pStyle"):
            runs = Runs(("<w:r>", "</w:r>"), ('<w:t xml:space="preserve">', "</w:t>"))
            self._add(runs, [child for child in paragraph.elements if child is not properties])
            segment = runs.segment(self.xml.source(start, end))
        if segment is None:
            yield from self.found_in(paragraph)
        else:
            yield Found(start, end, [segment])

    def _add(self, runs: Runs, elements: Sequence[XmlElement]) -> None:
        """Adds the content of a paragraph or a link."""
        number = 0
        while number < len(elements):
            element = elements[number]
            last = _end_of_field(elements, number)
            if last is not None:
                self._add_field(runs, elements[number : last + 1])
                number = last
            elif element.name == "w:r":
                self._add_run(runs, element)
            elif element.name in _AROUND or element.child("w:sdtContent"):
                inner = element.child("w:sdtContent") or element
                runs.begin(self.xml.source(element.start, inner.content_start))
                self._add(runs, inner.elements)
                runs.end(self.xml.source(inner.content_end, element.end))
            elif element.name not in _SILENT:
                self._keep(runs, element)
            number += 1

    def _add_field(self, runs: Runs, elements: Sequence[XmlElement]) -> None:
        """Adds a field; the text of a link is translated."""
        shown = next((n for n, one in enumerate(elements) if "separate" in _field_signs(one)), None)
        codes = (code.text for one in elements for code in one.walk() if code.name == "w:instrText")
        if shown is None or not "".join(codes).strip().upper().startswith("HYPERLINK"):
            text = "".join(map(_text, elements[shown or len(elements) :]))
            runs.kept(self.xml.source(elements[0].start, elements[-1].end), text)
            return
        runs.begin(self.xml.source(elements[0].start, elements[shown].end))
        self._add(runs, elements[shown + 1 : -1])
        runs.end(self.xml.source(elements[-1].start, elements[-1].end))

    def _add_run(self, runs: Runs, run: XmlElement) -> None:
        properties = run.child("w:rPr")
        written = self.xml.source(properties.start, properties.end) if properties else ""
        names = [one.name for one in properties.elements if _is_on(one)] if properties else []
        is_code = "w:noProof" in names or "w:vanish" in names or _is_code(properties, "w:rStyle")
        if _field_signs(run) or run.child("w:instrText") or (is_code and run.child("w:t")):
            runs.kept(self.xml.source(run.start, run.end), _text(run))
            return
        plain = _CHECKED_LANGUAGE.sub("", written)
        plain = "" if re.fullmatch(r"<w:rPr>\s*</w:rPr>", plain) else plain
        for child in run.elements:
            if child.name == "w:t":
                runs.text(plain, child.text)
            elif child.name == "w:noBreakHyphen":
                runs.text(plain, "\N{NON-BREAKING HYPHEN}")
            elif child.name in _SPACES and "w:type" not in child.attributes:
                source = f"<w:r>{written}{self.xml.source(child.start, child.end)}</w:r>"
                runs.space(source, _SPACES[child.name])
            elif child.name not in _SILENT:
                self._keep(runs, child, f"<w:r>{written}", "</w:r>")

    def _keep(self, runs: Runs, element: XmlElement, before: str = "", after: str = "") -> None:
        """Adds an untranslated element; text boxes and alternative texts in it are translated."""
        parts = self.xml.parts(self._around(element), element.start, element.end)
        has_language = any(isinstance(part, Segment) for part in parts)
        source = f"{before}{self.xml.source(element.start, element.end)}{after}"
        text = element.text.strip() if element.name.startswith("m:") else ""
        runs.kept(source, text, (before, *parts, after) if has_language else ())

    def _around(self, element: XmlElement) -> Iterator[Found]:
        return () if element.name in ("w:del", "w:moveFrom") else self.found_in(element)


def _text(element: XmlElement) -> str:
    return "".join(one.text for one in element.walk() if one.name == "w:t")


def _is_on(element: XmlElement) -> bool:
    return element.attributes.get("w:val") not in ("0", "false", "off")


def _is_code(properties: XmlElement | None, name: str) -> bool:
    """Whether a paragraph or a run has a style for code."""
    style = properties.child(name) if properties else None
    return style is not None and _CODE.fullmatch(style.attributes.get("w:val", "")) is not None


def _field_signs(run: XmlElement) -> list[str]:
    """Returns the field marks in a run: "begin", "separate", "end"."""
    if run.name != "w:r":
        return []
    signs = (one.attributes.get("w:fldCharType") for one in run.elements if one.name == "w:fldChar")
    return [sign for sign in signs if sign]


def _end_of_field(elements: Sequence[XmlElement], first: int) -> int | None:
    """Returns the index of the run that ends the field begun at `first`, if a sibling."""
    if elements[first].name == "w:fldSimple":
        return first
    depth = 0
    for number in range(first, len(elements)):
        for sign in _field_signs(elements[number]):
            depth += {"begin": 1, "end": -1}.get(sign, 0)
        if depth == 0:
            return number if number > first or _field_signs(elements[first]) else None
    return None
