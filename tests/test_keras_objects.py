"""The public layers, model, loss, metrics, schedule and optimizer as Keras objects."""

import dataclasses
import doctest
import importlib.util
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_transformer as kt
from keras_transformer.core.training.checkpoint_weights import read_checkpoint
from keras_transformer.core.training.data import TrainingData
from keras_transformer.core.training.loop import train
from keras_transformer.core.training.run_config import LoopConfig
from tests.keras_harness import (
    check_int8,
    check_layer,
    check_layer_in_bfloat16,
    check_lora,
    close_outputs,
    count,
    enable_lora,
    functional,
    numpy_of,
    randomize,
    round_trip,
    same_outputs,
    sublayers_with_matrices,
)
from tests.refusals import refused

ROOT = Path(__file__).resolve().parents[1]
D_MODEL = 8
X = np.random.default_rng(0).normal(size=(2, 5, D_MODEL)).astype("float32")
MEMORY = np.random.default_rng(1).normal(size=(2, 3, D_MODEL)).astype("float32")
KEYS = np.random.default_rng(2).normal(size=(2, 3, D_MODEL + 2)).astype("float32")
IDS = np.array([[4, 9, 2, 0, 0], [3, 5, 6, 7, 2]], "int32")
# Keras warns of every layer without matrices that it cannot be quantized.
WITHOUT_WARNINGS_OF_QUANTIZE = pytest.mark.filterwarnings(
    "ignore:Layer .* does not have a `quantize` method:UserWarning"
)
LAYER = {"num_heads": 2, "key_dim": 3, "value_dim": 5, "d_ff": 12}
ATTENTION = 2 * D_MODEL * 2 * 3 + 2 * D_MODEL * 2 * 5  # kernels of an attention sublayer
MODERN = {"num_heads": 2, "key_dim": 4, "d_ff": 12, "norm": "pre"}
MODERN |= {"activation": "swiglu", "positions": "rotary"}
ROTARY_ATTENTION = 4 * D_MODEL * 2 * 4  # with keys and values of width 4
ATTENTION_BIASES = 2 * 2 * 3 + 2 * 5 + D_MODEL
KERNELS = 2 * D_MODEL * 12  # of a feed-forward network
FEED_FORWARD = KERNELS + 12 + D_MODEL
NORM = 2 * D_MODEL
SSRU_KERNELS = 2 * D_MODEL * D_MODEL


def encoder(num_layers, dtype=None, settings=LAYER, **arguments):
    layers = [kt.EncoderLayer(**settings, dtype=dtype) for _ in range(num_layers)]
    return kt.Encoder(layers, dtype=dtype, **arguments)


def decoder(num_layers, dtype=None, settings=LAYER, **arguments):
    layers = [kt.DecoderLayer(**settings, dtype=dtype) for _ in range(num_layers)]
    return kt.Decoder(layers, dtype=dtype, **arguments)


class Case(NamedTuple):
    """A layer, how it is called, and how many numbers its weights hold."""

    make: Callable[..., keras.layers.Layer]  # takes `dtype`
    inputs: list[np.ndarray]
    weights: int  # trainable ones
    matrices: int  # those of Dense and embedding sublayers, without biases
    options: Mapping[str, Any] = MappingProxyType({})  # further arguments of the call


