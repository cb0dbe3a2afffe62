"""Half precision on two replicas: steps agree with float32's, and are skipped by both or neither.

In a process of its own, as logical devices must be made before TensorFlow starts.
"""

import json

import numpy as np
import pytest

from tests.processes import ROOT, run_python

pytestmark = pytest.mark.slow  # test_step.py skips the steps of one replica

PROGRAM = """
import json
import numpy as np
from keras_transformer.core.config import TrainingConfig, TransformerConfig
from keras_transformer.core.training.step import TrainingStep, zero_sums
from keras_transformer.core.training.strategy import make_repeatable, make_strategy
import tensorflow as tf

strategy = make_strategy("mirrored", 2)
config = TransformerConfig(vocab_size=12, num_layers=1, d_model=8, d_ff=8, num_heads=2,
                           dropout=0.0, tie_embeddings=False)

def batches(*last):
    ids = np.random.default_rng(0).integers(4, 11, size=(5, 3, 4)).astype("int32")
    for sides in [*zip(ids, ids), *last]:
        yield sides

def iterator(*last):
    spec = (tf.TensorSpec([None, None], tf.int32),) * 2
    return iter(tf.data.Dataset.from_generator(lambda: batches(*last), output_signature=spec))

def of_replicas(variable):
    values = strategy.experimental_local_results(variable.value)
    return [value.numpy().astype("float64").ravel().tolist() for value in values]

def state(step):
    return [of_replicas(v) for v in [*step.model.trainable_variables, *step.optimizer._momentums]]

for precision in ("float32", "float16", "bfloat16"):
    make_repeatable(3, deterministic=True)
    step = TrainingStep(config, TrainingConfig(warmup_steps=20, precision=precision), strategy)
    matrix = step.model.embedding.embeddings
    spoiled = matrix.numpy()
    spoiled[11] = np.nan
    matrix.assign(spoiled)
    # Row 1, and so id 11, is the second replica's.
    bad = tuple(np.array(ids, "int32") for ids in ([[4, 5], [11, 2]], [[4, 2], [5, 2]]))
    batch = iterator(bad)
    sums = [float(value) for value in step.run(batch, tf.constant(5), zero_sums())]
    before = state(step)
    skipped = [float(value) for value in step.run(batch, tf.constant(1), zero_sums())]
    found = {
        "sums": sums, "before": before, "skipped": skipped, "after": state(step),
        "iterations": of_replicas(step.optimizer.iterations),
        "scales": of_replicas(step.optimizer.loss_scale) if precision == "float16" else None,
    }
    print(json.dumps([precision, found]), flush=True)
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """{precision: what the program finds}; without the last where that has ended it.

    With ONEDNN_MAX_CPU_ISA=AVX2, TensorFlow dies of bfloat16.
    """
    folder = tmp_path_factory.mktemp("precision")
    code, output, errors = run_python("-c", PROGRAM, folder=folder, cwd=ROOT)
    found = dict(json.loads(line) for line in output.splitlines() if line.startswith("["))
    assert code == 0 or set(found) == {"float32", "float16"}, errors
    return found


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_steps_agree_with_float32(found, precision):
    sums, expected = found[precision]["sums"], found["float32"]["sums"]
    assert sums[0] != expected[0]  # it is another precision
    np.testing.assert_allclose(sums[:2], expected[:2], rtol=0.02)
    np.testing.assert_array_equal(sums[2:6], expected[2:6])
    np.testing.assert_allclose(sums[6], expected[6], rtol=0.05)
    np.testing.assert_array_equal(sums[7:], 0)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_a_gradient_of_one_replica_that_is_not_finite_skips_the_step_of_both(found, precision):
    of = found[precision]
    np.testing.assert_array_equal(of["skipped"], [0] * (len(of["skipped"]) - 2) + [1, 1])
    assert of["iterations"] == [[5.0], [5.0]]
    for old, new in zip(of["before"], of["after"], strict=True):
        np.testing.assert_array_equal(new, old)
        np.testing.assert_array_equal(new[0], new[1])
    if precision == "float16":
        assert of["scales"] == [[2.0**14]] * 2
