import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.decoding import inference_model as layout
from keras_transformer.decoding.inference_model import InHalves, inference_model
from tests.model.test_transformer import CONFIG, logits, random_model, steps_equal_one_pass


@pytest.mark.parametrize("tie_embeddings", [True, False])
@pytest.mark.parametrize(("d_v", "source_vocab_size"), [(3, None), (5, None), (5, 17)])
def test_layout_changes_no_number(tie_embeddings, d_v, source_vocab_size):
    settings = {"tie_embeddings": tie_embeddings, "source_vocab_size": source_vocab_size}
    model = random_model(dataclasses.replace(CONFIG, d_v=d_v, **settings))
    copy = inference_model(model)
    matrix = copy.logits_embedding.matrix
    assert tuple(matrix.shape) == (CONFIG.d_model, CONFIG.vocab_size)
    assert copy.count_params() == model.count_params()
    arguments = ([[4, 9, 12, 2], [5, 2, 0, 0]], [[1, 7, 8], [1, 3, 0]])
    np.testing.assert_allclose(logits(copy, *arguments), logits(model, *arguments), atol=1e-5)
    assert inference_model(copy) is copy
    back = copy.training_model()
    for variable, wanted in zip(back.trainable_variables, model.trainable_variables, strict=True):
        assert variable.path == wanted.path
        np.testing.assert_array_equal(variable, wanted)


@pytest.mark.parametrize(
    "settings",
    [
        {"positions": "learned"},
        {"norm": "pre"},
        {"attention_window": 3, "tie_embeddings": False},
    ],
)
def test_cached_steps_equal_one_pass(settings):
    steps_equal_one_pass(inference_model(random_model(dataclasses.replace(CONFIG, **settings))))


def test_large_matrix_is_multiplied_in_halves_by_few_rows(monkeypatch):
    model = random_model(CONFIG)
    arguments = ([[4, 9, 12, 2], [5, 2, 0, 0]], [[1, 7, 8], [1, 3, 0]])
    expected = logits(model, *arguments)
    monkeypatch.setattr(layout, "LARGE", 1)
    copy = inference_model(model)
    np.testing.assert_allclose(logits(copy, *arguments), expected, atol=1e-5)
    few, many = (tf.random.stateless_normal([rows, 5], [1, 2]) for rows in (3, 17))
    matrix = tf.random.stateless_normal([5, 7], [3, 4])
    multiply = tf.function(InHalves(matrix).multiply, autograph=False)
    for rows in (few, many):
        np.testing.assert_allclose(multiply(rows), rows @ matrix, atol=1e-5)
    graph = multiply.get_concrete_function(tf.TensorSpec([None, 5])).graph.as_graph_def()
    branches = [f for f in graph.library.function if "cond_" in f.signature.name]
    products = [sum(node.op == "MatMul" for node in branch.node_def) for branch in branches]
    assert sorted(products) == [1, 2]
