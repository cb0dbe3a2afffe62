"""Paragraphs made of runs of text with properties, as in Word, PowerPoint and Excel.

    <w:r><w:t>A </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>red</w:t></w:r>...      A <b>red</b> ...

Programs split runs for invisible reasons, such as spelling checks. Adjacent runs with the same
properties are joined here. Text with the most frequent properties, by letters, is plain; other
properties become elements around their text, as do links. In the translation, each text gets a run
with the properties of the elements around it. Superscript marks of notes and exponents (notes.py)
stay as they are.
"""

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from keras_transformer.kit.documents.text.xml_source import with_ranges, write_text
from keras_transformer.kit.documents.tree.notes import is_note, text_of_note
from keras_transformer.kit.documents.tree.segment_builder import Found, SegmentBuilder
from keras_transformer.kit.documents.tree.segments import MarkKind, Parts, Piece, Segment

EMPTY_PROPERTIES = re.compile(r"<(?P<name>[^\s/>]+)>\s*</(?P=name)>|<[^\s/>]+\s*/>")
# Properties of subscripts and superscripts: a word, or in slides the height above the line.
_SUPERSCRIPT = re.compile(r"vertAlign\b[^<>]*superscript|\bbaseline=.[1-9]")
_SCRIPT = re.compile(rf"{_SUPERSCRIPT.pattern}|vertAlign\b[^<>]*subscript|\bbaseline=.-")
_RUN = "run"  # the name of elements that are properties; a link's name is its tag


class _Item(NamedTuple):
    """A step in reading a paragraph: the name of a method of Runs, and its arguments."""

    kind: str
    source: str  # for a text, its properties
    text: str = ""
    parts: Parts = ()


@functools.lru_cache(maxsize=64)
def tags_of_runs(prefix: str, attributes: str = "") -> tuple[tuple[str, str], tuple[str, str]]:
    """Returns the tags around a run, and around its text.

    Args:
        prefix: the prefix of their names, such as "w:".
        attributes: of the text's tag, after a space.
    """
    return (f"<{prefix}r>", f"</{prefix}r>"), (f"<{prefix}t{attributes}>", f"</{prefix}t>")


