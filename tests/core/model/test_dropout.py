import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_transformer.core.model.dropout import Dropout
from tests.refusals import refused


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.9])
def test_keeps_the_right_share_and_the_mean(rate):
    layer = Dropout(rate)
    outputs = ops.convert_to_numpy(layer(np.ones((1000, 1001), "float32"), training=True))
    kept = outputs != 0
    assert abs(kept.mean() - (1 - rate)) < 0.002  # 4 standard errors of a million draws
    np.testing.assert_allclose(outputs[kept], 1 / (1 - rate), rtol=2e-4)
    # Independent along both axes: a repeated mask would give shares of 0 or 1.
    assert abs((kept[:, 1:] & kept[:, :-1]).mean() - (1 - rate) ** 2) < 0.003
    assert abs((kept[1:] & kept[:-1]).mean() - (1 - rate) ** 2) < 0.003


@pytest.mark.parametrize("noise_shape", [(None, 1, 6), [7, None, 1]])
def test_elements_that_are_dropped_together(noise_shape):
    layer = Dropout(0.5, noise_shape=noise_shape)

    @tf.function(input_signature=[tf.TensorSpec([None, None, 6])])
    def call(inputs):
        return layer(inputs, training=True)

    for outputs in (call(tf.ones([7, 5, 6])), layer(tf.ones([7, 5, 6]), training=True)):
        kept = outputs.numpy() != 0
        together = noise_shape.index(1)
        np.testing.assert_array_equal(kept.all(axis=together), kept.any(axis=together))
        assert 0.2 < kept.mean() < 0.8
        np.testing.assert_allclose(outputs.numpy()[kept], 2)


def test_a_mask_of_other_dimensions_is_refused():
    layer = Dropout(0.5, noise_shape=(7, 1))
    with refused("noise_shape", "(7, 1) and 3"):
        layer.call(tf.ones([7, 5, 6]), training=True)


def test_masks_differ_from_call_to_call_and_repeat_from_the_same_state():
    layer = Dropout(0.5)
    ones = np.ones((50, 7), "float32")
    state = ops.convert_to_numpy(layer.seed_generator.state)
    first, second = (ops.convert_to_numpy(layer(ones, training=True)) for _ in range(2))
    assert (first != second).any()
    layer.seed_generator.state.assign(state)
    np.testing.assert_array_equal(layer(ones, training=True), first)


def test_does_nothing_outside_training_or_at_rate_0():
    ones = np.ones((5, 7), "float32")
    np.testing.assert_array_equal(Dropout(0.5)(ones), ones)
    np.testing.assert_array_equal(Dropout(0.0)(ones, training=True), ones)
    assert Dropout(0.0).variables == []


@pytest.mark.parametrize(("rate", "most_kept"), [(1.0, 0), (0.999_999, 0.001)])
def test_a_rate_of_about_1_keeps_about_nothing(rate, most_kept):
    outputs = Dropout(rate)(np.ones((1000, 1000), "float32"), training=True)
    # A draw of 16 bits would keep some 15 elements.
    assert np.mean(ops.convert_to_numpy(outputs) != 0) <= most_kept


def test_gradient_goes_through_kept_elements_only():
    layer = Dropout(0.25)
    inputs = tf.ones((30, 30))
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = layer(inputs, training=True)
    np.testing.assert_array_equal(tape.gradient(outputs, inputs), outputs)
