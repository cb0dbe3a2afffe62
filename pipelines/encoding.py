"""Text pairs to pairs of ids."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from keras_transformer.config import EOS_ID
from pipelines.sharding import EncodedPair
from pipelines.sources import Pair

if TYPE_CHECKING:
    from keras_transformer.vocabulary.subwords import Subwords

_ENCODED_AT_ONCE = 4096

Encode = Callable[[list[str]], list[list[int]]]


def encoder(vocabulary: "Subwords") -> Encode:
    """The fastest way from sentences to ids.

    For "bpe" SentencePiece's own, which is TensorFlow Text's too: the ids are the same, and the
    time is two thirds.
    """
    if vocabulary.kind != "bpe":
        return vocabulary.encode
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=str(vocabulary.file))
    return lambda sentences: processor.encode(sentences, num_threads=1)


def encoded(
    pairs: list[Pair], encode: Encode, max_length: int, dropped: Counter
) -> Iterator[EncodedPair]:
    """Encodes pairs, EOS appended; leaves out and counts those with a blank or over-long side."""
    for start in range(0, len(pairs), _ENCODED_AT_ONCE):
        batch = pairs[start : start + _ENCODED_AT_ONCE]
        usable = [pair for pair in batch if pair[0].strip() and pair[1].strip()]
        dropped["blank"] += len(batch) - len(usable)
        sides = [encode([pair[side] for pair in usable]) for side in (0, 1)]
        for source, target in zip(*sides, strict=True):
            if max(len(source), len(target)) < max_length:
                yield [*source, EOS_ID], [*target, EOS_ID]
            else:
                dropped["too_long"] += 1
