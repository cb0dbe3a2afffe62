import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding import int8
from keras_transformer.decoding.config import DecodingConfig
from keras_transformer.decoding.inference import search_ids, target_log_probs
from keras_transformer.decoding.inference_model import inference_model
from keras_transformer.decoding.int8 import Int8Matrix, int8_model
from keras_transformer.decoding.shortlist import Shortlist
from keras_transformer.errors import InputError
from tests.decoding.conftest import VOCAB_SIZE

SOURCE = tf.constant([[50, 60, 70, 2], [9, 2, 0, 0]])


def integer_product(rows, matrix):
    """The product by NumPy's integers: of 8 bits by row and 7 bits by column."""
    scales = np.maximum(np.abs(matrix).max(axis=0) / 64, 1e-30)
    weights = np.round(matrix / scales).astype(np.int64)
    largest = np.maximum(np.abs(rows).max(axis=1, keepdims=True), np.float32(1e-30))
    levels = np.round(rows * (np.float32(127) / largest)).astype(np.int64)
    return (levels @ weights) * (largest / 127) * scales


@pytest.mark.parametrize("rows", [0, 1, 5, 64])
def test_product_is_that_of_integers(rows):
    generator = np.random.default_rng(1)
    # Their products and sums are as large as can be: nothing may be cut off.
    matrix = generator.uniform(0.9, 1, (96, 40)).astype("f4") * generator.uniform(0.01, 9, 40)
    matrix[:, 20:] *= generator.choice([-1, 1], (96, 20))
    matrix[:, 7] = 0
    matrix = matrix.astype("f4")
    inputs = generator.uniform(0.9, 1, (rows, 96)).astype("f4")
    inputs[1::2] = generator.normal(0, 1e3, (len(inputs[1::2]), 96))
    inputs[2::5] = 0
    found = Int8Matrix(matrix).multiply(tf.constant(inputs)).numpy()
    wanted = integer_product(inputs, matrix)
    assert found.shape == wanted.shape == (rows, 40)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4)
    norms = np.linalg.norm(inputs, axis=1)[:, None] * np.linalg.norm(matrix, axis=0)
    assert np.all(np.abs(found - inputs @ matrix) <= 0.02 * norms + 1e-6)


def test_rows_do_not_depend_on_each_other():
    generator = np.random.default_rng(2)
    matrix = Int8Matrix(generator.normal(size=(32, 24)).astype("f4"))
    rows = tf.constant(generator.normal(size=(9, 32)) * 10.0 ** np.arange(9)[:, None], tf.float32)
    alone = tf.concat([matrix.multiply(rows[i : i + 1]) for i in range(9)], axis=0)
    np.testing.assert_allclose(matrix.multiply(rows), alone, rtol=1e-6)


def test_columns_are_rounded_by_column():
    generator = np.random.default_rng(3)
    numbers = (generator.normal(size=(6, 10)) * 10.0 ** np.arange(-5, 5)).astype("f4")
    matrix = Int8Matrix(numbers)
    assert matrix.values.dtype == tf.int8
    columns = matrix.look_up(tf.constant([3, 9, 0])).numpy().T
    largest = np.abs(numbers).max(axis=0)
    assert np.all(np.abs(columns - numbers[:, [3, 9, 0]]) <= largest[[3, 9, 0]] / 128 * 1.001)
    assert not np.array_equal(columns, numbers[:, [3, 9, 0]])
    assert np.array_equal(matrix.look_up(tf.constant([[3, 9], [0, 3]]))[1, 0], columns[:, 2])
    rows = tf.constant(generator.normal(size=(4, 6)), tf.float32)
    some = matrix.columns(tf.constant([3, 9, 0])).multiply(rows)
    assert np.array_equal(some, matrix.multiply(rows).numpy()[:, [3, 9, 0]])


SETTINGS = {
    "paper": {},
    "untied": {"tie_embeddings": False, "norm": "pre", "d_k": 3, "d_v": 5},
    "restricted": {"attention_window": 3, "positions": "learned"},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_model_is_close_and_the_original_unchanged(make_model, settings):
    model = inference_model(make_model(scale=1.0, **settings))
    target = tf.constant([[80, 90, 100, 2], [20, 2, 0, 0]])
    wanted = target_log_probs(model, SOURCE, target).numpy()
    copy, matrices, others = int8_model(model)
    found = target_log_probs(copy, SOURCE, target).numpy()
    assert np.abs(found - wanted).max() < 0.2
    assert np.abs(found - wanted).max() > 1e-5, "it rounds"
    assert np.array_equal(target_log_probs(model, SOURCE, target), wanted)
    stored = sum(int(tf.size(matrix.values)) for matrix in matrices)
    assert stored + sum(int(tf.size(variable)) for variable in others) == model.count_params()
    assert {matrix.values.dtype for matrix in matrices} == {tf.int8}
    assert all("kernel" not in v.path and not v.path.endswith("matrix") for v in others)


def searched(model, *settings, **others):
    """In a graph, where the operation is at home: outside, each product is traced by itself."""
    inputs = (model, SOURCE, DecodingConfig(2, extra_length=3), *settings)
    return tf.function(lambda: search_ids(*inputs, **others), autograph=False)()


@pytest.mark.parametrize("required", [None, [[[33, 44, 0]], [[55, 0, 0]]]])
def test_search_scores_what_the_model_says(make_model, required):
    copy, *_ = int8_model(make_model())
    if required is None:
        best = searched(copy)
    else:
        best = searched(copy, tf.constant([[0], [0]]), phrases=(tf.constant(required),))
        texts = [" ".join(map(str, ids)) for ids in best.ids[:, 0].numpy().tolist()]
        assert "33 44" in texts[0] and "55" in texts[1]
    forced = target_log_probs(copy, tf.repeat(SOURCE, 2, axis=0), tf.concat([*best.ids], axis=0))
    found = tf.reshape(tf.reduce_sum(forced, axis=1), [2, 2])
    # Sums in another order may round an input to its other neighbour.
    np.testing.assert_allclose(found, best.log_probs, atol=0.2)


def test_a_shortlist_of_all_is_the_plain_search(make_model):
    copy, *_ = int8_model(make_model())
    every = Shortlist([[]] * VOCAB_SIZE, range(VOCAB_SIZE), VOCAB_SIZE)
    found, wanted = searched(copy, None, every), searched(copy)
    assert np.array_equal(found.ids, wanted.ids)
    np.testing.assert_allclose(found.log_probs, wanted.log_probs, rtol=1e-4, atol=1e-5)


def test_missing_product(make_model, monkeypatch):
    def no_operation(operation, **_):
        raise RuntimeError(f"Unrecognized Op name {operation}")

    monkeypatch.setattr(int8.op_def_library, "apply_op", no_operation)
    rule = "^--weights=int8 must run in a TensorFlow with oneDNN's product of int8, .*RuntimeError$"
    with pytest.raises(InputError, match=rule):
        int8_model(make_model())
