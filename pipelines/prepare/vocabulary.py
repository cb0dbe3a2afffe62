"""Learns a subword vocabulary from text, or adopts an existing one, and encodes a corpus with it.

`keras_transformer.core.vocabulary.subwords` describes the kinds of vocabulary.
"""

import io
import os
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from keras_transformer.core.config import BOS_ID, EOS_ID, PAD_ID, SUFFIXES, UNK_ID
from keras_transformer.core.vocabulary.language_codes import code_of
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.core.vocabulary.sentencepiece_models import SPACE
from keras_transformer.core.vocabulary.subwords import TERM_MARKS, Subwords
from keras_transformer.core.vocabulary.terms import encode_with_terms
from keras_transformer.core.vocabulary.wordpiece import JOINER, SPECIAL_WORDPIECES, split_words
from keras_transformer.support.errors import InputError, require
from keras_transformer.support.files.paths import to_path
from keras_transformer.support.files.replacing import write_file
from pipelines.prepare.sharding import EncodedPair
from pipelines.prepare.term_annotation import unmarked
from pipelines.sources.source import Pair

# Learning needs about twelve times the memory of its text; more text hardly changes a vocabulary.
_MAX_CHARACTERS = 64_000_000
# Fixed, because the model file stores it: equal text gives an equal file on any machine.
_THREADS = 16
_MAX_SENTENCE_BYTES = 1 << 20  # the longest sentence that SentencePiece learns from
# The rarest characters, beyond this share of the text, get no id but are spelled in bytes.
_CHARACTER_COVERAGE = 0.9999
# WordPiece learning takes time proportional to the distinct words; uses only the most frequent.
_MAX_WORDS = 100_000
# A vocabulary that is too large by at most this share is trimmed; the search then ends.
_TRIMMED_SHARE = 0.05
# Pairs per call of the encoder: limits the encoded text in memory.
_ENCODED_AT_ONCE = 4096


def learn_subwords(
    sentences: Iterable[str],
    kind: str,
    vocab_size: int,
    directory: str | os.PathLike,
    seed: int,
    symbols: Sequence[str] = (),
    name: str = "vocabulary",
    languages: Sequence[str] = (),
    term_marks: bool = False,
) -> Subwords:
    """Learns a vocabulary of `vocab_size` ids and writes it into `directory`.

    Args:
        sentences: the text. If it has more than 64 million characters, a random sample of its
            sentences is used.
        kind: "bpe" or "wordpiece".
        vocab_size: number of ids, including the four special ones.
        directory: the folder of the file; it exists.
        seed: determines the sample; learning itself is deterministic.
        symbols: words that get one id each and are never split ("bpe" only). A longer word that
            begins with a symbol begins with its id.
        name: the file name, without its suffix.
        languages: the languages whose codes get one id each (language_codes.py).
        term_marks: whether the marks of terms get one id each (vocabulary/terms.py).

    Returns:
        The vocabulary, read from its file.

    Raises:
        InputError: if the text does not support a vocabulary of that size.
    """
    require(not symbols or kind == "bpe", "tokenizer", "must be bpe for this data set", kind)
    sample = SentenceSample(seed)
    sample.add(sentences)
    rule = "must include a non-blank one in the training text"
    require(sample.sentences, "sentences", rule, "none")
    file = to_path(directory) / (name + SUFFIXES[kind])
    codes = [code_of(language) for language in languages]
    if term_marks:
        codes += TERM_MARKS
    if kind == "bpe":
        write_file(file, _learn_bpe(sample.sentences, vocab_size, symbols, codes))
    else:
        write_file(file, _learn_wordpiece(sample.sentences, vocab_size, codes))
    return Subwords(file)


