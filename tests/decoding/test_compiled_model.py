"""The model that decodes, held to the Keras model that trains: the same numbers everywhere."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.config import PAD_ID, TransformerConfig
from keras_transformer.decoding.cache import with_room
from keras_transformer.decoding.compiled_model import (
    CompiledModel,
    decode,
    decode_step,
    empty_cache,
    encode,
    project_memory,
)
from keras_transformer.decoding.weights import (
    as_tensors,
    read_weights,
)
from keras_transformer.model.transformer import Transformer, shift_right
from keras_transformer.presets import PRESETS, preset

CONFIG = TransformerConfig(
    vocab_size=23, num_layers=2, d_model=8, d_ff=12, num_heads=2, d_k=3, d_v=3, dropout=0.1
)
OPTIONS = {
    "as in the paper": {},
    "values wider than keys": {"d_v": 5},
    "pre-norm": {"norm": "pre"},
    "learned positions": {"positions": "learned", "max_positions": 9},
    "Marian's positions": {"positions": "marian"},
    "untied": {"tie_embeddings": False},
    "own source vocabulary": {"source_vocab_size": 17},
    "own source vocabulary, untied": {"source_vocab_size": 17, "tie_embeddings": False},
    "attention window": {"attention_window": 3},
    "fewer layers in the decoder": {"decoder_layers": 1},
    "swish": {"activation": "swish"},
    "gelu": {"activation": "gelu"},
    "biases": {"attention_bias": True, "logits_bias": True},
    "biases, untied": {"attention_bias": True, "logits_bias": True, "tie_embeddings": False},
    "unscaled embeddings": {"scale_embeddings": False},
    "large epsilon": {"norm_epsilon": 0.1},
}


def random_model(config, seed=0):
    """A model whose biases and normalisations have other values than at the start of training."""
    keras.utils.set_random_seed(seed)
    model = Transformer(config)
    generator = np.random.default_rng(seed)
    for variable in model.trainable_variables:
        variable.assign(variable + generator.normal(scale=0.3, size=variable.shape))
    return model


def reduced(name):
    """The configuration of a preset with small sizes."""
    config, _ = preset(name, 23)
    heads = min(config.num_heads, 4)
    return dataclasses.replace(
        config, d_model=16, d_ff=8, num_heads=heads, d_k=3, d_v=4, num_layers=2, max_positions=20
    )


def sources_and_targets(vocab_size):
    generator = np.random.default_rng(1)
    source = generator.integers(4, 17, (3, 7)).astype("int32")
    source[1, 4:] = PAD_ID
    target = generator.integers(4, vocab_size, (3, 6)).astype("int32")
    target[2, 3:] = PAD_ID
    return source, target


def logits_of_one_pass(model, source, target):
    """Of the decoder over whole targets."""
    return decode(model, encode(model, source), target).logits


def logits_of_steps(model, source, target, beams=2):
    """Position by position, with a cache; all beams of a sentence write the same target."""
    encoded = encode(model, source)
    memory = project_memory(model, encoded.memory)
    inputs = tf.repeat(shift_right(target)[:, None], beams, axis=1)  # [B, K, T]
    cache = empty_cache([model], target.shape[0], beams)
    every_logits = []
    for position in range(target.shape[1]):
        cache = with_room(cache, position + 1)
        logits, cache = decode_step(
            model,
            inputs[:, :, position],
            tf.constant(position),
            cache,
            memory,
            encoded.mask,
            model.weights.logits,
        )
        every_logits.append(logits)
    return tf.stack(every_logits, axis=2)  # [B, K, T, V]


def check_agreement(model, dtype="float32", **tolerance):
    """Compares both ways to decode a target with the Keras model."""
    source, target = sources_and_targets(model.config.vocab_size)
    inputs = {"source": source, "target": np.asarray(shift_right(target))}
    expected = np.asarray(model(inputs, training=False))
    assert np.ptp(expected) > 1
    is_real = inputs["target"] != PAD_ID  # the numbers at padding mean nothing
    stored = read_weights(model, dtype)

    @tf.function(autograph=False)
    def both(source, target):
        compiled = CompiledModel(model.config, as_tensors(stored))
        whole = logits_of_one_pass(compiled, source, target)
        return whole, logits_of_steps(compiled, source, target)

    whole, steps = (np.asarray(logits) for logits in both(source, target))
    np.testing.assert_allclose(whole[is_real], expected[is_real], **tolerance)
    for beam in range(2):
        np.testing.assert_allclose(steps[:, beam][is_real], expected[is_real], **tolerance)


@pytest.mark.parametrize("name", OPTIONS)
def test_logits_are_those_of_the_keras_model_for_every_option(name):
    config = dataclasses.replace(CONFIG, **OPTIONS[name])
    check_agreement(random_model(config), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", PRESETS)
def test_logits_are_those_of_the_keras_model_for_every_preset(name):
    check_agreement(random_model(reduced(name)), rtol=1e-5, atol=1e-5)
