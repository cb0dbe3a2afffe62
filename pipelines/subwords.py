"""Subword vocabularies, shared by source and target: SentencePiece BPE and WordPiece (section 5.1).

Both encode and decode inside a TensorFlow graph, so that an exported model takes and gives text;
the Python methods run the same ops. Ids 0 to 3 are pad, bos, eos and unk in either kind.

What `decode(encode(text))` gives back:

    bpe        the text itself, any Unicode included (bytes stand in for rare characters), but
               spaces at its beginning are lost and "▁" (U+2581) comes back as a space
    wordpiece  the text itself as long as its characters were seen in learning (each other one
               comes back as a word "⁇"), but "▁" and line breaks come back as spaces. Han,
               kana, Hangul, Thai, Lao, Khmer and Myanmar are cut into single characters.

Bytes that are no UTF-8 are read as U+FFFD, and decoded text is always valid UTF-8. No spelling of
a special symbol in a text ("</s>", "[EOS]") ever becomes a special id.
"""

import hashlib
import io
import itertools
import os
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text
from tensorflow_text.python.ops import sentencepiece_tokenizer

from keras_transformer.config import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from keras_transformer.errors import InputError

VOCABULARY_FILES = {"bpe": "vocabulary.model", "wordpiece": "vocabulary.txt"}

# Sentences that go through an op at once: large enough for its threads, small enough for memory.
_BATCH = 2048
# Learning holds its sentences in memory; more of them hardly change a vocabulary.
_MAX_SENTENCES = 2_000_000
_MAX_SENTENCE_BYTES = 1 << 20
# Characters outside this share of the text are spelled in bytes rather than given a row.
_CHARACTER_COVERAGE = 0.9999
# WordPiece learning takes time in proportion to the distinct words: only the commonest count.
_MAX_WORDS = 100_000
# A vocabulary found within this share above the wanted size is trimmed, not searched on for.
_TRIMMED_SHARE = 0.05

_SPACE = "▁"
_JOINER = "##"
_SPECIAL_WORDPIECES = ("[PAD]", "[BOS]", "[EOS]", "[UNK]")
_LETTER = r"[\p{L}\p{N}\p{M}]"
# Scripts written without spaces; a character of theirs is a word of its own.
_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
# What lies between words of letters: "#" stays alone, so that no word holds the joiner "##".
_OTHER_WORD = r"#|[^\p{L}\p{N}\p{M}#\n]+"


