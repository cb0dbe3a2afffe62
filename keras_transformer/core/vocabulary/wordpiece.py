"""WordPiece: words, split greedily into the longest pieces in a list (Wu et al. 2016).

The splitting is reversible: a single space between two words of letters is part of neither, and
decoding restores it; every other space is a character "▁" in a word.

For 120,000 real and random lines, ids, texts and word numbers equal those of TF-Text's operations.
RE2, in a graph, and the package regex may differ in characters that Unicode added after version 14.
"""

import functools
from collections.abc import Sequence

import regex

from keras_transformer.core.config import UNK_ID
from keras_transformer.core.vocabulary.sentencepiece_models import SPACE

JOINER = "##"  # prefix of pieces that continue a word
SPECIAL_WORDPIECES = ("[PAD]", "[BOS]", "[EOS]", "[UNK]")
MAX_WORDS_KEPT = 1 << 16  # number of cached words
LETTER = r"[\p{L}\p{N}\p{M}]"
# Scripts written without spaces: each character is a word.
UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
# The text between words of letters. "#" is separate, so that no word contains the joiner "##".
OTHER_WORD = r"#|[^\p{L}\p{N}\p{M}#\n]+"

_unspaced = regex.compile(f"({UNSPACED})")
_word_letter = regex.compile(f"(?!{UNSPACED}){LETTER}")
_space_between_letters = regex.compile(f"(?<={LETTER}) (?={LETTER})")
_word = regex.compile(rf"{LETTER}+|{OTHER_WORD}")


class WordPieces:
    """The pieces of a WordPiece vocabulary, its encoder and its decoder.

    Args:
        content: the file's content, one piece per line.

    Raises:
        ValueError: if it is not such a file.
    """

    def __init__(self, content: bytes):
        self.pieces = content.decode("utf-8").removesuffix("\n").split("\n")
        if tuple(self.pieces[: len(SPECIAL_WORDPIECES)]) != SPECIAL_WORDPIECES:
            raise ValueError("it must begin with the lines " + ", ".join(SPECIAL_WORDPIECES))
        self._ids = {piece: id_ for id_, piece in enumerate(self.pieces)}
        self._longest = max(map(len, self.pieces))
        self._spellings = spellings(self.pieces)
        self._cut = functools.lru_cache(MAX_WORDS_KEPT)(self._cut_word)

    def encode(self, texts: Sequence[str], threads: int = 1) -> list[list[int]]:
        """Maps texts to ids; Python threads would not speed it up."""
        return [[id_ for word in split_words(text) for id_ in self._cut(word)] for text in texts]

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        texts = []
        for row in rows:
            text = "".join([self._spellings[id_] for id_ in row])
            text = text.replace("\r\n", " ").replace(SPACE, " ")
            texts.append(text.replace("\r", "").replace("\n", ""))
        return texts

    def texts(self, row: Sequence[int | None]) -> list[str]:
        """Returns the text of each piece, with its leading space; "" for None."""
        spellings = ["" if id_ is None else self._spellings[id_] for id_ in row]
        texts = []
        may_join = False
        for spelling in spellings:
            space = " " if may_join and spelling.startswith("\n") else ""
            texts.append(space + spelling.strip("\r\n").replace(SPACE, " "))
            may_join = spelling.endswith("\r") or (may_join and not spelling)
        return texts

    def _cut_word(self, word: str) -> list[int]:
        ids = []
        start = 0
        while start < len(word):
            prefix = JOINER if start > 0 else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                id_ = self._ids.get(prefix + word[start:end])
                if id_ is not None:
                    break
            else:  # a character not in the vocabulary
                id_, end = UNK_ID, start + 1
            ids.append(id_)
            start = end
        return ids


def split_words(text: str) -> list[str]:
    """Splits a text into words.

    Example:
        >>> split_words("the dog's 漢字")
        ['the', 'dog', "'", 's', '▁', '漢', '字']
    """
    text = text.replace("\0", "\ufffd")  # TensorFlow's operations end a text there
    text = text.replace("\r", " ").replace("\n", " ")
    text = _unspaced.sub("\n\\1\n", text)
    text = _space_between_letters.sub("\n", text)
    return _word.findall(text.replace(" ", SPACE))


def spellings(pieces: Sequence[str]) -> list[str]:
    """Returns the text that each piece adds when decoding; unk is a word."""
    special = ["", "", "", "\n⁇\r"]
    return special + [_spelling(piece) for piece in pieces[len(special) :]]


def _spelling(piece: str) -> str:
    """Returns the text that a piece adds when decoding.

    A line break precedes a piece that begins a word of letters, and a carriage return follows a
    piece that may end one: where the two meet, `split_words` removed a space.
    """
    before = "\n" if _word_letter.match(piece[:1]) else ""
    after = "\r" if _word_letter.match(piece[-1:]) else ""
    return f"{before}{piece}{after}".removeprefix(JOINER)
