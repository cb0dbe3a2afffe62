"""A sentence with marks: what a model is given of it, and how its marks are nested.

    See the `list` and
    <b>press</b> Enter.     ->     See the and press Enter.

A model is given language only. What stands for words leaves the text as an Insertion, with what
would make no sense without it: brackets around it, and commas between two of them. A mark in place
of a space, as a line break within a paragraph, is a Break, and its space stays in the text. Web
pages and word processors write spaces and characters that nobody sees, and models have not: a model
is given one plain space for each white space, and nothing for a soft hyphen and the like.
"""

import dataclasses
import re
from collections.abc import Sequence

from keras_transformer.documents.segments import Mark, MarkKind, Piece

_BRACKETS = {*("()", "[]", "{}", "<>", "«»", "»«", "“”", "„“", "‘’", "''", '""')}
_COMMAS = ",;/|&+-–—=:·、，"
# White space that is no single plain space.
_WHITE_SPACE = re.compile(r"[^\S ]\s*| \s+")
# Nothing to be seen: soft hyphen, zero width space, word joiner, byte order mark, and controls.
_UNSEEN = re.compile("[\u00ad\u200b\u2060\ufeff\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
CLOSING = ".,;:!?…)]}»”’%。，、；：！？）」』】"  # touches the word before it
OPENING = "([{«„“‘¿¡（「『【"


@dataclasses.dataclass
class Insertion:
    """What is inserted into the translation: marks, and the text between them."""

    start: int  # in the text of the sentence
    end: int
    first: int  # of its marks among those of the sentence
    last: int


@dataclasses.dataclass
class Break:
    """A mark in place of a space."""

    start: int
    end: int
    first: int
    last: int


@dataclasses.dataclass
class Element:
    """A pair of marks, and what is between them; one of them may be in another sentence.

    The element around all others is the sentence itself, which has neither.
    """

    start: int
    end: int
    first: int
    last: int
    opening: Mark | None = None
    closing: Mark | None = None
    children: list["Element | Insertion | Break"] = dataclasses.field(default_factory=list)


Part = Element | Insertion | Break


class MarkedSentence:
    """A sentence, and its marks with places in its text.

    Attributes:
        text: as the document reads.
        marks: in their order. OPEN and CLOSE marks without a partner belong to elements that begin
            before the sentence or end after it.
        root: the Element of the whole sentence.
        model_text: what a model is given.
        places: of each character of the text, and of its end, the place in `model_text`.
    """

    def __init__(self, text: str, marks: Sequence[Mark] = ()):
        self.text = text
        self.marks = tuple(marks)
        self.root = self._nested()
        self.model_text, self.places = text, list(range(len(text) + 1))
        if self.marks:
            self.model_text, self.places = self._without(self._simplify())
        if _WHITE_SPACE.search(self.model_text) or _UNSEEN.search(self.model_text):
            self._take_plain_text()

    @property
    def has_language(self) -> bool:
        """Whether there is anything to translate: "12:30", "***" and the like are no language."""
        return any(map(str.isalpha, self.model_text))

    @property
    def needs_alignment(self) -> bool:
        """Whether there are marks that alignment helps to place: not at the edges, no breaks."""

        def is_plain(part: Part) -> bool:
            if not isinstance(part, Insertion):
                return isinstance(part, Break)
            is_at_edge = self.places[part.start] in (0, len(self.model_text))
            beside = self.text[: part.start][-1:] + self.text[part.end : part.end + 1]
            return is_at_edge and not any(map(str.isalnum, beside))  # a part of no word

        return not all(map(is_plain, self.root.children))

    def unchanged(self) -> list[Piece]:
        """The sentence as it is."""
        return verbatim(self.text, 0, len(self.text), self.marks)

    def pieces(self, part: Insertion | Break) -> list[Piece]:
        """A part as it is."""
        marks = self.marks[part.first : part.last + 1]
        return verbatim(self.text, part.start, part.end, marks)

    def _nested(self) -> Element:
        """The tree of the marks."""
        length, last = len(self.text), len(self.marks) - 1
        root = Element(0, length, 0, last)
        stack = [root]
        for number, mark in enumerate(self.marks):
            if mark.kind is MarkKind.OPEN:
                element = Element(mark.start, length, number, last, opening=mark)
                stack[-1].children.append(element)
                stack.append(element)
            elif mark.kind is MarkKind.WHOLE:
                is_break = mark.start < mark.end and self.text[mark.start : mark.end].isspace()
                kind = Break if is_break else Insertion
                stack[-1].children.append(kind(mark.start, mark.end, number, number))
            elif len(stack) > 1:
                element = stack.pop()
                element.end, element.last, element.closing = mark.end, number, mark
            else:  # all so far is within the element that ends here
                element = Element(0, mark.end, 0, number, closing=mark, children=root.children)
                root.children = [element]
        return root

    def _simplify(self) -> list[Insertion]:
        """Makes insertions of the elements that hold no language; returns all insertions."""
        insertions: list[Insertion] = []
        remaining = [self.root]
        while remaining:
            element = remaining.pop()
            children = [self._simplified(child) for child in element.children]
            children = self._joined(self._with_brackets(element, children))
            element.children = self._with_brackets(element, children)
            if element is self.root and children:
                self._take_comma(element.children[0])
            insertions += [child for child in element.children if isinstance(child, Insertion)]
            remaining += [child for child in element.children if isinstance(child, Element)]
        return sorted(insertions, key=lambda insertion: insertion.first)

    def _simplified(self, part: Part) -> Part:
        is_pair = isinstance(part, Element) and None not in (part.opening, part.closing)
        if is_pair and self._is_blank(part):
            return Insertion(part.start, part.end, part.first, part.last)
        return part

    def _is_blank(self, element: Element) -> bool:
        marks = self.marks[element.first : element.last + 1]
        found = verbatim(self.text, element.start, element.end, marks)
        return not any(isinstance(piece, str) and piece.strip() for piece in found)

    def _joined(self, children: Sequence[Part]) -> list:
        """Joins insertions that no word is between, with each other and with breaks beside them."""
        joined: list[Part] = []
        for child in children:
            before = joined[-1] if joined else None
            pair = (before, child)
            if None in pair or any(isinstance(part, Element) for part in pair):
                joined.append(child)
                continue
            between = self.text[before.end : child.start]
            if all(isinstance(part, Insertion) for part in pair):
                is_one = all(character.isspace() or character in _COMMAS for character in between)
            else:
                is_one = not between.strip() and any(isinstance(part, Insertion) for part in pair)
            if is_one:
                joined[-1] = Insertion(before.start, child.end, before.first, child.last)
            else:
                joined.append(child)
        return joined

    def _with_brackets(self, element: Element, children: Sequence) -> list:
        """Widens insertions by the brackets and quotation marks directly around them."""
        ends = [element.start, *(child.end for child in children)]
        starts = [*(child.start for child in children), element.end]
        widened = []
        for child, lowest, highest in zip(children, ends[:-1], starts[1:], strict=True):
            start, end = child.start, child.end
            if isinstance(child, Insertion):
                while lowest < start and end < highest:
                    if self.text[start - 1] + self.text[end] not in _BRACKETS:
                        break
                    start, end = start - 1, end + 1
                child = dataclasses.replace(child, start=start, end=end)
            widened.append(child)
        return widened

    def _take_comma(self, part: Part) -> None:
        """Widens what a sentence begins with by a comma after it: "{name}, please wait."."""
        if not isinstance(part, Insertion) or part.start > 0:
            return
        next_mark = self.marks[part.last + 1 : part.last + 2]
        is_free = not next_mark or next_mark[0].start > part.end
        comma, after = self.text[part.end : part.end + 1], self.text[part.end + 1 : part.end + 2]
        if is_free and comma in tuple(_COMMAS) and not after.isalnum():
            part.end += 1

    def _without(self, insertions: Sequence[Insertion]) -> tuple[str, list[int]]:
        """The text without insertions and spaces that would be doubled, and places in it."""
        text, given, places = self.text, [], []
        place = 0
        for insertion in [*insertions, None]:
            upto = len(text) if insertion is None else insertion.start
            while place < upto:
                places.append(len(given))
                given.append(text[place])
                place += 1
            if insertion is None:
                break
            end = max(insertion.end, place)  # the space after the one before it may be skipped
            before, after = "".join(given[-1:]), text[end : end + 1]
            inner = text[insertion.start : insertion.end]
            has_space = inner[:1].isspace() or inner[-1:].isspace()
            skipped = end - place
            if after.isspace() and (before == "" or before.isspace() or before in OPENING):
                skipped += 1
            elif before.isspace() and after and after in CLOSING:
                given.pop()
            elif has_space and before.strip() and after.strip() and after not in CLOSING:
                given.append(" ")
            places += [len(given)] * skipped
            place += skipped
        model_text = "".join(given).rstrip()
        places.append(len(model_text))
        return model_text, [min(place, len(model_text)) for place in places]

    def _take_plain_text(self) -> None:
        """Leaves one plain space of each white space in `model_text`, and nothing unseen."""
        seen: list[str] = []
        places = []
        for character in self.model_text:
            places.append(len(seen))
            if character.isspace():
                if seen and seen[-1] != " ":
                    seen.append(" ")
            elif not _UNSEEN.match(character):
                seen.append(character)
        text = "".join(seen).rstrip()
        places.append(len(seen))
        self.places = [min(places[place], len(text)) for place in self.places]
        self.model_text = text


def verbatim(text: str, start: int, end: int, marks: Sequence[Mark]) -> list[Piece]:
    """A part of a text as it is, with the marks in it."""
    pieces: list[Piece] = []
    for mark in marks:
        pieces += [text[start : mark.start], mark]
        start = mark.end
    pieces.append(text[start:end])
    return [piece for piece in pieces if piece != ""]
