"""Steps over packed rows, not compiled. test_xla.py compiles them."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.config import TrainingConfig, TransformerConfig
from keras_transformer.core.training.step import TrainingStep, XlaTrainingStep, zero_sums
from tests.core.model.test_packing import VOCAB_SIZE, packed, random_pairs
from tests.small_models import padded

CONFIG = TransformerConfig(
    vocab_size=VOCAB_SIZE, num_layers=1, d_model=8, d_ff=8, num_heads=2, dropout=0.0
)
TRAINING = TrainingConfig(warmup_steps=20, learning_rate_scale=0.1)


class PackedStep(XlaTrainingStep):
    """A step over packed rows that TensorFlow runs."""

    def forget(self):
        pass


def batches(steps):
    """The same pairs in plain rows and in packed ones, with padding in rows and rows of it."""
    plain, in_rows = [], []
    for number in range(steps):
        pairs = random_pairs(9, seed=number)
        plain.append(tuple(padded(side) for side in zip(*pairs, strict=True)))
        in_rows.append(packed(pairs, [3, 2, 4, 0], length=40))
    return plain, in_rows


def trained(make_step, of_batches, config=CONFIG, training=TRAINING):
    """Returns the sums of all steps, and the weights after them."""
    keras.utils.set_random_seed(3)
    step = make_step(config, training, tf.distribute.get_strategy())
    dataset = tf.data.Dataset.from_generator(
        lambda: iter(of_batches), output_signature=(tf.TensorSpec([None, None], tf.int32),) * 2
    )
    sums = step.run(iter(dataset), tf.constant(len(of_batches)), zero_sums())
    weights = [variable.numpy() for variable in step.model.variables]
    return tf.nest.map_structure(float, sums), weights


def assert_trained_alike(found, expected):
    (sums, weights), (other_sums, other_weights) = found, expected
    assert sums.target_positions > sums.target_tokens == other_sums.target_tokens > 0
    assert sums.source_tokens == other_sums.source_tokens
    np.testing.assert_allclose(sums.smoothed_loss, other_sums.smoothed_loss, rtol=1e-6)
    np.testing.assert_allclose(sums.loss, other_sums.loss, rtol=1e-6)
    np.testing.assert_allclose(sums.gradient_norm, other_sums.gradient_norm, rtol=1e-5)
    for weight, other in zip(weights, other_weights, strict=True):
        np.testing.assert_allclose(weight, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "training", "steps"),
    [
        ({}, {"accumulate_steps": 2}, 3),
        pytest.param({}, {}, 20, marks=pytest.mark.slow),
        pytest.param({"decoder_self_attention": "ssru"}, {}, 20, marks=pytest.mark.slow),
        pytest.param(
            {"positions": "rotary", "norm": "pre", "attention_window": 5},
            {"accumulate_steps": 3, "rematerialize": True, "lora_rank": 2, "clip_norm": 0.5},
            20,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_packed_steps_equal_plain_ones(settings, training, steps):
    config = dataclasses.replace(CONFIG, **settings)
    changed = dataclasses.replace(TRAINING, **training)
    plain, in_rows = batches(steps)
    expected = trained(
        TrainingStep, plain, config, dataclasses.replace(changed, accumulate_steps=1)
    )
    assert_trained_alike(trained(PackedStep, in_rows, config, changed), expected)
