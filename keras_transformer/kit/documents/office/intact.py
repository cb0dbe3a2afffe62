"""Whether a translated text in XML still has the elements of the original around its translations.

Everything outside the translated pieces is copied, so it can only be damaged by a translation that
is not well-formed by itself, or that ends an element which began before it.

A program that damages a document and reports success is worse than one that leaves a part
untranslated.
"""

import hashlib
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from xml.parsers import expat


class Pieces:
    """Pieces of a text in UTF-8, which take much less memory than as strings.

    Attributes:
        content: the bytes of all pieces.
        ends: the place where each piece ends.
    """

    def __init__(self, pieces: Iterable[str]):
        self.content = bytearray()
        self.ends = array("q")
        for piece in pieces:
            self.content += piece.encode("utf-8", errors="replace")
            self.ends.append(len(self.content))


def is_intact(before: Pieces, after: Pieces, is_translated: Sequence[bool]) -> bool:
    """Compares a text with its translation.

    Args:
        before: the pieces of the text.
        after: the same pieces, some of them translated.
        is_translated: whether each piece may have been translated.

    Returns:
        Whether the translation is well-formed XML, and its elements that are not in translated
        pieces have the same names, names of attributes, and depths as before; also true if the
        original is not well-formed.
    """
    for separator in (" ", None):
        original = _elements(before, is_translated, separator)
        if original is not None:
            return _elements(after, is_translated, separator) == original
    return True


def _elements(pieces: Pieces, is_translated: Sequence[bool], separator: str | None) -> bytes | None:
    """Returns a hash of the elements outside translated pieces; None if it is not XML.

    Args:
        pieces: the text.
        is_translated: whether each piece may have been translated.
        separator: between namespaces and names; without one, prefixes need no declaration, as in
            many chapters of books.
    """
    content = pieces.content
    digest = hashlib.sha256()
    open_inside: list[bool] = []  # whether each open element begins in a translated piece
    is_new = False  # whether the last event was a start
    parser = expat.ParserCreate("utf-8", separator)

    def is_inside(place: int) -> bool:
        return is_translated[bisect_right(pieces.ends, place)]

    def begin(name: str, attributes: dict[str, str]) -> None:
        nonlocal is_new
        is_new = True
        open_inside.append(is_inside(parser.CurrentByteIndex))
        if not open_inside[-1]:
            digest.update(f"<{len(open_inside)} {name} {' '.join(attributes)}>".encode())

    def end(name: str) -> None:
        nonlocal is_new
        place = parser.CurrentByteIndex
        is_alone = is_new and content[place - 2 : place] == b"/>"  # then it is after the tag
        is_new = False
        sides = open_inside.pop(), is_inside(place - is_alone)
        if sides != (True, True):
            digest.update(f"</{name} {sides}>".encode())

    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    try:
        parser.Parse(content, True)
    except expat.ExpatError:
        return None
    return digest.digest()
