"""Adapters of a small model against NumPy, and one training step of it."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.config import TrainingConfig, TransformerConfig
from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.search import weights
from keras_transformer.core.training.adapters import (
    adapted_layers,
    add_adapters,
    copy_base,
    freeze,
    saved_variables,
    weights_fingerprint,
)
from keras_transformer.core.training.step import TrainingStep, zero_sums
from tests.refusals import refused

CONFIG = TransformerConfig(vocab_size=9, num_layers=1, d_model=4, d_ff=6, num_heads=2, dropout=0.3)
# r = 2: twelve matrices [4, 4] of attention, and [4, 6] and [6, 4] of each feed-forward network.
ADAPTER_SIZE = 12 * 2 * (4 + 4) + 4 * 2 * (4 + 6)
IDS = tf.constant([[4, 5, 2], [6, 2, 0]])


def adapted(dtype="float32"):
    """A model with an adapter whose matrices are random."""
    model, rng = Transformer(CONFIG, dtype=dtype), np.random.default_rng(0)
    add_adapters(model, rank=2, alpha=6.0)
    for matrix in model.trainable_variables:
        matrix.assign(rng.normal(size=matrix.shape))
    return model


def test_every_layer_computes_the_equation_of_the_paper():
    model, rng = adapted(), np.random.default_rng(1)
    layers = adapted_layers(model)
    attention = ("key", "output", "query", "value")
    assert [layer.path for layer in layers] == [
        *(f"decoder/layer_0/cross_attention/{name}" for name in attention),
        *(f"decoder/layer_0/feed_forward/{name}" for name in ("inner", "outer")),
        *(f"decoder/layer_0/self_attention/{name}" for name in attention),
        *(f"encoder/layer_0/feed_forward/{name}" for name in ("inner", "outer")),
        *(f"encoder/layer_0/self_attention/{name}" for name in attention),
    ]
    for layer in layers:
        frozen, a, b = (
            layer._kernel.numpy(),
            layer.lora_kernel_a.numpy(),
            layer.lora_kernel_b.numpy(),
        )
        inputs = rng.normal(size=(3, len(a))).astype("float32")
        # h = W_0 x + alpha / r B A x (equation 3), with rows for columns.
        expected = inputs @ frozen + 6 / 2 * (inputs @ a) @ b
        if layer.bias is not None:
            expected += layer.bias.numpy()
        if layer.path.endswith("inner"):
            expected = np.maximum(expected, 0)
        np.testing.assert_allclose(layer(inputs), expected, rtol=1e-4, atol=1e-4)


def test_an_adapter_begins_as_nothing():
    base, model = Transformer(CONFIG), Transformer(CONFIG)
    add_adapters(model, rank=2, alpha=2.0)
    assert sum(np.prod(matrix.shape) for matrix in model.trainable_variables) == ADAPTER_SIZE
    copy_base(base, model)
    inputs = {"source": IDS, "target": IDS}
    np.testing.assert_array_equal(model(inputs), base(inputs))


def test_only_the_adapter_is_trained_and_saved():
    training = TrainingConfig(lora_rank=2, warmup_steps=1)
    assert training.lora_alpha == 2.0
    step = TrainingStep(CONFIG, training, tf.distribute.get_strategy())
    assert step.trained_parameters == ADAPTER_SIZE
    # Two moments of each matrix, the number of steps and the learning rate.
    sizes = sum(np.prod(variable.shape) for variable in step.optimizer.variables)
    assert sizes <= 2 * ADAPTER_SIZE + 2
    matrices = {id(matrix) for matrix in step.model.trainable_variables}
    saved = saved_variables(step.model, training)
    assert [id(variable) in matrices for variable in saved[: len(matrices)]] == [True] * 32
    assert {variable.dtype for variable in saved[len(matrices) :]} == {"int64"}  # random states

    before = {weight.path: weight.numpy() for weight in step.model.weights}
    batches = iter(tf.data.Dataset.from_tensors((IDS, IDS)).repeat())
    step.run(batches, tf.constant(2), zero_sums())
    changed = {w.path for w in step.model.weights if not np.array_equal(w.numpy(), before[w.path])}
    assert changed == {matrix.path for matrix in step.model.trainable_variables}


def test_a_part_may_have_no_adapter():
    training = TrainingConfig(lora_rank=2, freeze="encoder,feed_forward")
    step = TrainingStep(CONFIG, training, tf.distribute.get_strategy())
    paths = {"/".join(v.path.split("/")[:3]) for v in step.model.trainable_variables}
    assert paths == {f"decoder/layer_0/{kind}_attention" for kind in ("self", "cross")}


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_translations_during_training_use_the_adapter(dtype):
    model = adapted(dtype)
    found = weights.read_weights(model).encoder.layers[0].feed_forward.inner.matrix.values
    layer = model.encoder.layers[0].feed_forward.inner_dense
    expected = layer._kernel.numpy() + 3 * layer.lora_kernel_a.numpy() @ layer.lora_kernel_b.numpy()
    assert found.dtype == tf.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == "float32" else 1e-2)


def test_the_fingerprint_is_of_weights_and_configuration():
    model, same = Transformer(CONFIG), Transformer(CONFIG, dtype="mixed_bfloat16")
    for weight, other in zip(same.weights, model.weights, strict=True):
        weight.assign(other)
    assert weights_fingerprint(same) == weights_fingerprint(model)
    gamma = same.encoder.layers[0].self_attention_norm.gamma
    gamma.assign(np.nextafter(gamma.numpy(), 2))
    assert weights_fingerprint(same) != weights_fingerprint(model)


@pytest.mark.parametrize("rank", [4, 2**30])
def test_a_rank_as_large_as_the_matrices(rank):
    with refused("lora_rank", rank, about="4"):
        add_adapters(Transformer(CONFIG), rank, 1.0)


TWO_LAYERS = TransformerConfig(vocab_size=9, num_layers=2, d_model=4, d_ff=4, num_heads=2)


@pytest.fixture(scope="module")
def made():
    return Transformer(TWO_LAYERS)


@pytest.fixture
def model(made):
    """A model all of whose weights can be trained."""
    yield made
    for weight in made.weights:
        weight.trainable = True


@pytest.mark.parametrize(
    ("names", "frozen"),
    [
        ("", ()),
        ("embedding,encoder", ("embedding/", "encoder/")),
        ("encoder/layer_1", ("encoder/layer_1/",)),
        ("decoder/layer_[0]/feed*", ("decoder/layer_0/feed_forward",)),
    ],
)
def test_parts_are_named_by_components_of_paths(model, names, frozen):
    freeze(model, names)
    paths = {variable.path for variable in model.weights}
    trainable = {variable.path for variable in model.trainable_variables}
    expected = {path for path in paths if path.startswith(frozen)} if frozen else set()
    assert paths - trainable == expected


@pytest.mark.parametrize(
    ("names", "about"),
    [("enc", "encoder"), ("embedding,encoder,decoder", "some parameters to train")],
)
def test_impossible_names_to_freeze(model, names, about):
    with refused("freeze", names, about=about):
        freeze(model, names)
