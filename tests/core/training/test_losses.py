import sys

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.training import losses
from tests.processes import ROOT, run_python
from tests.refusals import refused


def numpy_loss(logits, labels, smoothing):
    """Cross-entropy between the smoothed targets, written out, and the softmax."""
    total, vocab_size = 0.0, logits.shape[-1]
    for row, label in zip(logits.astype("float64"), labels, strict=True):
        if label == 0:
            continue
        target = np.full(vocab_size, smoothing / vocab_size)
        target[label] += 1 - smoothing
        log_probabilities = row - row.max() - np.log(np.exp(row - row.max()).sum())
        total -= target @ log_probabilities
    return total


def cross_entropy(logits, labels, smoothing):
    """The sums over the tokens, with and without smoothing."""
    sums = [losses.LabelSmoothedCrossEntropy(each, "sum") for each in (smoothing, 0.0)]
    return [each(labels, logits) for each in sums]


def test_by_hand():
    # Uniform logits over 4: every distribution costs ln 4. Logits ln(3), 0, 0, 0: p = 1/2, 1/6.
    uniform = np.zeros((1, 4), "float32")
    smoothed, plain = cross_entropy(uniform, np.array([2]), 0.1)
    np.testing.assert_allclose([smoothed, plain], np.log(4), rtol=5e-6)
    skewed = np.array([[0, np.log(3), 0, 0]], "float32")
    smoothed, plain = cross_entropy(skewed, np.array([1]), 0.2)
    np.testing.assert_allclose(plain, np.log(2), rtol=5e-6)
    # 0.8 + 0.2 / 4 on the label, 0.05 on each of the others.
    np.testing.assert_allclose(smoothed, 0.85 * np.log(2) + 0.15 * np.log(6), rtol=5e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
def test_equals_numpy(smoothing):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(9, 7), scale=4).astype("float32")
    labels = np.array([1, 2, 0, 6, 5, 0, 3, 4, 1])
    smoothed, plain = cross_entropy(logits, labels, smoothing)
    np.testing.assert_allclose(smoothed, numpy_loss(logits, labels, smoothing), rtol=1e-5)
    np.testing.assert_allclose(plain, numpy_loss(logits, labels, 0.0), rtol=1e-5)


@pytest.mark.parametrize("rows", [0, 1, 5, 64])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_projected_loss_and_gradients_equal_the_plain_ones(rows, smoothing):
    rng = np.random.default_rng(1)
    states = tf.constant(rng.normal(size=(rows, 6)), tf.float32)
    matrix = tf.constant(rng.normal(size=(11, 6)), tf.float32)
    labels = tf.constant(rng.integers(0, 11, size=rows), tf.int32)

    def plain(states, matrix):
        logits = tf.matmul(states, matrix, transpose_b=True)
        return cross_entropy(logits, labels, smoothing)

    def projected(states, matrix):
        return losses.projected_cross_entropy(states, matrix, labels, smoothing)

    results = []
    for function in (plain, projected):
        with tf.GradientTape() as tape:
            tape.watch([states, matrix])
            smoothed, unsmoothed = function(states, matrix)
            scaled = 3 * smoothed
        results.append([smoothed, unsmoothed, *tape.gradient(scaled, [states, matrix])])
    for expected, found in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("shape", [(2, 1), (2,), (2, 3, 5), (1, 3)])
def test_labels_of_another_shape_are_refused(shape):
    loss = losses.LabelSmoothedCrossEntropy()
    logits = np.zeros((2, 3, 5), "float32")
    assert loss(np.ones((2, 3), "int32"), logits) > 0
    with refused("y_true", shape, about="(2, 3)"):
        loss(np.ones(shape, "int32"), logits)


def test_huge_logits_stay_finite():
    states = tf.constant([[1000.0, -1000.0]])
    matrix = tf.constant([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.5], [0.0, 0.0]])
    smoothed, plain = losses.projected_cross_entropy(states, matrix, tf.constant([1]), 0.0)
    np.testing.assert_allclose([smoothed, plain], 2000.0)


def test_a_step_holds_no_second_copy_of_all_logits():
    # Blocks: no tensor of the graph but one block's has vocab_size columns and more rows than that.
    rows, vocab_size = 800, 50

    @tf.function
    def step(states, matrix):
        with tf.GradientTape() as tape:
            tape.watch([states, matrix])
            smoothed, _ = losses.projected_cross_entropy(
                states, matrix, tf.ones([rows], tf.int32), 0.1
            )
        return tape.gradient(smoothed, [states, matrix])

    graph = step.get_concrete_function(tf.ones([rows, 4]), tf.ones([vocab_size, 4])).graph
    heights = [
        output.shape[0]
        for operation in graph.get_operations()
        for output in operation.outputs
        if output.shape.rank == 2 and output.shape[1] == vocab_size
    ]
    assert max(heights) == rows // losses.NUM_BLOCKS


# Prints by how many buffers of float32 [rows, V] the process grows at most while it computes a loss
# and its gradient, by the function that is named. All blocks may run at the same time, as on a
# machine of many cores; each of them with two threads, whatever this machine has.
MEMORY = """
import sys
from pathlib import Path
import tensorflow as tf
from keras_transformer.core.training import losses

tf.config.threading.set_inter_op_parallelism_threads(losses.NUM_BLOCKS)
tf.config.threading.set_intra_op_parallelism_threads(2)
rows, vocab_size = 2048, 16384
matrix = tf.random.stateless_normal([vocab_size, 16], [1, 2])

def plain(states, labels):
    logits = tf.matmul(states, matrix, transpose_b=True)
    smoothed = losses.LabelSmoothedCrossEntropy(0.1, "sum")(labels, logits)
    return smoothed, smoothed

def projected(states, labels):
    return losses.projected_cross_entropy(states, matrix, labels, 0.1)

def megabytes(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024

def buffers(loss):
    @tf.function
    def gradients(count):
        with tf.GradientTape() as tape:
            tape.watch(matrix)
            smoothed, _ = loss(tf.ones([count, 16]), tf.ones([count], tf.int32))
        return tape.gradient(smoothed, matrix)

    for count in (8, rows // 64):
        gradients(tf.constant(count)).numpy()
    before = megabytes("VmRSS")
    gradients(tf.constant(rows)).numpy()
    return (megabytes("VmHWM") - before) / (4 * rows * vocab_size / 2**20)

print(buffers({"projected": projected, "plain": plain}[sys.argv[1]]))
"""


def buffers(loss, folder):
    """In a process of its own: what one loss leaves allocated would hide what another needs."""
    code, output, errors = run_python("-c", MEMORY, loss, folder=folder, cwd=ROOT)
    assert code == 0, errors
    return float(output.splitlines()[-1])


@pytest.mark.slow  # the test above finds the blocks in the graph
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_loss_and_gradients_fit_in_one_buffer_beside_the_logits(tmp_path):
    assert buffers("projected", tmp_path) < 1.75  # the logits are one, and there is some noise
    assert buffers("plain", tmp_path) > 3  # so that the test can fail
