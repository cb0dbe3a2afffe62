import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.training.accumulation import accumulate_gradients


@pytest.mark.parametrize("parts", [2, 3, 4])
def test_every_row_is_in_one_part(parts):
    source = tf.constant([[1], [10], [100], [1000], [10000]])
    target = 2 * source
    sizes = []

    def gradients_of(source, target, tokens):
        sizes.append(source.shape[0])
        sums = tf.cast(tf.reduce_sum(source), tf.float32), tf.reduce_sum(target)
        return {"losses": sums, "divided": tf.cast(sums[0], tf.float32) / tokens}

    total = accumulate_gradients(gradients_of, source, target, tf.constant(4.0), parts)
    assert float(total["losses"][0]) == 11111
    assert int(total["losses"][1]) == 22222
    assert float(total["divided"]) == 11111 / 4
    assert sizes == [len(range(part, 5, parts)) for part in range(parts)]


def test_parts_are_added_in_their_order():
    """In float32, the sum depends on the order."""
    values = np.array([1e8, 1.0, -1e8, 1.0], "float32")

    def gradients_of(source, target, tokens):
        return tf.gather(values, source[0, 0])

    rows = tf.constant([[0], [1], [2], [3]])
    total = accumulate_gradients(gradients_of, rows, rows, tf.constant(1.0), 4)
    assert float(total) == float(((values[0] + values[1]) + values[2]) + values[3]) == 1.0
