"""Subword vocabularies: SentencePiece BPE and WordPiece (section 5.1), and those of other toolkits.

All kinds encode and decode inside a TensorFlow graph, so that an exported model takes and returns
text; the Python methods run the same ops. In all kinds, ids 0 to 3 are pad, bos, eos and unk.
`pair` has the vocabularies of both sides; preparing data learns them from text.

What `decode(encode(text))` returns:

    bpe        the text itself, with any Unicode characters (rare ones are spelled in bytes), except
               that spaces at its beginning are lost and "▁" (U+2581) becomes a space
    wordpiece  the text itself where the training text contained its characters (any other
               character becomes the word "⁇"), except that "▁" and line breaks become spaces.
               Han, kana, Hangul, Thai, Lao, Khmer and Myanmar are cut into single characters.
    pieces     what the SentencePiece model in it makes of the text; pieces without an id become "⁇"

Invalid UTF-8 is read as U+FFFD, and decoded text is always valid UTF-8. The name of a special
symbol in a text ("</s>", "[EOS]") never becomes a special id.

A vocabulary may have the codes of target languages (language_codes.py), as ">>de<<". Such a code at
the beginning of a text is its first id; the space after it is no part of the text. A code is no
text: decoding leaves it out.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text
from tensorflow_text.python.ops import sentencepiece_tokenizer

from keras_transformer.config import BOS_ID, EOS_ID, PAD_ID, UNK_ID, vocabulary_kind
from keras_transformer.errors import InputError, reason
from keras_transformer.files.json_files import parse_json
from keras_transformer.language_codes import CODE_PATTERN, code_of, pattern_of

# Sentences per call of an op: enough work for its threads, and few enough for memory.
_BATCH = 2048
MAX_SENTENCE_BYTES = 1 << 20  # the longest word or sentence that is accepted
SPACE = "▁"
JOINER = "##"
SPECIAL_WORDPIECES = ("[PAD]", "[BOS]", "[EOS]", "[UNK]")
_LETTER = r"[\p{L}\p{N}\p{M}]"
# Scripts that are written without spaces: each character is a word of its own.
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
# The text between words of letters. "#" stays alone, so that no word contains the joiner "##".
_OTHER_WORD = r"#|[^\p{L}\p{N}\p{M}#\n]+"


class Subwords(tf.Module):
    """A vocabulary with its encoder and decoder, which a SavedModel can contain.

    Args:
        file: path of the vocabulary, whose suffix says of which kind it is.

    Raises:
        InputError: if the file is of another kind.

    Attributes:
        kind: "bpe" (any SentencePiece model), "wordpiece" or "pieces" (of an imported model).
        vocab_size: number of ids, including the four special ones.
        languages: those whose codes it has, in the order of their ids.
        file: path of the vocabulary.
        fingerprint: SHA-256 of that file, in hexadecimal.
    """

    def __init__(self, file: Path):
        super().__init__(name="subwords")
        content = file.read_bytes()
        self.file = file
        self.kind = vocabulary_kind(file)
        self.fingerprint = hashlib.sha256(content).hexdigest()
        tokenizers = {"bpe": _sentencepiece, "wordpiece": _WordPiece, "pieces": _NumberedPieces}
        rule = f"must be a {self.kind} vocabulary"
        try:
            self._tokenizer = tokenizers[self.kind](content)
        except tf.errors.OpError:
            received = "another file (it is no SentencePiece model)"
            raise InputError(None, rule, received, file) from None
        except ValueError as error:
            raise InputError(None, rule, f"another file ({reason(error)})", file) from None
        self.vocab_size = int(self._tokenizer.vocab_size())
        pieces = self.pieces_tensor(tf.range(self.vocab_size))
        self._is_code = tf.strings.regex_full_match(pieces, CODE_PATTERN).numpy()  # [V]
        codes = pieces.numpy()[self._is_code].tolist()
        self.languages = tuple(code.decode("utf-8")[2:-2] for code in codes)

    def encode_tensor(self, sentences: tf.Tensor) -> tf.RaggedTensor:
        """Maps string [B] to int32 [B, None]; no special ids are added, but for codes."""
        valid = tf.strings.unicode_transcode(sentences, "UTF-8", "UTF-8")
        if not self.languages or self.kind == "pieces":  # which knows codes itself
            return self._tokenizer.tokenize(valid).with_row_splits_dtype(tf.int64)
        codes, texts = self.split_codes(valid)
        ids = self._tokenizer.tokenize(texts).with_row_splits_dtype(tf.int64)
        return tf.concat([codes, ids], axis=1)

    def split_codes(self, sentences: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Takes the codes from sentences, string [B], that begin with one.

        Returns:
            Their ids, int32 [B, None], none for a sentence without a code; and string [B], the
            sentences without codes.
        """
        code = pattern_of(self.languages)
        found = tf.strings.regex_replace(sentences, f"(?s)^({code})?.*", r"\1")
        is_found = found[:, None] == [code_of(language) for language in self.languages]  # [B, L]
        code_ids = tf.constant(np.flatnonzero(self._is_code), tf.int32)
        ids = tf.broadcast_to(code_ids, tf.shape(is_found))
        texts = tf.strings.regex_replace(sentences, f"^{code} ?", "")
        return tf.ragged.boolean_mask(ids, is_found), texts

    def decode_tensor(self, ids: tf.Tensor) -> tf.Tensor:
        """Maps int32 [B, T] to string [B]: ids up to the first EOS, without pad, bos and codes."""
        seen_eos = tf.cumsum(tf.cast(tf.equal(ids, EOS_ID), tf.int32), axis=1)
        kept = (seen_eos == 0) & (ids != PAD_ID) & (ids != BOS_ID)
        if self.languages:
            kept &= ~tf.gather(self._is_code, ids)
        text = self._tokenizer.detokenize(tf.ragged.boolean_mask(tf.cast(ids, tf.int32), kept))
        return tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")

    def pieces_tensor(self, ids: tf.Tensor) -> tf.Tensor:
        """Maps int32 [B, T] to string [B, T]: the vocabulary's piece for each id."""
        return self._tokenizer.id_to_string(ids)

    def begins_word_tensor(self, ids: tf.Tensor) -> tf.Tensor:
        """Maps int32 [N] to bool [N]: whether a subword is the first of a word."""
        pieces = self.pieces_tensor(ids)
        if self.kind == "wordpiece":
            return ~tf.strings.regex_full_match(pieces, f"{JOINER}.+")
        return tf.strings.regex_full_match(pieces, f"{SPACE}.*")

    def words_tensor(self, ids: tf.Tensor) -> tf.Tensor:
        """Maps int32 [B, T] to int32 [B, T]: the word of the text that each subword ends in.

        Words have spaces between them and are counted from 0; -1 is for what precedes the first.
        """
        rows, length = tf.unstack(tf.shape(ids))
        up_to = tf.sequence_mask(tf.range(1, length + 1), length)  # [T, T]
        beginnings = tf.where(up_to, ids[:, None], PAD_ID)  # [B, T, T]
        texts = self.decode_tensor(tf.reshape(beginnings, [rows * length, length]))
        counts = tf.strings.split(texts).row_lengths()  # [B T]
        return tf.reshape(tf.cast(counts, tf.int32) - 1, [rows, length])

    def encode(self, sentences: list[str]) -> list[list[int]]:
        """Maps sentences to lists of ids; no special ids are added."""
        ids = []
        for batch in batched(sentences):
            ids += self.encode_tensor(tf.constant(batch)).to_list()
        return ids

    def decode(self, ids: list[list[int]]) -> list[str]:
        """Maps lists of ids to sentences: ids up to the first EOS, without pad, bos and codes."""
        sentences = []
        for batch in batched(ids):
            dense = tf.keras.utils.pad_sequences(batch, padding="post")
            for text in self.decode_tensor(dense).numpy():
                sentences.append(text.decode("utf-8"))
        return sentences


