"""Word documents (.docx): paragraphs of the body, tables, headers, notes, comments and text boxes.

Runs with the same properties are joined (runs.py); translated runs lose their language, which Word
uses to check spelling. Links, tracked insertions, content controls and some fields are elements. A
field that repeats text from elsewhere, such as a cross-reference, is translated by itself, so it
gets the same translation as that text. Text that is deleted, moved away, hidden or code stays, as
do other fields and pictures; their alternative texts are translated.

A paragraph of the body with a doubtful translation gets a comment. Word allows none in headers,
notes and text boxes: a doubt about a text box is a comment on the paragraph that it belongs to.
"""

import functools
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from keras_transformer.kit.documents.office.archive import Archive, Package, Reader, read_archive
from keras_transformer.kit.documents.office.drawings import ALTERNATIVES, DRAWINGS, paragraph_in
from keras_transformer.kit.documents.office.open_xml import readers_by_type, type_of, types_in
from keras_transformer.kit.documents.office.runs import EMPTY_PROPERTIES, Runs, tags_of_runs
from keras_transformer.kit.documents.office.word_comments import Comments
from keras_transformer.kit.documents.text.xml_source import XmlElement, XmlSource, with_namespaces
from keras_transformer.kit.documents.tree.segment_builder import Found
from keras_transformer.kit.documents.tree.segments import Parts, has_language

_MAIN = type_of(r"(document|template)(\.macroEnabled|\.macroEnabledTemplate)?\.main")
_TEXTS = type_of(
    r"(document|template)(\.macroEnabled|\.macroEnabledTemplate)?\.(main|glossary)|"
    "header|footer|footnotes|endnotes|comments"
)

_AROUND = (
    *("w:hyperlink", "w:ins", "w:moveTo", "w:smartTag", "w:customXml", "w:sdtContent"),
    *("w:dir", "w:bdo"),
)
_DELETED = ("w:del", "w:moveFrom")
_SPACES = {"w:tab": "\t", "w:ptab": "\t", "w:br": "\n", "w:cr": "\n"}
_SILENT = ("w:proofErr", "w:lastRenderedPageBreak", "w:softHyphen", "w:rPr", "")
_CODE = re.compile(
    r"(source|html|inline)?_?-?code(char|text|block)?|verbatim\w*|html(preformatted|code)|"
    r"(source|preformatted|plain)text\w*",
    re.IGNORECASE,
)
# Names of attributes, without prefix, that people see; by elements.
_ATTRIBUTES = {
    **ALTERNATIVES,
    "hyperlink": ("tooltip",),
    "listItem": ("displayText",),  # of a menu
    **dict.fromkeys(("tblCaption", "tblDescription"), ("val",)),
}
# Fields whose shown text is part of the sentence, and fields that repeat text from elsewhere.
_WORDS = ("HYPERLINK", "FORMTEXT", "QUOTE")
_REPETITIONS = ("REF", "STYLEREF", "TOC", "INDEX", "TITLE", "SUBJECT", "COMMENTS")


def read(
    content: bytes, target: str | None, most_markup: int, is_reviewed: bool = False
) -> Archive:
    """Reads a document that will be translated into the language `target`, if known.

    If it is reviewed, doubtful paragraphs will get comments.
    """
    find_readers = functools.partial(_find_readers, target, is_reviewed)
    return read_archive(content, find_readers, most_markup)


def _find_readers(target: str | None, is_reviewed: bool, package: Package) -> dict[str, Reader]:
    types = types_in(package, "Word", _MAIN)
    readers = {_TEXTS: _read_member, type_of("numbering"): _read_numbering, **DRAWINGS}
    if target is not None:
        readers[type_of("styles|settings")] = functools.partial(_read_languages, target)
    if is_reviewed:
        main = next(name for name, type in types.items() if _MAIN.fullmatch(type))
        comments = Comments(package, types, main)
        package.finish = comments.add_to
        readers[_MAIN] = functools.partial(_read_member, comments=comments)
    return readers_by_type(types, readers)


def _read_member(text: str, left: Counter[str], comments: Comments | None = None) -> Parts:
    reader = _Reader(XmlSource(text), left, comments)
    return reader.xml.parts(reader.found_in(reader.xml.root))


def _read_languages(target: str, text: str, left: Counter[str]) -> Parts:
    """Reads styles, and replaces the language that is the default by the target language."""
    xml = XmlSource(text)
    languages = [one for one in xml.root.walk() if one.name in ("w:lang", "w:themeFontLang")]
    default = languages[0].attributes.get("w:val") if languages else None
    same = [one for one in languages if one.attributes.get("w:val") == default]
    return xml.parts(found for one in same for found in xml.replaced(one, {"val": target}))