LAYERS = {
    "Dropout": Case(partial(kt.Dropout, 0.5), [X], 0, 0),
    "FeedForward": Case(partial(kt.FeedForward, 12, dropout=0.1), [X], FEED_FORWARD, KERNELS),
    "MultiHeadAttention": Case(
        partial(kt.MultiHeadAttention, 2, 3, 5, dropout=0.1), [X], ATTENTION, ATTENTION
    ),
    "MultiHeadAttention of a memory": Case(
        partial(kt.MultiHeadAttention, 2, 3, 5), [X, MEMORY], ATTENTION, ATTENTION
    ),
    "MultiHeadAttention of values and other keys": Case(
        partial(kt.MultiHeadAttention, 2, 3, 5, use_bias=True),
        [X, MEMORY, KEYS],
        ATTENTION + 2 * 2 * 3 + ATTENTION_BIASES,  # keys are two wider
        ATTENTION + 2 * 2 * 3,
    ),
    "GatedFeedForward": Case(
        partial(kt.GatedFeedForward, 12, dropout=0.1), [X], 3 * D_MODEL * 12, 3 * D_MODEL * 12
    ),
    "MultiHeadAttention with rotary positions": Case(
        partial(kt.MultiHeadAttention, 2, 4, positions="rotary"),
        [X],
        ROTARY_ATTENTION,
        ROTARY_ATTENTION,
    ),
    "MultiHeadAttention in a window": Case(
        partial(kt.MultiHeadAttention, 2, 3, 5, window=3), [X], ATTENTION, ATTENTION
    ),
    "PositionalEncoding": Case(partial(kt.PositionalEncoding, dropout=0.1), [X], 0, 0),
    "PositionalEncoding, learned": Case(
        partial(kt.PositionalEncoding, "learned", max_positions=9), [X], 9 * D_MODEL, 0
    ),
    "TokenEmbedding": Case(
        partial(kt.TokenEmbedding, 11, D_MODEL, mask_zero=True), [IDS], 11 * D_MODEL, 11 * D_MODEL
    ),
    "TokenEmbedding, reverse": Case(
        partial(kt.TokenEmbedding, 11, D_MODEL, use_bias=True),
        [X],
        11 * D_MODEL + 11,
        11 * D_MODEL,
        {"reverse": True},
    ),
    "EncoderLayer": Case(
        partial(kt.EncoderLayer, **LAYER),
        [X],
        ATTENTION + FEED_FORWARD + 2 * NORM,
        ATTENTION + KERNELS,
    ),
    "DecoderLayer": Case(
        partial(kt.DecoderLayer, **LAYER, norm="pre"),
        [X, MEMORY],
        2 * ATTENTION + FEED_FORWARD + 3 * NORM,
        2 * ATTENTION + KERNELS,
    ),
    "SSRU": Case(kt.SSRU, [X], SSRU_KERNELS + D_MODEL, SSRU_KERNELS),
    "RecurrentDecoderLayer": Case(
        partial(kt.RecurrentDecoderLayer, **LAYER),
        [X, MEMORY],
        SSRU_KERNELS + D_MODEL + ATTENTION + FEED_FORWARD + 3 * NORM,
        SSRU_KERNELS + ATTENTION + KERNELS,
    ),
    "Encoder": Case(
        partial(encoder, 2, settings={**LAYER, "norm": "pre"}, last_norm=True),
        [X],
        2 * (ATTENTION + FEED_FORWARD + 2 * NORM) + NORM,
        2 * (ATTENTION + KERNELS),
    ),
    "Decoder": Case(
        partial(decoder, 1, rematerialize=True),
        [X, MEMORY],
        2 * ATTENTION + FEED_FORWARD + 3 * NORM,
        2 * ATTENTION + KERNELS,
    ),
    "Modern decoder": Case(
        partial(decoder, 1, settings=MODERN, last_norm=True),
        [X, MEMORY],
        2 * ROTARY_ATTENTION + 3 * D_MODEL * 12 + 4 * NORM,
        2 * ROTARY_ATTENTION + 3 * D_MODEL * 12,
    ),
    "Decoder as other toolkits have it": Case(
        partial(decoder, 1, settings={**LAYER, "activation": "gelu", "attention_bias": True}),
        [X, MEMORY],
        2 * (ATTENTION + ATTENTION_BIASES) + FEED_FORWARD + 3 * NORM,
        2 * ATTENTION + KERNELS,
    ),
}
WITH_MATRICES = [name for name, case in LAYERS.items() if case.matrices]
# One with a matrix of its own, and two made of Keras' Dense layers. The others are made of these,
# and test_int8_in_the_model has them all.
QUANTIZED = [
    "TokenEmbedding, reverse",
    "FeedForward",
    "MultiHeadAttention of values and other keys",
]


def slow_but(fast, cases):
    """Cases of a test for pytest, of which all but a few are slow."""
    return [name if name in fast else pytest.param(name, marks=pytest.mark.slow) for name in cases]


# All public names but `load`, which would need a trained model.
PUBLIC = {name: getattr(kt, name) for name in kt.__all__ if not name.startswith("load")}
PUBLIC_LAYERS = [
    name
    for name, value in PUBLIC.items()
    if isinstance(value, type) and issubclass(value, keras.layers.Layer)
]


def test_every_public_layer_is_held_to_the_promises():
    made = {type(case.make()) for case in LAYERS.values()}
    assert made == {PUBLIC[name] for name in PUBLIC_LAYERS} - {kt.Transformer}


