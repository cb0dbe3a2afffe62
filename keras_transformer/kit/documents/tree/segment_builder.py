"""Makes segments from the pieces of a paragraph: words, spaces, tags, code spans.

A reader calls the methods of SegmentBuilder in document order, without pairing tags: only this
module does. `parts` is then the segment, surrounded by anything that need not be in it: a link
around the whole text, spaces before it, an image after it. The fewer marks a segment has, the fewer
must be placed in its translation.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from keras_transformer.kit.documents.tree.segments import (
    Mark,
    MarkKind,
    Parts,
    Piece,
    Segment,
    ends_of_elements,
    text_of,
)
from keras_transformer.kit.documents.tree.sentences import is_unspaced
from keras_transformer.support.errors import require

MOST_NESTED = 60  # elements; tags of deeper ones are unpaired marks
_MOST_TAGS = 50_000  # in a paragraph, opening or alone; each takes up to 4 KB of memory


def joined(parts: Iterable[str | Any]) -> tuple[str | Any, ...]:
    """Joins consecutive strings among parts of a document or pieces, and drops empty ones."""
    result: list[str | Any] = []
    for is_text, group in groupby(parts, key=lambda part: isinstance(part, str)):
        if is_text:
            result.append("".join(group))
        else:
            result.extend(group)
    return tuple(part for part in result if part != "")


class Found(NamedTuple):
    """Language found in a text: its place and its parts."""

    start: int
    end: int
    parts: Sequence[str | Segment]


def with_found(
    source: Callable[[int, int | None], str],
    found: Iterable[Found],
    start: int = 0,
    end: int | None = None,
) -> Parts:
    """Returns the parts of a text: the language found, and the source between.

    Args:
        source: returns the text between two places, or to its end for None.
        found: the language found, in order.
        start, end: the limits of the text.
    """
    parts: list[str | Segment] = []
    for place in found:
        parts += [source(start, place.start), *place.parts]
        start = place.end
    parts.append(source(start, end))
    return joined(parts)


class OpenTags:
    """The names of the open tags, the innermost last."""

    def __init__(self):
        self.names: list[Hashable] = []
        self._numbers: Counter[Hashable] = Counter()

    def __contains__(self, name: Hashable) -> bool:
        return self._numbers[name] > 0

    def begin(self, name: Hashable) -> None:
        self.names.append(name)
        self._numbers[name] += 1

    def end(self, name: Hashable) -> int:
        """Ends the innermost tag with this name, and the tags within it. Returns their number."""
        if name not in self:
            return 0
        ended = 1
        while self._pop() != name:
            ended += 1
        return ended

    def _pop(self) -> Hashable:
        name = self.names.pop()
        self._numbers[name] -= 1
        return name


@dataclasses.dataclass(eq=False, slots=True)
class _Leaf(Mark):
    """A piece of a paragraph: a mark, or words; its source is what is next to translated text."""

    original: str = ""  # as the document writes it
    is_language: bool = False  # is translated
    is_space: bool = False  # reads as one space, or as nothing next to another space

    @property
    def can_stay_outside(self) -> bool:
        """Whether it can be left out at a segment's edge, as it has no text."""
        is_alone = self.kind is MarkKind.WHOLE and not self.is_language
        return is_alone and (self.is_space or not self.text)

    @property
    def is_plain(self) -> bool:
        """Whether it is text rather than a mark."""
        return self.is_language or (self.source == self.text == " ")


