"""Makes segments from the pieces of a paragraph: words, spaces, tags, code spans.

A reader calls the methods of SegmentBuilder in document order, without pairing tags: only this
module does. `parts` is then the segment, surrounded by anything that need not be in it: a link
around the whole text, spaces before it, an image after it. The fewer marks a segment has, the fewer
must be placed in its translation.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from keras_transformer.kit.documents.tree.segments import (
    Element,
    Mark,
    MarkKind,
    Node,
    Parts,
    Piece,
    Segment,
)
from keras_transformer.kit.documents.tree.sentences import is_unspaced
from keras_transformer.support.errors import require

MOST_NESTED = 60  # elements; tags of deeper ones are unpaired marks
_MOST_TAGS = 50_000  # in a paragraph, opening or alone; each takes up to 4 KB of memory


def joined(parts: Iterable[str | Any]) -> tuple[str | Any, ...]:
    """Joins consecutive strings among parts of a document or nodes, and drops empty ones."""
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
class _Leaf:
    """A piece of a paragraph: a word, a space, a tag, or untranslated content."""

    source: str  # as the document writes it
    text: str = ""  # as it reads
    is_language: bool = False  # is translated
    is_space: bool = False  # reads as one space, or as nothing next to another space
    parts: Parts = ()  # its source in parts, if there is language in it
    written: str = ""  # the source next to translated text
    is_formatting: bool = False  # begins an element that only formats its words
    is_script: bool = False  # begins a subscript or a superscript

    def __post_init__(self):
        self.written = self.written or self.source

    @property
    def can_stay_outside(self) -> bool:
        """Whether it can be left out at a segment's edge, as it has no text."""
        return self.is_space or not (self.text or self.is_language)

    @property
    def is_plain(self) -> bool:
        """Whether it is text rather than a mark."""
        return self.is_language or (self.written == self.text == " ")

    def mark(self, kind: MarkKind = MarkKind.WHOLE, name: Hashable = "") -> Mark:
        return Mark(
            self.written, kind, self.text, self.parts, name, self.is_formatting, self.is_script
        )


