"""A sentence with marks: what a model is given of it.

    See the `list` and
    <b>press</b> Enter.     ->     See the and press Enter.

A model is given language only. What stands for words leaves the text as an Insertion, with what
would make no sense without it: brackets around it, and commas between two of them. A mark in place
of a space, as a line break within a paragraph, is a break: its space stays in the text. Web
pages and word processors write spaces and characters that nobody sees, and models have not: a model
is given one plain space for each white space, and nothing for a soft hyphen and the like.
"""

import dataclasses
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from keras_transformer.documents import segments
from keras_transformer.documents.segments import Mark, Node, Piece, pieces_of, text_of
from keras_transformer.translate.answers import Span

_BRACKETS = {*("()", "[]", "{}", "<>", "«»", "»«", "“”", "„“", "‘’", "''", '""')}
_COMMAS = ",;/|&+-–—=:·、，"
# Nothing to be seen: soft hyphen, zero width space, word joiner, byte order mark, and controls.
UNSEEN = re.compile("[\u00ad\u200b\u2060\ufeff\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
CLOSING = ".,;:!?…)]}»”’%。，、；：！？）」』】"  # touches the word before it
OPENING = "([{«„“‘¿¡（「『【"


class Slot(NamedTuple):
    """Where an insertion comes in the translation (placed.py)."""

    unit: int  # that it comes before: the number of its gap
    is_before: bool  # whether it comes before the space there
    is_aligned: bool  # whether alignment has found it, and not only its place in the sentence


@dataclasses.dataclass(eq=False)
class Insertion:
    """An insertion into the translation: marks, and the text between them; or a break."""

    nodes: list[Node]
    is_break: bool = False
    place: int = 0  # in the text that a model is given; of a break, after its space
    before: str = ""  # the character before it in the sentence, if there is one
    after: str = ""
    slot: Slot | None = None  # a break that takes the place of a space has none

    @property
    def text(self) -> str:
        """The text that it reads as."""
        return text_of(self.nodes)

    @property
    def ends_word(self) -> bool:
        """Whether it is directly after a word, as an exponent is, and in none."""
        return self.before.isalnum() and not self.after.isalnum()


@dataclasses.dataclass(eq=False)
class Element(segments.Element):
    """An element, whose marks are insertions, and which is around units of the translation.

    The element around all others is the sentence itself, which has neither of its tags.
    """

    span: Span = (0, 0)  # in the text that a model is given
    start: int = 0  # the first of its units (alignment.py)
    end: int = 0  # the unit after its last one

    @property
    def elements(self) -> list["Element"]:
        """Those directly in it."""
        return [child for child in self.children if isinstance(child, Element)]

    @property
    def insertions(self) -> list[Insertion]:
        """Those directly in it, breaks among them."""
        return [child for child in self.children if isinstance(child, Insertion)]

    @property
    def is_open(self) -> bool:
        """Whether it begins in an earlier sentence or ends in a later one."""
        return self.opening is None or self.closing is None


_Part = str | Element | Insertion


class MarkedSentence:
    """A sentence, and its marks.

    Attributes:
        nodes: those of the sentence.
        text: what they read as.
        root: the Element of the whole sentence.
        model_text: what a model is given.
        places: of `model_text`, at which marks are.
    """

    def __init__(self, nodes: Sequence[Node]):
        self.nodes = nodes
        self.text = text_of(nodes)
        self.root = Element(None, None, _parts(nodes, is_sentence=True))
        self.places: set[int] = set()
        text = _ModelText(self.text, self.places)
        text.add(self.root)
        self.model_text = "".join(text.given)

    @property
    def has_language(self) -> bool:
        """Whether there is anything to translate: "12:30", "***" and the like are no language."""
        return any(map(str.isalpha, self.model_text))

    @property
    def needs_alignment(self) -> bool:
        """Whether there are marks that alignment helps to place: not at the edges, no spaces."""

        def is_plain(part: _Part) -> bool:
            if not isinstance(part, Insertion):
                return isinstance(part, str)
            if part.is_break:
                return part.text == " "
            is_at_edge = part.place == 0 or part.place >= len(self.model_text)
            return is_at_edge and not (part.before.isalnum() or part.after.isalnum())

        return not all(map(is_plain, self.root.children))

    @property
    def has_marks(self) -> bool:
        """Whether it is more than text."""
        return any(not isinstance(node, str) for node in self.nodes)

    def unchanged(self) -> list[Piece]:
        """The sentence as it is."""
        return [piece for piece in pieces_of(self.nodes) if piece != ""]


def _parts(nodes: Iterable[Node], is_sentence: bool = False) -> list[_Part]:
    """The parts of an element, with what leaves the text as insertions."""
    parts = _with_brackets([_part(node) for node in nodes])
    parts = _with_brackets(_joined(parts))
    if is_sentence:
        _take_comma(parts)
    return [
        Element(part.opening, part.closing, _parts(part.children)) if _is_element(part) else part
        for part in parts
        if part != ""
    ]


def _is_element(part: _Part | Node) -> bool:
    return isinstance(part, segments.Element)


def _part(node: Node) -> _Part | segments.Element:
    if isinstance(node, str):
        return node
    if isinstance(node, Mark):
        return Insertion([node], is_break=node.is_break)
    is_blank = not any(isinstance(piece, str) and piece.strip() for piece in pieces_of([node]))
    return Insertion([node]) if is_blank and None not in (node.opening, node.closing) else node


def _joined(parts: Iterable[_Part]) -> list[_Part]:
    """Joins insertions that no word is between, with each other and with breaks beside them."""
    joined: list[_Part] = []
    for part in parts:
        between = joined.pop() if joined and isinstance(joined[-1], str) else ""
        before = joined[-1] if joined else None
        if (
            isinstance(part, Insertion)
            and isinstance(before, Insertion)
            and not (part.is_break and before.is_break)
            and _is_joint(between, before.is_break or part.is_break)
        ):
            joined[-1] = Insertion([*before.nodes, between, *part.nodes])
        else:
            joined += [between, part] if between else [part]
    return joined


def _is_joint(between: str, beside_break: bool) -> bool:
    """Whether text is no reason for two insertions around it to be apart."""
    if beside_break:
        return not between.strip()
    return all(character.isspace() or character in _COMMAS for character in between)


def _with_brackets(parts: list[_Part]) -> list[_Part]:
    """Widens insertions by the brackets and quotation marks directly around them."""
    parts = list(parts)
    for number in range(1, len(parts) - 1):
        before, part, after = parts[number - 1 : number + 2]
        is_between_texts = isinstance(before, str) and isinstance(after, str)
        if not isinstance(part, Insertion) or part.is_break or not is_between_texts:
            continue
        nodes = part.nodes
        while before and after and before[-1] + after[0] in _BRACKETS:
            nodes = [before[-1], *nodes, after[0]]
            before, after = before[:-1], after[1:]
        parts[number - 1 : number + 2] = [before, Insertion(nodes), after]
    return [part for part in parts if part != ""]


def _take_comma(parts: list[_Part]) -> None:
    """Widens what a sentence begins with by a comma after it: "{name}, please wait."."""
    if len(parts) < 2 or not isinstance(parts[0], Insertion) or not isinstance(parts[1], str):
        return
    comma, rest = parts[1][0], parts[1][1:]
    if comma in _COMMAS and not rest[:1].isalnum():
        parts[:2] = [Insertion([*parts[0].nodes, comma]), rest]


class _ModelText:
    """Writes what a model is given of a sentence, and notes in its parts where they are in it.

    Args:
        text: what the sentence reads as.
        places: to which those are added at which marks are.
    """

    def __init__(self, text: str, places: set[int]):
        self.given: list[str] = []
        self._length = 0  # of what is given
        self._has_space = False  # before what is given next
        self._skips_space = False  # that the text begins with which is given next
        self._text = text
        self._read = 0  # characters of the text
        self._places = places

    def add(self, element: Element) -> None:
        """Adds what is in an element."""
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
        """Leaves an insertion out, and a space that would be doubled or before a comma."""
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