@pytest.mark.parametrize(
    ("kind", "activation"),
    [(kt.EncoderLayer, keras.activations.gelu), (kt.DecoderLayer, keras.layers.LeakyReLU())],
)
def test_activations_are_saved_with_their_layer(kind, activation, tmp_path):
    inputs = keras.Input((None, 8))
    memory = [keras.Input((None, 8))] if kind is kt.DecoderLayer else []
    outputs = kind(2, 4, 8, activation=activation)(inputs, *memory)
    model = keras.Model([inputs, *memory], outputs)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    arguments = [np.random.default_rng(0).normal(size=(2, 3, 8))] * len(model.inputs)
    np.testing.assert_array_equal(loaded(arguments), model(arguments))


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, tmp_path):
    case = LAYERS[name]
    check_layer(case.make, case.inputs, case.weights, tmp_path, **case.options)


@pytest.mark.parametrize("name", LAYERS)
def test_layers_in_bfloat16(name):
    case = LAYERS[name]
    check_layer_in_bfloat16(case.make, case.inputs, **case.options)


# A layer whose matrix is its own, one with matrices of several shapes, and one with parts of parts.
@pytest.mark.parametrize(
    "name",
    slow_but(
        ["TokenEmbedding, reverse", "MultiHeadAttention of values and other keys", "DecoderLayer"],
        WITH_MATRICES,
    ),
)
def test_lora(name, tmp_path):
    case = LAYERS[name]
    check_lora(case.make, case.inputs, case.matrices, tmp_path, **case.options)


@WITHOUT_WARNINGS_OF_QUANTIZE
@pytest.mark.parametrize("name", slow_but(["TokenEmbedding, reverse"], QUANTIZED))
def test_int8(name, tmp_path):
    case = LAYERS[name]
    check_int8(case.make, case.inputs, case.matrices, tmp_path, **case.options)


def test_regularizers_initializers_and_constraints_of_the_sublayers():
    layer = kt.EncoderLayer(2, 3, 12)
    query, inner = layer.self_attention.query_dense, layer.feed_forward.inner_dense
    query.kernel_regularizer = keras.regularizers.L2(0.5)
    query.kernel_initializer = keras.initializers.Constant(2.0)
    inner.bias_initializer = keras.initializers.Constant(3.0)
    inner.kernel_constraint = keras.constraints.NonNeg()
    layer(X)
    assert len(layer.losses) == 1
    assert float(layer.losses[0]) == pytest.approx(0.5 * 4.0 * D_MODEL * 2 * 3)
    np.testing.assert_array_equal(inner.bias, np.full(12, 3.0))
    model = functional(layer, [X])
    model.compile("sgd", "mse")
    model.train_on_batch([X], X)
    assert (numpy_of(inner.kernel)[0] >= 0).all()

    embedding = kt.TokenEmbedding(
        11,
        D_MODEL,
        embeddings_initializer="ones",
        embeddings_regularizer=keras.regularizers.L1(0.5),
    )
    np.testing.assert_allclose(embedding(IDS), np.full((2, 5, D_MODEL), D_MODEL**0.5), rtol=1e-6)
    assert float(round_trip(embedding).embeddings_regularizer.l1) == 0.5
    assert float(embedding.losses[0]) == pytest.approx(0.5 * 11 * D_MODEL)


@pytest.mark.parametrize("layer", [kt.EncoderLayer, kt.DecoderLayer])
def test_layers_show_and_take_their_arguments(layer):
    arguments = {
        "num_heads": 2,
        "key_dim": 6,
        "d_ff": 4,
        "value_dim": 5,
        "norm": "pre",
        "activation": "swish",
        "dropout": 0.1,
        "attention_dropout": 0.2,
        "activation_dropout": 0.3,
        "attention_window": 6,
        "attention_bias": True,
        "norm_epsilon": 1e-5,
        "positions": "rotary",
    }
    assert list(inspect.signature(layer).parameters) == [*arguments, "kwargs"]
    made = layer(*arguments.values())
    assert arguments.items() <= made.get_config().items()
    assert arguments.items() <= round_trip(made).get_config().items()
    with pytest.raises(ValueError, match="'num_head': 2"):
        layer(2, 3, 4, num_head=2)


