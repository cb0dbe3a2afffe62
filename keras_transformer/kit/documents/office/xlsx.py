"""Excel workbooks (.xlsx): text of cells, comments, drawings and charts.

Numbers stay, as do names of sheets. A text that a formula, a table, a list of allowed values or a
filter compares is translated everywhere alike, such as "yes" in =IF(A1="yes",1,0), or it stays
(xlsx_formulas.py, xlsx_followed.py).
"""

import dataclasses
import functools
import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from html import unescape

from keras_transformer.kit.documents.office.archive import Archive, Package, Reader, read_archive
from keras_transformer.kit.documents.office.drawings import DRAWINGS
from keras_transformer.kit.documents.office.formulas import key_of
from keras_transformer.kit.documents.office.open_xml import readers_by_type, type_of, types_in
from keras_transformer.kit.documents.office.runs import Runs, tags_of_runs
from keras_transformer.kit.documents.office.xlsx_followed import follow
from keras_transformer.kit.documents.office.xlsx_formulas import computing_in, text_from
from keras_transformer.kit.documents.text.xml_source import (
    XmlElement,
    XmlSource,
    with_namespaces,
    write_text,
)
from keras_transformer.kit.documents.tree.segment_builder import Found
from keras_transformer.kit.documents.tree.segments import Parts, Segment

_MAIN = type_of(r"(sheet|template|addin)(\.macroEnabled)?\.main")
_WORKBOOK = type_of(r"(worksheet|main)")
_COUNTED = re.compile(f"{_WORKBOOK.pattern}|.*\\.(pivotTable\\+xml|vmlDrawing)")
_STRINGS = ("x:si", "x:is", "x:text")  # of cells, in other members or in theirs, and of comments

# Sheets may be too large for a tree; most only refer to text in other members.
_COMPUTED = re.compile(
    r"""<(?:[\w.-]+:)?c\b[^<>]*?\st=["']str["'][^<>]*>
    (?P<cell>[^<]*+(?:<(?!/?(?:[\w.-]+:)?c\b)[^<]*+)*+)""",
    re.VERBOSE,
)
_VALUE = re.compile(r"<(?:[\w.-]+:)?v>([^<]*)<")
_HEADER = re.compile(r"<(?:[\w.-]+:)?(?:odd|even|first)(?:Header|Footer)>([^<]*)<")
_HEADER_CODES = re.compile(r"""&amp;(?:(?:"|&quot;)[^"&]*(?:"|&quot;)|\d+|K[\dA-F]{6}|[A-Z])""")
# Prompts and errors of validations, tooltips, captions of pivot tables, and texts of buttons.
_HINT = re.compile(
    r"""\s(?:promptTitle|prompt|errorTitle|error|tooltip|\w+Caption)=("[^"]*"|'[^']*')
    |<font\b[^<>]*>([^<]*)<""",
    re.VERBOSE,
)
_LINE_END = re.compile(r"(\s*(?:\r?\n|&#(?:10|13|x[aAdD]);|_x000[aAdD]_)\s*)")


def read(content: bytes, most_markup: int) -> Archive:
    """Reads a workbook."""
    left: Counter[str] = Counter()

    def find_readers(package: Package) -> dict[str, Reader]:
        types = types_in(package, "Excel", _MAIN)
        computing = computing_in(package, types)
        package.finish = functools.partial(follow, computing, types, content, left)
        return _find_readers(package, types, computing.seen.kept, left)

    archive = read_archive(content, find_readers, most_markup)
    left.update(archive.left)
    return dataclasses.replace(archive, left=left)


def _find_readers(
    package: Package, types: Mapping[str, str], kept: Container[str], left: Counter[str]
) -> dict[str, Reader]:
    """Returns the readers of members with text, and counts what stays in the others."""
    plain: set[str] = set()
    for name, type in types.items():
        if _COUNTED.fullmatch(type):
            text = package.text(name)
            _count_hints(text, left)
            if _WORKBOOK.fullmatch(type) and "inlineStr" not in text:
                plain.add(name)
                _count_left(text, left)
    readers = {
        type_of("sharedStrings|worksheet"): functools.partial(_read_strings, kept),
        type_of("comments"): functools.partial(_read_strings, ()),
        type_of("threadedcomments"): _read_comments,
        **DRAWINGS,
    }
    readers = readers_by_type(types, readers)
    return {name: reader for name, reader in readers.items() if name not in plain}


