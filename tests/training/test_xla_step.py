"""The shapes that batches are padded to. Steps compiled by XLA are in test_xla.py."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.training.xla_step import bucket_shapes, pad_to_bucket


def test_shapes_by_hand():
    assert bucket_shapes([2, 4, 10], 25) == [(12, 2), (6, 4), (2, 10)]
    assert bucket_shapes([2, 4, 10], 25, parts=4) == [(12, 2), (8, 4), (4, 10)]


@pytest.mark.parametrize(
    ("source", "target", "shape"),
    [((12, 2), (12, 1), (12, 2)), ((3, 1), (3, 3), (6, 4)), ((1, 7), (1, 10), (2, 10))],
)
def test_batches_are_padded_to_the_smallest_shape_that_holds_them(source, target, shape):
    sides = [np.full(side, 7, "int32") for side in (source, target)]
    shapes = bucket_shapes([2, 4, 10], 25)
    padded = pad_to_bucket(shapes, *(tf.constant(side) for side in sides))
    for side, larger in zip(sides, padded, strict=True):
        assert larger.shape == shape
        rows, length = side.shape
        np.testing.assert_array_equal(larger[:rows, :length], side)
        assert np.count_nonzero(larger) == side.size


def test_every_batch_of_the_pipeline_has_its_shape(prepared):
    from pipelines.batching import length_lattice
    from pipelines.data_set import DataSet
    from pipelines.metadata import read_metadata

    longest = read_metadata(prepared).splits["train"].longest
    shapes = bucket_shapes(length_lattice(longest), 64)
    batches = itertools.islice(DataSet.open(prepared).training_batches(64, seed=1), 30)
    found = {tuple(side.shape) for batch in batches for side in pad_to_bucket(shapes, *batch)}
    assert len(found) > 1 and found <= set(shapes)