@pytest.mark.parametrize("make", [encoder, decoder])
def test_layers_can_stand_in_a_new_stack(make):
    """Trained layers can become part of another model."""
    stack = make(3)
    inputs = [X] if make is encoder else [X, MEMORY]
    stack(*inputs)
    shorter = type(stack)(stack.layers[:2])
    states = X
    for layer in stack.layers[:2]:
        states = layer(states, *inputs[1:])
    same_outputs(states, shorter(*inputs))


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("MultiHeadAttention of a memory", [(2, 2, 5, 3)]),
        ("MultiHeadAttention in a window", [(2, 2, 5, 5)]),
        ("EncoderLayer", [(2, 2, 5, 5)]),
        ("DecoderLayer", [(2, 2, 5, 5), (2, 2, 5, 3)]),
    ],
)
def test_attention_scores_are_returned_on_request(name, shapes, tmp_path):
    make, inputs, weights, _, _ = LAYERS[name]
    check_layer(make, inputs, weights, tmp_path, return_attention_scores=True)
    layer = make()
    outputs, *scores = numpy_of(layer(*inputs, return_attention_scores=True))
    np.testing.assert_allclose(numpy_of(layer(*inputs))[0], outputs, atol=1e-6)
    assert [part.shape for part in scores] == shapes
    for part in scores:
        np.testing.assert_allclose(part.sum(axis=-1), 1, rtol=1e-5)


def test_layers_in_a_sequential_model(tmp_path):
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),  # without it, Keras makes the ids float32
            kt.TokenEmbedding(11, D_MODEL, mask_zero=True),
            kt.PositionalEncoding(),
            kt.EncoderLayer(**LAYER),
            encoder(1),
            kt.MultiHeadAttention(2, 4),
            kt.FeedForward(12),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(2),
        ]
    )
    outputs = model(IDS)
    assert outputs.shape == (2, 2)
    # The mask goes through all layers, up to the mean over positions.
    np.testing.assert_allclose(model(IDS[:1, :3]), outputs[:1], atol=1e-5)
    model.save(tmp_path / "model.keras")
    same_outputs(outputs, keras.models.load_model(tmp_path / "model.keras")(IDS))
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    same_outputs(outputs, clone(IDS))


def test_keras_masks_reach_attention():
    """As in a user's own model: an embedding's mask goes through the layers by itself."""
    ids = keras.Input((None,), dtype="int32")
    states = kt.TokenEmbedding(11, D_MODEL, mask_zero=True)(ids)
    states = kt.PositionalEncoding()(states)
    states = kt.EncoderLayer(2, 4, 12)(states)
    model = keras.Model(ids, [states, kt.MultiHeadAttention(2, 4)(states)])
    padded, alone = model(IDS), model(IDS[:1, :3])
    for part, same in zip(padded, alone, strict=True):
        np.testing.assert_allclose(part[:1, :3], same, atol=1e-5)


def reduced(name):
    """The configuration of a preset with one layer, and every width divided by 64 or so."""
    config, _ = kt.preset(name, 11)
    heads = min(config.num_heads, 4)
    return dataclasses.replace(
        config, d_model=16, d_ff=8, num_heads=heads, d_k=4, d_v=3, num_layers=1, max_positions=20
    )


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"num_layers": 2}, marks=pytest.mark.slow),
        {"positions": "learned", "tie_embeddings": False, "norm": "pre", "attention_window": 3},
        pytest.param(
            {"positions": "rotary", "d_k": 4, "activation": "swiglu", "decoder_layers": 2},
            marks=pytest.mark.slow,
        ),
        pytest.param({"decoder_self_attention": "ssru"}, marks=pytest.mark.slow),
    ],
    ids=lambda settings: " ".join(settings),
)
def test_models_are_saved_and_loaded_to_the_last_bit(settings, tmp_path):
    config = dataclasses.replace(reduced("base"), **settings)
    model = kt.Transformer(config)
    inputs = {"source": IDS, "target": IDS[:, :4]}
    expected = model(inputs)
    model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded) is kt.Transformer and loaded.config == config
    paths = [v.path for v in model.trainable_variables]
    assert [v.path for v in loaded.trainable_variables] == paths
    same_outputs(expected, loaded(inputs))
    for other in (
        keras.models.model_from_json(model.to_json()),
        keras.models.clone_model(model),
        round_trip(model),
    ):
        other.load_weights(tmp_path / "model.weights.h5")
        same_outputs(expected, other(inputs))
        assert other.count_params() == model.count_params()


