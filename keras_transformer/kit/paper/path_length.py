"""Maximum path lengths of Table 1, found by tracing which positions each layer computes from which.

The path between two positions has as many layers (or recurrent steps) as it takes until one is
computed from the other. In every layer type, the longest path is from the first position to the
last.
"""

import itertools
from collections.abc import Iterator

import numpy as np

from keras_transformer.support.errors import require


def path_lengths(length: int, kernel: int, window: int) -> dict[str, int]:
    """Counts the steps that each layer type needs to connect all positions.

    Args:
        length: n, the number of positions, at least 2.
        kernel: k, the kernel size of the convolutions.
        window: r, the neighbourhood of restricted self-attention (section 4).

    Returns:
        Layer type -> number of steps.

    Raises:
        InputError: if n steps do not connect the positions with these sizes.
    """
    lengths = {}
    for name, steps in dependencies(length, kernel, window).items():
        is_reached = np.arange(length) == 0  # positions that depend on the first input
        count = 0
        for step in itertools.islice(steps, length):
            is_reached = step[:, is_reached].any(axis=1)
            count += 1
            if is_reached[-1]:
                break
        argument = "window" if name == "restricted self-attention" else "kernel"
        rule = "must make each position depend on another"
        require(is_reached[-1], argument, rule, f"{length} unconnected ones")
        lengths[name] = count
    return lengths


def dependencies(length: int, kernel: int, window: int) -> dict[str, Iterator[np.ndarray]]:
    """Determines which outputs are computed from which inputs in each step.

    The arguments are those of `path_lengths`.

    Returns:
        Layer type -> an endless iterator over its steps. A step is bool [n, n], True at [i, j] if
        output i is computed from input j.
    """
    distances = np.subtract.outer(np.arange(length), np.arange(length))  # i - j
    # Padded on both sides; an even kernel has its extra tap on the right.
    taps = np.arange(kernel) - (kernel - 1) // 2
    one_on = np.isin(distances, (0, 1))
    # Causal kernels with taps 1, k, k^2, ... positions apart, as in ByteNet's decoder: every
    # distance below k^L is a number of L digits in base k, with one tap per layer.
    dilated = (np.isin(distances, kernel**n * np.arange(kernel)) for n in itertools.count())
    return {
        "self-attention": itertools.repeat(np.ones((length, length), bool)),
        # Inputs become states, then each state is computed from the previous one.
        "recurrent": itertools.chain([distances == 0], itertools.repeat(one_on)),
        "convolutional": itertools.repeat(np.isin(-distances, taps)),
        "convolutional, dilated": dilated,
        "restricted self-attention": itertools.repeat(np.abs(distances) <= window // 2),
    }
