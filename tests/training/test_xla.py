"""Steps compiled by XLA, in a process of its own, which writes down all that it compiles."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

# test_loop.py compiles the shapes of a short run.
pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import dataclasses, json, sys
from pathlib import Path
import numpy as np
import tensorflow as tf
from keras_transformer.config import TrainingConfig, TransformerConfig
from keras_transformer.training.step import TrainingStep, zero_sums
from keras_transformer.training.xla_step import XlaTrainingStep
from keras_transformer.training.strategy import make_repeatable, make_strategy

# The replicas' devices must be made first.
strategies = {2: make_strategy("mirrored", 2), 1: make_strategy("one_device")}
config = TransformerConfig(
    vocab_size=12, num_layers=1, d_model=8, d_ff=8, num_heads=2, dropout=0.0)
rng = np.random.default_rng(0)

def random_batch(rows, source, target):
    return tuple(rng.integers(4, 12, size=(rows, side), dtype="int32") for side in (source, target))

batches = [
    random_batch(*shape) for shape in [(3, 4, 2), (2, 7, 8), (6, 3, 4), (3, 8, 5), (5, 1, 2)]]

def compiled():
    return sorted(path.name for path in Path(sys.argv[1]).glob("*gradients*before_opt*.txt"))

def train(replicas, config, by_xla, batches):
    # A step a batch; gives the sums and the weights, and what takes these steps again.
    spec = (tf.TensorSpec([None, None], tf.int32),) * 2
    def iterator():
        return iter(tf.data.Dataset.from_generator(lambda: iter(batches), output_signature=spec))
    make_repeatable(3, deterministic=False)
    training = TrainingConfig(warmup_steps=20, tokens_per_batch=24)
    if by_xla:
        step = XlaTrainingStep(config, training, strategies[replicas], [4, 8])
    else:
        step = TrainingStep(config, training, strategies[replicas])
    def take_steps():
        return step.run(iterator(), tf.constant(len(batches)), zero_sums())
    sums = [float(value) for value in take_steps()]
    weights = [v.numpy().ravel().tolist() for v in step.model.trainable_variables]
    return [sums, *weights], take_steps, step

found = {"plain": train(1, config, False, batches)[0]}
results, again, step = train(2, config, True, batches)
first = compiled()
again()
found["compiled"] = {
    "results": results,
    "shapes": [[list(shape), seconds] for shape, seconds in step.compiled_shapes.items()],
    "first": len(first), "second": len(compiled()) - len(first),
}
config = dataclasses.replace(config, dropout=0.1)
# XLA draws other masks: only the mean over many of them is the same.
many = [random_batch(3, 8, 8)] * 40
found["dropout"] = [train(1, config, either, many)[0] for either in (False, True)]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("xla")
    flags = f"--xla_dump_to={folder} --xla_dump_hlo_as_text --xla_backend_optimization_level=0"
    environment = {**os.environ, "XLA_FLAGS": flags}  # level 0: LLVM's work is not what is tested
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_compiled_steps_equal_the_others_and_compile_once_a_shape(found):
    compiled = found["compiled"]
    (sums, *weights), (compiled_sums, *compiled_weights) = found["plain"], compiled["results"]
    # All but the positions, of which there is more padding.
    np.testing.assert_allclose(compiled_sums[:4], sums[:4], rtol=1e-5)
    rows = 4  # of the longer bucket: as many for each of two replicas
    assert compiled_sums[4] == compiled_sums[5] == 3 * 6 * 4 + 2 * rows * 8
    np.testing.assert_allclose(compiled_sums[6:], sums[6:], rtol=1e-4)
    for weight, same in zip(weights, compiled_weights, strict=True):
        np.testing.assert_allclose(same, weight, atol=2e-5)
    assert [shape for shape, _ in compiled["shapes"]] == [[6, 4], [rows, 8]]
    assert all(seconds > 0 for _, seconds in compiled["shapes"])
    assert compiled["first"] == 2 * 2  # shapes and replicas
    assert compiled["second"] == 0  # the second epoch has no shape that is new


def test_dropout_compiles_on_one_device(found):
    (plain, *_), (compiled, *_) = found["dropout"]
    assert np.isfinite(compiled).all()
    np.testing.assert_allclose(compiled[:2], plain[:2], rtol=0.1)
