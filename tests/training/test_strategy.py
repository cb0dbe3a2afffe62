"""Replicas, in a process of its own, as logical devices must be made before TensorFlow starts."""

import json
import subprocess
import sys

import numpy as np
import pytest

from keras_transformer.errors import InputError
from keras_transformer.training.strategy import compiles, make_strategy

PROGRAM = """
import json, sys
import numpy as np
from keras_transformer.config import TrainingConfig, TransformerConfig
from keras_transformer.model.dropout import Dropout
from keras_transformer.training.step import TrainingStep
from keras_transformer.training.strategy import make_repeatable, make_strategy
import tensorflow as tf

replicas = int(sys.argv[1])
strategy = make_strategy("mirrored", replicas) if replicas > 1 else make_strategy("one_device")
make_repeatable(3, deterministic=True)
config = TransformerConfig(vocab_size=12, num_layers=1, d_model=8, d_ff=8, num_heads=2, dropout=0.0)
# Gradients are longer than that in most steps.
training = TrainingConfig(
    warmup_steps=20, accumulate_steps=int(sys.argv[2]), precision=sys.argv[3], clip_norm=0.5,
    rematerialize=sys.argv[4] == "True")
step = TrainingStep(config, training, strategy)
ids = np.random.default_rng(0).integers(4, 12, size=(20, 5, 6)).astype("int32")
ids[:, :, 5] = 2
ids[:, 1, 2:] = [2, 0, 0, 0]  # replicas have different numbers of tokens
iterator = iter(tf.data.Dataset.from_tensor_slices((ids, ids)))
sums = step.run(iterator, 20).numpy().tolist()
with strategy.scope():
    dropout = Dropout(0.5)
masks = strategy.experimental_local_results(
    strategy.run(lambda: dropout(tf.ones([40]), training=True)))
print(json.dumps({
    "sums": sums,
    "weights": [v.numpy().ravel().tolist() for v in step.model.trainable_variables],
    "masks": [mask.numpy().tolist() for mask in masks],
}))
"""


def run_replicas(replicas, parts=1, precision="float32", rematerialize=False):
    words = (replicas, parts, precision, rematerialize)
    command = [sys.executable, "-c", PROGRAM, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def one_replica():
    return run_replicas(1)


@pytest.mark.parametrize(("replicas", "parts", "rematerialize"), [(2, 1, False), (3, 2, True)])
def test_replicas_equal_one(one_replica, replicas, parts, rematerialize):
    several = run_replicas(replicas, parts, rematerialize=rematerialize)
    np.testing.assert_allclose(several["sums"], one_replica["sums"], rtol=1e-4)
    for one, more in zip(one_replica["weights"], several["weights"], strict=True):
        np.testing.assert_allclose(more, one, atol=2e-5)
    masks = np.array(several["masks"])
    assert len(masks) == replicas
    assert all((masks[0] != mask).any() for mask in masks[1:])


def test_float16_trains_on_two_replicas(one_replica):
    several = run_replicas(2, precision="float16")
    np.testing.assert_allclose(several["sums"][0], one_replica["sums"][0], rtol=0.02)


@pytest.mark.parametrize(
    ("xla", "gpus", "expected"),
    [("on", 0, True), ("off", 1, False), ("auto", 0, False), ("auto", 1, True)],
)
def test_xla_compiles_on_request_and_where_a_gpu_is(monkeypatch, xla, gpus, expected):
    monkeypatch.setattr("tensorflow.config.list_physical_devices", lambda kind: [kind] * gpus)
    assert compiles(xla) is expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("one_device", 2), "--replicas must go with --strategy=mirrored. Received: one_device"),
        (("mirrored", 0), "--replicas must be at least 1. Received: 0"),
        (("mirrored", None), "--strategy=mirrored must find a GPU"),
    ],
)
def test_impossible_strategies(arguments, message):
    with pytest.raises(InputError, match=message):
        make_strategy(*arguments)
