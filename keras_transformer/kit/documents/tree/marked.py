"""Extracts the text for the model from a sentence with marks.

    See the `list` and
    <b>press</b> Enter.     ->     See the and press Enter.

The model only sees language. Marks that stand for words leave the text as an Insertion, together
with brackets around them and commas between two of them. A mark in place of a space, such as a line
break within a paragraph, is a break: its space stays in the text. White space of any kind becomes a
single space, and invisible characters such as soft hyphens are removed, as models do not know them.
"""

import dataclasses
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from keras_transformer.kit.documents.tree.segments import Mark, MarkKind, Piece, text_of
from keras_transformer.use.translate.answers import Span

_BRACKETS = {*("()", "[]", "{}", "<>", "«»", "»«", "“”", "„“", "‘’", "''", '""')}
_COMMAS = ",;/|&+-–—=:·、，"
# Invisible: soft hyphen, zero width space, word joiner, byte order mark, and control characters.
UNSEEN = re.compile("[\u00ad\u200b\u2060\ufeff\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
CLOSING = ".,;:!?…)]}»”’%。，、；：！？）」』】"  # touches the word before it
OPENING = "([{«„“‘¿¡（「『【"


class Slot(NamedTuple):
    """The place of an insertion in the translation (placed.py)."""

    unit: int  # the unit after it, which is the number of its gap
    is_before: bool  # whether it comes before the space there
    is_aligned: bool  # whether found by alignment rather than by position


@dataclasses.dataclass(eq=False)
class Insertion:
    """An insertion into the translation: marks, and the text between them; or a break."""

    pieces: list[Piece]
    is_break: bool = False
    place: int = 0  # in the model's text; for a break, after its space
    before: str = ""  # the character before it in the sentence, if any
    after: str = ""
    slot: Slot | None = None  # None for a break that replaces a space

    @property
    def text(self) -> str:
        """Returns its text."""
        return text_of(self.pieces)

    @property
    def ends_word(self) -> bool:
        """Whether it directly follows a word, like an exponent, rather than being within one."""
        return self.before.isalnum() and not self.after.isalnum()


@dataclasses.dataclass(eq=False)
class Element:
    """A pair of marks, and what is between them.

    `opening` is None if it is before the sentence, and `closing` is None if it is after it. The
    root element is the sentence itself, without marks.
    """

    opening: Mark | None = None
    closing: Mark | None = None
    children: list["Part"] = dataclasses.field(default_factory=list)
    span: Span = (0, 0)  # in the model's text
    start: int = 0  # the first of its units (alignment.py)
    end: int = 0  # the unit after its last one

    @property
    def elements(self) -> list["Element"]:
        """Returns its child elements."""
        return [child for child in self.children if isinstance(child, Element)]

    @property
    def is_open(self) -> bool:
        """Whether it begins in an earlier sentence or ends in a later one."""
        return self.opening is None or self.closing is None

    @property
    def is_formatting(self) -> bool:
        """Whether it is in this sentence alone, and only formats its words."""
        return not self.is_open and self.opening.is_formatting

    @property
    def is_script(self) -> bool:
        """Whether it is in this sentence alone, and a subscript or a superscript."""
        return not self.is_open and self.opening.is_script


Part = str | Element | Insertion


class MarkedSentence:
    """A sentence, and its marks.

    Attributes:
        pieces: the sentence's pieces.
        text: their text.
        root: the Element of the whole sentence.
        model_text: the text for the model.
        places: the places of marks in `model_text`.
    """

    def __init__(self, pieces: Sequence[Piece]):
        self.pieces = pieces
        self.text = text_of(pieces)
        self.root = _tree(pieces)
        self.places: set[int] = set()
        text = _ModelText(self.text, self.places)
        text.add(self.root)
        self.model_text = "".join(text.given)

    @property
    def has_language(self) -> bool:
        """Whether there is anything to translate, unlike in "12:30" or "***"."""
        return any(map(str.isalpha, self.model_text))

    @property
    def needs_alignment(self) -> bool:
        """Whether alignment helps to place any marks: not for spaces and marks at the edges."""

        def is_plain(part: Part) -> bool:
            if not isinstance(part, Insertion):
                return isinstance(part, str)
            if part.is_break:
                return part.text == " "
            is_at_edge = part.place == 0 or part.place >= len(self.model_text)
            return is_at_edge and not (part.before.isalnum() or part.after.isalnum())

        return not all(map(is_plain, self.root.children))

    @property
    def has_marks(self) -> bool:
        """Whether it contains any marks."""
        return any(not isinstance(piece, str) for piece in self.pieces)


def _tree(pieces: Sequence[Piece]) -> Element:
    """Returns a sentence as a tree, with insertions for what leaves the text."""
    root = Element()
    around, starts = [root], [0]  # the open elements, and the numbers of their first pieces
    for number, piece in enumerate(pieces):
        kind = None if isinstance(piece, str) else piece.kind
        if kind is MarkKind.OPEN:
            around.append(Element(opening=piece))
            starts.append(number)
        elif kind is MarkKind.CLOSE and len(around) > 1:
            element, inner = around.pop(), [*pieces[starts.pop() : number + 1]]
            is_blank = not any(isinstance(each, str) and each.strip() for each in inner)
            if not is_blank:
                element.closing = piece
                element.children = _with_insertions(element.children)
            around[-1].children.append(Insertion(inner) if is_blank else element)
        elif kind is MarkKind.CLOSE:
            root.children = [Element(None, piece, _with_insertions(root.children))]
        else:
            part = piece if kind is None else Insertion([piece], is_break=piece.is_break)
            around[-1].children.append(part)
    while len(around) > 1:
        element = around.pop()
        element.children = _with_insertions(element.children)
        around[-1].children.append(element)
    root.children = _with_comma(_with_insertions(root.children))
    return root


def _with_insertions(parts: list[Part]) -> list[Part]:
    """Extends and joins the insertions of an element."""
    return _with_brackets(_joined(_with_brackets(parts)))


def _joined(parts: Iterable[Part]) -> list[Part]:
    """Joins insertions without a word between them, including adjacent breaks."""
    joined: list[Part] = []
    for part in parts:
        between = joined.pop() if joined and isinstance(joined[-1], str) else ""
        before = joined[-1] if joined else None
        if (
            isinstance(part, Insertion)
            and isinstance(before, Insertion)
            and not (part.is_break and before.is_break)
            and _is_joint(between, before.is_break or part.is_break)
        ):
            before.pieces += [between, *part.pieces]
            before.is_break = False
        else:
            joined += [between, part] if between else [part]
    return joined


def _is_joint(between: str, beside_break: bool) -> bool:
    """Whether the text between two insertions lets them be joined."""
    if beside_break:
        return not between.strip()
    return all(character.isspace() or character in _COMMAS for character in between)


def _with_brackets(parts: list[Part]) -> list[Part]:
    """Extends insertions by the brackets and quotation marks directly around them."""
    parts = list(parts)
    for number in range(1, len(parts) - 1):
        before, part, after = parts[number - 1 : number + 2]
        is_between_texts = isinstance(before, str) and isinstance(after, str)
        if not isinstance(part, Insertion) or part.is_break or not is_between_texts:
            continue
        depth = 0
        for opening, closing in zip(reversed(before), after, strict=False):
            if opening + closing not in _BRACKETS:
                break
            depth += 1
        place = len(before) - depth
        pieces = [*before[place:], *part.pieces, *after[:depth]]
        parts[number - 1 : number + 2] = [before[:place], Insertion(pieces), after[depth:]]
    return [part for part in parts if part != ""]


def _with_comma(parts: list[Part]) -> list[Part]:
    """Extends an insertion at the beginning by a comma after it: "{name}, please wait."."""
    if len(parts) < 2 or not isinstance(parts[0], Insertion) or not isinstance(parts[1], str):
        return parts
    comma, rest = parts[1][0], parts[1][1:]
    if comma not in _COMMAS or rest[:1].isalnum():
        return parts
    return [Insertion([*parts[0].pieces, comma]), rest, *parts[2:]]


class _ModelText:
    """Writes the model's text for a sentence, and records the places of its parts.

    Args:
        text: the sentence's text.
        places: a set, to which the places of marks are added.
    """

    def __init__(self, text: str, places: set[int]):
        self.given: list[str] = []
        self._length = 0  # of the model's text
        self._has_space = False  # before the next text
        self._skips_space = False  # at the beginning of the next text
        self._text = text
        self._read = 0  # characters of the text
        self._places = places

    def add(self, element: Element) -> None:
        """Adds the content of an element."""
        start = self._next_place
        for part in element.children:
            if isinstance(part, str):
                self._add_text(part)
                self._read += len(part)
            elif isinstance(part, Element):
                self.add(part)
            else:
                self._add_insertion(part)
        element.span = (min(start, self._length), self._length)
        self._places.update(element.span)

    @property
    def _next_place(self) -> int:
        return self._length + self._has_space

    def _add_text(self, text: str) -> None:
        words = " ".join(UNSEEN.sub("", f"|{text}|").split())[1:-1]
        if self._skips_space:
            words = words.lstrip(" ")
            self._skips_space = False
        self._has_space |= words.startswith(" ") and self._length > 0
        if word := words.strip(" "):
            self.given.append(f" {word}" if self._has_space else word)
            self._length += len(self.given[-1])
            self._has_space = words.endswith(" ")

    def _add_insertion(self, part: Insertion) -> None:
        """Omits an insertion, and a space that would be doubled or precede a comma."""
        inner = part.text
        part.before = self._text[max(self._read - 1, 0) : self._read]
        self._read += len(inner)
        part.after = self._text[self._read : self._read + 1]
        last = self.given[-1][-1] if self.given and not self._has_space else " "
        if part.is_break:
            self._has_space = self._length > 0
        elif part.after.isspace():
            self._skips_space = last in OPENING
        elif part.after in tuple(CLOSING):
            self._has_space = False
        elif (inner[:1].isspace() or inner[-1:].isspace()) and self._length and part.after:
            self._has_space = True
        part.place = self._next_place
        self._places.add(part.place)