def _read_numbering(text: str, left: Counter[str]) -> Parts:
    """Reads the words of numbers, such as "Chapter %1."; bullets may be letters of a font."""
    xml = XmlSource(text)
    found: list[Found] = []
    for level in xml.root.walk():
        format, shown = level.child("w:numFmt"), level.child("w:lvlText")
        if level.name == "w:lvl" and format is not None and shown is not None:
            words = re.sub(r"%\d", "", shown.attributes.get("w:val", ""))
            is_bullet = format.attributes.get("w:val") == "bullet"
            if re.search(r"[^\W\d_]{2}", words) and not is_bullet:
                found += map(_with_numbers, xml.attributes(shown, ("val",)))
    return xml.parts(found)


def _with_numbers(found: Found) -> Found:
    """Turns the numbers in a text, such as %1, into marks."""
    (segment,) = found.parts
    spans = [match.span() for match in re.finditer(r"%\d", segment.text)]
    return found._replace(parts=[segment.with_marks(spans)])


class _Reader:
    """Reads a member.

    Args:
        xml: the member.
        left: counts what stays; see Document.left.
        comments: makes comments on its paragraphs; None if they must not have any.
    """

    def __init__(self, xml: XmlSource, left: Counter[str], comments: Comments | None = None):
        self.xml = xml
        self._left = left
        self._comments = comments

    @property
    def _inner(self) -> "_Reader":
        """The reader of what is within a paragraph, such as a text box."""
        return _Reader(self.xml, self._left)

    def found_in(self, element: XmlElement) -> Iterator[Found]:
        """Yields the paragraphs and other translatable text in an element."""
        for child in element.take_elements():
            if child.name == "w:p":
                yield from self._paragraph(child)
            elif child.name == "a:p":
                yield from paragraph_in(self.xml, child, self._left)
            else:
                yield from self._found_at(child)

    def _paragraph(self, paragraph: XmlElement) -> Iterator[Found]:
        properties = paragraph.child("w:pPr")
        if _is_code(properties, "w:pStyle"):
            self._left["code"] += any(map(str.isalpha, _shown(paragraph)))
            yield from self._inner.found_in(paragraph)
            return
        start = properties.end if properties else paragraph.content_start
        content = [child for child in paragraph.elements if child is not properties]
        prefix, end = self.xml.prefix(paragraph), paragraph.content_end
        for found in self._segment(prefix, content, start, end):
            is_whole = (found.start, found.end) == (start, end)
            if is_whole and prefix and self._comments is not None:
                found = found._replace(parts=[self._comments.unit(prefix, found.parts)])
            yield found

    def _segment(
        self, prefix: str, elements: Sequence[XmlElement], start: int, end: int
    ) -> list[Found]:
        """Returns elements between two places as a segment.

        If they have no letters, returns the language within them, such as a text box.
        """
        runs = Runs(*tags_of_runs(prefix, ' xml:space="preserve"'))
        self._add(runs, elements)
        segment = runs.segment(self.xml.source(start, end))
        return runs.within if segment is None else [Found(start, end, [segment])]

    def _add(self, runs: Runs, elements: Sequence[XmlElement]) -> None:
        """Adds the content of a paragraph or a link."""
        number = 0
        ends = _ends_of_fields(elements)
        while number < len(elements):
            element = elements[number]
            if number in ends:
                last = ends[number]
                self._add_field(runs, elements[number : last + 1])
                number = last
            elif element.name == "w:r":
                self._add_run(runs, element)
            elif element.name in _AROUND or element.child("w:sdtContent"):
                inner = element.child("w:sdtContent") or element
                self._begin(runs, element, inner)
                self._add(runs, inner.elements)
                runs.end(self.xml.source(inner.content_end, element.end))
            elif element.name not in _SILENT:
                self._keep(runs, element)
            number += 1

    def _begin(self, runs: Runs, element: XmlElement, inner: XmlElement) -> None:
        """Begins an element, whose tags up to its content may have attributes with language."""
        start, end = element.start, inner.content_start
        found = list(self.xml.attributes(element, _ATTRIBUTES.get(element.local, ())))
        for child in element.elements:
            if child is not inner and inner is not element:
                found += self._inner.found_in(child)
        found = [one for one in found if one.end <= end]
        runs.within += found
        parts = self.xml.parts(found, start, end)
        runs.begin(self.xml.source(start, end), parts if has_language(parts) else ())

    def _add_field(self, runs: Runs, elements: Sequence[XmlElement]) -> None:
        """Adds a field."""
        first, last = elements[0], elements[-1]
        shown = next((n for n, one in enumerate(elements) if "separate" in _field_signs(one)), None)
        name = _field_name(elements)
        if first.name == "w:fldSimple":
            before, inner, after = first.content_start, first.elements, first.content_end
        elif shown is not None:
            before, inner, after = elements[shown].end, elements[shown + 1 : -1], last.start
        else:
            before, inner, after = last.end, [], last.end
        text = "".join(map(_shown, inner))
        source = self.xml.source(first.start, last.end)
        if name in _WORDS and text:
            runs.begin(self.xml.source(first.start, before))
            self._add(runs, inner)
            runs.end(self.xml.source(after, last.end))
            return
        if name in _REPETITIONS and any(map(str.isalpha, text)):
            found = self._segment(self.xml.prefix(first), inner, before, after)
        else:
            self._left["field"] += any(map(str.isalpha, text))
            found = [one for element in elements for one in self._inner.found_in(element)]
        runs.within += found
        parts = self.xml.parts(found, first.start, last.end)
        runs.kept(source, text, parts if has_language(parts) else ())

    def _add_run(self, runs: Runs, run: XmlElement) -> None:
        properties = run.child("w:rPr")
        written = self.xml.source(properties.start, properties.end) if properties else ""
        names = [one.name for one in properties.elements if _is_on(one)] if properties else []
        kind = "hidden" if "w:vanish" in names else "code"
        is_kept = kind == "hidden" or _is_code(properties, "w:rStyle")
        if _field_signs(run) or run.child("w:instrText") or (is_kept and run.child("w:t")):
            self._left[kind] += is_kept and any(map(str.isalpha, _shown(run)))
            runs.kept(self.xml.source(run.start, run.end), _shown(run))
            return
        if any("w:customMarkFollows" in child.attributes for child in run.elements):
            self._keep(runs, run)  # a note's mark, as its author typed it
            return
        plain = with_namespaces(self._plain(properties), self.xml.namespaces(run))
        before = self.xml.source(run.start, run.content_start) + written
        after = self.xml.source(run.content_end, run.end)
        for child in run.elements:
            if child.name == "w:t":
                runs.text(plain, child.text)
            elif child.name == "w:ruby":  # text with an annotation of how it is read
                runs.text(plain, "".join(map(_shown, filter(_is_ruby_base, child.elements))))
            elif child.name == "w:noBreakHyphen":
                runs.text(plain, "\N{NON-BREAKING HYPHEN}")
            elif child.name in _SPACES and "w:type" not in child.attributes:
                source = f"{before}{self.xml.source(child.start, child.end)}{after}"
                runs.space(source, _SPACES[child.name])
            elif child.name not in _SILENT:
                self._keep(runs, child, before, after)

    def _plain(self, properties: XmlElement | None) -> str:
        """Returns the source of properties without language; "" if there are no others."""
        if properties is None:
            return ""
        languages = [one for one in properties.elements if one.name == "w:lang"]
        without = [Found(one.start, one.end, ()) for one in languages]
        written = "".join(self.xml.parts(without, properties.start, properties.end))
        return "" if EMPTY_PROPERTIES.fullmatch(written) else written

    def _keep(self, runs: Runs, element: XmlElement, before: str = "", after: str = "") -> None:
        """Adds an untranslated element; text boxes and alternative texts in it are translated."""
        found: list[Found] = []
        text = element.text.strip() if element.name.startswith("m:") else ""
        if element.name in _DELETED:
            self._left["deleted"] += element.has_letters
        else:
            self._left["equation"] += any(map(str.isalpha, text))
            found = list(self._inner._found_at(element))
        runs.within += found
        parts = self.xml.parts(found, element.start, element.end)
        source = f"{before}{self.xml.source(element.start, element.end)}{after}"
        runs.kept(source, text, (before, *parts, after) if has_language(parts) else ())

    def _found_at(self, element: XmlElement) -> Iterator[Found]:
        yield from self.xml.attributes(element, _ATTRIBUTES.get(element.local, ()))
        yield from self.found_in(element)


