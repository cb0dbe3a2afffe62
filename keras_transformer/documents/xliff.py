"""XLIFF 1.2 and 2.0: units without a translation are filled, all else stays as it is.

Python's expat reads the file and says at which byte each tag stands, so that what is not filled
comes back byte for byte. A unit's text is translated into its empty `<target>`, or into a new one
after the source. Tags within a source are marks: pairs as `<g>`, `<pc>` and `<mrk>`, and single
ones as `<x/>` and `<ph>`, whose content is code. A `<mrk>` with translate="no" or mtype="protected"
has words that stay as they are.

A `<target>` is empty if it has neither text nor a tag but `<mrk>`: some editors write the numbers
of the sentences before there are translations of them.
"""

import dataclasses
from typing import NamedTuple
from xml.parsers import expat
from xml.sax.saxutils import escape

from keras_transformer.documents.segments import Document, Mark, MarkKind, Segment, writing_with
from keras_transformer.errors import InputError, require

UNITS = ("trans-unit", "segment")  # of XLIFF 1.2 and 2.0: they have a source and a target
# What names the languages of source and target, in versions 1.2 and 2.0.
LANGUAGES = (("source-language", "target-language"), ("srcLang", "trgLang"))
TEXT_TAGS = ("g", "pc", "mrk")  # inline tags with text in them; of all others the content is code


@dataclasses.dataclass
class Unit:
    """A source and what stands for its translation."""

    source: Segment
    after_source: int = 0  # where a new <target> may be put: a byte of the file
    place: tuple[int, int] | None = None  # bytes of an empty <target>, its tags included
    target_tag: str = "<target>"  # the tag of the <target>, with its attributes
    target: str = ""  # the translation, without tags
    has_target: bool = False
    is_locked: bool = False  # by translate="no"
    languages: tuple[str, str] | None = None  # of source and target, if the file names both


def read(text: str, language: str) -> Document:
    """Reads an XLIFF file.

    The parts to be translated are the places of the targets, so their source is empty.

    Args:
        text: the file.
        language: of the sources; they are not cut here, so it does not matter.

    Raises:
        InputError: if it is not well-formed or declares entities, naming the line, or if it has no
            `<xliff>`.
    """
    content = text.encode("utf-8")
    parts: list[str | Segment] = []
    done = 0  # bytes that are in `parts`
    for unit in units(text):
        if unit.is_locked or unit.has_target or not unit.source.text.strip():
            continue
        start, end = unit.place or (unit.after_source, unit.after_source)
        parts += [content[done:start].decode("utf-8"), unit.target_tag, unit.source, "</target>"]
        done = end
    parts.append(content[done:].decode("utf-8"))
    return Document(tuple(part for part in parts if part != ""))


def units(text: str) -> list[Unit]:
    """The units of an XLIFF file.

    Raises:
        InputError: if it is not well-formed or declares entities, naming the line, or if it has no
            `<xliff>`.
    """
    reader = _Reader(text.encode("utf-8"))
    reader.run()
    return reader.units


class _Element(NamedTuple):
    """An element that has begun."""

    name: str
    start: int  # of its first tag: a byte of the file
    text_start: int  # of the text of the source or target around it
    is_locked: bool  # the units in it are not translated
    is_kept: bool  # stands within a sentence, and is a mark with all that is in it


