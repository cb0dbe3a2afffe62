"""A notation for trees of segments in tests."""

import re
from typing import NamedTuple

from keras_transformer.kit.documents.tree.segments import Element, Mark, MarkKind, pieces_of

MARKS = re.compile(r"(</?\w>|\{[^}]*\}|~|!\w!)")


class PlacedMark(NamedTuple):
    """A mark and its place in the text."""

    mark: Mark
    source: str
    start: int
    end: int
    kind: MarkKind


def marks_in(segment):
    """Returns the marks of a segment, in order."""
    found, place = [], 0
    for piece in pieces_of(segment.nodes):
        if isinstance(piece, str):
            place += len(piece)
            continue
        end = place + len(piece.text)
        found.append(PlacedMark(piece, piece.source, place, end, piece.kind))
        place = end
    return found


def nodes_of(written, line_break="~", pattern=MARKS):
    """Parses a tree: <b> and </b> are tags; {x} stands for words, !x! for nothing, ~ for a space.

    <f> is formatting, which may be dropped with its words.
    A tag without its partner belongs to an element that begins before the tree or ends after it.
    """
    root = []
    stack = [Element(None, None, root)]
    for part in pattern.split(written):
        if part.startswith("</") and pattern.fullmatch(part):
            closing = Mark(part, MarkKind.CLOSE)
            if len(stack) > 1:
                stack.pop().closing = closing
            else:
                root[:] = [Element(None, closing, root[:])]
        elif part.startswith("<") and pattern.fullmatch(part):
            opening = Mark(part, MarkKind.OPEN, is_formatting=part == "<f>")
            element = Element(opening, None, [])
            stack[-1].children.append(element)
            stack.append(element)
        elif pattern.fullmatch(part):
            text = {"{": part, "~": " "}.get(part[0], "")
            stack[-1].children.append(Mark(line_break if part == "~" else part, text=text))
        elif part:
            stack[-1].children.append(part)
    return root