class Subwords(tf.Module):
    """A vocabulary with its encoder and decoder; an exported model carries it along.

    Attributes:
        kind: "bpe" or "wordpiece".
        vocab_size: number of ids, the four special ones included.
        file: path of the vocabulary.
        fingerprint: SHA-256 of that file, in hexadecimal.
    """

    def __init__(self, file: Path):
        super().__init__(name="subwords")
        content = file.read_bytes()
        self.file = file
        self.kind = next(kind for kind, name in VOCABULARY_FILES.items() if name == file.name)
        self.fingerprint = hashlib.sha256(content).hexdigest()
        try:
            self._codec = _Bpe(content) if self.kind == "bpe" else _WordPiece(content)
        except (tf.errors.OpError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise InputError(
                f"{file} must be a {self.kind} vocabulary. Received: one of which TensorFlow says "
                f"{reason!r}"
            ) from None
        self.vocab_size = self._codec.vocab_size

    @staticmethod
    def load(directory_or_file: str | os.PathLike) -> "Subwords":
        """Reads a vocabulary file, or the one in a data or model directory.

        Raises:
            InputError: if there is none, or it cannot be read as one.
        """
        path = Path(directory_or_file)
        names = VOCABULARY_FILES.values()
        candidates = [path / name for name in names] if path.is_dir() else [path]
        found = [file for file in candidates if file.is_file() and file.name in names]
        if len(found) != 1:
            rule = "must be, or hold, exactly one of " + " and ".join(names)
            raise InputError(f"the vocabulary {rule}. Received: {path}")
        return Subwords(found[0])

    def encode_tensor(self, sentences: tf.Tensor) -> tf.RaggedTensor:
        """Maps string [B] to int32 [B, None]; no special ids are added."""
        valid = tf.strings.unicode_transcode(sentences, "UTF-8", "UTF-8")
        return self._codec.encode(valid)

    def decode_tensor(self, ids: tf.Tensor) -> tf.Tensor:
        """Maps int32 [B, T] to string [B]: up to the first EOS, leaving out pad and bos."""
        seen_eos = tf.cumsum(tf.cast(tf.equal(ids, EOS_ID), tf.int32), axis=1)
        kept = (seen_eos == 0) & (ids != PAD_ID) & (ids != BOS_ID)
        text = self._codec.decode(tf.ragged.boolean_mask(tf.cast(ids, tf.int32), kept))
        return tf.strings.unicode_transcode(text, "UTF-8", "UTF-8")

    def encode(self, sentences: list[str]) -> list[list[int]]:
        """Maps sentences to lists of ids; no special ids are added."""
        batches = (self.encode_tensor(tf.constant(batch)) for batch in _batched(sentences))
        return [ids for batch in batches for ids in batch.to_list()]

    def decode(self, ids: list[list[int]]) -> list[str]:
        """Maps lists of ids to sentences: up to the first EOS, leaving out pad and bos."""
        dense = (_dense(batch) for batch in _batched(ids))
        texts = (self.decode_tensor(batch).numpy() for batch in dense)
        return [text.decode("utf-8") for batch in texts for text in batch]


class _SharedModel(sentencepiece_tokenizer._SentencepieceModelResource):
    """A model that outlives the kernel that made it.

    TensorFlow drops all kernels when a global seed is set or a Keras session cleared, and with them
    the models they own: a tokenizer of before would then fail. One with a name of its own is owned
    by none.
    """

    def _create_resource(self):
        return sentencepiece_tokenizer.gen_sentencepiece_tokenizer.sentencepiece_op(
            model=self._model, shared_name=self._name
        )


class _Bpe(tf.Module):
    """SentencePiece inside the graph."""

    def __init__(self, model: bytes):
        super().__init__(name="bpe")
        self._tokenizer = tf_text.SentencepieceTokenizer(model=model, out_type=tf.int32)
        self._tokenizer._model_resource = _SharedModel(model, hashlib.sha256(model).hexdigest())
        self.vocab_size = int(self._tokenizer.vocab_size())

    def encode(self, sentences: tf.Tensor) -> tf.RaggedTensor:
        return self._tokenizer.tokenize(sentences).with_row_splits_dtype(tf.int64)

    def decode(self, ids: tf.RaggedTensor) -> tf.Tensor:
        return self._tokenizer.detokenize(ids)


class _WordPiece(tf.Module):
    """Greedy longest-match WordPiece inside the graph, over words that can be put together again.

    The one space between two words of letters is left out of the words and comes back in decoding;
    every other space is a character "▁" of a word.
    """

    def __init__(self, vocabulary: bytes):
        super().__init__(name="wordpiece")
        pieces = vocabulary.decode("utf-8").removesuffix("\n").split("\n")
        if tuple(pieces[: len(_SPECIAL_WORDPIECES)]) != _SPECIAL_WORDPIECES:
            raise ValueError("it must begin with the lines " + ", ".join(_SPECIAL_WORDPIECES))
        self.vocab_size = len(pieces)
        ids = tf.range(self.vocab_size, dtype=tf.int64)
        self._table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(tf.constant(pieces), ids), UNK_ID
        )
        self._tokenizer = tf_text.WordpieceTokenizer(
            self._table,
            suffix_indicator=_JOINER,
            max_bytes_per_word=_MAX_SENTENCE_BYTES,
            max_chars_per_token=max(map(len, pieces)),
            token_out_type=tf.int32,
            unknown_token=_SPECIAL_WORDPIECES[UNK_ID],
            split_unknown_characters=True,
        )
        self._spellings = tf.constant(_spellings(pieces))

    def encode(self, sentences: tf.Tensor) -> tf.RaggedTensor:
        pieces = self._tokenizer.tokenize(_words(sentences))  # [B, words, pieces]
        return pieces.merge_dims(1, 2).with_row_splits_dtype(tf.int64)

    def decode(self, ids: tf.RaggedTensor) -> tf.Tensor:
        text = tf.strings.reduce_join(tf.gather(self._spellings, ids), axis=1)
        text = tf.strings.regex_replace(text, "\r\n", " ")
        text = tf.strings.regex_replace(text, "[\r\n]", "")
        return tf.strings.regex_replace(text, _SPACE, " ")


