import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.config import TransformerConfig
from keras_transformer.model import transformer
from tests import numpy_reference

CONFIG = TransformerConfig(
    vocab_size=13, num_layers=2, d_model=8, d_ff=12, num_heads=2, d_k=3, d_v=5
)


def random_model(config=CONFIG, precision="float32"):
    """A model whose every weight is random, gains and biases too."""
    dtype = precision if precision == "float32" else f"mixed_{precision}"
    model = transformer.Transformer(config, dtype=dtype)
    rng = np.random.default_rng(3)
    for variable in model.trainable_variables:
        variable.assign(rng.normal(size=variable.shape, scale=0.5))
    return model


def logits(model, source, target):
    inputs = {"source": np.array(source, "int32"), "target": np.array(target, "int32")}
    return model(inputs).numpy()


@pytest.mark.parametrize(
    ("source_vocab_size", "tie_embeddings", "matrices"),
    [(None, True, 1), (None, False, 3), (17, True, 2), (17, False, 3), (13, True, 2)],
)
def test_whole_model_equals_numpy(source_vocab_size, tie_embeddings, matrices):
    settings = {"source_vocab_size": source_vocab_size, "tie_embeddings": tie_embeddings}
    model = random_model(dataclasses.replace(CONFIG, **settings))
    weights = {v.path: v.numpy() for v in model.trainable_variables}
    assert sum(path.endswith("/matrix") for path in weights) == matrices
    source, target = [4, 9, (source_vocab_size or 13) - 1, 5, 2], [1, 7, 3, 11]
    expected = numpy_reference.transformer(weights, source, target, 2, 2)
    np.testing.assert_allclose(logits(model, [source], [target])[0], expected, atol=2e-5)


def test_padding_changes_nothing():
    model = random_model()
    alone = logits(model, [[4, 9, 2]], [[1, 7]])[0]
    batched = logits(model, [[4, 9, 2, 0, 0], [3, 4, 5, 6, 2]], [[1, 7, 0, 0], [1, 5, 6, 7]])
    np.testing.assert_allclose(batched[0, :2], alone, atol=1e-5)


def test_future_changes_nothing_and_the_past_does():
    model = random_model()
    one = logits(model, [[4, 9, 2]], [[1, 7, 8, 5]])[0]
    other = logits(model, [[4, 9, 2]], [[1, 7, 6, 12]])[0]
    np.testing.assert_allclose(one[:2], other[:2], atol=1e-6)
    assert np.abs(one[2:] - other[2:]).max() > 1e-3


# Any two of the three meet.
@pytest.mark.parametrize(
    ("settings", "norm", "positions"),
    [
        ({}, "post", "sinusoidal"),
        ({}, "pre", "learned"),
        ({"tie_embeddings": False}, "post", "learned"),
        ({"tie_embeddings": False}, "pre", "sinusoidal"),
        ({"attention_window": 3}, "post", "sinusoidal"),
        ({"attention_window": 3}, "pre", "learned"),
    ],
)
def test_cached_steps_equal_one_pass(settings, norm, positions):
    config = dataclasses.replace(CONFIG, norm=norm, positions=positions, **settings)
    steps_equal_one_pass(random_model(config))


def steps_equal_one_pass(model):
    source = tf.constant([[4, 9, 2, 0], [5, 6, 7, 2]])
    target = tf.constant(
        [[[1, 7, 8, 9], [1, 5, 3, 6]], [[1, 4, 4, 10], [1, 12, 9, 3]]]
    )  # [B, K, T]
    memory, mask = model.encode(source)
    projected = model.project_memory(memory)
    cache = model.empty_cache(2, 2).reserve(2).reserve(4)
    for position in range(4):
        step, cache = model.decode_step(target[:, :, position], position, cache, projected, mask)
        for beam in range(2):
            whole = logits(model, source, target[:, beam])[:, position]
            np.testing.assert_allclose(step[:, beam], whole, atol=2e-5)


def test_states_make_the_logits():
    model = random_model()
    inputs = {"source": np.array([[4, 9, 2]], "int32"), "target": np.array([[1, 7]], "int32")}
    states = model.states(inputs).numpy()
    matrix = model.embedding.matrix.numpy()
    np.testing.assert_allclose(states @ matrix.T, model(inputs), atol=1e-5)


def test_shift_right():
    shifted = transformer.shift_right(tf.constant([[5, 6, 2], [7, 2, 0]]))
    np.testing.assert_array_equal(shifted, [[1, 5, 6], [1, 7, 2]])


def test_dropout_acts_in_training_only():
    config = dataclasses.replace(CONFIG, dropout=0.3, attention_dropout=0.2, activation_dropout=0.1)
    model = random_model(config)
    inputs = {"source": np.array([[4, 9, 2]], "int32"), "target": np.array([[1, 7]], "int32")}
    np.testing.assert_array_equal(model(inputs), model(inputs, training=False))
    assert np.abs(model(inputs, training=True) - model(inputs, training=True)).max() > 1e-3


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_narrow_activations_give_float32_logits_near_the_exact_ones(precision):
    exact, narrow = random_model(), random_model(precision=precision)
    arguments = np.random.default_rng(0).integers(3, 13, size=(2, 8, 12))
    found, expected = logits(narrow, *arguments), logits(exact, *arguments)
    assert found.dtype == np.float32
    errors = (found - expected) / expected.std()
    # Processors differ: of each bound, about a third is what one measures.
    mean, most = (0.03, 0.3) if precision == "bfloat16" else (0.003, 0.05)
    assert np.sqrt((errors**2).mean()) < mean
    assert np.abs(errors).max() < most
