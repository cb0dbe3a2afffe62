"""The kinds of matrices used in decoding: each is a class with `multiply`.

Rows, [R, D], are multiplied by a matrix W, [D, E]. If the embeddings are tied, the matrix that
computes logits is also the embedding matrix, with a column for each token: `look_up` returns
columns as vectors.

TensorFlow's public int8 operation converts the layout of a matrix for each product, has one scale
for it, and has no kernel without oneDNN; hence the private one. Weights have 7 bits, as processors
without VNNI add two products of 8 bits in 16. Each row has its own scale, so its result does not
depend on other rows.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_library

from keras_transformer.support.errors import InputError

LARGE = 2**22  # a softmax matrix with at least this many elements is a HalvedMatrix
FEW_ROWS = 16  # at most this many rows are multiplied by a HalvedMatrix in two halves
WEIGHT_LEVELS = 64.0  # weights are rounded to integers from -64 to 64
INPUT_LEVELS = 127.0  # inputs are rounded to integers from -127 to 127
SMALLEST_SCALE = np.float32(1e-30)  # the scale of a row or column of zeros


class ScaledRows(NamedTuple):
    """Rows that are yet to be multiplied by a positive scale each.

    The scale does not change a row's argmax.
    """

    values: tf.Tensor  # float32 [R, E]
    scales: tf.Tensor  # float32 [R, 1]


class FloatMatrix(NamedTuple):
    """A matrix in float32, or in bfloat16; see `weights.as_tensors`."""

    values: tf.Tensor  # [D, E]

    def multiply(self, rows: tf.Tensor, non_negative: bool = False) -> tf.Tensor:
        """float32 [R, D] -> float32 [R, E]; `non_negative` is ignored."""
        return _float_products(rows, self.values)

    def scaled_products(self, rows: tf.Tensor) -> ScaledRows:
        """Returns the result of `multiply`, with scales of 1."""
        return ScaledRows(self.multiply(rows), tf.ones([tf.shape(rows)[0], 1]))

    def look_up(self, ids: tf.Tensor) -> tf.Tensor:
        """Returns columns as vectors: int32 [...] -> float32 [..., D]."""
        return tf.cast(_columns_as_vectors(self.values, ids), tf.float32)

    def in_float32(self) -> tf.Tensor:
        """Returns the matrix as float32 [D, E]."""
        return tf.cast(self.values, tf.float32)


class HalvedMatrix(FloatMatrix):
    """A large matrix that multiplies a few rows in two halves.

    Such a product is bound by reading the matrix from memory. TensorFlow computes the halves on two
    threads, which read faster than one.
    """

    def multiply(self, rows: tf.Tensor, non_negative: bool = False) -> tf.Tensor:
        half = self.values.shape[0] // 2

        def in_halves():
            first = _float_products(rows[:, :half], self.values[:half])
            return first + _float_products(rows[:, half:], self.values[half:])

        return tf.cond(
            tf.shape(rows)[0] <= FEW_ROWS, in_halves, lambda: _float_products(rows, self.values)
        )


class Int8Matrix(NamedTuple):
    """An int8 matrix with a scale for each column, in a quarter of the memory.

    Input rows are rounded to int8, with a scale for each row, and the sums of the integer products
    are exact. Weights have 7 bits, from -64 to 64: processors without VNNI add two 8-bit products
    in 16 bits, which two products of 8 and 7 bits always fit.

    The product uses the oneDNN kernel in TensorFlow's x86 builds, which is available whether or not
    oneDNN's operations are enabled. The public operation (QuantizedMatMulWithBiasAndDequantize)
    runs the same kernel, but converts the matrix's layout for every product, which takes longer
    than the product itself for few rows.
    """

    values: tf.Tensor  # int8 [D, E]
    # For each column, the number that 127 stands for, as the operation expects.
    ranges: tf.Tensor  # float32 [E]

    def multiply(self, rows: tf.Tensor, non_negative: bool = False) -> tf.Tensor:
        """float32 [R, D] -> [R, E]; `non_negative` rows are rounded faster."""
        largest = _largest(rows if non_negative else tf.abs(rows))
        return _in_full(_int8_products(rows, largest, self.values, self.ranges))

    def scaled_products(self, rows: tf.Tensor) -> ScaledRows:
        """Returns the result of `multiply` before scaling the rows."""
        largest = _largest(tf.abs(rows))
        return _int8_products(rows, largest, self.values, self.ranges)

    def look_up(self, ids: tf.Tensor) -> tf.Tensor:
        """Returns columns as vectors: int32 [...] -> float32 [..., D]."""
        levels = tf.cast(_columns_as_vectors(self.values, ids), tf.float32)
        return levels * (tf.gather(self.ranges, ids) / 127.0)[..., None]

    def in_float32(self) -> tf.Tensor:
        """Returns the matrix as float32 [D, E]."""
        return tf.cast(self.values, tf.float32) * (self.ranges / 127.0)


class EmbeddingTable(NamedTuple):
    """An embedding matrix not used for logits: a row for each token."""

    values: tf.Tensor  # float32 or bfloat16 [V, D]

    def look_up(self, ids: tf.Tensor) -> tf.Tensor:
        """Returns rows: int32 [...] -> float32 [..., D]."""
        return tf.cast(tf.gather(self.values, ids), tf.float32)

    def in_float32(self) -> tf.Tensor:
        """Returns the matrix as float32 [V, D]."""
        return tf.cast(self.values, tf.float32)


Matrix = FloatMatrix | Int8Matrix


def float_matrix(values: np.ndarray) -> FloatMatrix:
    """Stores a matrix [D, E]."""
    return FloatMatrix(tf.Variable(values, trainable=False))


def softmax_matrix(values: np.ndarray) -> FloatMatrix:
    """Stores the matrix that computes logits, [D, V], which is large for large vocabularies."""
    kind = HalvedMatrix if values.size >= LARGE else FloatMatrix
    return kind(tf.Variable(values, trainable=False))


def int8_matrix(values: np.ndarray) -> Int8Matrix:
    """Rounds a matrix [D, E] to int8 and stores it."""
    levels, scales = rounded_to_int8(values)
    ranges = (scales * 127).astype(np.float32)
    return Int8Matrix(tf.Variable(levels, trainable=False), tf.Variable(ranges, trainable=False))


def rounded_to_int8(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rounds the columns of a matrix, float32 [D, E], to integers from -64 to 64.

    Returns:
        The integers, int8 [D, E], and the scale of each column, float32 [E], by which they are
        multiplied.
    """
    scales = np.maximum(np.abs(values).max(axis=0) / WEIGHT_LEVELS, SMALLEST_SCALE)
    return np.round(values / scales).astype(np.int8), scales