class SegmentBuilder:
    """Collects the pieces of a paragraph, and makes a segment from them.

    Args:
        write: the segment's `write`.
        has_lists: whether adjacent elements without a space may be list items, which become
            separate segments, as in a page's navigation.

    Attributes:
        last_character: the last character read so far, or "".
    """

    def __init__(self, write: Callable[[Sequence[Piece]], str], has_lists: bool = False):
        self._write = write
        self._has_lists = has_lists
        self._open_tags = OpenTags()
        self._leaves: list[_Leaf] = []
        self._open: list[int] = []  # the places of the open tags among the leaves
        self._too_deep = 0  # open tags within these
        self._last_word = -1  # the place of the last words
        self._tags = 0
        self.last_character = ""

    def word(self, source: str, text: str) -> None:
        """Adds text: a word, several, or part of one."""
        self._last_word = len(self._leaves)
        self._add(_Leaf(source, text=text, original=source, is_language=True))

    def space(self, source: str, written: str = "", text: str = " ") -> None:
        r"""Adds white space of any form: a line break, indentation, <br>.

        Args:
            source: as the document writes it.
            written: the source next to translated text, if different.
            text: how it reads: "\t" for a tab between columns, which ends a sentence; "\n" for a
                line break that must stay exactly at its word.
        """
        self._add(_Leaf(written or source, text=text, original=source, is_space=True))

    def kept(self, source: str, text: str = "", parts: Parts = ()) -> None:
        """Adds untranslated content: an image, a code span.

        Args:
            source: as the document writes it.
            text: the words that it stands for, if any.
            parts: the source in parts, if there is language in it.
        """
        self._add(_Leaf(source, text=text, parts=parts, original=source))

    def silent(self, source: str) -> None:
        """Adds source that is omitted next to translated text."""
        self._add(_Leaf("", original=source, is_language=True))

    def begin(
        self,
        name: Hashable,
        source: str,
        parts: Parts = (),
        is_formatting: bool = False,
        is_script: bool = False,
    ) -> None:
        """Begins an element, which lasts until `end` is called with its name, if ever.

        Args:
            name: the tag's name.
            source: as the document writes it.
            parts: the source in parts, if there is language in it.
            is_formatting: whether it only formats its words, so that it may be dropped with them.
            is_script: whether it is a subscript or a superscript.
        """
        self._open_tags.begin(name)
        kind = MarkKind.OPEN
        if len(self._open) < MOST_NESTED:
            self._open.append(len(self._leaves))
        else:
            self._too_deep += 1
            kind = MarkKind.WHOLE
        self._add(_Leaf(source, kind, "", parts, name, is_formatting, is_script, source))

    def end(self, name: Hashable, source: str, written: str = "") -> None:
        """Ends the innermost open element with this name.

        Tags that began within it stay unpaired, as does this one if no such tag is open.

        Args:
            name: the tag's name.
            source: as the document writes it.
            written: the source next to translated text, if different.
        """
        closing = _Leaf(written or source, MarkKind.CLOSE, name=name, original=source)
        ended = self._open_tags.end(name)
        if ended <= self._too_deep:
            self._too_deep -= ended
            closing.kind = MarkKind.WHOLE
            self._add(closing)
            return
        self._unpair(ended - self._too_deep - 1)
        self._too_deep = 0
        place = self._open.pop()
        self._leaves.append(closing)
        if self._last_word < place:
            self._leaves[place:] = [_joined(self._leaves[place:])]

    def parts(self) -> list[str | Segment]:
        """Returns all pieces: strings, and a segment if there are letters to translate."""
        self._unpair(len(self._open))
        return self._parts(self._leaves)

    def segment(self, source: str) -> Segment | None:
        """Returns all pieces as one segment with a source; None without letters to translate."""
        self._unpair(len(self._open))
        if not _has_letters(self._leaves):
            return None
        return Segment(source, _pieces(self._leaves), self._write)

    def _parts(self, leaves: Sequence[_Leaf]) -> list[str | Segment]:
        if not _has_letters(leaves):
            return _parts_of(leaves)
        first, last = _trimmed(leaves)
        inner = leaves[first:last]
        items = _items(inner) if self._has_lists else [inner]
        if len(items) > 1:
            parts = [part for item in items for part in self._parts(item)]
        else:
            source = "".join(leaf.original for leaf in inner)
            pieces = _pieces(inner)
            if pieces == [source]:
                source = pieces[0]  # one string takes less memory than two
            parts = [Segment(source, pieces, self._write)]
        return [*_parts_of(leaves[:first]), *parts, *_parts_of(leaves[last:])]

    def _add(self, leaf: _Leaf) -> None:
        self._tags += leaf.original.startswith("<")
        rule = f"must have at most {_MOST_TAGS:,} tags in a paragraph"
        require(self._tags <= _MOST_TAGS, None, rule, "more", "the document")
        self.last_character = leaf.text[-1:] or self.last_character
        last = self._leaves[-1] if self._leaves else None
        if leaf.is_space and last is not None and last.is_space and not last.parts:
            last.original += leaf.original
            last.source += leaf.source
        else:
            self._leaves.append(leaf)

    def _unpair(self, count: int) -> None:
        """Turns the innermost open tags into unpaired marks."""
        for _ in range(count):
            self._leaves[self._open.pop()].kind = MarkKind.WHOLE


