"""The public layers, model, loss, metrics, schedule and optimizer as Keras objects."""

import dataclasses
import functools
import importlib.util
import inspect
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_transformer as kt
from keras_transformer.training.checkpoints import read_weights
from keras_transformer.training.data import TrainingData
from keras_transformer.training.loop import train
from keras_transformer.training.loop_config import LoopConfig
from tests.keras_harness import (
    check_layer,
    check_layer_in_bfloat16,
    numpy_of,
    round_trip,
    same_outputs,
)

ROOT = Path(__file__).resolve().parents[1]
D_MODEL = 8
X = np.random.default_rng(0).normal(size=(2, 5, D_MODEL)).astype("float32")
MEMORY = np.random.default_rng(1).normal(size=(2, 3, D_MODEL)).astype("float32")
IDS = np.array([[4, 9, 2, 0, 0], [3, 5, 6, 7, 2]], "int32")
LAYER = {"num_heads": 2, "key_dim": 3, "value_dim": 5, "d_ff": 12}
ATTENTION = 2 * D_MODEL * 2 * 3 + 2 * D_MODEL * 2 * 5  # kernels of an attention sublayer
FEED_FORWARD = 2 * D_MODEL * 12 + 12 + D_MODEL
NORM = 2 * D_MODEL
LAYERS = {  # class, arguments, inputs, number of trainable weights
    "Dropout": (kt.Dropout, {"rate": 0.5}, [X], 0),
    "FeedForward": (kt.FeedForward, {"d_ff": 12, "dropout": 0.1}, [X], FEED_FORWARD),
    "LayerNorm": (kt.LayerNorm, {}, [X], NORM),
    "MultiHeadAttention": (
        kt.MultiHeadAttention,
        {"num_heads": 2, "key_dim": 3, "value_dim": 5, "dropout": 0.1},
        [X],
        ATTENTION,
    ),
    "MultiHeadAttention of a memory": (
        kt.MultiHeadAttention,
        {"num_heads": 2, "key_dim": 3, "value_dim": 5},
        [X, MEMORY],
        ATTENTION,
    ),
    "RestrictedSelfAttention": (
        kt.RestrictedSelfAttention,
        {"num_heads": 2, "key_dim": 3, "value_dim": 5, "window": 3},
        [X],
        ATTENTION,
    ),
    "PositionalEncoding": (kt.PositionalEncoding, {"dropout": 0.1}, [X], 0),
    "PositionalEncoding, learned": (
        kt.PositionalEncoding,
        {"positions": "learned", "max_positions": 9},
        [X],
        9 * D_MODEL,
    ),
    "Residual": (kt.Residual, {"norm": "pre", "dropout": 0.1}, [X, X], NORM),
    "TokenEmbedding": (
        kt.TokenEmbedding,
        {"vocab_size": 11, "d_model": D_MODEL, "mask_zero": True},
        [IDS],
        11 * D_MODEL,
    ),
    "EncoderLayer": (kt.EncoderLayer, LAYER, [X], ATTENTION + FEED_FORWARD + 2 * NORM),
    "DecoderLayer": (
        kt.DecoderLayer,
        {**LAYER, "norm": "pre"},
        [X, MEMORY],
        2 * ATTENTION + FEED_FORWARD + 3 * NORM,
    ),
    "Encoder": (
        kt.Encoder,
        {"num_layers": 2, **LAYER, "norm": "pre"},
        [X],
        2 * (ATTENTION + FEED_FORWARD + 2 * NORM) + NORM,
    ),
    "Decoder": (
        kt.Decoder,
        {"num_layers": 1, **LAYER, "rematerialize": True},
        [X, MEMORY],
        2 * ATTENTION + FEED_FORWARD + 3 * NORM,
    ),
    "Decoder as other toolkits have it": (
        kt.Decoder,
        {"num_layers": 1, **LAYER, "activation": "gelu", "attention_bias": True},
        [X, MEMORY],
        2 * (ATTENTION + 2 * 2 * 3 + 2 * 5 + D_MODEL) + FEED_FORWARD + 3 * NORM,
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, tmp_path):
    layer, arguments, inputs, weights = LAYERS[name]
    check_layer(functools.partial(layer, **arguments), inputs, weights, tmp_path)


@pytest.mark.parametrize("name", LAYERS)
def test_layers_in_bfloat16(name):
    layer, arguments, inputs, _ = LAYERS[name]
    check_layer_in_bfloat16(functools.partial(layer, **arguments), inputs)


@pytest.mark.parametrize("stack", [kt.Encoder, kt.Decoder])
def test_stacks_show_and_take_the_arguments_of_their_layers(stack):
    arguments = {
        **{"num_layers": 1, "num_heads": 2, "key_dim": 3, "d_ff": 4, "value_dim": 5, "norm": "pre"},
        **{"attention_window": 6, "dropout": 0.1, "attention_dropout": 0.2},
        **{"activation_dropout": 0.3, "rematerialize": True},
        **{"activation": "swish", "attention_bias": True, "norm_epsilon": 1e-5},
    }
    assert list(inspect.signature(stack).parameters) == [*arguments, "kwargs"]
    made = stack(*arguments.values())
    assert arguments.items() <= made.get_config().items()
    of_stack = {"num_layers", "rematerialize"}
    of_layer = {name: value for name, value in arguments.items() if name not in of_stack}
    assert of_layer.items() <= made.layers[0].get_config().items()
    with pytest.raises(ValueError, match=r"Unrecognized keyword arguments.*'num_head': 2"):
        stack(1, 2, 3, 4, num_head=2)


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("MultiHeadAttention of a memory", [(2, 2, 5, 3)]),
        ("RestrictedSelfAttention", [(2, 2, 5, 5)]),
        ("EncoderLayer", [(2, 2, 5, 5)]),
        ("DecoderLayer", [(2, 2, 5, 5), (2, 2, 5, 3)]),
    ],
)
def test_attention_scores_are_returned_on_request(name, shapes, tmp_path):
    layer, arguments, inputs, weights = LAYERS[name]
    make = functools.partial(layer, **arguments)
    check_layer(make, inputs, weights, tmp_path, return_attention_scores=True)
    layer = make()
    outputs, *scores = numpy_of(layer(*inputs, return_attention_scores=True))
    np.testing.assert_allclose(numpy_of(layer(*inputs))[0], outputs, atol=1e-6)
    assert [part.shape for part in scores] == shapes
    for part in scores:
        np.testing.assert_allclose(part.sum(axis=-1), 1, rtol=1e-5)


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
    """The configuration of a preset with every width divided by 64 or so."""
    config, _ = kt.preset(name, 11)
    heads = min(config.num_heads, 4)
    return dataclasses.replace(
        config, d_model=16, d_ff=8, num_heads=heads, d_k=3, d_v=4, num_layers=2, max_positions=20
    )


