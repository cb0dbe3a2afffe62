"""Vocabularies inside a TensorFlow graph, for text-to-text exports.

They encode and decode like vocabulary/subwords.py; a test compares both. Invalid UTF-8 is read as
U+FFFD, and decoded text is always valid UTF-8.
"""

import hashlib

import tensorflow as tf
import tensorflow_text as tf_text
from tensorflow_text.python.ops import sentencepiece_tokenizer

from keras_transformer.core.config import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from keras_transformer.core.vocabulary.language_codes import code_of, is_code, pattern_of
from keras_transformer.core.vocabulary.sentencepiece_models import SPACE, split_numbered
from keras_transformer.core.vocabulary.subwords import Subwords
from keras_transformer.core.vocabulary.wordpiece import (
    JOINER,
    LETTER,
    OTHER_WORD,
    SPECIAL_WORDPIECES,
    UNSPACED,
    spellings,
)
from keras_transformer.support.quiet_tensorflow import without_information
from keras_transformer.use.translate.texts import BLANK_PATTERN

MAX_WORD_BYTES = 1 << 20  # the longest word that WordPiece accepts


class GraphVocabulary(tf.Module):
    """A vocabulary with its encoder and decoder, which a SavedModel can contain."""

    def __init__(self, vocabulary: Subwords):
        super().__init__(name="vocabulary")
        tokenizers = {"bpe": _SentencePieces, "wordpiece": _WordPieces, "pieces": _NumberedPieces}
        self.kind = vocabulary.kind
        self.languages = vocabulary.languages
        self._tokenizer = tokenizers[self.kind](vocabulary)
        self._is_code = tf.constant([is_code(piece) for piece in vocabulary.pieces])
        is_mark = [id_ in vocabulary.term_ids for id_ in range(vocabulary.vocab_size)]
        self._is_left_out = self._is_code | tf.constant(is_mark)

    def encode(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Maps string [B] to ids int32 [B, None]; a blank text has none, even with codes.

        Adds no special ids except codes.
        """
        # Before the patterns, which do not match invalid bytes.
        texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8")
        code = f"(?:{pattern_of(self.languages)} ?){{0,2}}" if self.languages else ""
        blank = tf.strings.regex_full_match(texts, code + BLANK_PATTERN)
        texts = tf.where(blank, "", texts)
        if not self.languages or self.kind == "pieces":  # it handles codes itself
            return self._tokenizer.tokenize(texts).with_row_splits_dtype(tf.int64)
        first, texts = self._split_code(texts)
        second, texts = self._split_code(texts)
        ids = self._tokenizer.tokenize(texts).with_row_splits_dtype(tf.int64)
        return tf.concat([first, second, ids], axis=1)

    def _split_code(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Splits texts, string [B], into their first code and the rest.

        Returns:
            The id of the code, int32 [B, None], none for texts without a code; and string [B], the
            texts without it.
        """
        code = pattern_of(self.languages)
        codes = tf.strings.regex_replace(texts, f"(?s)^({code})?.*", r"\1")
        is_its_code = codes[:, None] == [code_of(language) for language in self.languages]  # [B, L]
        code_ids = tf.cast(tf.where(self._is_code)[:, 0], tf.int32)
        ids = tf.broadcast_to(code_ids, tf.shape(is_its_code))
        texts = tf.strings.regex_replace(texts, f"^{code} ?", "")
        return tf.ragged.boolean_mask(ids, is_its_code), texts

    def decode(self, ids: tf.Tensor) -> tf.Tensor:
        """Maps int32 [B, T] to string [B]: ids up to the first EOS, without pad, bos, codes and
        marks of terms.
        """
        seen_eos = tf.cumsum(tf.cast(tf.equal(ids, EOS_ID), tf.int32), axis=1)
        kept = (seen_eos == 0) & (ids != PAD_ID) & (ids != BOS_ID)
        kept &= ~tf.gather(self._is_left_out, ids)
        text = self._tokenizer.detokenize(tf.ragged.boolean_mask(tf.cast(ids, tf.int32), kept))
        return tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")


class _SharedModel(sentencepiece_tokenizer._SentencepieceModelResource):
    """A SentencePiece model that outlives the kernel that created it.

    TensorFlow deletes all kernels and the resources that they own when a global seed is set or a
    Keras session is cleared. Resources with a shared name are not owned by a kernel.
    """

    def _create_resource(self):
        return sentencepiece_tokenizer.gen_sentencepiece_tokenizer.sentencepiece_op(
            model=self._model, shared_name=self._name
        )


def _sentencepiece(model: bytes, out_type=tf.int32) -> tf_text.SentencepieceTokenizer:
    with without_information():  # about the vocabulary
        tokenizer = tf_text.SentencepieceTokenizer(model, out_type=out_type)
        tokenizer._model_resource = _SharedModel(model, hashlib.sha256(model).hexdigest())
    return tokenizer


class _SentencePieces(tf.Module):
    """vocabulary.sentencepiece_models.SentencePieces in a graph."""

    def __init__(self, vocabulary: Subwords):
        super().__init__(name="sentencepiece")
        self._tokenizer = _sentencepiece(vocabulary.file.read_bytes())

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        return self._tokenizer.tokenize(texts)

    def detokenize(self, ids: tf.RaggedTensor) -> tf.Tensor:
        return self._tokenizer.detokenize(ids)


class _NumberedPieces(tf.Module):
    """vocabulary.sentencepiece_models.NumberedPieces in a graph."""

    def __init__(self, vocabulary: Subwords):
        super().__init__(name="numbered_pieces")
        pieces, model = split_numbered(vocabulary.file.read_bytes())
        self._pieces = tf.constant(pieces)
        self._tokenizer = _sentencepiece(model, tf.string)
        ids = tf.range(UNK_ID + 1, len(pieces))
        numbers = tf.lookup.KeyValueTensorInitializer(self._pieces[UNK_ID + 1 :], ids)
        self._ids = tf.lookup.StaticHashTable(numbers, UNK_ID)
        self._known_codes = pattern_of(vocabulary.languages)

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        first = tf.strings.regex_replace(texts, "(?s)^(>>.*?<<)?.*", r"\1")
        texts = tf.strings.regex_replace(texts, "(?s)^>>.*?<<", "")
        pattern = f"(?s)^(?: ?({self._known_codes}))?.*"
        second = tf.where(first == "", "", tf.strings.regex_replace(texts, pattern, r"\1"))
        rest = tf.strings.regex_replace(texts, f"^ ?{self._known_codes}", "")
        texts = tf.where(second == "", texts, rest)
        codes = tf.stack([first, second], axis=1)  # [B, 2]
        codes = tf.ragged.boolean_mask(codes, codes != "")
        pieces = tf.concat([codes, self._tokenizer.tokenize(texts)], axis=1)
        return tf.ragged.map_flat_values(self._ids.lookup, pieces)

    def detokenize(self, ids: tf.RaggedTensor) -> tf.Tensor:
        text = self._tokenizer.detokenize(tf.gather(self._pieces, ids))
        return tf.strings.strip(tf.strings.regex_replace(text, SPACE, " "))


class _WordPieces(tf.Module):
    """vocabulary.wordpiece.WordPieces in a graph."""

    def __init__(self, vocabulary: Subwords):
        super().__init__(name="wordpiece")
        pieces = vocabulary.pieces
        self._spellings = tf.constant(spellings(pieces))
        ids = tf.range(len(pieces), dtype=tf.int64)
        numbers = tf.lookup.KeyValueTensorInitializer(tf.constant(pieces), ids)
        self._tokenizer = tf_text.WordpieceTokenizer(
            tf.lookup.StaticHashTable(numbers, UNK_ID),
            suffix_indicator=JOINER,
            max_bytes_per_word=MAX_WORD_BYTES,
            max_chars_per_token=max(map(len, pieces)),
            token_out_type=tf.int32,
            unknown_token=SPECIAL_WORDPIECES[UNK_ID],
            split_unknown_characters=True,
        )

    def tokenize(self, texts: tf.Tensor) -> tf.RaggedTensor:
        texts = tf.strings.regex_replace(texts, r"\x00", "\ufffd")  # which would end the text
        texts = tf.strings.regex_replace(texts, r"[\r\n]", " ")
        texts = tf.strings.regex_replace(texts, f"({UNSPACED})", "\n\\1\n")
        for _ in range(2):  # twice: in "a b c" the matches overlap, which one pass cannot find
            texts = tf.strings.regex_replace(texts, f"({LETTER}) ({LETTER})", "\\1\n\\2")
        texts = tf.strings.regex_replace(texts, " ", SPACE)
        words = tf_text.regex_split(texts, rf"\n|{OTHER_WORD}", OTHER_WORD)
        return self._tokenizer.tokenize(words).merge_dims(1, 2)  # [B, words, pieces] -> [B, None]

    def detokenize(self, ids: tf.RaggedTensor) -> tf.Tensor:
        text = tf.strings.reduce_join(tf.gather(self._spellings, ids), axis=1)
        text = tf.strings.regex_replace(text, f"\r\n|{SPACE}", " ")
        return tf.strings.regex_replace(text, "[\r\n]", "")
