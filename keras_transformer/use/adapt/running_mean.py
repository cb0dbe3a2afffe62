"""A running mean of variables in training, which varies less than their last values.

An adapter's A and B have a mean each, so that the mean is an adapter, too. Learning goes on from
the last values.
"""

import contextlib
from collections.abc import Iterator, Sequence

import keras
import tensorflow as tf


class RunningMean:
    """The exponential mean of variables over their last values (Polyak and Juditsky 1992).

        mean_t = mean_(t-1) + (value_t - mean_(t-1)) / min(t, N)

    So the first N values count equally, and later each new value replaces one N-th of the mean.

    Args:
        variables: the variables, of any shape.
        length: N.

    Attributes:
        means: their means, a variable each in the same order; at first their values.
        count: int64 variable, t.
    """

    def __init__(self, variables: Sequence[keras.Variable], length: int):
        self._variables = [variable.value for variable in variables]
        self._length = length
        self.means = [tf.Variable(variable, trainable=False) for variable in self._variables]
        self.count = tf.Variable(0, trainable=False, dtype=tf.int64)

    @tf.function(autograph=False)
    def update(self) -> None:
        """Adds the present values."""
        count = self.count.assign_add(1)
        share = 1 / tf.minimum(count, self._length)
        for mean, variable in zip(self.means, self._variables, strict=True):
            mean.assign_add(tf.cast(share, mean.dtype) * (variable - mean))

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Gives the variables their means while the block runs."""
        values = [tf.identity(variable) for variable in self._variables]
        _assign(self._variables, self.means)
        try:
            yield
        finally:
            _assign(self._variables, values)


def _assign(variables: Sequence[tf.Variable], values: Sequence[tf.Tensor]) -> None:
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