@dataclasses.dataclass(eq=False, slots=True)
class _Tagged:
    """An opening tag, the pieces after it, and its closing tag, if any."""

    name: Hashable
    opening: _Leaf
    children: list["_Leaf | _Tagged"] = dataclasses.field(default_factory=list)
    has_language: bool = False
    closing: _Leaf | None = None


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
        self._open = [_Tagged("", _Leaf(""))]  # the whole paragraph, and the open tags
        self._too_deep = 0  # open tags within these
        self._tags = 0
        self.last_character = ""

    def word(self, source: str, text: str) -> None:
        """Adds text: a word, several, or part of one."""
        self._open[-1].has_language = True
        self._add(_Leaf(source, text, is_language=True))

    def space(self, source: str, written: str = "", text: str = " ") -> None:
        r"""Adds white space of any form: a line break, indentation, <br>.

        Args:
            source: as the document writes it.
            written: the source next to translated text, if different.
            text: how it reads: "\t" for a tab between columns, which ends a sentence; "\n" for a
                line break that must stay exactly at its word.
        """
        self._add(_Leaf(source, text, is_space=True, written=written))

    def kept(self, source: str, text: str = "", parts: Parts = ()) -> None:
        """Adds untranslated content: an image, a code span.

        Args:
            source: as the document writes it.
            text: the words that it stands for, if any.
            parts: the source in parts, if there is language in it.
        """
        self._add(_Leaf(source, text, parts=parts))

    def silent(self, source: str) -> None:
        """Adds source that is omitted next to translated text."""
        self._add(_Leaf(source, is_language=True))

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
        opening = _Leaf(source, parts=parts, is_formatting=is_formatting, is_script=is_script)
        if len(self._open) > MOST_NESTED:
            self._too_deep += 1
            self._add(opening)
        else:
            self._count_tag(opening)
            self._open.append(_Tagged(name, opening))

    def end(self, name: Hashable, source: str, written: str = "") -> None:
        """Ends the innermost open element with this name.

        Tags that began within it stay unpaired, as does this one if no such tag is open.

        Args:
            name: the tag's name.
            source: as the document writes it.
            written: the source next to translated text, if different.
        """
        closing = _Leaf(source, written=written)
        ended = self._open_tags.end(name)
        if ended <= self._too_deep:
            self._too_deep -= ended
            self._add(closing)
            return
        self._end_within(ended - self._too_deep)
        self._too_deep = 0
        element = self._open.pop()
        element.closing = closing
        parent = self._open[-1]
        parent.has_language |= element.has_language
        if not element.has_language:
            parent.children.append(_joined(_leaves([element])))
        else:
            parent.children.append(element)

    def parts(self) -> list[str | Segment]:
        """Returns all pieces: strings, and a segment if there are letters to translate."""
        self._end_within(len(self._open))
        return self._parts(self._open[0].children)

    def segment(self, source: str) -> Segment | None:
        """Returns all pieces as one segment with a source; None without letters to translate."""
        self._end_within(len(self._open))
        children = self._open[0].children
        leaves = list(_leaves(children))
        if not _has_letters(leaves):
            return None
        _take_single_spaces(leaves)
        return Segment(source, _nodes(children), self._write)

    def _parts(self, pieces: Sequence[_Leaf | _Tagged]) -> list[str | Segment]:
        leaves = list(_leaves(pieces))
        if not _has_letters(leaves):
            return _parts_of(leaves)
        before, inner, after = _trimmed(pieces)
        items = _items(inner) if self._has_lists else [inner]
        if len(items) > 1:
            parts = [part for item in items for part in self._parts(item)]
        else:
            leaves = list(_leaves(inner))
            source = "".join(leaf.source for leaf in leaves)
            _take_single_spaces(leaves)
            nodes = _nodes(inner)
            if nodes == [source]:
                source = nodes[0]  # one string takes less memory than two
            parts = [Segment(source, nodes, self._write)]
        return [*_parts_of(before), *parts, *_parts_of(after)]

    def _add(self, leaf: _Leaf) -> None:
        self._count_tag(leaf)
        self.last_character = leaf.text[-1:] or self.last_character
        siblings = self._open[-1].children
        last = siblings[-1] if siblings else None
        if leaf.is_space and isinstance(last, _Leaf) and last.is_space and not last.parts:
            last.source += leaf.source
            last.written += leaf.written
        else:
            siblings.append(leaf)

    def _count_tag(self, leaf: _Leaf) -> None:
        self._tags += leaf.source.startswith("<")
        rule = f"must have at most {_MOST_TAGS:,} tags in a paragraph"
        require(self._tags <= _MOST_TAGS, None, rule, "more", "the document")

    def _end_within(self, count: int) -> None:
        """Turns all but the first of the innermost `count` tags into unpaired marks."""
        first, *others = self._open[-count:]
        for tagged in others:
            first.children += [tagged.opening, *tagged.children]
            first.has_language |= tagged.has_language
        self._open[-count:] = [first]


def _leaves(pieces: Iterable[_Leaf | _Tagged]) -> Iterator[_Leaf]:
    for piece in pieces:
        if isinstance(piece, _Tagged):
            yield piece.opening
            yield from _leaves(piece.children)
            yield piece.closing
        else:
            yield piece


def _has_letters(leaves: Iterable[_Leaf]) -> bool:
    """Whether there is anything to translate."""
    return any(leaf.is_language and any(map(str.isalpha, leaf.text)) for leaf in leaves)


def _joined(leaves: Iterable[_Leaf]) -> _Leaf:
    """Joins several leaves without language."""
    leaves = list(leaves)
    source = "".join(leaf.source for leaf in leaves)
    text = "".join(leaf.text for leaf in leaves)
    parts = tuple(_parts_of(leaves)) if any(leaf.parts for leaf in leaves) else ()
    is_space = text.isspace()
    text = " " if is_space else text
    return _Leaf(source, text, is_space=is_space, parts=parts)


