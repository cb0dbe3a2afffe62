"""Path lengths against formulas, and the dependencies behind them against the real layers."""

import itertools
import math

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.core.model.attention import MultiHeadAttention
from keras_transformer.kit.paper.path_length import dependencies, path_lengths
from tests.refusals import refused


@pytest.mark.parametrize(("length", "kernel", "window"), [(2, 3, 2), (40, 3, 8), (100, 5, 17)])
def test_path_lengths_equal_their_formulas(length, kernel, window):
    reach = kernel // 2  # positions on each side of an odd kernel's middle
    assert path_lengths(length, kernel, window) == {
        "self-attention": 1,
        "recurrent": length,  # into the first state, and n - 1 states on
        "convolutional": math.ceil((length - 1) / reach),
        # The number of digits of n - 1 in base k.
        "convolutional, dilated": next(n for n in itertools.count(1) if kernel**n >= length),
        "restricted self-attention": math.ceil((length - 1) / (window // 2)),
    }


@pytest.mark.parametrize(("length", "kernel", "window"), [(2, 3, 2), (40, 4, 8), (50, 5, 17)])
def test_all_positions_are_connected_by_these_paths_and_no_shorter_ones(length, kernel, window):
    counts = path_lengths(length, kernel, window)
    for name, steps in dependencies(length, kernel, window).items():
        # Layers that run in one direction connect in one direction.
        one_way = name in ("recurrent", "convolutional, dilated")
        pairs = np.tri(length, dtype=bool) if one_way else np.ones((length, length), bool)
        reached, connected = np.eye(length), []
        for step in itertools.islice(steps, counts[name]):
            reached = np.minimum(step @ reached, 1)
            connected.append(bool(reached[pairs].all()))
        assert connected == [False] * (counts[name] - 1) + [True], name


@pytest.mark.parametrize(("kernel", "window", "argument"), [(1, 8, "kernel"), (3, 1, "window")])
def test_layers_that_connect_nothing(kernel, window, argument):
    with refused(argument, "9 unconnected"):
        path_lengths(9, kernel, window)


def dependencies_of(layer, length, d_model=8):
    """Which outputs change, bit for bit, when one input does."""
    x = np.random.default_rng(0).normal(size=(1, length, d_model)).astype("float32")
    before = ops.convert_to_numpy(layer(x))[0]
    found = np.zeros((length, length), bool)
    for j in range(length):
        changed = x.copy()
        changed[0, j] += 1
        found[:, j] = (ops.convert_to_numpy(layer(changed))[0] != before).any(-1)
    return found


@pytest.mark.parametrize(
    ("layer", "name", "number"),
    [
        (lambda: MultiHeadAttention(2, 4), "self-attention", 0),
        (lambda: MultiHeadAttention(2, 4, window=5), "restricted self-attention", 0),
        (lambda: keras.layers.Conv1D(8, 4, padding="same"), "convolutional", 0),
        (
            lambda: keras.layers.Conv1D(8, 4, padding="causal", dilation_rate=16),
            *("convolutional, dilated", 2),
        ),
    ],
)
def test_dependencies_are_those_of_the_layers(layer, name, number):
    step = next(itertools.islice(dependencies(70, 4, 5)[name], number, None))
    np.testing.assert_array_equal(dependencies_of(layer(), 70), step)


def test_recurrence_depends_on_all_before():
    layer = keras.layers.GRU(8, return_sequences=True)
    reached = np.eye(12)
    for step in itertools.islice(dependencies(12, 3, 5)["recurrent"], 12):
        reached = step @ reached
    np.testing.assert_array_equal(dependencies_of(layer, 12), reached > 0)
