"""Steps compiled by XLA, in a process of its own, which writes down all that it compiles."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow  # test_xla_step.py compares the same steps without a compiler
ROOT = Path(__file__).resolve().parents[3]
STEPS = 20
REPLICAS = 2
PROGRAM = (
    f"STEPS, REPLICAS = {STEPS}, {REPLICAS}"
    + """
import json, sys
from pathlib import Path
import tensorflow as tf
from keras_transformer.core.training.step import TrainingStep, zero_sums
from keras_transformer.core.training.strategy import make_repeatable, make_strategy

# The replicas' devices must be made first.
strategies = {REPLICAS: make_strategy("mirrored", REPLICAS), 1: make_strategy("one_device")}

import dataclasses
from keras_transformer.core.training.step import XlaTrainingStep
from tests.core.training.test_xla_step import CONFIG, TRAINING, batches

def train(make_step, replicas, of_batches, parts=1, config=CONFIG):
    # Gives the sums and the weights, and what takes these steps again.
    signature = (tf.TensorSpec([None, None], tf.int32),) * 2
    def iterator():
        return iter(tf.data.Dataset.from_generator(
            lambda: iter(of_batches), output_signature=signature))
    make_repeatable(3, deterministic=False)
    training = dataclasses.replace(TRAINING, accumulate_steps=parts)
    step = make_step(config, training, strategies[replicas])
    def take_steps():
        return step.run(iterator(), tf.constant(len(of_batches)), zero_sums())
    sums = [float(value) for value in take_steps()]
    weights = [v.numpy().ravel().tolist() for v in step.model.trainable_variables]
    return [sums, *weights], take_steps

def compiled():
    return len(list(Path(sys.argv[1]).glob("*gradients*before_opt*.txt")))

plain, in_rows = batches(STEPS)
found = {"plain": train(TrainingStep, 1, plain)[0], "compiled": {}}
for devices, parts in ((1, 2), (REPLICAS, 1)):
    before = compiled()
    results, again = train(XlaTrainingStep, devices, in_rows, parts)
    first = compiled()
    again()
    found["compiled"][devices] = [results, first - before, compiled() - first]
config = dataclasses.replace(CONFIG, dropout=0.1)
# XLA draws other masks: only the mean over many of them is the same.
plain, in_rows = ([batch] * 40 for (batch,) in batches(1))
found["dropout"] = [
    train(TrainingStep, 1, plain, config=config)[0],
    train(XlaTrainingStep, 1, in_rows, config=config)[0],
]
print(json.dumps(found))
"""
)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What the process finds."""
    folder = tmp_path_factory.mktemp("xla")
    flags = f"--xla_dump_to={folder} --xla_dump_hlo_as_text --xla_backend_optimization_level=0"
    environment = {**os.environ, "XLA_FLAGS": flags}  # level 0: LLVM's work is not what is tested
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_compiled_steps_equal_the_others_and_compile_once(found):
    assert set(map(int, found["compiled"])) == {1, REPLICAS}
    for devices, results in found["compiled"].items():
        assert_same(found["plain"], results, compilations=int(devices))


def assert_same(plain, compiled, compilations):
    (compiled_sums, *compiled_weights), first, second = compiled
    sums, *weights = plain
    # All but the positions, of which there is more padding.
    np.testing.assert_allclose(compiled_sums[:4], sums[:4], rtol=1e-5)
    assert compiled_sums[4] == compiled_sums[5] == STEPS * 4 * 40
    np.testing.assert_allclose(compiled_sums[6:], sums[6:], rtol=1e-4)
    for weight, same in zip(weights, compiled_weights, strict=True):
        np.testing.assert_allclose(same, weight, atol=1e-5)
    assert (first, second) == (compilations, 0)


def test_dropout_compiles_on_one_device(found):
    (plain, *_), (compiled, *_) = found["dropout"]
    assert np.isfinite(compiled).all()
    np.testing.assert_allclose(compiled[:2], plain[:2], rtol=0.1)