def has_int8_instructions() -> bool:
    """Whether the processor has int8 product instructions (VNNI), according to Linux on x86.

    Without them, such products are slower than in float32, especially for few rows.
    """
    try:
        return "_vnni" in Path("/proc/cpuinfo").read_text()  # avx512_vnni or avx_vnni
    except OSError:
        return False


def require_int8(argument: str) -> None:
    """Raises an InputError if TensorFlow lacks an int8 product, or it is not exact.

    Args:
        argument: the argument that requested int8 weights, for the error.
    """

    @tf.function(autograph=False)
    def two_times_two():  # the operation only works in graphs
        return int8_matrix_of_twos.multiply(tf.ones([1, 2]))

    int8_matrix_of_twos = int8_matrix(np.full((2, 3), 2, np.float32))
    try:
        product = two_times_two().numpy().tolist()
    except Exception as error:  # any error: the operation or its kernel is missing
        product = type(error).__name__
    if product != [[4.0] * 3]:
        rule = "must run in a TensorFlow with oneDNN's int8 product, such as on x86; "
        rule += "export with weights=bfloat16 instead"
        raise InputError(argument, rule, f"int8 weights, whose product gives {product}")


def _float_products(rows: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """Multiplies float32 rows [R, D] by a matrix [D, E] in its type; the sums are float32."""
    if values.dtype == tf.float32:
        return tf.matmul(rows, values)
    return tf.matmul(tf.cast(rows, values.dtype), values, output_type=tf.float32)


def _columns_as_vectors(matrix: tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
    """[D, E] and int32 [...] -> [..., D]."""
    depth, width = matrix.shape
    indices = ids[..., None] + tf.range(depth) * width
    return tf.gather(tf.reshape(matrix, [-1]), indices)


def _in_full(products: ScaledRows) -> tf.Tensor:
    return products.values * products.scales


def _largest(magnitudes: tf.Tensor) -> tf.Tensor:
    """Returns the largest magnitude in each row, [R, D] -> [R, 1], which determines its scale."""
    return tf.maximum(tf.reduce_max(magnitudes, axis=1, keepdims=True), SMALLEST_SCALE)


def _int8_products(
    rows: tf.Tensor, largest: tf.Tensor, values: tf.Tensor, ranges: tf.Tensor
) -> ScaledRows:
    """Multiplies float32 rows [R, D] by an int8 matrix [D, E]: [R, E].

    `largest`, float32 [R, 1], is the largest magnitude in each row. The operation caches the
    converted layout of the matrix between calls.
    """
    levels = tf.cast(tf.round(rows * (INPUT_LEVELS / largest)), tf.int8)
    (sums,), _ = op_def_library.apply_op(
        "_QuantizedMatMul",
        name="int8_product",
        device_inputs=[
            tf.bitcast(levels, tf.qint8),
            tf.bitcast(values, tf.qint8),
            tf.zeros_like(ranges),
        ],
        host_inputs=[-127.0, 127.0, -ranges, ranges],
        Tdevice_outputs=[tf.float32],
        Thost_outputs=[],
        T1=tf.qint8,
        T2=tf.qint8,
        Tbias=tf.float32,
        U=tf.float32,
        Tout=tf.float32,
        transpose_a=False,
        transpose_b=False,
        is_weight_const=True,
        is_bias_const=True,
        fused_ops=["BiasAdd", "Dequantize"],
        input_quant_mode="SCALED",
        output_quant_mode="SCALED",
        leakyrelu_alpha=0.0,
    )
    return ScaledRows(sums, largest / INPUT_LEVELS)
