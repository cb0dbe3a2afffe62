"""Turns record shards into padded batches of about equal size: tf.data stages, and whole epochs.

Batch size is limited in padded tokens, as in section 5.1: rows x padded length <= tokens_per_batch
on either side. Pairs are batched in chunks of a few shards, with every op applied to a whole chunk:
parse, sort by length, split by the token limit, shuffle the batches. That is ten times as fast as
bucketing single elements, and needs less padding. Every batch is a function of (seed, epoch,
chunk). So an iterator is saved as these three numbers, its position in the chunk and the prefetched
batches, and is restored by reading one chunk, even if the shards have moved to another folder.
"""

from collections.abc import Callable

import tensorflow as tf

# Records are in random order on disk, so any shards are a fair sample of the corpus. Sorting more
# pairs at once reduces padding: 6% of 25,000 tokens, compared to 9% with 65,536 pairs.
_CHUNK_PAIRS = 300_000
_PREFETCHED_BATCHES = 8

Stage = Callable[[tf.data.Dataset], tf.data.Dataset]
# Makes batches of a chunk: serialized records, string [N], and a key, int32 [2], the seed.
ChunkBatches = Callable[[tf.Tensor, tf.Tensor], tf.data.Dataset]


def length_lattice(longest: int) -> list[int]:
    """Returns the padded lengths: even numbers up to 32, then steps of 12%, and finally `longest`.

    Few lengths give few shapes, which suits compilers and memory allocators; these steps cost about
    4% padding.
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
    """Infinite batches: every epoch has each pair once, in different batches and order.

    Args:
        files: TFRecord shards.
        pairs: number of records in all of them.
        longest: the longest sentence on either side; at most `tokens_per_batch`.
        tokens_per_batch: maximum of rows x padded length in a batch, on either side.
        seed: determines all orders.

    Returns:
        Dataset of (source int32 [rows, S], target int32 [rows, T]), padded with 0.
    """
    return endless(files, pairs, seed, _padded_batches(longest, tokens_per_batch))


def endless(files: list[str], pairs: int, seed: int, batches_of: ChunkBatches) -> tf.data.Dataset:
    """Infinite batches like `epochs`, with another function that makes them from a chunk."""

    # AutoGraph has nothing to convert here, but checking would take a second.
    @tf.autograph.experimental.do_not_convert
    def epoch(number: tf.Tensor) -> tf.data.Dataset:
        key = _fold([seed, 0], number)
        return _epoch(files, pairs, key, batches_of)

    # TensorFlow does not know that the operations that read a chunk are stateless.
    options = tf.data.Options()
    options.experimental_external_state_policy = tf.data.experimental.ExternalStatePolicy.IGNORE
    return tf.data.Dataset.counter().flat_map(epoch).with_options(options)


def one_pass(files: list[str], pairs: int, longest: int, tokens_per_batch: int) -> tf.data.Dataset:
    """The batches of a single epoch, always in the same order; otherwise like `epochs`."""
    return _epoch(files, pairs, tf.constant([0, 0]), _padded_batches(longest, tokens_per_batch))


def _padded_batches(longest: int, tokens_per_batch: int) -> ChunkBatches:
    return lambda serialized, key: batch_chunk(serialized, longest, tokens_per_batch, key)


def _epoch(
    files: list[str], pairs: int, key: tf.Tensor, batches_of: ChunkBatches
) -> tf.data.Dataset:
    """Batches of all pairs once, chunk by chunk, with shards in random order."""
    shuffled = tf.random.experimental.stateless_shuffle(tf.constant(files, tf.string), key)
    chunks = min(len(files), -(-pairs // _CHUNK_PAIRS))
    bounds = tf.constant([len(files) * chunk // max(1, chunks) for chunk in range(chunks + 1)])

    @tf.autograph.experimental.do_not_convert
    def batches(chunk: tf.Tensor) -> tf.data.Dataset:
        shards = shuffled[bounds[chunk] : bounds[chunk + 1]]
        serialized = tf.data.TFRecordDataset(shards).batch(pairs).get_single_element()
        return batches_of(serialized, _fold(key, chunk))

    return tf.data.Dataset.range(chunks).flat_map(batches)


def batch_chunk(
    serialized: tf.Tensor, longest: int, tokens_per_batch: int, key: tf.Tensor
) -> tf.data.Dataset:
    """Padded batches of serialized records, string [N]; each record is in exactly one."""
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
    """Parses serialized records, string [N], to (source, target), each int32 [N, None]."""
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
    """Sorts pairs by length and splits them into batches.

    The first sort key is the padded length of the longer side, longest first: the first pair of a
    batch then determines how many rows fit. The second key is the difference of both sides, which
    keeps the padding of the shorter side small; it alternately ascends and descends between
    lengths, so that it never jumps. Ties are in random order.

    Args:
        source_lengths: int64 [N].
        target_lengths: int64 [N].
        lattice: padded lengths in ascending order; none of the lengths exceeds the last.
        tokens_per_batch: at least the last of `lattice`.
        key: int32 [2], the seed of the random order.

    Returns:
        order: int32 [N], the indices of the pairs in sorted order.
        starts: int32 [batches + 1], the first position of each batch in that order, then N.
    """
    size = len(lattice)
    padded_lengths = tf.constant(lattice, tf.int64)
    source = tf.searchsorted(padded_lengths, source_lengths)  # positions in the lattice, [N]
    target = tf.searchsorted(padded_lengths, target_lengths)  # [N]
    longer = tf.maximum(source, target)
    difference = (target - source) * (1 - 2 * (longer % 2))
    rank = (size - 1 - longer) * (2 * size) + difference + size
    random = tf.random.stateless_uniform(tf.shape(rank), key, 0, 1 << 31, tf.int64)
    order = tf.argsort(tf.cast(rank, tf.int64) * (1 << 31) + random)
    padded = tf.gather(tf.constant(lattice, tf.int32), tf.gather(longer, order))
    return order, _starts(tokens_per_batch // padded)


def _starts(rows: tf.Tensor) -> tf.Tensor:
    """Returns the batches' first rows and the end, if a batch from row i has rows[i] rows."""
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
    """Returns rows [rows[0], rows[1]) of `sentences`, padded with 0 to a length in `lattice`."""
    batch = sentences[rows[0] : rows[1]].to_tensor(0)  # [rows, longest of them]
    lengths = tf.constant(lattice, tf.int32)
    length = tf.shape(batch)[1]
    padded = lengths[tf.searchsorted(lengths, length[tf.newaxis])[0]]
    return tf.pad(batch, [[0, 0], [0, padded - length]])


def prefetch(count: int = _PREFETCHED_BATCHES) -> Stage:
    """Stage: prefetches batches; by default only a few, because checkpoints contain them."""
    return lambda dataset: dataset.prefetch(count)


def _fold(key, number: tf.Tensor) -> tf.Tensor:
    return tf.random.experimental.stateless_fold_in(tf.cast(key, tf.int32), number)