@pytest.mark.parametrize(
    "names", [["base", "own_text"], pytest.param(list(kt.PRESETS), marks=pytest.mark.slow)]
)
def test_every_preset_makes_a_model(names):
    """Many presets differ in their sizes alone."""
    kinds = {reduced(name): name for name in names}
    for config, name in kinds.items():
        model = kt.Transformer(config)
        same = kt.Transformer.from_config(model.get_config())
        assert same.count_params() == model.count_params(), name


UNTIED = {"tie_embeddings": False, "norm": "pre", "logits_bias": True}


@pytest.mark.parametrize("settings", [{}, pytest.param(UNTIED, marks=pytest.mark.slow)])
def test_lora_in_the_model(settings, tmp_path):
    config = dataclasses.replace(reduced("base"), dropout=0.0, **settings)
    model = kt.Transformer(config)
    inputs = {"source": IDS, "target": IDS}
    randomize(model)
    outputs = model(inputs)
    weights = model.count_params()
    matrices = sum(np.prod(part.get_weights()[0].shape) for part in sublayers_with_matrices(model))
    added = enable_lora(model, 2)
    same_outputs(outputs, model(inputs))
    assert count(model.trainable_weights) < weights - matrices + added + 1

    frozen = [weight.numpy() for weight in model.non_trainable_weights]
    loss = kt.LabelSmoothedCrossEntropy()
    model.compile(keras.optimizers.Adam(1e-2), loss, run_eagerly=True)
    before, after = (model.train_on_batch(inputs, IDS) for _ in range(2))
    assert after < before
    for weight, same in zip(model.non_trainable_weights, frozen, strict=True):
        np.testing.assert_array_equal(weight, same)

    outputs = model(inputs)
    assert np.abs(outputs - model(inputs, training=False)).max() == 0
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    close_outputs(loaded(inputs), outputs, 1e-5)
    assert loaded.count_params() == weights


def test_lora_reaches_the_parts_of_a_layer():
    layer = kt.EncoderLayer(2, 3, 12)
    with refused("enable_lora", layer.name, about="built"):
        layer.enable_lora(2)
    outputs = layer(X)
    for rank in (0, "2"):
        with refused("rank", repr(rank)):
            layer.enable_lora(rank)
    layer.enable_lora(2)
    same_outputs(outputs, layer(X))
    dense = sublayers_with_matrices(layer)
    assert len(dense) == 6 and all(part.lora_enabled for part in dense)

    model = kt.Transformer(MODEL)
    model.enable_lora(rank=2)
    assert all(part.lora_enabled for part in sublayers_with_matrices(model))


@pytest.mark.slow
def test_lora_and_int8_reach_the_parts_of_a_layer():
    layer = kt.EncoderLayer(2, 3, 12)
    outputs = layer(X)
    layer.enable_lora(2)
    layer.quantize("int8")
    assert {part.quantization_mode for part in sublayers_with_matrices(layer)} == {"int8"}
    close_outputs(layer(X), outputs, 0.1)


@pytest.mark.slow
@WITHOUT_WARNINGS_OF_QUANTIZE
def test_int8_in_the_model(tmp_path):
    """A model with three matrices; `test_int8` covers the tied one, and weights in files."""
    config = dataclasses.replace(reduced("base"), **UNTIED)
    inputs = {"source": IDS, "target": IDS}
    model = kt.Transformer(config)
    outputs = model(inputs)
    model.quantize("int8")
    close_outputs(model(inputs), outputs, 0.2)
    kinds = {weight.dtype for weight in model.weights if weight.path.endswith("kernel")}
    assert kinds == {"int8"}
    model.save(tmp_path / "model.keras")
    same_outputs(keras.models.load_model(tmp_path / "model.keras")(inputs), model(inputs))


def test_summary_names_the_parts():
    lines = []
    kt.Transformer(reduced("base")).summary(print_fn=lines.append)
    text = "\n".join(lines)
    assert all(name in text for name in ("embedding", "encoder", "decoder", "source_positions"))


def test_mixed_float16_is_saved_with_the_model(tmp_path):
    model = kt.Transformer(reduced("base"), dtype="mixed_float16")
    assert model.encoder.compute_dtype == "float16"
    assert all(v.dtype == "float32" for v in model.trainable_variables)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.encoder.compute_dtype == "float16"
    inputs = {"source": IDS, "target": IDS}
    same_outputs(model(inputs), loaded(inputs))


