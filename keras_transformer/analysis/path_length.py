"""Maximum path lengths of Table 1, by following which positions a layer computes which from.

A signal between two positions passes as many layers (or steps of a recurrence) as it takes until
the one is computed from the other. Boolean matrix products find that number for all pairs at once:
after L steps, position i has been reached by j where (step_L ... step_1)[i, j] is True.
"""

import itertools
from collections.abc import Iterable, Iterator

import numpy as np

from keras_transformer.errors import InputError


def path_lengths(length: int, kernel: int, window: int) -> dict[str, int]:
    """Computes the maximum path length of each layer type of Table 1, and of section 4's text.

    Args:
        length: n, at least 2.
        kernel: k of the convolutions.
        window: r of restricted self-attention.

    Raises:
        InputError: for sizes with which no number of layers connects all positions.
    """
    everything = np.ones((length, length), bool)
    later = np.tril(everything)  # what runs one way connects one way
    return {
        "self-attention": maximum_path(self_attention(length), everything),
        "recurrent": maximum_path(recurrent(length), later),
        "convolutional": maximum_path(convolutional(length, kernel), everything),
        "convolutional, dilated": maximum_path(dilated(length, kernel), later),
        "restricted self-attention": maximum_path(restricted(length, window), everything),
    }


def maximum_path(steps: Iterable[np.ndarray], pairs: np.ndarray) -> int:
    """Counts the steps until all `pairs` are connected.

    Args:
        steps: bool [n, n] each, True at [i, j] where its output i is computed from its input j.
        pairs: bool [n, n], the (output, input) positions that are to be connected.

    Raises:
        InputError: where n steps do not connect them.
    """
    length = len(pairs)
    reached = np.eye(length, dtype=bool)
    for count, step in enumerate(itertools.islice(steps, length), 1):
        # As float32, which has a fast product; sums of up to n ones are exact.
        reached = step.astype(np.float32) @ reached.astype(np.float32) > 0
        if reached[pairs].all():
            return count
    raise InputError(f"each position must depend on another. Received: {length} unconnected ones")


def self_attention(length: int) -> Iterator[np.ndarray]:
    """Layers in which each position sees all."""
    return itertools.repeat(np.ones((length, length), bool))


def restricted(length: int, window: int) -> Iterator[np.ndarray]:
    """Layers in which each position sees those at most window // 2 away."""
    return itertools.repeat(np.abs(_distances(length)) <= window // 2)


def convolutional(length: int, kernel: int) -> Iterator[np.ndarray]:
    """Layers of contiguous kernels, padded to keep the length."""
    # Padded on both sides; an even kernel has its odd tap on the right.
    first = -((kernel - 1) // 2)
    return itertools.repeat(np.isin(-_distances(length), np.arange(first, first + kernel)))


def dilated(length: int, kernel: int) -> Iterator[np.ndarray]:
    """Layers of causal kernels, their taps 1, k, k^2, ... positions apart, as ByteNet's decoder.

    Every distance below k^L is a number of L digits in base k: one tap a layer.
    """
    distances = _distances(length)
    taps = (kernel**n * np.arange(kernel) for n in itertools.count())
    return (np.isin(distances, offsets) for offsets in taps)


def recurrent(length: int) -> Iterator[np.ndarray]:
    """Inputs become states, then each state is computed from the one before, a step at a time."""
    one_on = np.isin(_distances(length), (0, 1))
    return itertools.chain([np.eye(length, dtype=bool)], itertools.repeat(one_on))


def _distances(length: int) -> np.ndarray:
    """int [n, n], i - j."""
    return np.subtract.outer(np.arange(length), np.arange(length))
