"""Learning the vocabularies of `subwords` from text."""

import io
import itertools
import os
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import tensorflow as tf

from keras_transformer.config import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from keras_transformer.errors import InputError
from keras_transformer.vocabulary.subwords import (
    JOINER,
    MAX_SENTENCE_BYTES,
    SPACE,
    SPECIAL_WORDPIECES,
    VOCABULARY_FILES,
    Subwords,
    batched,
    split_words,
)

# Learning takes some twelve times its text in memory; more hardly changes a vocabulary.
_MAX_CHARACTERS = 64_000_000
# The model file says how many there were: of equal text, it is to be equal on any machine.
_THREADS = 16
# Characters outside this share of the text are spelled in bytes rather than given a row.
_CHARACTER_COVERAGE = 0.9999
# WordPiece learning takes time in proportion to the distinct words: only the commonest count.
_MAX_WORDS = 100_000
# A vocabulary found within this share above the wanted size is trimmed, not searched on for.
_TRIMMED_SHARE = 0.05


def learn_subwords(
    sentences: Iterable[str],
    kind: str,
    vocab_size: int,
    directory: str | os.PathLike,
    seed: int,
    symbols: Sequence[str] = (),
) -> Subwords:
    """Learns a vocabulary of `vocab_size` ids and writes it into `directory`.

    Args:
        sentences: text of both languages; of more than 64 million characters, a sample is used.
        kind: "bpe" or "wordpiece".
        vocab_size: number of ids, the four special ones included.
        directory: an existing folder.
        seed: decides the sample; learning itself is deterministic.
        symbols: words that become an id each and are never cut ("bpe" only). A longer word that
            begins with one begins with its id.

    Raises:
        InputError: if the text gives no vocabulary of that size.
    """
    if symbols and kind != "bpe":
        raise InputError(f"--tokenizer must be bpe for this data set. Received: {kind}")
    sample = _sample((text for text in sentences if text.strip()), _MAX_CHARACTERS, seed)
    if not sample:
        raise InputError("the training text must hold at least one sentence. Received: none")
    file = Path(directory) / VOCABULARY_FILES[kind]
    if kind == "bpe":
        file.write_bytes(_learn_bpe(sample, vocab_size, symbols))
    else:
        file.write_bytes(_learn_wordpiece(sample, vocab_size))
    return Subwords(file)


def _sample(sentences: Iterable[str], limit: int, seed: int) -> list[str]:
    """Returns sentences of up to `limit` characters, each with equal chance, or all there are."""
    generator = random.Random(seed)
    sample: list[str] = []
    size, share = 0, 1.0
    for sentence in sentences:
        if share < 1 and generator.random() >= share:
            continue
        sample.append(sentence)
        size += len(sentence)
        while size > limit:  # a fifth goes, and as many again of those to come
            sample = [kept for kept in sample if generator.random() < 0.8]
            size, share = sum(map(len, sample)), share * 0.8
    return sample


def _learn_bpe(sentences: list[str], vocab_size: int, symbols: Sequence[str] = ()) -> bytes:
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
            user_defined_symbols=[SPACE + symbol for symbol in symbols],
            max_sentence_length=MAX_SENTENCE_BYTES,
            num_threads=_THREADS,
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
    batches = (split_words(tf.constant(batch)).flat_values.numpy() for batch in batched(sentences))
    counts = Counter(itertools.chain.from_iterable(batches))
    # Ties are broken by the bytes: the vocabulary does not hang on the order of sentences.
    common = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MAX_WORDS]
    words = [(word.decode("utf-8"), count) for word, count in common]
    pieces = _pieces_above_threshold(words, vocab_size)
    # The rarest pieces of more than one character go: single characters spell everything.
    droppable = [piece for piece in pieces if len(piece.removeprefix(JOINER)) > 1]
    droppable = droppable[len(SPECIAL_WORDPIECES) :]
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
        reserved_tokens=list(SPECIAL_WORDPIECES),
        upper_thresh=threshold,
        lower_thresh=threshold,
        joiner=JOINER,
    )
