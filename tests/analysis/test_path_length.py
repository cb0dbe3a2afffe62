"""Path lengths against formulas, and the dependencies behind them against the real layers."""

import itertools
import math

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.analysis import path_length
from keras_transformer.errors import InputError
from keras_transformer.model.attention import MultiHeadAttention
from keras_transformer.model.restricted_attention import RestrictedSelfAttention


@pytest.mark.parametrize(("length", "kernel", "window"), [(2, 3, 2), (40, 3, 8), (100, 5, 17)])
def test_path_lengths_equal_their_formulas(length, kernel, window):
    reach = kernel // 2  # positions on each side of an odd kernel's middle
    assert path_length.path_lengths(length, kernel, window) == {
        "self-attention": 1,
        "recurrent": length,  # into the first state, and n - 1 states on
        "convolutional": math.ceil((length - 1) / reach),
        # The number of digits of n - 1 in base k.
        "convolutional, dilated": next(n for n in itertools.count(1) if kernel**n >= length),
        "restricted self-attention": math.ceil((length - 1) / (window // 2)),
    }


@pytest.mark.parametrize(("kernel", "window"), [(1, 8), (3, 1)])
def test_layers_that_connect_nothing(kernel, window):
    with pytest.raises(InputError, match=r"must depend on another. Received: 9 unconnected"):
        path_length.path_lengths(9, kernel, window)


def dependencies(layer, length, d_model=8):
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
    ("layer", "steps"),
    [
        (lambda: MultiHeadAttention(2, 4), path_length.self_attention(70)),
        (lambda: RestrictedSelfAttention(2, 4, window=5), path_length.restricted(70, 5)),
        (lambda: keras.layers.Conv1D(8, 4, padding="same"), path_length.convolutional(70, 4)),
        (
            lambda: keras.layers.Conv1D(8, 3, padding="causal", dilation_rate=9),
            itertools.islice(path_length.dilated(70, 3), 2, None),
        ),
    ],
)
def test_dependencies_are_those_of_the_layers(layer, steps):
    np.testing.assert_array_equal(dependencies(layer(), 70), next(iter(steps)))


def test_recurrence_depends_on_all_before():
    layer = keras.layers.GRU(8, return_sequences=True)
    reached = np.eye(12)
    for step in itertools.islice(path_length.recurrent(12), 12):
        reached = step @ reached
    np.testing.assert_array_equal(dependencies(layer, 12), reached > 0)
