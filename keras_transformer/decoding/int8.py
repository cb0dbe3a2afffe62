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


class Int8Matrix(tf.Module):
    """A matrix [D, E] of which model/linear.product, TokenEmbedding and searches can make use."""

    def __init__(self, matrix: np.ndarray):
        super().__init__(name="int8_matrix")
        scales = np.maximum(np.abs(matrix).max(axis=0) / WEIGHT_LEVELS, SMALLEST)
        self.values = tf.Variable(np.round(matrix / scales).astype(np.int8), trainable=False)
        self.scales = tf.Variable(scales.astype(np.float32), trainable=False)  # [E]

    def multiply(self, rows: tf.Tensor) -> tf.Tensor:
        """rows [R, D] by the matrix: float32 [R, E]."""
        if tf.executing_eagerly():  # the operation is for graphs alone
            return tf.function(self.multiply, autograph=False)(rows)
        largest = tf.maximum(tf.reduce_max(tf.abs(rows), axis=1, keepdims=True), SMALLEST)
        levels = tf.cast(tf.round(rows * (INPUT_LEVELS / largest)), tf.int8)
        # For this operation a scale is the largest number that 127 stands for.
        column_range = self.scales * 127.0
        (sums,), _ = op_def_library.apply_op(
            "_QuantizedMatMul",
            name="int8_product",
            device_inputs=[
                tf.bitcast(levels, tf.qint8),
                tf.bitcast(self.values.read_value(), tf.qint8),
                tf.zeros_like(column_range),
            ],
            host_inputs=[-127.0, 127.0, -column_range, column_range],
            Tdevice_outputs=[tf.float32],
            Thost_outputs=[],
            T1=tf.qint8,
            T2=tf.qint8,
            Tbias=tf.float32,
            U=tf.float32,
            Tout=tf.float32,
            transpose_a=False,
            transpose_b=False,
            is_weight_const=True,  # lays it out once, and keeps that
            is_bias_const=True,
            fused_ops=["BiasAdd", "Dequantize"],
            input_quant_mode="SCALED",
            output_quant_mode="SCALED",
            leakyrelu_alpha=0.0,
        )
        return sums * (largest / INPUT_LEVELS)

    def columns(self, ids: tf.Tensor) -> tf.Tensor:
        """Columns of some ids [C], as numbers again: float32 [D, C]."""
        return tf.cast(tf.gather(self.values, ids, axis=1), tf.float32) * tf.gather(
            self.scales, ids
        )

    def look_up(self, ids: tf.Tensor) -> tf.Tensor:
        """Columns of ids [...], each as a vector: float32 [..., D]."""
        rows, columns = self.values.shape
        places = ids[..., None] + tf.range(rows) * columns
        numbers = tf.gather(tf.reshape(self.values, [-1]), places)
        return tf.cast(numbers, tf.float32) * tf.gather(self.scales, ids)[..., None]


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
        embedding.softmax_columns = matrix.columns
    others = [variable for variable in copy.trainable_variables if variable.path not in replaced]
    return copy, matrices, others


def require_int8(what: str) -> None:
    """Raises InputError where this TensorFlow has no product of int8, or it is not exact."""
    try:
        product = Int8Matrix(np.full((2, 3), 2, np.float32)).multiply(tf.ones([1, 2]))
        found = product.numpy().tolist()
    except Exception as error:  # of whatever kind: the operation is missing, or its kernel
        found = type(error).__name__
    rule = (
        f"{what} must run in a TensorFlow with oneDNN's product of int8, as its builds for x86 have"
    )
    if found != [[4.0] * 3]:
        raise InputError(f"{rule}; export with --weights=bfloat16 instead. Received: {found}")
