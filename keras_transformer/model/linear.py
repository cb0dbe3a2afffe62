"""Products of the last axis with a matrix, which most of the model's work consists of."""

from keras import ops


def product(rows, kernel):
    """[R, D] by [D, E] -> [R, E]; a kernel that is no tensor (decoding/int8) multiplies itself."""
    if hasattr(kernel, "multiply"):
        return kernel.multiply(rows)
    return ops.matmul(rows, ops.cast(kernel, rows.dtype))


def linear(inputs, kernel, bias=None):
    """inputs W + b, as one product of two matrices: [..., D] by [D, E] -> [..., E]."""
    rows = inputs
    if len(inputs.shape) > 2:
        rows = ops.reshape(inputs, (-1, inputs.shape[-1]))
    rows = product(rows, kernel)
    if bias is not None:
        rows = ops.add(rows, ops.cast(bias, rows.dtype))
    if len(inputs.shape) == 2:
        return rows
    return ops.reshape(rows, (*ops.shape(inputs)[:-1], rows.shape[1]))