def _words(sentences: tf.Tensor) -> tf.RaggedTensor:
    """Cuts string [B] into words, string [B, None]."""
    text = tf.strings.regex_replace(sentences, r"[\r\n]", " ")
    text = tf.strings.regex_replace(text, f"({_UNSPACED})", "\n\\1\n")
    for _ in range(2):  # twice: matches of one pass cannot overlap, as those in "a b c" would
        text = tf.strings.regex_replace(text, f"({_LETTER}) ({_LETTER})", "\\1\n\\2")
    text = tf.strings.regex_replace(text, " ", _SPACE)
    return tf_text.regex_split(text, rf"\n|{_OTHER_WORD}", _OTHER_WORD)


def _spellings(pieces: list[str]) -> list[str]:
    """What each piece adds to decoded text.

    A line break stands before a piece that begins a word of letters, a carriage return after one
    that may end it: where the two meet, a space was left out.
    """
    texts = [piece.removeprefix(_JOINER) for piece in pieces]
    begins = _are_spaced_letters([text[:1] for text in texts])
    ends = _are_spaced_letters([text[-1:] for text in texts])
    spellings = [
        ("\n" if begin and text == piece else "") + text + ("\r" if end else "")
        for piece, text, begin, end in zip(pieces, texts, begins, ends, strict=True)
    ]
    spellings[: len(_SPECIAL_WORDPIECES)] = ["", "", "", "\n⁇\r"]  # unk: a word of its own
    return spellings


def _are_spaced_letters(characters: list[str]) -> list[bool]:
    letters = tf.strings.regex_full_match(characters, _LETTER)
    return (letters & ~tf.strings.regex_full_match(characters, _UNSPACED)).numpy().tolist()


def learn_subwords(
    sentences: Iterable[str], kind: str, vocab_size: int, directory: str | os.PathLike, seed: int
) -> Subwords:
    """Learns a vocabulary of `vocab_size` ids and writes it into `directory`.

    Args:
        sentences: text of both languages. Of more than two million, a sample is learned from.
        kind: "bpe" or "wordpiece".
        vocab_size: number of ids, the four special ones included.
        directory: an existing folder.
        seed: decides the sample; learning itself is deterministic.

    Raises:
        InputError: if the text gives no vocabulary of that size.
    """
    learn = {"bpe": _learn_bpe, "wordpiece": _learn_wordpiece}[kind]
    sample = _sample((text for text in sentences if text.strip()), _MAX_SENTENCES, seed)
    if not sample:
        raise InputError("the training text must hold at least one sentence. Received: none")
    file = Path(directory) / VOCABULARY_FILES[kind]
    file.write_bytes(learn(sample, vocab_size))
    return Subwords(file)


def _sample(sentences: Iterable[str], limit: int, seed: int) -> list[str]:
    """Returns `limit` sentences, each with equal chance (reservoir sampling), or all there are."""
    generator = random.Random(seed)
    sentences = iter(sentences)
    sample = list(itertools.islice(sentences, limit))
    for count, sentence in enumerate(sentences, start=limit + 1):
        place = int(generator.random() * count)
        if place < limit:
            sample[place] = sentence
    return sample


