"""Steps compiled by XLA, in a process of its own, which writes down all that it compiles."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = """
import json, sys
from pathlib import Path
import numpy as np
import tensorflow as tf
from keras_transformer.config import TrainingConfig, TransformerConfig
from keras_transformer.training.buckets import Buckets
from keras_transformer.training.step import TrainingStep
from keras_transformer.training.strategy import make_repeatable, make_strategy

strategy = make_strategy("mirrored", 2) if sys.argv[2] == "2" else make_strategy("one_device")
config = TransformerConfig(
    vocab_size=12, num_layers=1, d_model=8, d_ff=8, num_heads=2, dropout=float(sys.argv[3]))
rng = np.random.default_rng(0)

def epoch():
    for rows, source, target in [(3, 4, 2), (2, 7, 8), (6, 3, 4), (3, 8, 5), (5, 1, 2)]:
        yield tuple(
            rng.integers(4, 12, size=(rows, side), dtype="int32") for side in (source, target))

batches = list(epoch())
def iterator():
    spec = (tf.TensorSpec([None, None], tf.int32),) * 2
    return iter(tf.data.Dataset.from_generator(lambda: iter(batches), output_signature=spec))

def compiled():
    return sorted(path.name for path in Path(sys.argv[1]).glob("*gradients*before_opt*.txt"))

results = []
for buckets in (None, Buckets([4, 8], 24)):
    make_repeatable(3, deterministic=False)
    step = TrainingStep(config, TrainingConfig(warmup_steps=20), strategy, buckets)
    sums = step.run(iterator(), 5).numpy()
    weights = [v.numpy().ravel().tolist() for v in step.model.trainable_variables]
    results.append([sums.tolist(), *weights])
first = compiled()
step.run(iterator(), 5)
print(json.dumps({
    "results": results, "first": first, "second": compiled(),
    "shapes": [[list(shape), seconds] for shape, seconds in step.compiled_shapes.items()],
}))
"""


def run(folder, replicas=1, dropout=0.0):
    environment = {**os.environ, "XLA_FLAGS": f"--xla_dump_to={folder} --xla_dump_hlo_as_text"}
    command = [sys.executable, "-c", PROGRAM, str(folder), str(replicas), str(dropout)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("replicas", [1, 2])
def test_compiled_steps_equal_the_others_and_compile_once_a_shape(tmp_path, replicas):
    found = run(tmp_path, replicas)
    (sums, *weights), (compiled_sums, *compiled_weights) = found["results"]
    # All but the positions, of which there is more padding.
    np.testing.assert_allclose(compiled_sums[:4], sums[:4], rtol=1e-5)
    rows = 4 if replicas == 2 else 3  # of the longer bucket: as many for each replica
    assert compiled_sums[4] == compiled_sums[5] == 3 * 6 * 4 + 2 * rows * 8
    np.testing.assert_allclose(compiled_sums[6:], sums[6:], rtol=1e-4)
    for weight, same in zip(weights, compiled_weights, strict=True):
        np.testing.assert_allclose(same, weight, atol=2e-5)
    assert [shape for shape, _ in found["shapes"]] == [[6, 4], [rows, 8]]
    assert all(seconds > 0 for _, seconds in found["shapes"])
    assert len(found["first"]) == 2 * replicas
    assert found["second"] == found["first"]  # the second epoch has no shape that is new


def test_dropout_compiles(tmp_path):
    (plain, *_), (compiled, *_) = run(tmp_path, dropout=0.1)["results"]
    assert np.isfinite(compiled).all()
    np.testing.assert_allclose(compiled[:2], plain[:2], rtol=0.1)
