"""Kinds of matrices, against products of NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.search import matrices
from keras_transformer.core.search.matrices import (
    EmbeddingTable,
    FloatMatrix,
    HalvedMatrix,
    float_matrix,
    int8_matrix,
    require_int8,
    softmax_matrix,
)
from tests.refusals import refused


def product(matrix, rows):
    """The product in a graph, where the operation of int8 is at home."""
    return tf.function(matrix.multiply, autograph=False)(tf.constant(rows, tf.float32)).numpy()


def integer_product(rows, matrix):
    """The product by NumPy's integers: of 8 bits by row and 7 bits by column."""
    scales = np.maximum(np.abs(matrix).max(axis=0) / 64, 1e-30)
    weights = np.round(matrix / scales).astype(np.int64)
    largest = np.maximum(np.abs(rows).max(axis=1, keepdims=True), np.float32(1e-30))
    levels = np.round(rows * (np.float32(127) / largest)).astype(np.int64)
    return (levels @ weights) * (largest / 127) * scales


def test_float_matrix():
    generator = np.random.default_rng(1)
    values = generator.normal(size=(5, 7)).astype("f4")
    rows = generator.normal(size=(3, 5)).astype("f4")
    matrix = float_matrix(values)
    np.testing.assert_allclose(product(matrix, rows), rows @ values, atol=1e-5)
    ids = tf.constant([[3, 6], [0, 3]])
    assert np.array_equal(matrix.look_up(ids), values.T[ids.numpy()])
    assert np.array_equal(EmbeddingTable(tf.constant(values.T)).look_up(ids), values.T[ids.numpy()])


def test_a_large_softmax_matrix_is_multiplied_in_halves_by_few_rows(monkeypatch):
    values = np.random.default_rng(2).normal(size=(5, 7)).astype("f4")
    assert type(softmax_matrix(values)) is FloatMatrix
    monkeypatch.setattr(matrices, "LARGE", values.size)
    matrix = softmax_matrix(values)
    assert type(matrix) is HalvedMatrix
    multiply = tf.function(matrix.multiply, autograph=False)
    for count in (0, 3, 16, 17):
        rows = tf.random.stateless_normal([count, 5], [1, 2])
        np.testing.assert_allclose(multiply(rows), rows @ values, atol=1e-5)
    graph = multiply.get_concrete_function(tf.TensorSpec([None, 5])).graph.as_graph_def()
    branches = [part for part in graph.library.function if "cond_" in part.signature.name]
    products = [sum(node.op == "MatMul" for node in branch.node_def) for branch in branches]
    assert sorted(products) == [1, 2]


@pytest.mark.parametrize("rows", [0, 1, 5, 64])
def test_int8_product_is_that_of_integers(rows):
    generator = np.random.default_rng(1)
    # Their products and sums are as large as can be: nothing may be cut off.
    matrix = generator.uniform(0.9, 1, (96, 40)).astype("f4") * generator.uniform(0.01, 9, 40)
    matrix[:, 20:] *= generator.choice([-1, 1], (96, 20))
    matrix[:, 7] = 0
    matrix = matrix.astype("f4")
    inputs = generator.uniform(0.9, 1, (rows, 96)).astype("f4")
    inputs[1::2] = generator.normal(0, 1e3, (len(inputs[1::2]), 96))
    inputs[2::5] = 0
    products = product(int8_matrix(matrix), inputs)
    wanted = integer_product(inputs, matrix)
    assert products.shape == wanted.shape == (rows, 40)
    np.testing.assert_allclose(products, wanted, rtol=1e-5, atol=1e-4)
    norms = np.linalg.norm(inputs, axis=1)[:, None] * np.linalg.norm(matrix, axis=0)
    assert np.all(np.abs(products - inputs @ matrix) <= 0.02 * norms + 1e-6)


def test_int8_rows_do_not_depend_on_each_other():
    generator = np.random.default_rng(2)
    matrix = int8_matrix(generator.normal(size=(32, 24)).astype("f4"))
    rows = generator.normal(size=(9, 32)) * 10.0 ** np.arange(9)[:, None]
    alone = np.concatenate([product(matrix, rows[i : i + 1]) for i in range(9)])
    np.testing.assert_allclose(product(matrix, rows), alone, rtol=1e-6)


def test_int8_columns_are_rounded_by_column():
    generator = np.random.default_rng(3)
    numbers = (generator.normal(size=(6, 10)) * 10.0 ** np.arange(-5, 5)).astype("f4")
    matrix = int8_matrix(numbers)
    assert matrix.values.dtype == tf.int8
    columns = matrix.look_up(tf.constant([3, 9, 0])).numpy().T
    largest = np.abs(numbers).max(axis=0)
    assert np.all(np.abs(columns - numbers[:, [3, 9, 0]]) <= largest[[3, 9, 0]] / 128 * 1.001)
    assert not np.array_equal(columns, numbers[:, [3, 9, 0]])
    assert np.array_equal(matrix.look_up(tf.constant([[3, 9], [0, 3]]))[1, 0], columns[:, 2])
    np.testing.assert_allclose(matrix.in_float32().numpy()[:, [3, 9, 0]], columns, rtol=1e-6)


def test_a_tensorflow_without_the_product_of_int8(monkeypatch):
    require_int8("weights")

    def no_operation(operation, **_):
        raise RuntimeError(f"Unrecognized Op name {operation}")

    monkeypatch.setattr(matrices.op_def_library, "apply_op", no_operation)
    with refused("weights", "RuntimeError"):
        require_int8("weights")
