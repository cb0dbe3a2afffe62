import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.model.masks import causal_mask, padding_mask, window_mask
from tests import numpy_reference


def test_masks():
    np.testing.assert_array_equal(
        padding_mask(np.array([[5, 2, 0], [7, 0, 0]])), [[True, True, False], [True, False, False]]
    )
    np.testing.assert_array_equal(
        causal_mask(3), [[True, False, False], [True, True, False], [True, True, True]]
    )
    np.testing.assert_array_equal(causal_mask(2, 3), [[True, False, False], [True, True, False]])


@pytest.mark.parametrize(
    ("queries", "keys", "window"),
    [(1, 5, 3), (7, 7, 3), (7, 4, 2), (4, 9, 6), (13, 13, 1), (13, 13, 500), (0, 5, 3)],
)
def test_window_mask_pair_by_pair(queries, keys, window):
    expected = numpy_reference.neighbourhood(queries, keys, window)
    np.testing.assert_array_equal(window_mask(queries, keys, window), expected)
    dynamic = window_mask(tf.constant(queries), tf.constant(keys), window)
    np.testing.assert_array_equal(dynamic, expected)
