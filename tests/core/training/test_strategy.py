"""Replicas and workers, in processes of their own: devices must be made before TensorFlow starts.

Whatever they are, 20 steps over the same batches end with the same parameters.
"""

import functools
import json

import numpy as np
import pytest

from keras_transformer.core.training.strategy import make_strategy
from tests.free_ports import free_addresses
from tests.processes import ROOT, PythonProcess
from tests.refusals import refused

DRAWS = 4

PROGRAM = (
    f"DRAWS = {DRAWS}"
    + """
import json, sys
import numpy as np
from keras_transformer.core.config import TrainingConfig, TransformerConfig
from keras_transformer.core.model.dropout import Dropout
from keras_transformer.core.training.workers.addresses import Addresses
from keras_transformer.core.training.step import TrainingStep, zero_sums
from keras_transformer.core.training.strategy import make_repeatable, make_strategy
import tensorflow as tf

name, replicas, parts, rematerialize, optimizer, index, *workers = json.loads(sys.argv[1])
strategy = make_strategy(name, replicas, Addresses(tuple(workers), index, "TF_CONFIG"))
make_repeatable(3, deterministic=True)
config = TransformerConfig(vocab_size=12, num_layers=1, d_model=8, d_ff=8, num_heads=2, dropout=0.0)
# Gradients are longer than that in most steps.
training = TrainingConfig(
    warmup_steps=20, learning_rate_scale=0.1, accumulate_steps=parts, clip_norm=0.5,
    rematerialize=rematerialize, optimizer=optimizer)
step = TrainingStep(config, training, strategy)
ids = np.random.default_rng(0).integers(4, 12, size=(20, 5, 6)).astype("int32")
ids[:, :, 5] = 2
ids[:, 1, 2:] = [2, 0, 0, 0]  # replicas have different numbers of tokens
iterator = iter(tf.data.Dataset.from_tensor_slices((ids, ids)))
sums = [float(value) for value in step.run(iterator, tf.constant(20), zero_sums())]
with strategy.scope():
    dropout = Dropout(0.5)
draw = tf.function(lambda: dropout(tf.ones([40]), training=True))
masks = [
    mask.numpy().tolist()
    for _ in range(DRAWS)
    for mask in strategy.experimental_local_results(strategy.run(draw))
]
print(json.dumps({
    "sums": sums,
    "weights": [v.numpy().ravel().tolist() for v in step.model.trainable_variables],
    "masks": masks,
}))
"""
)


def found_by(
    folder,
    name,
    replicas,
    parts=1,
    rematerialize=False,
    optimizer="adam",
    workers=("localhost:1",),
):
    """Returns what each process of a run finds."""
    words = (name, replicas, parts, rematerialize, optimizer)
    commands = (["-c", PROGRAM, json.dumps([*words, n, *workers])] for n in range(len(workers)))
    processes = [PythonProcess(command, folder, cwd=ROOT) for command in commands]
    found = []
    try:
        for process in processes:
            output, errors = process.communicate()
            assert process.returncode == 0, errors
            found.append(json.loads(output.splitlines()[-1]))
    finally:
        for process in processes:
            process.kill()
    return found


@pytest.fixture(scope="module")
def one_replica(tmp_path_factory):
    """What one replica finds, by optimizer."""
    return functools.cache(
        lambda optimizer: found_by(
            tmp_path_factory.mktemp("one"), "one_device", None, optimizer=optimizer
        )[0]
    )


@pytest.mark.parametrize(
    ("name", "workers", "replicas", "parts", "rematerialize", "optimizer"),
    [
        ("mirrored", 1, 2, 2, False, "adam"),
        pytest.param("mirrored", 1, 2, 4, True, "adam", marks=pytest.mark.slow),
        # Of 5 rows: three replicas have nothing to do.
        pytest.param("mirrored", 1, 8, 1, False, "adam", marks=pytest.mark.slow),
        pytest.param("multi_worker", 2, 2, 2, False, "adam", marks=pytest.mark.slow),
        pytest.param("mirrored", 1, 2, 1, False, "muon", marks=pytest.mark.slow),
    ],
)
def test_many_equal_one(
    tmp_path, one_replica, name, workers, replicas, parts, rematerialize, optimizer
):
    addresses = free_addresses(workers)
    several = found_by(tmp_path, name, replicas, parts, rematerialize, optimizer, addresses)
    alone = one_replica(optimizer)
    for of_worker in several:
        np.testing.assert_allclose(of_worker["sums"], alone["sums"], rtol=1e-4)
        for one, more in zip(alone["weights"], of_worker["weights"], strict=True):
            np.testing.assert_allclose(more, one, atol=2e-5)
        assert of_worker["weights"] == several[0]["weights"]
    masks = [mask for of_worker in several for mask in of_worker["masks"]]
    assert len({tuple(mask) for mask in masks}) == DRAWS * workers * replicas


@pytest.mark.parametrize(
    ("arguments", "argument", "received"),
    [
        (("one_device", 2), "replicas", "one_device"),
        (("mirrored", 0), "replicas", 0),
        (("multi_worker", 0), "replicas", 0),
        (("mirrored", None), "strategy", "no GPU"),
    ],
)
def test_impossible_strategies(arguments, argument, received):
    with refused(argument, received):
        make_strategy(*arguments)