def _has_letters(leaves: Iterable[_Leaf]) -> bool:
    """Whether there is anything to translate."""
    return any(leaf.is_language and any(map(str.isalpha, leaf.text)) for leaf in leaves)


def _joined(leaves: Sequence[_Leaf]) -> _Leaf:
    """Joins several leaves without language."""
    source = "".join(leaf.original for leaf in leaves)
    text = text_of(leaves)
    parts = tuple(_parts_of(leaves)) if any(leaf.parts for leaf in leaves) else ()
    is_space = text.isspace()
    text = " " if is_space else text
    return _Leaf(source, text=text, parts=parts, original=source, is_space=is_space)


def _parts_of(leaves: Iterable[_Leaf]) -> list[str | Segment]:
    parts: list[str | Segment] = []
    for leaf in leaves:
        parts.extend(leaf.parts or (leaf.original,))
    return parts


def _trimmed(leaves: Sequence[_Leaf]) -> tuple[int, int]:
    """Returns the place of the first leaf that a segment needs, and the one after the last."""
    ends = ends_of_elements(leaves)
    first, last = 0, len(leaves)
    while True:
        closing = leaves[last - 1]
        if leaves[first].can_stay_outside:
            first += 1
        elif closing.can_stay_outside:
            last -= 1
        elif ends.get(first) == last - 1 and closing.source == closing.original:
            first += 1
            last -= 1
        else:
            return first, last


def _items(leaves: Sequence[_Leaf]) -> list[list[_Leaf]]:
    """Splits leaves between adjacent elements that are list items.

    As in the navigation of a page: <a>Docs</a><a>API</a>.
    """
    ends = ends_of_elements(leaves)
    items: list[list[_Leaf]] = [[]]
    before: Sequence[_Leaf] = ()  # the element before
    place = 0
    while place < len(leaves):
        following = ends.get(place, place) + 1
        piece = leaves[place:following]
        if place in ends:
            if before and _are_items(before, piece):
                items.append([])
            before = piece
        elif leaves[place].text:
            before = ()
        items[-1] += piece
        place = following
    return items


def _are_items(one: Sequence[_Leaf], other: Sequence[_Leaf]) -> bool:
    """Whether two adjacent elements are separate, rather than parts of a word or a sentence."""
    before, after = text_of(one), text_of(other)
    if not (before and after) or is_unspaced(before[-1]) or is_unspaced(after[0]):
        return False
    if before[-1].isspace() or after[0].isspace():
        return False
    if one[0].name == other[0].name == "a" or before[-1] in ".:;!?":
        return True
    return len(before) > 1 and before[-1].isalnum() and after[0].isupper()


def _pieces(leaves: Sequence[_Leaf]) -> list[Piece]:
    """Returns leaves as the pieces of a segment, in which adjacent texts are one."""
    _take_single_spaces(leaves)
    pieces: list[Piece] = []
    for leaf in leaves:
        if leaf.is_plain:
            pieces.append(leaf.text)
        elif leaf.source or leaf.text or leaf.kind is not MarkKind.WHOLE:
            pieces.append(leaf)
    return list(joined(pieces))


def _take_single_spaces(leaves: Sequence[_Leaf]) -> None:
    """Makes spaces after another space, and at the end, read as nothing.

    A space's source moves to the mark directly before it, if any.
    """
    read = [place for place, leaf in enumerate(leaves) if leaf.text and not leaf.is_space]
    after_space = True
    mark: _Leaf | None = None  # directly before
    for place, leaf in enumerate(leaves):
        if leaf.is_space and (after_space or place > read[-1]):
            leaf.text = ""
            if after_space and not leaf.parts and mark is not None:
                mark.source += leaf.original
                mark.parts = (*mark.parts, leaf.original) if mark.parts else ()
                leaf.source = ""
                continue
        if not leaf.is_plain:
            mark = leaf
        elif leaf.text:
            mark = None
        if leaf.text:
            after_space = leaf.is_space