def _shown(element: XmlElement) -> str:
    """Returns the text in an element, without codes, deletions and text boxes."""
    if element.name == "w:t":
        return element.text
    return "".join(_shown(child) for child in element.elements if child.name != "w:p")


def _is_ruby_base(element: XmlElement) -> bool:
    return element.name == "w:rubyBase"


def _is_on(element: XmlElement) -> bool:
    """Whether a property is on, such as <w:vanish/>; w:val may switch it off."""
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


def _field_name(elements: Sequence[XmlElement]) -> str:
    """Returns the name of a field, the first word of its code, in capitals."""
    codes = (code.text for one in elements for code in one.walk() if code.name == "w:instrText")
    code = elements[0].attributes.get("w:instr") or "".join(codes)
    return code.strip().partition(" ")[0].upper()


def _ends_of_fields(elements: Sequence[XmlElement]) -> dict[int, int]:
    """Returns the index of the element that ends each field, by that of its first one.

    A field that begins or ends elsewhere, such as a table of contents, is not included.
    """
    ends: dict[int, int] = {}
    open_fields: list[int] = []
    for number, element in enumerate(elements):
        if element.name == "w:fldSimple":
            ends[number] = number
        for sign in _field_signs(element):
            if sign == "begin":
                open_fields.append(number)
            elif sign == "end" and open_fields:
                ends[open_fields.pop()] = number
    return ends