class _SharedModel(sentencepiece_tokenizer._SentencepieceModelResource):
    """A SentencePiece model that outlives the kernel that created it.

    TensorFlow deletes all kernels when a global seed is set or a Keras session is cleared, and with
    them the resources that they own. A resource with a shared name is owned by no kernel.
    """

    def _create_resource(self):
        return sentencepiece_tokenizer.gen_sentencepiece_tokenizer.sentencepiece_op(
            model=self._model, shared_name=self._name
        )


def _sentencepiece(model: bytes, out_type=tf.int32) -> tf_text.SentencepieceTokenizer:
    tokenizer = tf_text.SentencepieceTokenizer(model=model, out_type=out_type)
    tokenizer._model_resource = _SharedModel(model, hashlib.sha256(model).hexdigest())
    return tokenizer


class _Pieces(tf.Module):
    """Base of vocabularies that are a list of pieces, `_pieces`."""

    def vocab_size(self) -> tf.Tensor:
        return tf.size(self._pieces)

    def id_to_string(self, ids: tf.Tensor) -> tf.Tensor:
        return tf.gather(self._pieces, ids)


class _NumberedPieces(_Pieces):
    """A SentencePiece model whose pieces have other ids, with SentencepieceTokenizer's methods.

    Each side of a Marian model has a model of its own, and both share one list of pieces. A piece
    that is not in the list is unk. A language code at the beginning, as ">>fr<<", is a piece.
    Their file begins with a line of JSON, the pieces by their ids; the rest is the model.
    """

    def __init__(self, content: bytes):
        super().__init__(name="numbered_pieces")
        pieces, _, model = content.partition(b"\n")
        self._pieces = tf.constant(parse_json(pieces, "its first line", list[str]))
        self._tokenizer = _sentencepiece(model, tf.string)
        ids = tf.range(UNK_ID + 1, tf.size(self._pieces))
        numbers = tf.lookup.KeyValueTensorInitializer(self._pieces[UNK_ID + 1 :], ids)
        self._ids = tf.lookup.StaticHashTable(numbers, UNK_ID)

    def tokenize(self, sentences: tf.Tensor) -> tf.RaggedTensor:
        codes = tf.strings.regex_replace(sentences, "(?s)^(>>.*?<<)?.*", r"\1")[:, None]
        codes = tf.ragged.boolean_mask(codes, codes != "")
        texts = tf.strings.regex_replace(sentences, "(?s)^>>.*?<<", "")
        pieces = tf.concat([codes, self._tokenizer.tokenize(texts)], axis=1)
        return tf.ragged.map_flat_values(self._ids.lookup, pieces)

    def detokenize(self, ids: tf.RaggedTensor) -> tf.Tensor:
        text = self._tokenizer.detokenize(tf.gather(self._pieces, ids))
        return tf.strings.strip(tf.strings.regex_replace(text, SPACE, " "))