def test_from_preset():
    model = kt.Transformer.from_preset("tiny", vocab_size=20, num_layers=1, d_model=16)
    assert (model.config.d_ff, model.config.num_layers, model.config.vocab_size) == (256, 1, 20)
    assert model.config.d_k * model.config.num_heads == 16
    with refused("preset", "'huge'", about="tiny"):
        kt.Transformer.from_preset("huge", vocab_size=20)
    with refused("settings", "'width'", about="TransformerConfig"):
        kt.Transformer.from_preset("tiny", vocab_size=20, width=3)


def examples_of(name):
    """The examples in the docstring of a public name, in which all public names are known."""
    names = {**PUBLIC, "np": np, "keras": keras}
    examples = doctest.DocTestFinder(recurse=False).find(PUBLIC[name], name, globs=names)
    return [test for test in examples if test.examples]


@pytest.mark.parametrize("name", PUBLIC_LAYERS)
def test_every_public_layer_has_an_example(name):
    assert examples_of(name)


@pytest.mark.parametrize("name", [name for name in PUBLIC if callable(PUBLIC[name])])
def test_examples_give_what_they_say(name):
    for test in examples_of(name):
        said = []
        failed, _ = doctest.DocTestRunner().run(test, out=said.append)
        assert failed == 0, "".join(said)


def test_arguments_that_would_give_wrong_numbers_are_refused():
    with refused("label_smoothing", 2.0, about="[0, 1)"):
        kt.LabelSmoothedCrossEntropy(2.0)
    with refused("norm", '"before"', about="post, pre"):
        kt.EncoderLayer(2, 3, 4, norm="before")
    with refused("window", -1, about="at least 1"):
        kt.DecoderLayer(2, 3, 4, attention_window=-1)
    with refused("shape", '"square"', about="linear, cosine"):
        kt.WarmupToZero(8, 10, 100, shape="square")
    with refused("inputs", 5, about="even"):
        kt.PositionalEncoding()(np.ones((1, 2, 5), "float32"))


TRAINING_OBJECTS = [
    kt.LabelSmoothedCrossEntropy(0.2),
    kt.MaskedAccuracy(),
    kt.MaskedPerplexity(name="ppl"),
    kt.WarmupInverseSquareRoot(512, 100, 2.0),
    kt.WarmupToZero(512, 100, 1000, 2.0, "cosine"),
]


@pytest.mark.parametrize("thing", TRAINING_OBJECTS, ids=lambda thing: type(thing).__name__)
def test_training_objects(thing):
    round_trip(thing)


LOAD = """
import json, sys
{imports}
model = keras.models.load_model(sys.argv[1])
made = map(keras.saving.deserialize_keras_object, json.loads(sys.argv[2]))
print(*[type(thing).__name__ for thing in (model, model.loss, *made)])
"""


IMPORTS = [
    "import keras, keras_transformer",
    "import keras_transformer.layers, keras",
    "import keras_transformer, keras",
    "import keras_transformer, tensorflow, keras",
    "import keras, keras_transformer.core.training.losses",
]


