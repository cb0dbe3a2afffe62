"""A notation for the pieces of segments in tests."""

import re
from typing import NamedTuple

from keras_transformer.kit.documents.tree.segments import Mark, MarkKind, with_places

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
    return [
        PlacedMark(piece, piece.source, start, end, piece.kind)
        for piece, start, end in with_places(segment.pieces)
        if isinstance(piece, Mark)
    ]


def pieces_of(written, line_break="~", pattern=MARKS):
    """Parses pieces: <b> and </b> are tags; {x} stands for words, !x! for nothing, ~ for a space.

    <f> is formatting, which may be dropped with its words.
    """
    return [
        _mark(part, line_break) if pattern.fullmatch(part) else part
        for part in pattern.split(written)
        if part
    ]


def _mark(part, line_break):
    if part.startswith("<"):
        kind = MarkKind.CLOSE if part.startswith("</") else MarkKind.OPEN
        return Mark(part, kind, is_formatting=part == "<f>")
    text = {"{": part, "~": " "}.get(part[0], "")
    return Mark(line_break if part == "~" else part, text=text)