class _Reader:
    """Follows the tags of a file."""

    def __init__(self, content: bytes):
        self.content = content
        self.units: list[Unit] = []
        self._root: str | None = None
        self._languages: tuple[str, str] | None = None  # of the <file> or <xliff>
        self._open: list[_Element] = []  # the innermost last
        self._unit: Unit | None = None
        self._in_side = False  # within the source or the target of a unit
        self._has_code = False  # there is a tag but <mrk>, or a comment, in this side
        self._inline: list[_Element] = []  # those of the open elements that are within one
        self._text = ""
        self._marks: list[Mark] = []
        self._parser = expat.ParserCreate("utf-8")  # the text has been decoded: as it says or not
        self._parser.buffer_text = False
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.CommentHandler = self._comment
        self._parser.EntityDeclHandler = self._entity

    def run(self) -> None:
        try:
            self._parser.Parse(self.content, True)
        except expat.ExpatError as error:
            message, line = expat.ErrorString(error.code), f"line {error.lineno}"
            raise InputError(None, "must be well-formed XML", message, line) from None
        is_xliff = self._root == "xliff"
        require(is_xliff, None, "must be an <xliff>", f"<{self._root}>", "the document")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = _local(tag)
        if self._root is None:
            self._root = name
        for source, target in LANGUAGES:
            if name in ("file", "xliff") and source in attributes and target in attributes:
                self._languages = (attributes[source], attributes[target])
        element = _Element(
            name,
            self._parser.CurrentByteIndex,
            len(self._text),
            self._is_locked(attributes),
            self._in_side and (name not in TEXT_TAGS or _is_protected(attributes)),
        )
        if self._in_side:
            self._has_code |= name != "mrk"
            self._inline.append(element)
            if not self._in_kept():
                end = self._tag_end(element.start)
                self._add_mark(element.start, end, MarkKind.OPEN, element.text_start)
        elif name in UNITS:
            self._unit = Unit(
                Segment("", ""), is_locked=element.is_locked, languages=self._languages
            )
        elif name in ("source", "target") and self._is_directly_in_unit():
            self._in_side, self._has_code = True, False
            self._text, self._marks = "", []
        self._open.append(element)

    def _characters(self, text: str) -> None:
        if self._in_side and not self._in_code():
            self._text += text

    def _comment(self, text: str) -> None:
        self._has_code |= self._in_side

    def _entity(self, name: str, *declaration) -> None:
        """Refuses what could be a whole text, with tags, at each place that names it."""
        line = f"line {self._parser.CurrentLineNumber}"
        raise InputError(None, "must not declare entities", name, line)

    def _end(self, tag: str) -> None:
        element = self._open.pop()
        name, start = element.name, element.start
        place = self._parser.CurrentByteIndex  # of the end tag; of <x/>, after it
        start_tag_end = self._tag_end(start)
        is_alone = self.content[start_tag_end - 2 : start_tag_end] == b"/>"
        end = start_tag_end if is_alone else self._tag_end(place)
        if self._inline:
            self._inline.pop()
            if self._in_kept():
                return
            if element.is_kept:
                self._add_mark(start, end, MarkKind.WHOLE, element.text_start)
            elif is_alone:
                self._marks[-1] = dataclasses.replace(self._marks[-1], kind=MarkKind.WHOLE)
            else:
                self._add_mark(place, end, MarkKind.CLOSE, len(self._text))
        elif name in UNITS and self._unit is not None:
            self.units.append(self._unit)
            self._unit = None
        elif self._unit is not None and self._is_directly_in_unit():
            self._end_in_unit(self._unit, name, start, end)

    def _end_in_unit(self, unit: Unit, name: str, start: int, end: int) -> None:
        """Adds what is directly in a unit, at the bytes from start to end."""
        if name == "source":
            self._in_side = False
            unit.after_source = end
            unit.source = Segment("", self._text, tuple(self._marks), writing_with(escape))
        elif name == "target":
            self._in_side = False
            unit.place = (start, end)
            tag = self.content[start : self._tag_end(start)].decode("utf-8")
            unit.target_tag = tag.removesuffix("/>").removesuffix(">") + ">"
            unit.target = self._text
            unit.has_target = self._has_code or self._text.strip() != ""
        elif name == "seg-source":
            unit.after_source = end

    def _is_locked(self, attributes: dict[str, str]) -> bool:
        """Whether the units in an element must not be translated: as it says, or those around."""
        if attributes.get("translate") in ("yes", "no"):
            return attributes["translate"] == "no"
        return bool(self._open) and self._open[-1].is_locked

    def _is_directly_in_unit(self) -> bool:
        """Whether the innermost open element is a unit; suggestions in it have sources, too."""
        return bool(self._open) and self._open[-1].name in UNITS

    def _in_code(self) -> bool:
        """Whether the place is inside of a tag whose content is code."""
        return any(element.name not in TEXT_TAGS for element in self._inline)

    def _in_kept(self) -> bool:
        """Whether the place is inside of an element that is a mark as a whole."""
        return any(element.is_kept for element in self._inline)

    def _add_mark(self, start: int, end: int, kind: MarkKind, text_start: int) -> None:
        """Adds the mark that is written at the bytes from start to end.

        It reads as the text so far from `text_start` on; a tag reads as nothing.
        """
        source = self.content[start:end].decode("utf-8")
        self._marks.append(Mark(source, text_start, len(self._text), kind))

    def _tag_end(self, start: int) -> int:
        """Where the tag ends that begins at a byte: after its ">", which no attribute hides."""
        quote = None
        for place in range(start, len(self.content)):
            character = self.content[place : place + 1]
            if quote is not None:
                quote = None if character == quote else quote
            elif character in (b'"', b"'"):
                quote = character
            elif character == b">":
                return place + 1
        raise AssertionError("expat has seen the end of each tag")


def _is_protected(attributes: dict[str, str]) -> bool:
    """Whether the words in a <mrk> stay as they are."""
    return attributes.get("translate") == "no" or attributes.get("mtype") == "protected"


def _local(tag: str) -> str:
    """A name without its prefix."""
    return tag.rpartition(":")[2]
