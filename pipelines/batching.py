"""Record shards to padded batches of about equal size: tf.data stages and the composer of an epoch.

A batch is bounded in padded tokens, as in section 5.1: rows x padded length <= tokens_per_batch on
either side. Pairs are batched by chunks of a few shards, all ops over a whole chunk: parse, sort by
length, cut by the budget, shuffle the batches. That is ten times as fast as bucketing one element
at a time, and pads less. And everything is a function of (seed, epoch, chunk): an iterator is saved
as these three numbers, the place in the chunk and the batches made ahead, and restored by reading
one chunk, wherever in an epoch it is and wherever the shards have been moved to.
"""

from collections.abc import Callable

import tensorflow as tf

# Records are in random order on disk, so any shards are a fair sample of the corpus. The more pairs
# there are to sort, the less padding: 6% of 25,000 tokens, where 65,536 pairs leave 9%.
_CHUNK_PAIRS = 300_000
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

    # There is nothing for AutoGraph to convert, and looking takes it a second.
    @tf.autograph.experimental.do_not_convert
    def epoch(number: tf.Tensor) -> tf.data.Dataset:
        key = _fold([seed, 0], number)
        return _epoch(files, pairs, longest, tokens_per_batch, key)

    # Of the operations that read a chunk, TensorFlow does not know that they keep nothing.
    options = tf.data.Options()
    options.experimental_external_state_policy = tf.data.experimental.ExternalStatePolicy.IGNORE
    return tf.data.Dataset.counter().flat_map(epoch).with_options(options)


def one_pass(files: list[str], pairs: int, longest: int, tokens_per_batch: int) -> tf.data.Dataset:
    """The batches of a single epoch, always the same; arguments and result as in `epochs`."""
    return _epoch(files, pairs, longest, tokens_per_batch, tf.constant([0, 0]))


def _epoch(
    files: list[str], pairs: int, longest: int, tokens_per_batch: int, key: tf.Tensor
) -> tf.data.Dataset:
    """Batches of all pairs once: chunk by chunk, of shards in random order."""
    shuffled = tf.random.experimental.stateless_shuffle(tf.constant(files, tf.string), key)
    chunks = min(len(files), -(-pairs // _CHUNK_PAIRS))
    bounds = tf.constant([len(files) * chunk // max(1, chunks) for chunk in range(chunks + 1)])

    @tf.autograph.experimental.do_not_convert
    def batches(chunk: tf.Tensor) -> tf.data.Dataset:
        some = shuffled[bounds[chunk] : bounds[chunk + 1]]
        serialized = tf.data.TFRecordDataset(some).batch(pairs).get_single_element()
        return batch_chunk(serialized, longest, tokens_per_batch, _fold(key, chunk))

    return tf.data.Dataset.range(chunks).flat_map(batches)


def batch_chunk(
    serialized: tf.Tensor, longest: int, tokens_per_batch: int, key: tf.Tensor
) -> tf.data.Dataset:
    """Padded batches of serialized records, string [N], each record in exactly one."""
    lattice = length_lattice(longest)
    order_key, shuffle_key = tf.unstack(tf.random.split(key, 2))
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
