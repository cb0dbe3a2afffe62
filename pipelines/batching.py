"""Record shards to padded batches of about equal size: tf.data stages and the composer of an epoch.

A batch is bounded in padded tokens, as in section 5.1: rows x padded length <= tokens_per_batch on
either side. Pairs are batched by chunks of thousands, all ops over a whole chunk: parse, sort by
length, cut by the budget, shuffle the batches. That is ten times as fast as bucketing one element
at a time, pads less, and has less to save: everything is a function of (seed, epoch, chunk).
"""

from collections.abc import Callable

import tensorflow as tf

# Records are in random order on disk, so a chunk is a fair sample of the corpus.
_CHUNK_PAIRS = 65_536
_FILES_AT_ONCE = 8
_PREFETCHED_BATCHES = 8

Stage = Callable[[tf.data.Dataset], tf.data.Dataset]


def length_lattice(longest: int) -> list[int]:
    """The padded lengths in use: even numbers to 32, then 1.12 times the last; `longest` ends them.

    A small set of lengths means a small set of shapes, which is what compilers and memory
    allocators like; steps this fine cost about 4% padding.
    """
    lengths = []
    length = 2
    while length < longest:
        lengths.append(length)
        if length < 32:
            length += 2
        else:
            step = 4 if length < 64 else 8
            length = max(length + step, round(length * 1.12 / step) * step)
    return [*lengths, longest]


def epochs(
    files: list[str], pairs: int, longest: int, tokens_per_batch: int, seed: int
) -> tf.data.Dataset:
    """Batches for ever: every epoch holds each pair once, in batches and an order of its own.

    Args:
        files: TFRecord shards.
        pairs: how many records they hold.
        longest: the longest sentence of either side; at most `tokens_per_batch`.
        tokens_per_batch: bounds rows x padded length on either side.
        seed: decides all orders.

    Returns:
        Dataset of (source int32 [rows, S], target int32 [rows, T]), 0-padded.
    """

    def epoch(number: tf.Tensor) -> tf.data.Dataset:
        key = _fold([seed, 0], number)
        chunks = read_chunks(files, pairs, key)
        return chunks.apply(batch_chunks(longest, tokens_per_batch, key))

    return tf.data.Dataset.counter().flat_map(epoch)


def one_pass(files: list[str], pairs: int, longest: int, tokens_per_batch: int) -> tf.data.Dataset:
    """The batches of a single epoch, always the same; arguments and result as in `epochs`."""
    key = tf.constant([0, 0])
    chunks = read_chunks(files, pairs, key)
    return chunks.apply(batch_chunks(longest, tokens_per_batch, key))


def read_chunks(files: list[str], pairs: int, key: tf.Tensor) -> tf.data.Dataset:
    """Serialized records in chunks of about equal size, string [N], the files in random order."""
    shuffled = tf.random.experimental.stateless_shuffle(tf.constant(files), key)
    records = tf.data.Dataset.from_tensor_slices(shuffled).interleave(
        tf.data.TFRecordDataset, cycle_length=min(_FILES_AT_ONCE, len(files)), block_length=16
    )
    chunks = max(1, -(-pairs // _CHUNK_PAIRS))
    return records.batch(max(1, -(-pairs // chunks)))


def batch_chunks(longest: int, tokens_per_batch: int, key: tf.Tensor) -> Stage:
    """Stage: chunks of serialized records -> padded batches, each record in exactly one."""
    lattice = length_lattice(longest)

    def batches(number: tf.Tensor, serialized: tf.Tensor) -> tf.data.Dataset:
        order_key, shuffle_key = tf.unstack(tf.random.split(_fold(key, number), 2))
        source, target = parse(serialized)
        order, starts = cut(
            source.row_lengths(), target.row_lengths(), lattice, tokens_per_batch, order_key
        )
        source, target = tf.gather(source, order), tf.gather(target, order)
        bounds = tf.stack([starts[:-1], starts[1:]], axis=1)  # [batches, 2]
        bounds = tf.random.experimental.stateless_shuffle(bounds, shuffle_key)
        return tf.data.Dataset.from_tensor_slices(bounds).map(
            lambda rows: (pad(source, rows, lattice), pad(target, rows, lattice))
        )

    return lambda dataset: dataset.enumerate().flat_map(batches)


def parse(serialized: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """Serialized records, string [N], to (source, target), each int32 [N, None]."""
    feature = tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64)
    features = tf.io.parse_example(serialized, {"source": feature, "target": feature})
    return tf.cast(features["source"], tf.int32), tf.cast(features["target"], tf.int32)


def cut(
    source_lengths: tf.Tensor,
    target_lengths: tf.Tensor,
    lattice: list[int],
    tokens_per_batch: int,
    key: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Sorts pairs by length and cuts them into batches.

    First by the padded length of the longer side, longest first: a batch's first pair then tells
    how many rows fit. Within one such length by the difference of the sides, in turns rising and
    falling so that it has no jumps: this keeps the shorter side's padding small. Then by chance.

    Args:
        source_lengths: int64 [N].
        target_lengths: int64 [N].
        lattice: padded lengths, rising; the last is at least every length.
        tokens_per_batch: at least the last of `lattice`.
        key: int32 [2], of the chance.

    Returns:
        order: int32 [N], indices of the pairs, sorted.
        starts: int32 [batches + 1], where batches begin in that order; the last is N.
    """
    size = len(lattice)
    source, target = (
        tf.searchsorted(tf.constant(lattice, tf.int64), lengths)  # places in the lattice, [N]
        for lengths in (source_lengths, target_lengths)
    )
    longer = tf.maximum(source, target)
    difference = (target - source) * (1 - 2 * (longer % 2))
    rank = (size - 1 - longer) * (2 * size) + difference + size
    chance = tf.random.stateless_uniform(tf.shape(rank), key, 0, 1 << 31, tf.int64)
    order = tf.argsort(tf.cast(rank, tf.int64) * (1 << 31) + chance)
    padded = tf.gather(tf.constant(lattice, tf.int32), tf.gather(longer, order))
    return order, _starts(tokens_per_batch // padded)


def _starts(rows: tf.Tensor) -> tf.Tensor:
    """Where batches begin when the one that begins at i takes rows[i]; the end is the last."""
    count = tf.size(rows)

    def body(start, starts):
        return start + rows[start], starts.write(starts.size(), start)

    _, starts = tf.while_loop(
        lambda start, starts: start < count,
        body,
        (0, tf.TensorArray(tf.int32, size=0, dynamic_size=True, element_shape=[])),
    )
    return tf.concat([starts.stack(), [count]], axis=0)


def pad(sentences: tf.RaggedTensor, rows: tf.Tensor, lattice: list[int]) -> tf.Tensor:
    """Rows [rows[0], rows[1]) of `sentences`, 0-padded to a length of `lattice`."""
    batch = sentences[rows[0] : rows[1]].to_tensor(0)  # [rows, longest of them]
    lengths = tf.constant(lattice, tf.int32)
    length = tf.shape(batch)[1]
    padded = lengths[tf.searchsorted(lengths, length[tf.newaxis])[0]]
    return tf.pad(batch, [[0, 0], [0, padded - length]])


def prefetch() -> Stage:
    """Stage: computes some batches ahead. Few, as a checkpoint saves them."""
    return lambda dataset: dataset.prefetch(_PREFETCHED_BATCHES)


def _fold(key, number: tf.Tensor) -> tf.Tensor:
    return tf.random.experimental.stateless_fold_in(tf.cast(key, tf.int32), number)