class _WordPiece(_Pieces):
    """Greedy longest-match WordPiece, with SentencepieceTokenizer's methods.

    It works on words that can be joined again: a single space between two words of letters is part
    of neither word, and decoding restores it; every other space is a character "▁" of a word.
    """

    def __init__(self, vocabulary: bytes):
        super().__init__(name="wordpiece")
        pieces = vocabulary.decode("utf-8").removesuffix("\n").split("\n")
        if tuple(pieces[: len(SPECIAL_WORDPIECES)]) != SPECIAL_WORDPIECES:
            raise ValueError("it must begin with the lines " + ", ".join(SPECIAL_WORDPIECES))
        self._pieces = tf.constant(pieces)
        self._spellings = _spellings(self._pieces)
        ids = tf.range(len(pieces), dtype=tf.int64)
        self._tokenizer = tf_text.WordpieceTokenizer(
            tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer(self._pieces, ids), UNK_ID
            ),
            suffix_indicator=JOINER,
            max_bytes_per_word=MAX_SENTENCE_BYTES,
            max_chars_per_token=max(map(len, pieces)),
            token_out_type=tf.int32,
            unknown_token=SPECIAL_WORDPIECES[UNK_ID],
            split_unknown_characters=True,
        )

    def tokenize(self, sentences: tf.Tensor) -> tf.RaggedTensor:
        pieces = self._tokenizer.tokenize(split_words(sentences))  # [B, words, pieces]
        return pieces.merge_dims(1, 2)

    def detokenize(self, ids: tf.RaggedTensor) -> tf.Tensor:
        text = tf.strings.reduce_join(tf.gather(self._spellings, ids), axis=1)
        text = tf.strings.regex_replace(text, f"\r\n|{SPACE}", " ")
        return tf.strings.regex_replace(text, "[\r\n]", "")


def split_words(sentences: tf.Tensor) -> tf.RaggedTensor:
    """Cuts string [B] into words, string [B, None]."""
    text = tf.strings.regex_replace(sentences, r"[\r\n]", " ")
    text = tf.strings.regex_replace(text, f"({_UNSPACED})", "\n\\1\n")
    for _ in range(2):  # twice: in "a b c" the matches overlap, which one pass cannot find
        text = tf.strings.regex_replace(text, f"({_LETTER}) ({_LETTER})", "\\1\n\\2")
    text = tf.strings.regex_replace(text, " ", SPACE)
    return tf_text.regex_split(text, rf"\n|{_OTHER_WORD}", _OTHER_WORD)


def _spellings(pieces: tf.Tensor) -> tf.Tensor:
    """The text that each piece adds when ids are decoded.

    A line break precedes a piece that begins a word of letters, and a carriage return follows a
    piece that may end one: where the two meet, `split_words` removed a space.
    """
    texts = pieces
    for pattern, replacement in (
        (f"^({_LETTER})", "\n\\1"),
        (f"^\n({_UNSPACED})", "\\1"),
        (f"({_LETTER})$", "\\1\r"),
        (f"({_UNSPACED})\r$", "\\1"),
        (f"^{JOINER}", ""),
    ):
        texts = tf.strings.regex_replace(texts, pattern, replacement)
    special = ["", "", "", "\n⁇\r"]  # unk is a word
    return tf.concat([special, texts[len(special) :]], axis=0)


def batched(items: list) -> Iterator[list]:
    """Cuts a list into parts that an op can process at once."""
    return (items[start : start + _BATCH] for start in range(0, len(items), _BATCH))
