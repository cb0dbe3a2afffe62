import argparse

import numpy as np
import pytest
import tensorflow as tf

from tests.refusals import refused


@pytest.fixture
def layers(monkeypatch, request):
    monkeypatch.syspath_prepend(request.config.rootpath / "benchmarks")
    import layers

    return layers


@pytest.fixture
def arguments(tmp_path):
    return argparse.Namespace(
        window=4, kernel=3, width=16, memory_gb=None, output=tmp_path / "layers.svg"
    )


@pytest.mark.slow  # layers that no model has
def test_every_layer_type_maps_a_sequence_to_one_of_its_size(layers, arguments):
    inputs = tf.random.stateless_normal([1, 70, 16], seed=[1, 2])
    for kind in layers.KINDS:
        outputs = np.array(layers.make_layer(kind, 16, arguments)(inputs))
        assert outputs.size == 70 * 16, kind
        np.testing.assert_array_equal(layers.forward(kind, 70, 16, arguments)().size, 70 * 16)


def test_restricted_types_are_restricted_and_the_others_are_not(layers, arguments):
    inputs = tf.random.stateless_normal([1, 70, 16], seed=[1, 2])
    changed = tf.tensor_scatter_nd_add(inputs, [[0, 30]], tf.ones([1, 16]))
    for kind in layers.KINDS:
        layer = layers.make_layer(kind, 16, arguments)
        difference = np.array(layer(changed)) - np.array(layer(inputs))
        felt = np.flatnonzero(np.abs(difference).reshape(70, 16).max(-1) > 0)
        if kind.startswith("restricted"):
            np.testing.assert_array_equal(felt, range(28, 33))
        elif kind in ("self-attention", "multi-head"):
            np.testing.assert_array_equal(felt, range(70))


def test_gradients_of_both_kinds_have_all_projections(layers):
    for window in (None, 4):
        gradient = layers.forward_backward(70, 16, window)()
        assert gradient.shape == (16, 16) and np.abs(gradient).max() > 0


def test_exponents_of_measured_times_and_of_the_terms(layers, arguments):
    # Times that grow with n^1.5; of n^2 d, the exponent of n is 2.
    measured = [(n, 16, 0.001 * n**1.5) for n in (32, 64, 128, 256)]
    assert layers.exponents("n", 0, "self-attention", measured, arguments) == {
        "n_exponent": 1.5,
        "n_exponent_of_term": 2.0,
    }
    assert layers.slope([64], [1.0]) is None


@pytest.mark.parametrize(
    ("flag", "value"),
    [("window", 1), ("window", 65), ("kernel", 1), ("width", 12), ("memory_gb", 0.0)],
)
def test_impossible_sizes_are_refused(layers, arguments, flag, value):
    layers.check(arguments, layers.QUICK)
    setattr(arguments, flag, value)
    with refused(f"--{flag}", value):
        layers.check(arguments, layers.QUICK)