class Runs:
    """Collects a paragraph's runs, and makes its segment.

    Args:
        run: the tags around the properties and the text of a run.
        text: the tags around the text.

    Attributes:
        within: the language found in untranslated content, such as the text in a text box.
    """

    def __init__(self, run: tuple[str, str], text: tuple[str, str]):
        self._run, self._text = run, text
        self.within: list[Found] = []
        self._items: list[_Item] = []
        # Plain properties in the paragraph (None), and in each link, by its tag.
        self._properties_in: dict[str | None, str] = {}

    def text(self, properties: str, text: str, parts: Parts = ()) -> None:
        """Adds a run's text, with its properties' source, or "", in parts if it has language."""
        self._items.append(_Item("text", properties, text, parts))

    def space(self, source: str, text: str) -> None:
        """Adds a tab or a line break, within a run if needed; see SegmentBuilder.space."""
        self._items.append(_Item("space", source, text))

    def kept(self, source: str, text: str = "", parts: Parts = ()) -> None:
        """Adds untranslated content; see SegmentBuilder.kept."""
        self._items.append(_Item("kept", source, text, parts))

    def begin(self, source: str, parts: Parts = ()) -> None:
        """Begins a link or the like, which lasts until the matching call of `end`."""
        self._items.append(_Item("begin", source, parts=parts))

    def end(self, source: str) -> None:
        """Ends the element begun last."""
        self._items.append(_Item("end", source))

    def segment(self, source: str) -> Segment | None:
        """Returns the paragraph with its source; None if it has no letters."""
        self._items = list(self._with_notes(_joined(self._items)))
        self._find_plain_properties()
        write = _writer(self._run, self._text, tuple(self._properties_in.items()))
        builder = SegmentBuilder(write)
        around: list[str | None] = [None]  # the open links
        current = self._properties_in[None]
        waiting: list[_Item] = []  # follow the open element, if it ends

        def change(properties: str, parts: Parts = ()) -> None:
            nonlocal current
            plain = self._properties_in[around[-1]]
            if current != properties:
                if current != plain:
                    builder.end(_RUN, "")
                current = plain
            for item in waiting:
                if item.kind == "space":
                    builder.space(item.source, text=item.text)
                else:
                    builder.kept(item.source, item.text, item.parts)
            waiting.clear()
            if current != properties:
                is_link = "hlinkClick" in properties
                is_script = not is_link and _SCRIPT.search(properties) is not None
                builder.begin(_RUN, properties, parts, not is_link, is_script)
                current = properties

        for item in self._items:
            if item.kind == "text":
                change(item.source if item.text.strip() else current, item.parts)
                builder.word("", item.text)
            elif item.kind == "begin":
                change(self._properties_in[around[-1]])
                builder.begin(item.source, item.source, item.parts)
                around.append(item.source)
                current = self._properties_in[item.source]
            elif item.kind == "end":
                change(self._properties_in[around[-1]])
                builder.end(around.pop(), item.source)
                current = self._properties_in[around[-1]]
            else:
                waiting.append(item)
        change(self._properties_in[None])
        return builder.segment(source)

    def _with_notes(self, items: Sequence[_Item]) -> Iterator[_Item]:
        """Yields items, where superscripts that are marks of notes or exponents are kept."""
        ends = _Item("", "")
        for before, item, after in zip([ends, *items], items, [*items[1:], ends], strict=False):
            first, last = before.text[-1:], after.text[:1]
            is_raised = _SUPERSCRIPT.search(item.source) is not None and not item.parts
            is_text = item.kind == "text" and item.text.strip() != ""
            if is_text and is_raised and is_note(item.text, first, last):
                (start, end), (start_text, end_text) = self._run, self._text
                written = f"{start_text}{write_text([item.text])}{end_text}"
                source = f"{start}{item.source}{written}{end}"
                yield _Item("kept", source, text_of_note(item.text, first))
            else:
                yield item

    def _find_plain_properties(self) -> None:
        """Finds the properties of the most letters, in the paragraph and in each link."""
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
        for tag, counts in letters.items():  # in slides, a link is one of its text's properties
            plain = {each: count for each, count in counts.items() if "hlinkClick" not in each}
            plain = plain or counts
            self._properties_in[tag] = max(plain, key=plain.__getitem__, default="")


def _joined(items: Sequence[_Item]) -> list[_Item]:
    """Joins adjacent texts with the same properties."""
    joined: list[_Item] = []
    for item in items:
        last = joined[-1] if joined else None
        if (
            last
            and not (last.parts or item.parts)
            and last[:2] == item[:2] == ("text", item.source)
        ):
            joined[-1] = last._replace(text=last.text + item.text)
        else:
            joined.append(item)
    return joined


@functools.lru_cache(maxsize=1024)
def _writer(
    run: tuple[str, str], text: tuple[str, str], properties: tuple[tuple[str | None, str], ...]
) -> Callable[[Sequence[Piece]], str]:
    """Returns the `write` of a segment; most paragraphs of a document share one.

    Args:
        run, text: as for Runs.
        properties: the plain properties in the paragraph (None), and in each link, by its tag.
    """
    properties_in = dict(properties)

    def write(pieces: Sequence[Piece]) -> str:
        written: list[str] = []
        around = [properties_in[None]]
        pieces = with_ranges(pieces)
        for is_text, group in groupby(pieces, key=lambda piece: isinstance(piece, str)):
            if is_text:
                inner = f"{around[-1]}{text[0]}{write_text(list(group))}{text[1]}"
                written.append(f"{run[0]}{inner}{run[1]}")
                continue
            for mark in group:
                if mark.name == _RUN and mark.kind is MarkKind.OPEN:
                    around.append(mark.source)
                    continue
                written.append(mark.source)
                if mark.kind is MarkKind.OPEN:
                    around.append(properties_in[mark.name])
                elif mark.kind is MarkKind.CLOSE:
                    around.pop()
        return "".join(written)

    return write