def _parts_of(leaves: Iterable[_Leaf]) -> list[str | Segment]:
    parts: list[str | Segment] = []
    for leaf in leaves:
        parts.extend(leaf.parts or (leaf.source,))
    return parts


def _trimmed(
    pieces: Sequence[_Leaf | _Tagged],
) -> tuple[list[_Leaf], Sequence[_Leaf | _Tagged], list[_Leaf]]:
    """Splits pieces into those before a segment, those it needs, and those after it."""
    before: list[_Leaf] = []
    after: list[_Leaf] = []
    first, last = 0, len(pieces)
    while True:
        if isinstance(pieces[first], _Leaf) and pieces[first].can_stay_outside:
            before.append(pieces[first])
            first += 1
        elif isinstance(pieces[last - 1], _Leaf) and pieces[last - 1].can_stay_outside:
            after.append(pieces[last - 1])
            last -= 1
        elif (
            last - first == 1
            and isinstance(pieces[first], _Tagged)
            and (pieces[first].closing.written == pieces[first].closing.source)
        ):
            before.append(pieces[first].opening)
            after.append(pieces[first].closing)
            pieces = pieces[first].children
            first, last = 0, len(pieces)
        else:
            return before, pieces[first:last], after[::-1]


def _items(pieces: Sequence[_Leaf | _Tagged]) -> list[list[_Leaf | _Tagged]]:
    """Splits pieces between adjacent elements that are list items.

    As in the navigation of a page: <a>Docs</a><a>API</a>.
    """
    items: list[list[_Leaf | _Tagged]] = [[]]
    before: _Tagged | None = None
    for piece in pieces:
        if isinstance(piece, _Tagged):
            if before is not None and _are_items(before, piece):
                items.append([])
            before = piece
        elif piece.text:
            before = None
        items[-1].append(piece)
    return items


def _are_items(one: _Tagged, other: _Tagged) -> bool:
    """Whether two adjacent elements are separate, rather than parts of a word or a sentence."""
    before, after = _text(one), _text(other)
    if not (before and after) or is_unspaced(before[-1]) or is_unspaced(after[0]):
        return False
    if before[-1].isspace() or after[0].isspace():
        return False
    if one.name == other.name == "a" or before[-1] in ".:;!?":
        return True
    return len(before) > 1 and before[-1].isalnum() and after[0].isupper()


def _text(tagged: _Tagged) -> str:
    return "".join(leaf.text for leaf in _leaves(tagged.children))


def _take_single_spaces(leaves: Sequence[_Leaf]) -> None:
    """Makes spaces after another space, and at the end, read as nothing.

    A space's source moves to the mark directly before it, if any.
    """
    read = [number for number, leaf in enumerate(leaves) if leaf.text and not leaf.is_space]
    after_space = True
    mark: _Leaf | None = None  # directly before
    for number, leaf in enumerate(leaves):
        if leaf.is_space and (after_space or number > read[-1]):
            leaf.text = ""
            if after_space and not leaf.parts and mark is not None:
                mark.written += leaf.source
                mark.parts = (*mark.parts, leaf.source) if mark.parts else ()
                leaf.written = ""
                continue
        if not leaf.is_plain:
            mark = leaf
        elif leaf.text:
            mark = None
        if leaf.text:
            after_space = leaf.is_space


def _nodes(pieces: Iterable[_Leaf | _Tagged]) -> list[Node]:
    nodes: list[Node] = []
    for piece in pieces:
        if isinstance(piece, _Tagged):
            opening = piece.opening.mark(MarkKind.OPEN, piece.name)
            closing = piece.closing.mark(MarkKind.CLOSE, piece.name)
            nodes.append(Element(opening, closing, _nodes(piece.children)))
        elif not piece.is_plain:
            if piece.written or piece.text:
                nodes.append(piece.mark())
        else:
            nodes.append(piece.text)
    return list(joined(nodes))
