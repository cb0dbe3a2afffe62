"""Paragraphs that are runs of text with properties, as Word's and PowerPoint's are.

    <w:r><w:t>A </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>red</w:t></w:r>...      A <b>red</b> ...

Programs split runs for reasons that no reader sees, such as their spelling checker's. Here those
with the same properties are one. Text with the properties of the most letters is plain; other
properties are elements around their text, and so are links. When a translation is written, each
text gets a run with the properties of the elements around it.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple
from xml.sax.saxutils import escape

from keras_transformer.documents.segment_builder import SegmentBuilder
from keras_transformer.documents.segments import MarkKind, Parts, Piece, Segment
from keras_transformer.documents.xml_source import with_ranges
from keras_transformer.markup import well_formed


class _Item(NamedTuple):
    """A step in reading a paragraph: the name of a method of Runs, and its arguments."""

    kind: str
    source: str  # of a text, its properties
    text: str = ""
    parts: Parts = ()


class Runs:
    """Collects the runs of a paragraph, and makes its segment.

    Args:
        run: the tags around the properties and the text of a run.
        text: those around the text.
    """

    def __init__(self, run: tuple[str, str], text: tuple[str, str]):
        self._run, self._text = run, text
        self._items: list[_Item] = []
        # The plain ones in the paragraph (None), and in each link, by its tag.
        self._properties_in: dict[str | None, str] = {}

    def text(self, properties: str, text: str) -> None:
        """Text of a run, and its properties as they are written; "" if it has none."""
        self._items.append(_Item("text", properties, text))

    def space(self, source: str, text: str) -> None:
        """A tab or a line break, with a run around it if it needs one; see SegmentBuilder.space."""
        self._items.append(_Item("space", source, text))

    def kept(self, source: str, text: str = "", parts: Parts = ()) -> None:
        """Adds what is not translated: see SegmentBuilder.kept."""
        self._items.append(_Item("kept", source, text, parts))

    def begin(self, source: str) -> None:
        """A link or the like, up to the call of `end` that belongs to it."""
        self._items.append(_Item("begin", source))

    def end(self, source: str) -> None:
        """The end of what has begun last."""
        self._items.append(_Item("end", source))

    def segment(self, source: str) -> Segment | None:
        """The paragraph, which is written as `source`; None if it has no letter."""
        self._find_plain_properties()
        builder = SegmentBuilder(self._write)
        around = [self._properties_in[None]]
        current = around[-1]
        waiting: list[_Item] = []  # come after the element that is open, if it ends

        def change(properties: str) -> None:
            nonlocal current
            if current != properties:
                if current != around[-1]:
                    builder.end("run", "")
                current = around[-1]
            for item in waiting:
                if item.kind == "space":
                    builder.space(item.source, text=item.text)
                else:
                    builder.kept(item.source, item.text, item.parts)
            waiting.clear()
            if current != properties:
                builder.begin("run", properties)
                current = properties

        for item in self._items:
            if item.kind == "text":
                change(item.source if item.text.strip() else current)
                builder.word("", item.text)
            elif item.kind == "begin":
                change(around[-1])
                builder.begin("link", item.source)
                around.append(self._properties_in[item.source])
                current = around[-1]
            elif item.kind == "end":
                change(around[-1])
                builder.end("link", item.source)
                around.pop()
                current = around[-1]
            else:
                waiting.append(item)
        change(around[-1])
        return builder.segment(source)

    def _find_plain_properties(self) -> None:
        """Finds the properties of most letters, in the paragraph and in each link."""
        letters: dict[str | None, Counter[str]] = {None: Counter()}
        around: list[str | None] = [None]
        for item in self._items:
            if item.kind == "begin":
                around.append(item.source)
                letters.setdefault(item.source, Counter())
            elif item.kind == "end":
                around.pop()
            elif item.kind == "text":
                letters[around[-1]][item.source] += len(item.text.strip())
        for tag, counts in letters.items():  # a link of a slide is among the properties of its text
            plain = {each: count for each, count in counts.items() if "hlinkClick" not in each}
            plain = plain or counts
            self._properties_in[tag] = max(plain, key=plain.__getitem__, default="")

    def _write(self, pieces: Sequence[Piece]) -> str:
        written = ""
        around = [self._properties_in[None]]
        pieces = with_ranges(pieces)
        for is_text, group in groupby(pieces, key=lambda piece: isinstance(piece, str)):
            if is_text:
                text = escape(well_formed("".join(group)))
                inner = f"{around[-1]}{self._text[0]}{text}{self._text[1]}"
                written += f"{self._run[0]}{inner}{self._run[1]}"
                continue
            for mark in group:
                if mark.kind is MarkKind.OPEN and mark.source not in self._properties_in:
                    around.append(mark.source)
                    continue
                written += mark.source
                if mark.kind is MarkKind.OPEN:
                    around.append(self._properties_in[mark.source])
                elif mark.kind is MarkKind.CLOSE:
                    around.pop()
        return written
