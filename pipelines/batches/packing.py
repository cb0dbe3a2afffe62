"""Packs sentence pairs into rows: batches of one shape with hardly any padding, for XLA.

A row holds several sentences, one after another, and the target row their translations in the same
order (keras_transformer/core/model/packing.py). Pairs are packed in the chunks of batching.py, so
batches are the same function of (seed, epoch, chunk), and iterators are saved and restored alike.
"""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from pipelines.batches.batching import endless, parse
from pipelines.prepare.metadata import SplitInfo

# Rows have at least this length: a row of a few sentences can be filled, one of two cannot.
_SHORTEST_ROW = 64
_MULTIPLE = 8  # lengths are multiples of this, which suits a GPU's matrix products
_LARGEST_SHARE = 0.04  # of padding that a side has because its rows are too long
# A chunk is packed at once, which takes seconds. A GPU trains as long on this number of batches.
PREFETCHED_BATCHES = 64


class BatchShape(NamedTuple):
    """The shape of all packed batches: source [rows, source_length], target likewise."""

    rows: int
    source_length: int
    target_length: int


def batch_shape(
    info: SplitInfo, tokens_per_batch: int, parts: int = 1, extra_target: int = 0
) -> BatchShape:
    """Chooses the shape of packed batches.

    The lengths of source and target rows have the ratio of the tokens in the split, so that both
    sides are full. The rows fill the last batch of an epoch, too.

    Args:
        info: the split, which has pairs.
        tokens_per_batch: maximum of rows x length, on either side, before rounding up the rows.
        parts: rows are rounded up to a multiple of this, so that all parts of a batch (replicas x
            accumulate_steps) have equally many rows.
        extra_target: number of tokens by which each target is longer than in the records.
    """
    longest_target = info.longest_target + extra_target
    tokens = (info.source_tokens, info.target_tokens + extra_target * info.pairs)
    longest = max(info.longest_source, longest_target)
    shortest = _round_up(max(longest, min(_SHORTEST_ROW, tokens_per_batch)))
    for length in range(shortest, 4 * shortest, _MULTIPLE):
        source_length = _round_up(max(info.longest_source, length * tokens[0] / max(tokens)))
        target_length = _round_up(max(longest_target, length * tokens[1] / max(tokens)))
        rows_of_sides = (tokens[0] / source_length, tokens[1] / target_length)
        if min(rows_of_sides) >= (1 - _LARGEST_SHARE) * max(rows_of_sides):
            break
    most_rows = max(1, tokens_per_batch // max(source_length, target_length))
    rows_in_epoch = 1.01 * max(rows_of_sides)  # about 1% is left empty
    batches = max(1, -(-rows_in_epoch // most_rows))
    rows_of_a_part = -(-rows_in_epoch / batches // parts)
    return BatchShape(int(rows_of_a_part) * parts, source_length, target_length)


def _round_up(length: float) -> int:
    return int(-(-length // _MULTIPLE) * _MULTIPLE)


def packed_epochs(
    files: list[str], pairs: int, shape: BatchShape, seed: int, extra_target: int = 0
) -> tf.data.Dataset:
    """Infinite packed batches: every epoch has each pair once, in different rows and order.

    Args:
        files: TFRecord shards.
        pairs: number of records in all of them.
        shape: the shape of all batches; no sentence is longer than a row.
        seed: determines all orders.
        extra_target: number of zeros before each target; 1 for models whose decoder reads a code.

    Returns:
        Dataset of (source int32 [rows, source_length], target int32 [rows, target_length]). Rows
        end in zeros, and so does the last batch of a chunk, in rows of zeros.
    """

    def batches_of(serialized: tf.Tensor, key: tf.Tensor) -> tf.data.Dataset:
        return pack_chunk(serialized, shape, key, extra_target)

    return endless(files, pairs, seed, batches_of)


def pack_chunk(
    serialized: tf.Tensor, shape: BatchShape, key: tf.Tensor, extra_target: int
) -> tf.data.Dataset:
    """Packed batches of serialized records, string [N]; each record is in exactly one row."""
    pack_key, shuffle_key = tf.unstack(tf.random.split(key, 2))
    source, target = parse(serialized)
    zeros = tf.zeros([target.nrows(), extra_target], tf.int32)
    target = tf.concat([zeros, target], axis=1)  # [N, None]
    order, starts = tf.numpy_function(
        lambda *arguments: _pack_arrays(*arguments, shape),
        [source.row_lengths(), target.row_lengths(), pack_key],
        [tf.int64, tf.int64],
    )
    order, starts = tf.ensure_shape(order, [None]), tf.ensure_shape(starts, [None])
    rows = tf.size(starts)
    shuffled = tf.random.experimental.stateless_shuffle(tf.range(rows), shuffle_key)
    source, target = (
        tf.gather(_joined(tf.gather(sentences, order), starts), shuffled)
        for sentences in (source, target)
    )
    first_rows = tf.range(0, rows, shape.rows)

    @tf.autograph.experimental.do_not_convert
    def batch(first_row: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        end = first_row + shape.rows
        return (
            source[first_row:end].to_tensor(0, shape=[shape.rows, shape.source_length]),
            target[first_row:end].to_tensor(0, shape=[shape.rows, shape.target_length]),
        )

    return tf.data.Dataset.from_tensor_slices(first_rows).map(batch)


def _pack_arrays(
    source_lengths: np.ndarray, target_lengths: np.ndarray, key: np.ndarray, shape: BatchShape
) -> tuple[np.ndarray, np.ndarray]:
    """Calls `pack` with arrays: int64 [N], [N] and int32 [2] -> int64 [N] and [rows]."""
    pairs = list(map(Lengths, source_lengths.tolist(), target_lengths.tolist()))
    row = Lengths(shape.source_length, shape.target_length)
    order, starts = pack(pairs, row, seed=key.tobytes())
    return np.array(order, np.int64), np.array(starts, np.int64)


def _joined(sentences: tf.RaggedTensor, starts: tf.Tensor) -> tf.RaggedTensor:
    """Joins sentences, int32 [N, None], to rows that start at these sentences: [rows, None]."""
    ends = tf.concat([starts, [sentences.nrows()]], axis=0)
    return tf.RaggedTensor.from_row_splits(
        sentences.values, tf.gather(sentences.row_splits, ends), validate=False
    )


class Lengths(NamedTuple):
    """The lengths of both sides of a pair, or the space for both sides in a row."""

    source: int
    target: int

    def holds(self, lengths: "Lengths") -> bool:
        """Whether there is space for a pair."""
        return lengths.source <= self.source and lengths.target <= self.target

    def minus(self, lengths: "Lengths") -> "Lengths":
        return Lengths(self.source - lengths.source, self.target - lengths.target)


def pack(pairs: Sequence[Lengths], row: Lengths, seed: int | bytes) -> tuple[list[int], list[int]]:
    """Distributes pairs to rows.

    A row first gets random pairs, until about two more have space, and then the two that fill it
    best. First fit leaves 6% of short rows empty, and the search for two pairs leaves 1%.

    Args:
        pairs: the lengths of all pairs, none of which exceeds the row.
        row: the lengths of a row.
        seed: determines the result.

    Returns:
        The pairs' indices in the order of the rows, and the position of each row's first pair.
    """
    generator = random.Random(seed)
    order = list(range(len(pairs)))
    generator.shuffle(order)
    supply = _Supply(pairs, order, row)
    random_lengths = iter([pairs[index] for index in order])
    mean = [sum(side) / max(1, len(pairs)) for side in zip(*pairs, strict=True)]
    room_for_two = Lengths(*(2.1 * length for length in mean)) if pairs else row
    packed, starts = [], []
    lengths = next(random_lengths, None)
    while len(packed) < len(pairs):
        starts.append(len(packed))
        free = row
        while lengths is not None and free.holds(lengths) and free.holds(room_for_two):
            if supply.has(lengths):
                packed.append(supply.take(lengths))
                free = free.minus(lengths)
            lengths = next(random_lengths, None)
        for lengths_to_fill in supply.that_fill(free, generator.random()):
            packed.append(supply.take(lengths_to_fill))
    return packed, starts


class _Supply:
    """The pairs that are not yet in a row, by their lengths.

    Sets of source lengths are the bits of an integer, so that all sums of two are found at once.
    """

    def __init__(self, pairs: Sequence[Lengths], order: Sequence[int], row: Lengths):
        self._row = row
        self._pairs = defaultdict(list)  # indices by lengths
        self._sources = [0] * (row.target + 1)  # by target length: a bit for each source length
        self._reversed = [0] * (row.target + 1)  # the same bits, counted from the row's length
        for index in order:
            self._pairs[pairs[index]].append(index)
        for lengths in self._pairs:
            self._flip(lengths)
        margins = [Lengths(a, b) for a in range(8) for b in range(8)]
        self._margins = sorted(margins, key=sum)[:12]  # what may stay empty, the smallest first

    def has(self, lengths: Lengths) -> bool:
        """Whether a pair of these lengths is left."""
        return bool(self._sources[lengths.target] >> lengths.source & 1)

    def take(self, lengths: Lengths) -> int:
        """Removes a pair of these lengths, and returns its index."""
        indices = self._pairs[lengths]
        index = indices.pop()
        if not indices:
            self._flip(lengths)
        return index

    def _flip(self, lengths: Lengths) -> None:
        self._sources[lengths.target] ^= 1 << lengths.source
        self._reversed[lengths.target] ^= 1 << (self._row.source - lengths.source)

    def that_fill(self, free: Lengths, random_number: float) -> Iterator[Lengths]:
        """Yields the lengths of one or two pairs that fill a row best, or else of large ones.

        Args:
            free: the space in the row.
            random_number: in [0, 1), where the search begins.
        """
        for margin in self._margins:
            space = free.minus(margin)
            if min(space) < 1:
                continue
            if self.has(space):
                yield space
                return
            first = self._first_of_two(space, random_number)
            if first is not None:
                yield first
                yield space.minus(first)
                return
        largest = self._largest(free)
        while largest is not None:
            yield largest
            free = free.minus(largest)
            largest = self._largest(free)

    def _first_of_two(self, space: Lengths, random_number: float) -> Lengths | None:
        """Finds two pairs that fill a space exactly. Returns the lengths of the first."""
        start = int(random_number * space.target)
        for target in (*range(start, space.target), *range(1, start)):
            shift = self._row.source - space.source
            sources = self._sources[target] & (self._reversed[space.target - target] >> shift)
            if sources:
                lowest = (sources & -sources).bit_length() - 1
                first = Lengths(lowest, target)
                if space.minus(first) != first or len(self._pairs[first]) > 1:
                    return first
        return None

    def _largest(self, space: Lengths) -> Lengths | None:
        """Returns the lengths of the pair with the longest target that has space, if any."""
        for target in range(space.target, 0, -1):
            sources = self._sources[target] & ((2 << space.source) - 1)
            if sources:
                return Lengths(sources.bit_length() - 1, target)
        return None
