"""Which characters of a text its subwords spell."""

import re
from collections.abc import Sequence

from keras_transformer.core.vocabulary.language_codes import is_code

Span = tuple[int, int]  # the characters [start, end) of a text

_WORD = re.compile(r"[^ \t\n\v\f\r]+")  # words are separated by ASCII spaces
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")  # a byte piece


def piece_spans(text: str, pieces: Sequence[str], words: Sequence[int]) -> list[Span | None]:
    """Returns the characters of each subword, or of its word where normalization changed the text.

    Args:
        text: the text, with or without its language code.
        pieces: the subwords of the whole text or of its beginning.
        words: the number of each subword's word (Subwords.words).

    Returns:
        None for EOS and codes, and also for spaces unless a space has its word's characters.
    """
    spans = _spans_by_subword(text, pieces)
    if spans is None:
        has_code = bool(pieces) and is_code(pieces[0]) and text.startswith(pieces[0])
        start = len(pieces[0]) if has_code else 0
        word_spans = [match.span() for match in _WORD.finditer(text, start)]
        spans = [word_spans[word] if 0 <= word < len(word_spans) else None for word in words]
    pairs = zip(pieces, spans, strict=True)
    return [None if piece == "</s>" or is_code(piece) else span for piece, span in pairs]


def _spans_by_subword(text: str, pieces: Sequence[str]) -> list[Span | None] | None:
    """Finds subwords in order in a text; None if one is missing."""
    encoded = [character.encode("utf-8", errors="replace") for character in text]
    content, offset, spans = b"".join(encoded), 0, []
    # The character index of each byte, and of the end.
    characters = [number for number, code in enumerate(encoded) for _ in code] + [len(text)]
    for piece in pieces:
        byte = _BYTE.fullmatch(piece)
        spelled = bytes([int(byte[1], 16)]) if byte else piece.strip("▁").encode("utf-8")
        if is_code(piece) and content.startswith(spelled, offset):
            offset += len(spelled)
        if piece == "</s>" or not spelled or is_code(piece):
            spans.append(None)
            continue
        while content[offset : offset + 1].isspace():
            offset += 1
        for candidate in (spelled, spelled.removeprefix(b"##")):
            if candidate and content.startswith(candidate, offset):
                end = offset + len(candidate)
                spans.append((characters[offset], max(characters[end], characters[offset] + 1)))
                offset = end
                break
        else:
            return None
    return spans
