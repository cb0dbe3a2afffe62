import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.model.masks import causal_mask, combine_masks, padding_mask, window_mask
from tests import numpy_reference


def test_masks():
    np.testing.assert_array_equal(
        padding_mask(np.array([[5, 2, 0], [7, 0, 0]])), [[True, True, False], [True, False, False]]
    )
    np.testing.assert_array_equal(
        causal_mask(3), [[True, False, False], [True, True, False], [True, True, True]]
    )
    np.testing.assert_array_equal(causal_mask(2, 3), [[True, False, False], [True, True, False]])


def test_window_mask_by_hand():
    mask = np.array(window_mask(8, 8, 4))
    np.testing.assert_array_equal(np.flatnonzero(mask[5]), [3, 4, 5, 6, 7])
    np.testing.assert_array_equal(np.flatnonzero(mask[0]), [0, 1, 2])
    np.testing.assert_array_equal(window_mask(9, 9, 1), np.eye(9, dtype=bool))
    np.testing.assert_array_equal(window_mask(9, 9, 16), np.ones((9, 9), bool))


@pytest.mark.parametrize(
    ("queries", "keys", "window"),
    [(1, 5, 3), (7, 7, 3), (7, 4, 2), (4, 9, 6), (13, 13, 1), (13, 13, 500), (0, 5, 3)],
)
def test_window_mask_pair_by_pair(queries, keys, window):
    expected = numpy_reference.neighbourhood(queries, keys, window)
    np.testing.assert_array_equal(window_mask(queries, keys, window), expected)
    dynamic = window_mask(tf.constant(queries), tf.constant(keys), window)
    np.testing.assert_array_equal(dynamic, expected)


def test_combined_masks_allow_what_all_of_them_allow():
    padding = np.array([[[True, True, False]], [[True, True, True]]])  # [B, 1, P]
    mask = combine_masks([None, padding, causal_mask(3)])
    np.testing.assert_array_equal(mask[0], [[1, 0, 0], [1, 1, 0], [1, 1, 0]])
    np.testing.assert_array_equal(mask[1], [[1, 0, 0], [1, 1, 0], [1, 1, 1]])
    assert combine_masks([None, None]) is None and combine_masks([]) is None