def adopt_subwords(
    existing: str | os.PathLike,
    file: Path,
    vocab_size: int | None,
    symbols: Sequence[str] = (),
    languages: Sequence[str] = (),
    term_marks: bool = False,
) -> None:
    """Copies an existing vocabulary into a data directory.

    Args:
        existing: the existing vocabulary's file.
        file: the file to write.
        vocab_size: the required number of ids; None for any.
        symbols: words that must have one id each.
        languages: the languages whose codes it must have.
        term_marks: whether it must have the marks of terms.

    Raises:
        InputError: if it has another size, or lacks a symbol, a code or a mark.
    """
    vocabulary = Subwords(to_path(existing))
    cut = [symbol for symbol in symbols if len(vocabulary.encode([symbol])[0]) != 1]
    rule = "must have an id for each bracket and tag of the training trees"
    received = f"{existing}, with none for {', '.join(cut[:5])}"
    require(not cut, "vocabulary", f"{rule}, like one learned from them", received)
    lacking = [code_of(each) for each in languages if each not in vocabulary.languages]
    rule = "must have an id for the code of each target language"
    require(not lacking, "vocabulary", rule, f"{existing}, with none for {', '.join(lacking)}")
    has_marks = not term_marks or len(vocabulary.term_ids) > 0
    rule = "must be of data that was augmented with terms, too"
    received = f"{existing}, without {', '.join(TERM_MARKS)}"
    require(has_marks, "vocabulary", rule, received)
    content = vocabulary.file.read_bytes()
    write_file(file, _special_ids_first(content) if vocabulary.kind == "bpe" else content)
    size = Subwords(file).vocab_size
    rule = f"must be {size}, or not be given, with vocabulary={existing}"
    require(vocab_size in (None, size), "vocab_size", rule, vocab_size)


def _special_ids_first(model: bytes) -> bytes:
    """Moves pad, bos, eos and unk before all other pieces, adding missing ones."""
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    # A SentencePiece model's segmentation does not depend on the ids.
    original = ModelProto.FromString(model)
    moved = ModelProto.FromString(model)
    spec = moved.trainer_spec
    spec.pad_id = PAD_ID
    spec.bos_id = BOS_ID
    spec.eos_id = EOS_ID
    spec.unk_id = UNK_ID
    special_names = (spec.pad_piece, spec.bos_piece, spec.eos_piece, spec.unk_piece)
    del moved.pieces[:]
    for name in special_names:
        moved.pieces.add(piece=name, score=0, type=ModelProto.SentencePiece.CONTROL)
    moved.pieces[UNK_ID].type = ModelProto.SentencePiece.UNKNOWN
    moved.pieces.extend([piece for piece in original.pieces if piece.piece not in special_names])
    return model if moved == original else moved.SerializeToString(deterministic=True)


class PairEncoder:
    """Encodes pairs of sentences; thread-safe. `max_length` is in ids, including EOS."""

    def __init__(self, vocabularies: VocabularyPair, max_length: int):
        self.max_length = max_length
        self._vocabularies = vocabularies

    def encode(self, pairs: list[Pair], dropped: Counter) -> Iterator[EncodedPair]:
        """Yields the ids of pairs, with EOS; drops and counts those with a blank or long side."""
        for start in range(0, len(pairs), _ENCODED_AT_ONCE):
            batch = pairs[start : start + _ENCODED_AT_ONCE]
            usable = [pair for pair in batch if pair[0].strip() and pair[1].strip()]
            dropped["blank"] += len(batch) - len(usable)
            sources = self._encode_sources([source for source, _ in usable])
            targets = self._vocabularies.target.encode([target for _, target in usable])
            for source, target in zip(sources, targets, strict=True):
                if max(len(source), len(target)) < self.max_length:
                    yield [*source, EOS_ID], [*target, EOS_ID]
                else:
                    dropped["too_long"] += 1

    def _encode_sources(self, sources: list[str]) -> list[list[int]]:
        """Encodes sources, and the terms that `term_annotation.marked` wrote into some of them."""
        vocabulary = self._vocabularies.source
        if not vocabulary.term_ids:
            return vocabulary.encode(sources)
        texts, terms = zip(*map(unmarked, sources), strict=True) if sources else ((), ())
        return [
            encode_with_terms(vocabulary, text, row, terms_of_text) if terms_of_text else row
            for text, row, terms_of_text in zip(texts, vocabulary.encode(texts), terms, strict=True)
        ]


