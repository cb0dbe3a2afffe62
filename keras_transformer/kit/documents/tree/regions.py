"""Splits the pieces of a segment into sentences and what is between them.

    <b>A dog. It</b> sleeps.        between  sentence      between  sentence        between
                                    <b>      A dog.        " "      It</b> sleeps.

An element belongs to a sentence if all of it does; otherwise each mark stays in its region, so an
element may only begin or only end in a sentence. Marks at a sentence's edges are outside it.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from keras_transformer.core.vocabulary.spans import Span
from keras_transformer.kit.documents.tree.segments import Piece, ends_of_elements, with_places


def regions(pieces: Sequence[Piece], spans: Sequence[Span]) -> list[list[Piece]]:
    """Splits pieces into regions.

    Args:
        pieces: a segment's.
        spans: the spans of its sentences in its text. A mark that overlaps a span is in it.

    Returns:
        The pieces before the first sentence, its own, those between it and the next sentence, and
        so on, up to the pieces after the last sentence.
    """
    ends: list[float] = [place for span in spans for place in span]  # of regions, in the text
    ends.append(math.inf)
    found: list[list[Piece]] = [[] for _ in ends]
    elements = ends_of_elements(pieces)
    placed = list(with_places(pieces))
    number = 0
    while number < len(pieces):
        piece, start, end = placed[number]
        last = number
        if isinstance(piece, str):
            _add_text(piece, start, ends, found)
        elif number in elements:
            last = elements[number]
            _, _, end = placed[last]
            region = _region(ends, start, end)
            if end > ends[region]:
                last, region = number, _region(ends, start, start)
            found[region] += pieces[number : last + 1]
        else:
            region = _region(ends, start, end)
            if start < end and region % 2 == 0:  # the next sentence may begin in it
                region = bisect_right(ends, end - 1)
            found[region].append(piece)
        number = last + 1
    return found


def _add_text(text: str, start: int, ends: Sequence[float], found: list[list[Piece]]) -> None:
    """Adds a text that begins at a place to the regions."""
    place, end = start, start + len(text)
    while place < end:
        region = bisect_right(ends, place)
        until = min(end, ends[region])
        found[region].append(text[place - start : until - start])
        place = until


def _region(ends: Sequence[float], start: int, end: int) -> int:
    """Returns the region of a mark or an element by where it begins and ends."""
    if start < end:
        return bisect_right(ends, start)
    region = bisect_left(ends, start)
    is_at_end = region % 2 and ends[region] == start
    return region + 1 if is_at_end else region
