"""Products of the last axis with a matrix, which most of the model's work consists of."""

from keras import ops


def linear(inputs, kernel, bias=None):
    """inputs W + b, as one product of two matrices: [..., D] by [D, E] -> [..., E]."""
    rows = inputs
    if len(inputs.shape) > 2:
        rows = ops.reshape(inputs, (-1, kernel.shape[0]))
    rows = ops.matmul(rows, kernel)
    if bias is not None:
        rows = ops.add(rows, bias)
    if len(inputs.shape) == 2:
        return rows
    return ops.reshape(rows, (*ops.shape(inputs)[:-1], kernel.shape[1]))
