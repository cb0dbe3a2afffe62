"""Vocabularies that are SentencePiece models, or contain one."""

import itertools
import re
from collections.abc import Sequence

import regex
import sentencepiece

from keras_transformer.config import UNK_ID
from keras_transformer.files.json_files import parse_json

SPACE = "▁"
BYTE = regex.compile(r"<0x([0-9A-F]{2})>")  # a piece that spells a byte
SPACES = " \t\n\v\f\r"  # those of ASCII


def read_model(content: bytes) -> sentencepiece.SentencePieceProcessor:
    """Makes a processor of the content of a model file; a ValueError says that it is none."""
    try:
        return sentencepiece.SentencePieceProcessor(model_proto=content)
    except RuntimeError:
        raise ValueError("it is not a SentencePiece model") from None


def word_numbers(texts: Sequence[str]) -> list[int]:
    """Returns, for each part of a text, how many words there are up to its end, less 1.

    Words have spaces of ASCII between them.
    """
    numbers = []
    count = 0
    is_in_word = False
    for text in texts:
        words = text.encode("utf-8", errors="replace").split()
        count += len(words)
        if is_in_word and words and text[0] not in SPACES:
            count -= 1  # the first of them has begun before
        if text:
            is_in_word = text[-1] not in SPACES
        numbers.append(count - 1)
    return numbers


def _texts_of(pieces: Sequence[str]) -> list[str]:
    """The text of each piece; unk is a word."""
    return [" ⁇ " if id_ == UNK_ID else _text_of(piece) for id_, piece in enumerate(pieces)]


def _text_of(piece: str) -> str:
    """The text of a piece; a byte that is no character of ASCII may be any character here."""
    byte = BYTE.fullmatch(piece)
    return chr(int(byte[1], 16)) if byte else piece.replace(SPACE, " ")


def split_codes(
    texts: Sequence[str], code: re.Pattern | regex.Pattern
) -> tuple[list[list[str]], list[str]]:
    """Splits texts into a list with the code they begin with, if any, and what follows it."""
    codes, rest = [], []
    for text in texts:
        match = code.match(text)
        codes.append([match[1]] if match else [])
        rest.append(text[match.end() :] if match else text)
    return codes, rest


class _Texts:
    """Base of vocabularies each of whose pieces has a text, `_texts`."""

    _texts: list[str]

    def texts(self, row: Sequence[int | None]) -> list[str]:
        """The text of each piece; none for None."""
        return ["" if id_ is None else self._texts[id_] for id_ in row]


class SentencePieces(_Texts):
    """A SentencePiece model whose ids are those of the vocabulary."""

    def __init__(self, content: bytes):
        self._processor = read_model(content)
        count = self._processor.get_piece_size()
        self.pieces = self._processor.id_to_piece(list(range(count)))
        self._space = self._processor.piece_to_id(SPACE)
        self._texts = _texts_of(self.pieces)

    def encode(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        return self._processor.encode(list(texts), num_threads=threads)

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        # Spaces at the beginning of a text are lost, as with the operation of TensorFlow Text.
        rows = [list(itertools.dropwhile(lambda id_: id_ == self._space, row)) for row in rows]
        return self._processor.decode(rows, num_threads=1) if rows else []  # of none, it makes ""


def split_numbered(content: bytes) -> tuple[list[str], bytes]:
    """Splits the file of NumberedPieces into its pieces and its SentencePiece model."""
    pieces, _, model = content.partition(b"\n")
    return parse_json(pieces, "its first line", list[str]), model


class NumberedPieces(_Texts):
    """A SentencePiece model whose pieces have other ids.

    Each side of a Marian model has a model of its own, and both share one list of pieces. A piece
    that is not in the list is unk. A language code at the beginning, as ">>fr<<", is a piece. The
    file begins with a line of JSON, the pieces in the order of their ids; the rest is the model.
    """

    _code = regex.compile(r"(?s)(>>.*?<<)")

    def __init__(self, content: bytes):
        self.pieces, model = split_numbered(content)
        self._processor = read_model(model)
        self._ids = {piece: id_ for id_, piece in enumerate(self.pieces) if id_ > UNK_ID}
        self._texts = _texts_of(self.pieces)

    def encode(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        codes, rest = split_codes(texts, self._code)
        rows = self._processor.encode(rest, out_type=str, num_threads=threads)
        return [
            [self._ids.get(piece, UNK_ID) for piece in code + row]
            for code, row in zip(codes, rows, strict=True)
        ]

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        spelled = [[self.pieces[id_] for id_ in row] for row in rows]
        texts = self._processor.decode(spelled, num_threads=1)
        return [text.replace(SPACE, " ").strip(SPACES) for text in texts]