@pytest.mark.slow  # new interpreters
def test_saved_objects_are_found_in_new_processes(tmp_path):
    model = kt.Transformer(MODEL)
    rate = kt.WarmupToZero(8, 10, 100)
    loss = kt.LabelSmoothedCrossEntropy()
    model.compile(keras.optimizers.Adam(rate), loss, metrics=[kt.MaskedAccuracy()])
    path = tmp_path / "model.keras"
    model.save(path)
    things = [*(case.make() for case in LAYERS.values()), *TRAINING_OBJECTS]
    classes = {type(thing).__name__: thing for thing in things}
    objects = json.dumps([keras.saving.serialize_keras_object(classes[n]) for n in sorted(classes)])
    wanted = ["Transformer", "LabelSmoothedCrossEntropy", *sorted(classes)]

    processes = []
    for imports in IMPORTS:
        script = LOAD.format(imports=imports)
        command = [sys.executable, "-c", script, str(path), objects]
        processes.append(
            subprocess.Popen(
                command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        )
    for process in processes:
        output, errors = process.communicate()
        assert output.split() == wanted, errors


def test_loss_and_metrics_by_hand():
    logits = np.log(np.array([[[0.5, 0.25, 0.25], [0.2, 0.2, 0.6], [0.1, 0.1, 0.8]]], "float32"))
    labels = np.array([[1, 2, 0]])
    tokens = np.array([-np.log(0.25), -np.log(0.6)])
    uniform = np.array([-np.log(0.5 * 0.25 * 0.25) / 3, -np.log(0.2 * 0.2 * 0.6) / 3])
    smoothed = 0.9 * tokens + 0.1 * uniform
    loss = kt.LabelSmoothedCrossEntropy(0.1)
    assert float(loss(labels, logits)) == pytest.approx(smoothed.mean())
    weights = np.array([[3.0, 1.0, 5.0]])
    weighted = (smoothed * [3, 1]).sum() / 4
    assert float(loss(labels, logits, weights)) == pytest.approx(weighted)
    each = kt.LabelSmoothedCrossEntropy(0.1, reduction=None)(labels, logits)
    np.testing.assert_allclose(each, [[*smoothed, 0]], rtol=1e-5)

    accuracy, perplexity = kt.MaskedAccuracy(), kt.MaskedPerplexity()
    for metric, expected in ((accuracy, 0.5), (perplexity, np.exp(tokens.mean()))):
        metric.update_state(labels, logits)
        metric.update_state(np.zeros_like(labels), logits)  # padding alone
        assert float(metric.result()) == pytest.approx(expected)
        # A mean over tokens, not over batches: one more token makes three.
        metric.update_state(labels[:, 1:2], logits[:, 1:2])
    assert float(accuracy.result()) == pytest.approx(2 / 3)
    assert float(perplexity.result()) == pytest.approx(np.exp((tokens[0] + 2 * tokens[1]) / 3))


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_loss_and_metrics_of_variables(dtype):
    logits = np.log(np.array([[[0.5, 0.25, 0.25], [0.2, 0.2, 0.6]]], "float32"))
    labels = np.array([[1, 0]], dtype)
    variables = tf.Variable(labels), tf.Variable(logits)
    with tf.GradientTape() as tape:
        loss = kt.LabelSmoothedCrossEntropy(0.0)(*variables)
    assert float(loss) == pytest.approx(-np.log(0.25))
    gradient = tape.gradient(loss, variables[1])
    np.testing.assert_allclose(gradient, [[[0.5, -0.75, 0.25], [0, 0, 0]]], atol=1e-6)
    assert float(kt.MaskedAccuracy()(*variables)) == 0
    assert float(kt.MaskedPerplexity()(*variables)) == pytest.approx(4)


MODEL = kt.TransformerConfig(
    vocab_size=12, num_layers=1, d_model=8, d_ff=8, num_heads=2, dropout=0.0
)


def batches(steps=20):
    rng = np.random.default_rng(0)
    ids = rng.integers(4, 12, size=(steps, 6, 5)).astype("int32")
    ids[:, :, -1] = 2
    ids[:, 1, 3:] = [2, 0]
    return tf.data.Dataset.from_tensor_slices((ids, ids))


def test_fit_gives_the_parameters_of_the_loop(tmp_path):
    training = kt.TrainingConfig(warmup_steps=20, learning_rate_scale=0.5)
    keras.utils.set_random_seed(7)
    model = kt.Transformer(MODEL)
    rate = kt.WarmupInverseSquareRoot(MODEL.d_model, warmup_steps=20, scale=0.5)
    adam = keras.optimizers.Adam(rate, 0.9, 0.98, 1e-9)
    loss = kt.LabelSmoothedCrossEntropy(training.label_smoothing)
    model.compile(adam, loss, metrics=[kt.MaskedAccuracy(), kt.MaskedPerplexity()])
    steps = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: seen.append(batch)
    )
    seen = []
    # Without a mode: the metrics say whether they should rise or fall.
    stops = [keras.callbacks.EarlyStopping(f"masked_{name}") for name in ("accuracy", "perplexity")]
    model.fit(batches().map(kt.teacher_forcing), verbose=0, callbacks=[steps, *stops])
    assert [stop.monitor_op for stop in stops] == [keras.ops.greater, keras.ops.less]

    assert seen == list(range(20))

    keras.utils.set_random_seed(7)
    strategy = tf.distribute.get_strategy()
    data = TrainingData(batches().repeat())
    train(MODEL, training, data, tmp_path, LoopConfig(train_steps=20), strategy)
    looped, _ = read_checkpoint(tmp_path, "latest")
    trained = [variable.numpy() for variable in model.variables]
    for one, same in zip(trained, looped, strict=True):
        np.testing.assert_allclose(one, same, atol=1e-5)

    evaluated = model.evaluate(batches().map(kt.teacher_forcing), verbose=0, return_dict=True)
    assert evaluated["masked_perplexity"] > 1 and 0 < evaluated["masked_accuracy"] < 1
    source, _ = next(iter(batches().map(kt.teacher_forcing)))
    np.testing.assert_allclose(model.predict(source, verbose=0), model(source), atol=1e-5)