@pytest.mark.parametrize("name", ["base", "E", "parsing_wsj", "untied", "pre", "window"])
def test_models_are_saved_and_loaded_to_the_last_bit(name, tmp_path):
    own = {"untied": {"tie_embeddings": False}, "pre": {"norm": "pre"}}
    own["window"] = {"attention_window": 3}
    config = dataclasses.replace(reduced("base" if name in own else name), **own.get(name, {}))
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


@pytest.mark.parametrize("name", kt.PRESETS)
def test_every_preset_makes_a_model(name):
    model = kt.Transformer(reduced(name))
    assert kt.Transformer.from_config(model.get_config()).count_params() == model.count_params()


def test_summary_names_the_parts():
    lines = []
    kt.Transformer(reduced("base")).summary(print_fn=lines.append)
    text = "\n".join(lines)
    assert all(name in text for name in ("embedding", "encoder", "decoder", "source_positions"))


def test_mixed_precision_is_saved_with_the_model(tmp_path):
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
    with pytest.raises(kt.InputError, match="preset must be one of"):
        kt.Transformer.from_preset("huge", vocab_size=20)


@pytest.mark.parametrize(
    "thing",
    [
        kt.LabelSmoothedCrossEntropy(0.2),
        kt.MaskedAccuracy(),
        kt.MaskedPerplexity(name="ppl"),
        kt.WarmupInverseSquareRoot(512, 100, 2.0),
        kt.WarmupToZero(512, 100, 1000, 2.0, "cosine"),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_training_objects(thing):
    round_trip(thing)


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
    model.fit(batches().map(kt.teacher_forcing), verbose=0, callbacks=[steps])

    assert seen == list(range(20))

    keras.utils.set_random_seed(7)
    strategy = tf.distribute.get_strategy()
    data = TrainingData(batches().repeat())
    train(MODEL, training, data, tmp_path, LoopConfig(train_steps=20), strategy)
    looped, _ = read_weights(tmp_path, "latest")
    trained = [variable.numpy() for variable in model.variables]
    for one, same in zip(trained, looped, strict=True):
        np.testing.assert_allclose(one, same, atol=1e-5)

    found = model.evaluate(batches().map(kt.teacher_forcing), verbose=0, return_dict=True)
    assert found["perplexity"] > 1 and 0 < found["accuracy"] < 1
    source, _ = next(iter(batches().map(kt.teacher_forcing)))
    np.testing.assert_allclose(model.predict(source, verbose=0), model(source), atol=1e-5)


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


def test_fit_with_data_parallel_devices():
    fit_on("jax", FIT_ON_DEVICES, XLA_FLAGS="--xla_force_host_platform_device_count=8")


def fit_on(backend, script, **environment):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed (an extra)")
    environment = {**os.environ, "KERAS_BACKEND": backend, "JAX_PLATFORMS": "cpu", **environment}
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
