"""The model that decodes, held to the Keras model that trains: the same numbers everywhere."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.config import BOS_ID, EOS_ID, PAD_ID, TransformerConfig
from keras_transformer.core.model.positions import POSITIONS, PositionKind
from keras_transformer.core.model.transformer import Transformer, shift_right
from keras_transformer.core.presets import PRESETS, preset
from keras_transformer.core.search import matrices
from keras_transformer.core.search.compiled_model import compile_model
from keras_transformer.core.search.matrices import HalvedMatrix
from keras_transformer.core.search.weights import update_weights, variables_of, write_weights
from tests.small_models import log_probs_of_compiled

CONFIG = TransformerConfig(
    vocab_size=23, num_layers=1, d_model=8, d_ff=12, num_heads=2, d_k=3, d_v=3, dropout=0.0
)
# Options that do not concern each other are tested together.
OPTIONS = {
    "as in the paper": {"num_layers": 2},
    "pre-norm, values wider than keys": {"norm": "pre", "d_v": 5},
    "learned positions, untied": {
        "positions": "learned",
        "max_positions": 9,
        "tie_embeddings": False,
    },
    "Marian's positions, own source vocabulary": {"positions": "marian", "source_vocab_size": 17},
    "own source vocabulary, untied, swish": {
        "source_vocab_size": 17,
        "tie_embeddings": False,
        "activation": "swish",
    },
    "biases, attention window": {
        "attention_bias": True,
        "logits_bias": True,
        "attention_window": 3,
    },
    "biases, untied, large epsilon": {
        "attention_bias": True,
        "logits_bias": True,
        "tie_embeddings": False,
        "norm_epsilon": 0.1,
    },
    "fewer layers in the decoder, gelu, unscaled embeddings": {
        "num_layers": 2,
        "decoder_layers": 1,
        "activation": "gelu",
        "scale_embeddings": False,
    },
    "rotary positions of an odd width, SwiGLU": {
        "positions": "rotary",
        "d_k": 4,
        "d_model": 7,
        "activation": "swiglu",
    },
    "a code for the decoder": {"decoder_reads_code": True, "positions": "m2m100"},
    "a code, learned positions, attention window": {
        "decoder_reads_code": True,
        "positions": "learned",
        "max_positions": 9,
        "attention_window": 3,
    },
    "an encoder that does not read EOS": {"encoder_reads_eos": False},
    "SSRU": {"decoder_self_attention": "ssru", "num_layers": 2, "attention_bias": True},
    "zeros for BOS": {"starts_with_zeros": True},
    "SSRU, a code, pre-norm": {
        "starts_with_zeros": True,
        "decoder_self_attention": "ssru",
        "decoder_reads_code": True,
        "norm": "pre",
        "attention_window": 3,
    },
    "modern": {
        "positions": "rotary",
        "d_k": 4,
        "activation": "swiglu",
        "norm": "pre",
        "attention_window": 3,
        "attention_bias": True,
        "num_layers": 2,
    },
    "many at once": {
        "positions": "learned",
        "max_positions": 9,
        "norm": "pre",
        "tie_embeddings": False,
        "attention_window": 3,
        "d_v": 5,
        "num_layers": 2,
    },
}


def config_of(name):
    return dataclasses.replace(CONFIG, **OPTIONS[name])


def random_model(config, seed=0, dtype=None):
    """A model whose biases and normalisations have other values than at the start of training."""
    keras.utils.set_random_seed(seed)
    model = Transformer(config, dtype=dtype)
    generator = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        variable.assign(variable + generator.normal(scale=0.3, size=variable.shape))
    return model


def reduced(name):
    """The configuration of a preset with small sizes, and without dropout."""
    config, _ = preset(name, 23)
    rates = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}
    sizes = {"d_model": 16, "d_ff": 8, "d_k": 4, "d_v": 3, "num_layers": 1, "max_positions": 20}
    return dataclasses.replace(config, num_heads=min(config.num_heads, 4), **sizes, **rates)


# Presets that differ in sizes and dropout only are one case.
REDUCED_PRESETS = {reduced(name): name for name in reversed(PRESETS)}


def sources_and_targets(vocab_size):
    generator = np.random.default_rng(1)
    source = generator.integers(4, 17, (3, 5)).astype("int32")
    source[1, 3:] = PAD_ID
    target = generator.integers(4, vocab_size, (3, 3)).astype("int32")
    target[2, 2:] = PAD_ID
    return source, target


def logits_of_one_pass(model, source, target):
    """Of the decoder over whole targets."""
    return model.decode_target(source, target)[1].logits


def logits_of_steps(model, source, target, beams=2):
    """Position by position, with a cache; all beams of a sentence write the same target."""
    first = model.first_inputs(source)
    inputs = tf.concat([first.ids[:, None], target[:, :-1]], axis=1)
    inputs = tf.repeat(inputs[:, None], beams, axis=1)  # [B, K, T]
    cache = model.start(source, beams)
    every_logits = []
    for column in range(target.shape[1]):
        position = tf.constant(first.position + column)
        cache = cache.with_room(position + 1)
        logits, _, cache = model.step(inputs[:, :, column], cache, position)
        every_logits.append(logits)
    return tf.stack(every_logits, axis=2)  # [B, K, T, V]


def logits_of(model, source, target):
    """Of the Keras model."""
    inputs = {"source": source, "target": np.asarray(shift_right(target))}
    return np.asarray(model(inputs, training=False))


def check_agreement(model, compiled, graph=False, **tolerance):
    """Compares both ways to decode a target with the Keras model."""
    source, target = sources_and_targets(model.config.vocab_size)
    expected = logits_of(model, source, target)
    assert np.ptp(expected) > 1
    is_real = np.asarray(shift_right(target)) != PAD_ID  # the numbers at padding mean nothing

    def both(source, target):
        read = compiled.in_graph()
        return logits_of_one_pass(read, source, target), logits_of_steps(read, source, target)

    if graph:
        both = tf.function(both, autograph=False)
    whole, steps = (logits.numpy() for logits in both(tf.constant(source), tf.constant(target)))
    np.testing.assert_allclose(whole[is_real], expected[is_real], **tolerance)
    for beam in range(2):
        np.testing.assert_allclose(steps[:, beam][is_real], expected[is_real], **tolerance)


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_gives_the_logits_of_the_keras_model_and_its_weights_back(name):
    model = random_model(config_of(name))
    compiled = compile_model(model)
    weights = compiled.weights
    check_agreement(model, compiled, rtol=1e-5, atol=1e-5)

    sizes = [int(tf.size(variable)) for variable in variables_of(weights)]
    assert sum(sizes) == model.count_params(), "embeddings that are tied are stored once"
    values = [variable.numpy() for variable in model.trainable_variables]
    for variable in model.trainable_variables:
        variable.assign(tf.zeros_like(variable))
    write_weights(weights, model)
    for variable, value in zip(model.trainable_variables, values, strict=True):
        np.testing.assert_array_equal(variable, value, err_msg=variable.path)


class ScaledByPosition(PositionKind):
    """Multiplies embeddings, or queries and keys, by 1, 2, ...: a kind that the library lacks."""

    def __init__(self, adds, rotates):
        self.adds, self.rotates = adds, rotates

    def add(self, embeddings, positions, rows=None):
        return scaled(embeddings, positions) if self.adds else embeddings

    def rotate(self, vectors, positions):
        return scaled(vectors, positions) if self.rotates else vectors


def scaled(vectors, positions):
    """[..., T, d], times one more than the position."""
    return vectors * tf.cast(1 + positions, "float32")[:, None]


def test_a_new_kind_of_positions_needs_one_class(monkeypatch):
    config = dataclasses.replace(CONFIG, positions="rotary", d_k=4)
    source, target = sources_and_targets(config.vocab_size)
    every_logits = []
    for adds, rotates in ((False, False), (True, False), (False, True)):
        monkeypatch.setitem(POSITIONS, "rotary", ScaledByPosition(adds, rotates))
        model = random_model(config)
        check_agreement(model, compile_model(model), rtol=1e-5, atol=1e-5)
        every_logits.append(logits_of(model, source, target))
    ignored, added, rotated = every_logits
    assert np.abs(added - ignored).max() > 0.1
    assert np.abs(rotated - ignored).max() > 0.1


@pytest.mark.slow  # presets combine the options above
@pytest.mark.parametrize("name", REDUCED_PRESETS.values())
def test_every_preset_gives_the_logits_of_the_keras_model(name):
    model = random_model(reduced(name))
    check_agreement(model, compile_model(model), rtol=1e-5, atol=1e-5)


def test_a_graph_with_a_large_softmax_matrix_gives_the_logits_of_the_keras_model(monkeypatch):
    monkeypatch.setattr(matrices, "LARGE", 1)
    monkeypatch.setattr(matrices, "FEW_ROWS", 7)  # the steps have 6 rows, the whole pass 9
    model = random_model(CONFIG)
    compiled = compile_model(model)
    assert isinstance(compiled.weights.logits.matrix, HalvedMatrix)
    assert isinstance(compiled.in_graph().weights.logits.matrix, HalvedMatrix)
    check_agreement(model, compiled, graph=True, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["many at once", "biases, attention window", "SSRU"])
def test_weights_stored_as_bfloat16_are_those_of_the_rounded_model(name):
    model = random_model(config_of(name))
    compiled = compile_model(model, "bfloat16")
    stored = variables_of(compiled.weights)
    assert {variable.dtype for variable in stored} == {tf.bfloat16}
    assert sum(int(tf.size(variable)) for variable in stored) == model.count_params()
    for variable in model.trainable_variables:
        variable.assign(tf.cast(tf.cast(variable.value, tf.bfloat16), tf.float32))
    check_agreement(model, compiled, rtol=1e-5, atol=1e-5)
    copy = Transformer(model.config)
    write_weights(compiled.weights, copy)
    for variable, value in zip(copy.trainable_variables, model.trainable_variables, strict=True):
        np.testing.assert_array_equal(variable, value, err_msg=variable.path)


INT8 = {
    "paper": {},
    "untied": {"tie_embeddings": False, "norm": "pre", "d_k": 3, "d_v": 5},
    "restricted": {"attention_window": 3, "positions": "learned"},
    "SSRU": {"decoder_self_attention": "ssru"},
}


@pytest.mark.parametrize("settings", INT8.values(), ids=INT8)
def test_int8_weights_are_close_and_the_original_unchanged(make_model, settings):
    model = make_model(scale=1.0, num_layers=1, **settings)
    source = tf.constant([[50, 60, 70, EOS_ID], [9, EOS_ID, PAD_ID, PAD_ID]])
    target = tf.constant([[80, 90, 100, EOS_ID], [20, EOS_ID, PAD_ID, PAD_ID]])

    wanted = log_probs_of_compiled(compile_model(model), source, target).numpy()
    narrow = compile_model(model, "int8")
    run_in_graph = tf.function(log_probs_of_compiled, autograph=False)  # int8 is for graphs only
    logits = run_in_graph(narrow, source, target).numpy()
    assert np.abs(logits - wanted).max() < 0.2
    assert np.abs(logits - wanted).max() > 1e-5, "it rounds"
    again = log_probs_of_compiled(compile_model(model), source, target)
    assert np.array_equal(again, wanted)

    matrices_of_model, others = [], []
    for variable in model.trainable_variables:
        is_matrix = variable.path.endswith(("kernel", "embeddings"))
        is_matrix = is_matrix and "positions" not in variable.path
        (matrices_of_model if is_matrix else others).append(variable)
    stored = variables_of(narrow.weights)
    integers = [variable for variable in stored if variable.dtype == tf.int8]
    size = sum(int(tf.size(variable)) for variable in integers)
    assert size == sum(int(tf.size(variable)) for variable in matrices_of_model)
    columns = sum(variable.shape[1] for variable in integers)  # each has a scale
    size = sum(int(tf.size(variable)) for variable in stored if variable.dtype == tf.float32)
    assert size == columns + sum(int(tf.size(variable)) for variable in others)
    assert {variable.dtype for variable in stored} == {tf.int8, tf.float32}


def test_a_model_that_computes_in_bfloat16_is_decoded_in_float32():
    wide, narrow = random_model(CONFIG), random_model(CONFIG, dtype="mixed_bfloat16")
    source, target = map(tf.constant, sources_and_targets(CONFIG.vocab_size))
    wanted = logits_of_one_pass(compile_model(wide), source, target)
    logits = logits_of_one_pass(compile_model(narrow), source, target)
    assert logits.dtype == tf.float32
    assert np.array_equal(logits, wanted)


def test_weights_are_updated_in_place():
    model, other = random_model(CONFIG), random_model(CONFIG, seed=1)
    compiled = compile_model(model)
    variables = variables_of(compiled.weights)
    for variable, value in zip(model.trainable_variables, other.trainable_variables, strict=True):
        variable.assign(value)
    update_weights(compiled.weights, model)
    assert all(map(lambda one, same: one is same, variables_of(compiled.weights), variables))
    check_agreement(other, compiled, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["many at once", "SSRU"])
def test_beams_that_exchange_their_histories_attend_to_them(name):
    """After the cache is reordered, a beam continues the other one's target."""
    model = random_model(config_of(name))
    compiled = compile_model(model)
    source = tf.constant([[5, 6, 7, EOS_ID]])
    targets = np.array([[BOS_ID, 8, 9], [BOS_ID, 10, 11]], "int32")  # of the two beams
    cache = compiled.start(source, beams=2).with_room(tf.constant(3))
    for position in range(3):
        ids = tf.constant(targets[None, :, position])
        logits, _, cache = compiled.step(ids, cache, tf.constant(position))
        if position == 1:
            cache = cache.reordered(tf.constant([[1, 0]]))
            targets[:, :2] = targets[::-1, :2]
    for beam in range(2):
        inputs = {"source": source.numpy(), "target": targets[beam : beam + 1]}
        wanted = np.asarray(model(inputs, training=False))[0, -1]
        np.testing.assert_allclose(logits[0, beam], wanted, rtol=1e-5, atol=1e-5)