def _learn_bpe(sentences: list[str], vocab_size: int) -> bytes:
    """Returns a SentencePiece model: no normalisation, and bytes for what it has no piece for."""
    import sentencepiece  # only learning needs it: encoding and decoding are TensorFlow ops

    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type="bpe",
            vocab_size=vocab_size,
            character_coverage=_CHARACTER_COVERAGE,
            byte_fallback=True,
            normalization_rule_name="identity",
            remove_extra_whitespaces=False,
            pad_id=PAD_ID,
            bos_id=BOS_ID,
            eos_id=EOS_ID,
            unk_id=UNK_ID,
            max_sentence_length=_MAX_SENTENCE_BYTES,
            num_threads=os.cpu_count(),
            minloglevel=2,
        )
    except RuntimeError as error:
        raise _size_error(str(error), vocab_size) from None
    return model.getvalue()


def _size_error(message: str, vocab_size: int) -> InputError:
    """Turns what SentencePiece says of a size that cannot be into a rule with its bound."""
    if largest := re.search(r"value <= (\d+)", message):
        rule = f"must be at most {largest[1]}, which is all the training text supports"
    elif smallest := re.search(r"\d+ vs (\d+)", message):
        rule = f"must be at least {smallest[1]}, to hold every character, byte and special id"
    else:
        rule = f"must suit the training text ({message})"
    return InputError(f"--vocab_size {rule}. Received: {vocab_size}")


def _learn_wordpiece(sentences: list[str], vocab_size: int) -> bytes:
    """Returns a WordPiece vocabulary, one piece a line."""
    batches = (_words(tf.constant(batch)).flat_values.numpy() for batch in _batched(sentences))
    counts = Counter(itertools.chain.from_iterable(batches))
    # Ties are broken by the bytes: the vocabulary does not hang on the order of sentences.
    common = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MAX_WORDS]
    words = [(word.decode("utf-8"), count) for word, count in common]
    pieces = _pieces_above_threshold(words, vocab_size)
    # The rarest pieces of more than one character go: single characters spell everything.
    droppable = [piece for piece in pieces if len(piece.removeprefix(_JOINER)) > 1]
    droppable = droppable[len(_SPECIAL_WORDPIECES) :]
    excess = len(pieces) - vocab_size
    if excess > len(droppable):
        raise InputError(
            f"--vocab_size must be at least {len(pieces) - len(droppable)}, to hold every "
            f"character and special id. Received: {vocab_size}"
        )
    dropped = set(droppable[len(droppable) - excess :])
    return "".join(f"{piece}\n" for piece in pieces if piece not in dropped).encode("utf-8")


def _pieces_above_threshold(words: list[tuple[str, int]], vocab_size: int) -> list[str]:
    """Finds the frequency threshold whose pieces are as many as wanted, or just a few more."""
    low, high = words[-1][1], words[0][1]
    best = pieces = None
    while low <= high:
        # The geometric mean: sizes fall with a power of the threshold.
        middle = min(high, max(low, round((low * high) ** 0.5)))
        pieces = _learn_with_threshold(words, middle)
        if len(pieces) < vocab_size:
            high = middle - 1
            continue
        best, low = pieces, middle + 1
        if len(pieces) <= vocab_size * (1 + _TRIMMED_SHARE):
            break
    if best is None:  # then the last threshold tried was the lowest
        raise InputError(
            f"--vocab_size must be at most {len(pieces)}, which is all the training text supports. "
            f"Received: {vocab_size}"
        )
    return best


def _learn_with_threshold(words: list[tuple[str, int]], threshold: int) -> list[str]:
    """Returns the pieces that occur `threshold` times: specials, characters, then by frequency."""
    from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib as learner

    return learner.learn(
        words,
        vocab_size=1,  # equal thresholds leave the learner no size to search for
        reserved_tokens=list(_SPECIAL_WORDPIECES),
        upper_thresh=threshold,
        lower_thresh=threshold,
        joiner=_JOINER,
    )


def _batched(items: list) -> Iterator[list]:
    return (items[start : start + _BATCH] for start in range(0, len(items), _BATCH))


def _dense(ids: list[list[int]]) -> np.ndarray:
    """Lists of ids as int32 [B, T], padded."""
    dense = np.full((len(ids), max(map(len, ids))), PAD_ID, np.int32)
    for row, sentence in zip(dense, ids, strict=True):
        row[: len(sentence)] = sentence
    return dense
