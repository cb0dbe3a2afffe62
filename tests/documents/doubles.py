"""A translator that changes characters in place: each mark has its place in the translation."""

import dataclasses

from keras_transformer.documents.segments import Segment


def written(parts, change):
    """Writes the parts of a document with changed text.

    Args:
        parts: of a document, or of a mark.
        change: text -> text of the same length.
    """
    return "".join(part if isinstance(part, str) else _segment(part, change) for part in parts)


def _segment(segment: Segment, change):
    text = change(segment.text)
    assert len(text) == len(segment.text)
    pieces, end = [], 0
    for mark in segment.marks:
        source = written(mark.parts, change) if mark.parts else mark.source
        pieces += [text[end : mark.start], dataclasses.replace(mark, source=source)]
        end = mark.end
    return segment.write([piece for piece in [*pieces, text[end:]] if piece != ""])