class SentenceSample:
    """All non-blank sentences, or a random sample of at most 64 million characters.

    Args:
        seed: determines the sample.
    """

    def __init__(self, seed: int):
        self.sentences: list[str] = []
        self._generator = random.Random(seed)
        self._characters = 0
        self._share = 1.0  # the probability of keeping a sentence

    def add(self, sentences: Iterable[str]) -> None:
        for sentence in sentences:
            if not sentence.strip():
                continue
            if self._share < 1 and self._generator.random() >= self._share:
                continue
            self.sentences.append(sentence)
            self._characters += len(sentence)
            while self._characters > _MAX_CHARACTERS:
                self._shorten()

    def _shorten(self) -> None:
        """Drops a fifth, and the same share of all following sentences."""
        self.sentences = [kept for kept in self.sentences if self._generator.random() < 0.8]
        self._characters = sum(map(len, self.sentences))
        self._share *= 0.8


def _learn_bpe(
    sentences: list[str], vocab_size: int, symbols: Sequence[str], codes: Sequence[str]
) -> bytes:
    """Returns a SentencePiece model without normalization, with bytes for rare characters."""
    import sentencepiece

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
            user_defined_symbols=[SPACE + symbol for symbol in symbols],
            control_symbols=list(codes),  # never used in encoding
            max_sentence_length=_MAX_SENTENCE_BYTES,
            num_threads=_THREADS,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise _size_error(str(error), vocab_size) from None
    return model.getvalue()


def _size_error(message: str, vocab_size: int) -> InputError:
    """Turns SentencePiece's message about an impossible size into a rule with its bound."""
    if largest := re.search(r"value <= (\d+)", message):
        rule = f"must be at most {largest[1]}, the most that the training text supports"
    elif smallest := re.search(r"\d+ vs (\d+)", message):
        rule = f"must be at least {smallest[1]}, to include every character, byte and special id"
    else:
        rule = f"must suit the training text ({message})"
    return InputError("vocab_size", rule, vocab_size)


def _learn_wordpiece(sentences: list[str], vocab_size: int, codes: Sequence[str]) -> bytes:
    """Returns a WordPiece vocabulary, one piece per line."""
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(split_words(sentence))
    # Ties are broken by the words, so that the order of the sentences changes nothing.
    words = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MAX_WORDS]
    reserved = [*SPECIAL_WORDPIECES, *codes]
    pieces = _pieces_above_threshold(words, vocab_size, reserved)
    # Only pieces of several characters can be dropped: single characters spell every word.
    droppable = [piece for piece in pieces if len(piece.removeprefix(JOINER)) > 1]
    droppable = droppable[len(reserved) :]
    least = len(pieces) - len(droppable)
    rule = f"must be at least {least}, to include every character and special id"
    require(vocab_size >= least, "vocab_size", rule, vocab_size)
    excess = len(pieces) - vocab_size
    dropped = set(droppable[len(droppable) - excess :])
    return "".join(f"{piece}\n" for piece in pieces if piece not in dropped).encode("utf-8")


def _pieces_above_threshold(
    words: list[tuple[str, int]], vocab_size: int, reserved: list[str]
) -> list[str]:
    """Finds the frequency threshold that gives the wanted number of pieces, or a few more."""
    low = words[-1][1]
    high = words[0][1]
    best = pieces = None
    while low <= high:
        # The geometric mean: sizes decrease as a power of the threshold.
        middle = min(high, max(low, round((low * high) ** 0.5)))
        pieces = _learn_with_threshold(words, middle, reserved)
        if len(pieces) < vocab_size:
            high = middle - 1
            continue
        best = pieces
        low = middle + 1
        if len(pieces) <= vocab_size * (1 + _TRIMMED_SHARE):
            break
    largest = len(pieces)  # if nothing was found, the last threshold was the lowest
    rule = f"must be at most {largest}, the most that the training text supports"
    require(best is not None, "vocab_size", rule, vocab_size)
    return best


def _learn_with_threshold(
    words: list[tuple[str, int]], threshold: int, reserved: list[str]
) -> list[str]:
    """Returns reserved pieces, characters, and the pieces that occur `threshold` times or more."""
    from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib as learner

    return learner.learn(
        words,
        vocab_size=1,  # ignored, as equal thresholds leave nothing to search
        reserved_tokens=reserved,
        upper_thresh=threshold,
        lower_thresh=threshold,
        joiner=JOINER,
    )