def _read_strings(kept: Container[str], text: str, left: Counter[str]) -> Parts:
    """Reads texts of cells or comments.

    Args:
        kept: the keys of the texts that stay.
        text: the member with the texts.
        left: the counts of untranslated pieces.
    """
    _count_left(text, left)
    xml = XmlSource(text)
    found: list[Found] = []
    for element in _strings_in(xml.root):
        readings = [child for child in element.elements if child.name == "x:rPh"]
        left["ruby"] += any(reading.has_letters for reading in readings)
        if key_of(_text(element)) in kept:
            left["formula"] += element.has_letters
        else:
            found += _string(xml, element)
    return xml.parts(found)


def _strings_in(element: XmlElement) -> Iterator[XmlElement]:
    """Yields the texts of cells or comments in an element."""
    for child in element.take_elements():
        if child.name in _STRINGS:
            yield child
        else:
            yield from _strings_in(child)


def _read_comments(text: str, left: Counter[str]) -> Parts:
    xml = XmlSource(text)
    texts = [element for element in xml.root.walk() if element.name == "xtc:text"]
    return xml.parts(found for element in texts for found in _lines(xml, element))


def _count_left(text: str, left: Counter[str]) -> None:
    """Counts the texts of a sheet that stay: results of formulas, headers, footers."""
    for match in _COMPUTED.finditer(text):
        value = _VALUE.search(match["cell"])
        left["formula"] += value is not None and any(map(str.isalpha, value[1]))
    for match in _HEADER.finditer(text):
        left["header"] += any(map(str.isalpha, _HEADER_CODES.sub("", match[1])))


def _count_hints(text: str, left: Counter[str]) -> None:
    """Counts the hints of a sheet, and the captions of a pivot table or of buttons; they stay."""
    for match in _HINT.finditer(text):
        left["hint"] += any(map(str.isalpha, unescape(match[1] or match[2])))


def _text(element: XmlElement) -> str:
    """Returns a text without its annotations of how it is read."""
    texts = [child.text for child in element.elements if child.name in ("x:t", "x:r")]
    return text_from("".join(texts))


def _string(xml: XmlSource, element: XmlElement) -> Iterator[Found]:
    """Yields a text, which may consist of runs."""
    elements = [child for child in element.elements if child.name in ("x:t", "x:r")]
    if len(elements) == 1 and elements[0].name == "x:t":
        yield from _lines(xml, elements[0])
    elif elements:
        start, end = elements[0].start, elements[-1].end
        run_tags, text_tags = tags_of_runs(xml.prefix(element), ' xml:space="preserve"')
        runs = Runs(run_tags, text_tags)
        for run in elements:
            properties, text = run.child("x:rPr"), run.child("x:t") or run
            written = xml.source(properties.start, properties.end) if properties else ""
            written = with_namespaces(written, xml.namespaces(run))
            for number, piece in enumerate(re.split("(\r?\n)", text.text)):
                if number % 2:
                    inner = f"{written}{text_tags[0]}\n{text_tags[1]}"
                    runs.space(f"{run_tags[0]}{inner}{run_tags[1]}", "\n")
                elif piece:
                    runs.text(written, piece)
        segment = runs.segment(xml.source(start, end))
        if segment is not None:
            yield Found(start, end, [segment])


def _lines(xml: XmlSource, element: XmlElement) -> Iterator[Found]:
    """Yields the lines of a text without runs; each is a paragraph."""
    place = element.content_start
    source = xml.source(place, element.content_end)
    if "<" in source:  # a comment, or <![CDATA[...]]>
        yield from xml.content(element)
        return
    for line in _LINE_END.split(source):
        start, place = place, place + len(line.encode("utf-8"))
        words = line.strip(" ")
        if any(map(str.isalpha, unescape(words))) and not _LINE_END.fullmatch(line):
            start += line.index(words)
            end = start + len(words.encode("utf-8"))
            yield Found(start, end, [Segment(words, [unescape(words)], write_text)])
