"""Batches of similar length inside a graph, for requests of any size in bounded memory."""

from collections.abc import Callable

import tensorflow as tf

from keras_transformer.config import PAD_ID

# A row counts as this many tokens of a batch at least: however short, its beams take room.
MIN_ROW_TOKENS = 32


def in_batches(
    function: Callable[..., dict[str, tf.Tensor]], batch_tokens: int, *ids: tf.RaggedTensor
) -> dict[str, tf.Tensor]:
    """Applies a function to rows of ids in batches of similar length, the longest rows first.

    Args:
        function: maps int32 [b, length], padded, one tensor for each of `ids`, to tensors [b, ...]
            whose other axes are of fixed sizes. A row's results may not depend on the others.
        batch_tokens: bounds rows x longest of a batch, except for a row longer itself.
        ids: int32 [B, None] each, of as many rows; B may be 0.

    Returns:
        What `function` gives, [B, ...], in the order of the rows.
    """
    spec = tf.TensorSpec([None, None], tf.int32)
    function = tf.function(function, [spec] * len(ids), autograph=False).get_concrete_function()
    lengths = tf.reduce_max([rows.row_lengths() for rows in ids], axis=0)  # [B]
    lengths = tf.cast(lengths, tf.int32)
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    total = tf.size(order)

    def advance(start, results):
        longest = tf.maximum(lengths[order[start]], MIN_ROW_TOKENS)
        size = tf.maximum(batch_tokens // longest, 1)
        batch = order[start : start + size]  # [b]
        found = function(*[tf.gather(rows, batch).to_tensor(PAD_ID) for rows in ids])
        results = {
            name: tf.tensor_scatter_nd_update(results[name], batch[:, None], found[name])
            for name in results
        }
        return start + size, results

    results = {
        name: tf.zeros([total, *tensor.shape[1:]], tensor.dtype)
        for name, tensor in function.structured_outputs.items()
    }
    # One after the other, as several at once would take the memory of several.
    _, results = tf.while_loop(
        lambda start, _: start < total, advance, [0, results], parallel_iterations=1
    )
    return results