def test_batches_of_dicts_are_mapped_like_pairs():
    pairs = tf.data.Dataset.from_tensors((IDS, IDS[:, :3]))
    dicts = pairs.map(lambda source, target: {"source": source, "target": target})
    (wanted,) = pairs.map(kt.teacher_forcing).as_numpy_iterator()
    (found,) = dicts.map(kt.teacher_forcing).as_numpy_iterator()
    assert found[0].keys() == {"source", "target"}
    np.testing.assert_equal(found, wanted)


FIT = """
import numpy as np, keras, keras_transformer as kt
ids = np.random.default_rng(0).integers(4, 12, size=(64, 6)).astype("int32")
ids[:, -1] = 2
inputs = {"source": ids, "target": np.pad(ids[:, :-1], [(0, 0), (1, 0)], constant_values=1)}
config = kt.TransformerConfig(12, num_layers=1, d_model=16, d_ff=16, num_heads=2, dropout=0.1)
model = kt.Transformer(config)
model.compile(keras.optimizers.Adam(1e-2), kt.LabelSmoothedCrossEntropy(),
              metrics=[kt.MaskedAccuracy()])
losses = model.fit(inputs, ids, epochs=3, batch_size=16, verbose=0).history["loss"]
assert losses[-1] < losses[0], losses
"""


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_fit_on_other_backends(backend):
    fit_on(backend, FIT)


# On 1, 2 and 8 devices; rows of unequal length, so that devices have unequal numbers of tokens.
FIT_ON_DEVICES = """
import numpy as np, keras, keras_transformer as kt
rng = np.random.default_rng(0)
ids = rng.integers(4, 12, size=(320, 6)).astype("int32")
ids[:, -1] = 2
ids[rng.random(320) < 0.3, 3:] = [2, 0, 0]
inputs = {"source": ids, "target": np.pad(ids[:, :-1], [(0, 0), (1, 0)], constant_values=1)}
config = kt.TransformerConfig(12, num_layers=1, d_model=16, d_ff=16, num_heads=2, dropout=0.0)
trained = []
for count in (1, 2, 8):
    devices = [f"cpu:{number}" for number in range(count)]
    keras.distribution.set_distribution(keras.distribution.DataParallel(devices=devices))
    keras.utils.set_random_seed(1)
    model = kt.Transformer(config)
    rate = kt.WarmupInverseSquareRoot(config.d_model, warmup_steps=10, scale=0.5)
    adam = keras.optimizers.Adam(rate, 0.9, 0.98, 1e-9)
    model.compile(adam, kt.LabelSmoothedCrossEntropy(), metrics=[kt.MaskedPerplexity()])
    model.fit(inputs, ids, batch_size=16, shuffle=False, verbose=0)
    assert int(adam.iterations) == 20
    assert len(model.variables[0].value.sharding.device_set) == count
    trained.append(model.get_weights())
for weights in trained[1:]:
    for alone, parallel in zip(trained[0], weights, strict=True):
        np.testing.assert_allclose(alone, parallel, atol=2e-5)
assert max(np.abs(w).max() for w in trained[0]) > 0.1
"""


@pytest.mark.slow
def test_fit_with_data_parallel_devices():
    fit_on("jax", FIT_ON_DEVICES, XLA_FLAGS="--xla_force_host_platform_device_count=8")


def fit_on(backend, script, **environment):
    if importlib.util.find_spec(backend) is None:
        extra = {"jax": "jax", "torch": "bench"}[backend]
        pytest.skip(f"{backend} is not installed; install: pip install '.[{extra}]'")
    environment = {**os.environ, "KERAS_BACKEND": backend, "JAX_PLATFORMS": "cpu", **environment}
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
