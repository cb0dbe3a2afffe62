"""Vocabularies that are or contain SentencePiece models."""

import itertools
from collections.abc import Sequence

import regex
import sentencepiece

from keras_transformer.core.config import UNK_ID
from keras_transformer.core.vocabulary.language_codes import is_code
from keras_transformer.support.files.json_files import parse_json

SPACE = "▁"
BYTE = regex.compile(r"<0x([0-9A-F]{2})>")  # a byte piece
SPACES = " \t\n\v\f\r"  # ASCII


def read_model(content: bytes) -> sentencepiece.SentencePieceProcessor:
    """Makes a processor from a model file's content; raises a ValueError if it is not a model."""
    try:
        return sentencepiece.SentencePieceProcessor(model_proto=content)
    except RuntimeError:
        raise ValueError("it is not a SentencePiece model") from None


def word_numbers(texts: Sequence[str]) -> list[int]:
    """Returns, for each part of a text, the number of words up to its end, minus 1.

    Words are separated by ASCII spaces.
    """
    numbers = []
    count = 0
    is_in_word = False
    for text in texts:
        words = text.encode("utf-8", errors="replace").split()
        count += len(words)
        if is_in_word and words and text[0] not in SPACES:
            count -= 1  # the first one began earlier
        if text:
            is_in_word = text[-1] not in SPACES
        numbers.append(count - 1)
    return numbers


def _texts_of(pieces: Sequence[str]) -> list[str]:
    """Returns the text of each piece; unk is a word."""
    return [" ⁇ " if id_ == UNK_ID else _text_of(piece) for id_, piece in enumerate(pieces)]


def _text_of(piece: str) -> str:
    """Returns a piece's text; for a non-ASCII byte, any character will do."""
    byte = BYTE.fullmatch(piece)
    return chr(int(byte[1], 16)) if byte else piece.replace(SPACE, " ")


def split_codes(texts: Sequence[str], codes: regex.Pattern) -> tuple[list[list[str]], list[str]]:
    """Splits each text into its leading codes, a list that may be empty, and the rest.

    Args:
        texts: any number of texts.
        codes: matches the codes, if there are any, each with a group.
    """
    matches = [codes.match(text) for text in texts]
    rest = [text[match.end() :] for text, match in zip(texts, matches, strict=True)]
    return [list(itertools.chain(*match.allcaptures()[1:])) for match in matches], rest


class _Texts:
    """Base class for vocabularies in which each piece has a text, `_texts`."""

    _texts: list[str]

    def texts(self, row: Sequence[int | None]) -> list[str]:
        """Returns the text of each piece; "" for None."""
        return ["" if id_ is None else self._texts[id_] for id_ in row]


class SentencePieces(_Texts):
    """A SentencePiece model whose ids are the vocabulary's."""

    def __init__(self, content: bytes):
        self._processor = read_model(content)
        count = self._processor.get_piece_size()
        self.pieces = self._processor.id_to_piece(list(range(count)))
        self._space = self._processor.piece_to_id(SPACE)
        self._texts = _texts_of(self.pieces)

    def encode(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        return self._processor.encode(list(texts), num_threads=threads)

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        # Leading spaces are lost, as in TensorFlow Text's operation.
        rows = [list(itertools.dropwhile(lambda id_: id_ == self._space, row)) for row in rows]
        return self._processor.decode(rows, num_threads=1) if rows else []  # an empty list gives ""


def split_numbered(content: bytes) -> tuple[list[str], bytes]:
    """Splits a NumberedPieces file into its pieces and its SentencePiece model."""
    pieces, _, model = content.partition(b"\n")
    return parse_json(pieces, "its first line", list[str]), model


class NumberedPieces(_Texts):
    """A SentencePiece model with a separate numbering of its pieces.

    Each side of a Marian model has its own SentencePiece model, and both share one list of pieces.
    Pieces not in the list are unk. A leading language code, such as ">>fr<<", is a piece, and so is
    a known one after it. The file begins with a line of JSON, the pieces in the order of their ids;
    the rest is the model.
    """

    def __init__(self, content: bytes):
        self.pieces, model = split_numbered(content)
        self._processor = read_model(model)
        self._ids = {piece: id_ for id_, piece in enumerate(self.pieces) if id_ > UNK_ID}
        self._texts = _texts_of(self.pieces)
        known = "|".join(map(regex.escape, filter(is_code, self.pieces)))
        second = f"(?: ?({known}))?" if known else ""
        self._codes = regex.compile(rf"(?s)(?:(>>.*?<<){second})?")

    def encode(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        codes, rest = split_codes(texts, self._codes)
        rows = self._processor.encode(rest, out_type=str, num_threads=threads)
        return [
            [self._ids.get(piece, UNK_ID) for piece in code + row]
            for code, row in zip(codes, rows, strict=True)
        ]

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        spelled = [[self.pieces[id_] for id_ in row] for row in rows]
        texts = self._processor.decode(spelled, num_threads=1)
        return [text.replace(SPACE, " ").strip(SPACES) for text in texts]
