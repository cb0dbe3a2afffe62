"""Matrices as int8: a quarter of the memory, and products of integers, which take less time.

A matrix is stored with a scale for each column, the rows that it multiplies get one each when they
are multiplied, and sums are exact. Weights have 7 bits, from -64 to 64: processors without VNNI add
two products of 8 bits in 16, which two of 8 and 7 bits always fit.

The product is the kernel of oneDNN that TensorFlow's builds for x86 contain, with oneDNN's
operations switched on or off. The operation that is public (QuantizedMatMulWithBiasAndDequantize)
runs the same kernel, but lays the matrix out anew for every product, which takes longer than the
product itself where rows are few.
"""

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_library

from keras_transformer.decoding.inference_model import (
    InferenceTransformer,
    TransposedEmbedding,
    inference_model,
)
from keras_transformer.errors import InputError
from keras_transformer.model.transformer import Transformer

WEIGHT_LEVELS, INPUT_LEVELS = 64.0, 127.0
SMALLEST = np.float32(1e-30)  # a scale of zeros


class Int8Columns:
    """Numbers as int8 [D, E], by which model/linear.product multiplies."""

    constant = False  # whether products may keep the layout that they make of the numbers

    def __init__(self, values, ranges):
        self.values = values  # int8 [D, E]
        # Of each column, the number that 127 would stand for, as the operation wants it.
        self.ranges = ranges  # float32 [E]

    def multiply(self, rows: tf.Tensor) -> tf.Tensor:
        """rows [R, D] by the numbers: [R, E] of their type."""
        if tf.executing_eagerly():  # the operation is for graphs alone
            return tf.function(self.multiply, autograph=False)(rows)
        numbers = tf.cast(rows, tf.float32)
        largest = tf.maximum(tf.reduce_max(tf.abs(numbers), axis=1, keepdims=True), SMALLEST)
        levels = tf.cast(tf.round(numbers * (INPUT_LEVELS / largest)), tf.int8)
        values, ranges = tf.convert_to_tensor(self.values), tf.convert_to_tensor(self.ranges)
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
            is_weight_const=self.constant,
            is_bias_const=self.constant,
            fused_ops=["BiasAdd", "Dequantize"],
            input_quant_mode="SCALED",
            output_quant_mode="SCALED",
            leakyrelu_alpha=0.0,
        )
        return tf.cast(sums * (largest / INPUT_LEVELS), rows.dtype)


class Int8Matrix(Int8Columns, tf.Module):
    """A matrix [D, E] that a SavedModel can contain, rounded to int8."""

    constant = True

    def __init__(self, matrix: np.ndarray):
        tf.Module.__init__(self, name="int8_matrix")
        scales = np.maximum(np.abs(matrix).max(axis=0) / WEIGHT_LEVELS, SMALLEST)
        self.values = tf.Variable(np.round(matrix / scales).astype(np.int8), trainable=False)
        self.ranges = tf.Variable((scales * 127).astype(np.float32), trainable=False)

    def columns(self, ids: tf.Tensor) -> Int8Columns:
        """The columns of some ids [C]."""
        return Int8Columns(tf.gather(self.values, ids, axis=1), tf.gather(self.ranges, ids))

    def look_up(self, ids: tf.Tensor) -> tf.Tensor:
        """Columns of ids [...], each as a vector of numbers: float32 [..., D]."""
        rows, columns = self.values.shape
        places = ids[..., None] + tf.range(rows) * columns
        numbers = tf.gather(tf.reshape(self.values, [-1]), places)
        return tf.cast(numbers, tf.float32) * (tf.gather(self.ranges, ids) / 127.0)[..., None]


def int8_model(model: Transformer) -> tuple[InferenceTransformer, list[Int8Matrix], list]:
    """Copies a model in the layout for decoding, with its matrices as int8.

    Positions, biases and normalisations stay float32.

    Returns:
        The model, its matrices, and its other variables: all that it reads.

    Raises:
        InputError: where TensorFlow has no product of int8.
    """
    require_int8("--weights=int8")
    copy, matrices, replaced = inference_model(model, copy=True), [], set()

    def int8(variable, matrix):
        replaced.add(variable.path)
        matrices.append(Int8Matrix(matrix))
        return matrices[-1]

    layers = [*copy.encoder.layers, *copy.decoder.layers]
    for sublayer in (getattr(layer, name) for layer in layers for name in layer.sublayer_names):
        kernels = [name for name in vars(sublayer) if name.endswith("_kernel")]
        for name in kernels:
            variable = getattr(sublayer, name)
            setattr(sublayer, name, int8(variable, variable.numpy()))
    for embedding in dict.fromkeys((copy.embedding, copy.target_embedding, copy.logits_embedding)):
        stored, transposed = embedding.matrix.numpy(), isinstance(embedding, TransposedEmbedding)
        matrix = int8(embedding.matrix, stored if transposed else stored.T)
        embedding.matrix, embedding.look_up = matrix, matrix.look_up
        embedding.softmax_columns, embedding.softmax_kernel = matrix.columns, lambda m=matrix: m
    others = [variable for variable in copy.trainable_variables if variable.path not in replaced]
    return copy, matrices, others


def require_int8(what: str) -> None:
    """Raises InputError where this TensorFlow has no product of int8, or it is not exact."""
    try:
        product = Int8Matrix(np.full((2, 3), 2, np.float32)).multiply(tf.ones([1, 2]))
        found = product.numpy().tolist()
    except Exception as error:  # of whatever kind: the operation is missing, or its kernel
        found = type(error).__name__
    rule = f"{what} must run in a TensorFlow with oneDNN's product of int8, as those for x86 have"
    if found != [[4.0] * 3]:
        raise InputError(f"{rule}; export with --weights=bfloat16 instead. Received: {found}")
