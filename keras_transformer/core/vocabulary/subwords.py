"""Subword vocabularies: SentencePiece BPE and WordPiece (section 5.1), and other toolkits' kinds.

In all kinds, ids 0 to 3 are pad, bos, eos and unk. pair.py holds the vocabularies of both sides,
pipelines/prepare/vocabulary.py learns them from text, and exchange/graph_vocabulary.py applies them
inside a TensorFlow graph.

`decode(encode(text))` returns:

    bpe        the text itself, with any Unicode characters (rare ones are spelled in bytes), except
               that leading spaces are lost and "▁" (U+2581) becomes a space
    wordpiece  the text itself if the training text contained its characters (any other character
               becomes the word "⁇"), except that "▁" and line breaks become spaces. Han, kana,
               Hangul, Thai, Lao, Khmer and Myanmar are split into single characters.
    pieces     the result of its SentencePiece model; pieces without an id become "⁇"

The name of a special symbol in a text ("</s>", "[EOS]") never becomes a special id.

A vocabulary may have codes for languages (language_codes.py), such as ">>de<<". A code at the
beginning of a text becomes its first id, and a second one its second id; the space after a code is
not part of the text. Decoding omits codes. It may also have marks for terms (terms.py), which are
never encoded nor decoded.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import regex

from keras_transformer.core.config import BOS_ID, EOS_ID, PAD_ID, UNK_ID, vocabulary_kind
from keras_transformer.core.vocabulary.language_codes import is_code, pattern_of
from keras_transformer.core.vocabulary.sentencepiece_models import (
    NumberedPieces,
    SentencePieces,
    split_codes,
    word_numbers,
)
from keras_transformer.core.vocabulary.wordpiece import WordPieces
from keras_transformer.support.errors import InputError, reason

# Before a term, between the term and its target, and after that; see terms.py.
TERM_MARKS = ("<term>", "<as>", "</term>")

TOKENIZERS = {"bpe": SentencePieces, "wordpiece": WordPieces, "pieces": NumberedPieces}


class Subwords:
    """A vocabulary with its encoder and decoder; both are thread-safe.

    Args:
        file: path of the vocabulary, whose suffix determines its kind.

    Raises:
        InputError: if the file is not a vocabulary of that kind.

    Attributes:
        kind: "bpe" (any SentencePiece model), "wordpiece" or "pieces" (of an imported model).
        pieces: the spelling of each id.
        vocab_size: number of ids, including the four special ones.
        languages: the languages of its codes, in the order of their ids.
        term_ids: the ids of TERM_MARKS; empty if it lacks them.
        file: path of the vocabulary.
        fingerprint: SHA-256 of that file, in hexadecimal.
    """

    def __init__(self, file: Path):
        content = file.read_bytes()
        self.file = file
        self.kind = vocabulary_kind(file)
        self.fingerprint = hashlib.sha256(content).hexdigest()
        try:
            self._tokenizer = TOKENIZERS[self.kind](content)
        except ValueError as error:
            rule = f"must be a {self.kind} vocabulary"
            raise InputError(None, rule, f"another file ({reason(error)})", file) from None
        self.pieces: list[str] = self._tokenizer.pieces
        self.vocab_size = len(self.pieces)
        self._code_ids = {piece: i for i, piece in enumerate(self.pieces) if is_code(piece)}
        self.languages = tuple(code[2:-2] for code in self._code_ids)
        self._codes = regex.compile(f"(?:({pattern_of(self.languages)}) ?){{0,2}}")
        marks = {piece: id_ for id_, piece in enumerate(self.pieces) if piece in TERM_MARKS}
        self.term_ids = tuple(marks[mark] for mark in TERM_MARKS) if len(marks) == 3 else ()
        self._left_out = {PAD_ID, BOS_ID, *self._code_ids.values(), *self.term_ids}

    def encode(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        """Maps texts to lists of ids; adds no special ids except codes.

        Args:
            texts: any number of texts.
            threads: number of threads that SentencePiece may use.
        """
        texts = [text.encode("utf-8", errors="replace").decode("utf-8") for text in texts]
        if not self.languages or self.kind == "pieces":  # it handles codes itself
            return self._tokenizer.encode(texts, threads)
        codes, rest = split_codes(texts, self._codes)
        rows = self._tokenizer.encode(rest, threads)
        return [
            [self._code_ids[code] for code in codes_of_text] + row
            for codes_of_text, row in zip(codes, rows, strict=True)
        ]

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Maps lists of ids to texts: ids up to the first EOS, without pad, bos, codes and
        marks of terms.
        """
        kept = []
        for row in rows:
            until_eos = row[: row.index(EOS_ID)] if EOS_ID in row else row
            kept.append([id_ for id_ in until_eos if id_ not in self._left_out])
        return self._tokenizer.decode(kept)

    def words(self, row: Sequence[int]) -> list[int]:
        """Returns the number of the word in the decoded text in which each subword ends.

        Words are separated by ASCII spaces and counted from 0; -1 means before the first.
        """
        length = row.index(EOS_ID) if EOS_ID in row else len(row)
        known = [None if id_ in self._left_out else id_ for id_ in row[:length]]
        numbers = word_numbers(self._tokenizer.texts(known))
        last = numbers[-1] if numbers else -1
        return numbers + [last] * (len(row) - length)


def spelled(vocabulary: Subwords, row: Sequence[int]) -> list[str]:
    """Returns the pieces of ids, "</s>" for EOS."""
    return ["</s>" if id_ == EOS_ID else vocabulary.pieces[id_] for id_ in row]


def has_unknown(row: Sequence[int]) -> bool:
    """Whether a text has characters that the vocabulary lacks."""
    return UNK_ID in row
