"""Batches of similar lengths inside a graph."""

import numpy as np
import tensorflow as tf

from keras_transformer.kit.exchange.text_graphs import MIN_ROW_TOKENS, in_batches


def describe_batch(ids):
    """Returns facts about the batch for every row."""
    shape = tf.shape(ids)
    return {
        "sum": tf.reduce_sum(ids, axis=1),
        "shape": tf.ensure_shape(tf.tile(shape[None], [shape[0], 1]), [None, 2]),
        "text": tf.strings.as_string(ids[:, 0])[:, None],
    }


def test_batches_are_of_similar_length_and_the_order_stays():
    assert MIN_ROW_TOKENS == 32
    lengths = [3, 40, 120, 50, 5, 1, 41]
    ids = tf.ragged.constant([[number] * length for number, length in enumerate(lengths, 1)])
    outputs = in_batches(describe_batch, 100, tf.cast(ids, tf.int32))
    assert outputs["sum"].numpy().tolist() == [3, 80, 360, 200, 25, 6, 287]
    assert outputs["text"].numpy().tolist() == [[b"%d" % number] for number in range(1, 8)]
    # Longest first: 120 alone, though too long; 50 and 41; 40 and 5, as two of 40 fit; 3 and 1.
    wanted = [[2, 3], [2, 40], [1, 120], [2, 50], [2, 40], [2, 3], [2, 50]]
    assert outputs["shape"].numpy().tolist() == wanted


def test_rows_of_two_sides_stay_together():
    left = tf.ragged.constant([[1], [2] * 60, [3] * 10], dtype=tf.int32)
    right = tf.ragged.constant([[4] * 70, [5], [6] * 2], dtype=tf.int32)

    def products(left, right):
        size = tf.fill([tf.shape(left)[0]], tf.shape(left)[0])
        return {"product": left[:, 0] * right[:, 0], "size": size}

    outputs = tf.function(lambda: in_batches(products, 110, left, right))()
    assert outputs["product"].numpy().tolist() == [4, 10, 18]
    # The longer side counts: 70, then 60 (with 10 beside it, two would be 120), then 10.
    assert outputs["size"].numpy().tolist() == [1, 1, 1]


def test_no_rows():
    none = tf.RaggedTensor.from_row_splits(tf.zeros([0], tf.int32), [0])
    outputs = tf.function(lambda: in_batches(describe_batch, 100, none))()
    assert outputs["sum"].shape == [0]
    assert outputs["shape"].shape == [0, 2]
    assert outputs["text"].dtype == tf.string


def test_a_batch_sees_what_was_computed_outside():
    # Like the weights of an exported model, which are read once and not in every batch.
    ids = tf.ragged.constant([[1], [2] * 90, [3]], dtype=tf.int32)

    @tf.function
    def scaled(factor):
        outer = factor * 10
        return in_batches(lambda ids: {"scaled": ids[:, 0] * outer}, 64, ids)

    np.testing.assert_array_equal(scaled(tf.constant(2))["scaled"], [20, 40, 60])
