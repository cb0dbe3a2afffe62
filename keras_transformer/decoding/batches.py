"""Rows of ids as tensors, and batches of similar length."""

from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf
from numpy.typing import ArrayLike

from keras_transformer.config import PAD_ID
from keras_transformer.decoding.graphs import MIN_ROW_TOKENS
from keras_transformer.errors import require
from keras_transformer.fields import shown

# Batches of fewer tokens than this are not divided further among streams.
MIN_BATCH_TOKENS = 512


def string_tensor(texts: Sequence[str]) -> tf.Tensor:
    """Makes string [B], in UTF-8, which cannot hold lone surrogates: they become "?"."""
    return tf.constant([text.encode("utf-8", errors="replace") for text in texts], tf.string)


def as_ids(ids: ArrayLike, vocab_size: int, argument: str) -> tf.Tensor:
    """Makes int32 [B, S] of ids that a caller gives.

    Raises:
        InputError: which names the argument, if they are of another shape, or no ids.
    """
    try:
        found = np.asarray(ids)
    except ValueError:  # of rows of several lengths
        found = np.zeros(0)
    is_batch = found.ndim == 2 and found.shape[1] > 0 and found.dtype.kind in "iu"
    rule = "must be rows of ids, int [B, S], of one length with padding"
    require(is_batch, argument, rule, f"{found.dtype} {list(found.shape)}")
    known = (found >= 0) & (found < vocab_size)
    rule = f"must be ids from 0 to {vocab_size - 1}"
    require(known.all(), argument, rule, shown(found[~known].tolist()))
    return tf.constant(found, tf.int32)


def padded(rows: Sequence[np.ndarray]) -> tf.Tensor:
    """Makes int32 [B, longest] of rows of ids, with one column at least."""
    longest = max([1, *(len(row) for row in rows)])
    ids = np.full([len(rows), longest], PAD_ID, np.int32)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
    return tf.constant(ids)


def padded_phrases(rows: Sequence[Sequence[np.ndarray]]) -> tf.Tensor:
    """Makes int32 [B, P, M] of lists of phrases, with one phrase and one column at least."""
    most = max([1, *(len(phrases) for phrases in rows)])
    longest = max([1, *(len(phrase) for phrases in rows for phrase in phrases)])
    ids = np.full([len(rows), most, longest], PAD_ID, np.int32)
    for place, phrases in enumerate(rows):
        for number, phrase in enumerate(phrases):
            ids[place, number, : len(phrase)] = phrase
    return tf.constant(ids)


def longer_lengths(sources: Sequence[np.ndarray], targets: Sequence[np.ndarray]) -> list[int]:
    """The length of the longer side of each pair."""
    return [max(len(one), len(other)) for one, other in zip(sources, targets, strict=True)]


def length_batches(
    lengths: Sequence[int], batch_tokens: int, parts: int = 1
) -> Iterator[list[int]]:
    """Cuts sentences into batches of similar length, as indices into their `lengths` in tokens.

    The longest come first, so that a batch too large for memory fails at once and the time left is
    not underestimated.

    Args:
        batch_tokens: bounds sentences x longest of a batch, except for a sentence longer itself.
        parts: how many batches there should be at least, where there are enough tokens.
    """
    share = sum(max(length, MIN_ROW_TOKENS) for length in lengths) // parts
    batch_tokens = min(batch_tokens, max(share, MIN_BATCH_TOKENS))
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    start = 0
    while start < len(order):
        rows = max(batch_tokens // max(lengths[order[start]], MIN_ROW_TOKENS), 1)
        yield order[start : start + rows]
        start += rows
