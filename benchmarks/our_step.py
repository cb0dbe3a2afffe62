"""Runs this library's training step, for benchmarks/training.py.

The timed step is TrainingStep.run: a batch from tf.data, forward and backward pass, Adam, and the
sums for the training curves.
"""

from workers import model_config  # isort: skip  (first, as it makes the checkout importable)

import numpy as np
import step_clock
import tensorflow as tf

from keras_transformer.core.config import TrainingConfig
from keras_transformer.core.training.step import TrainingStep, zero_sums
from keras_transformer.core.training.strategy import make_strategy


def build(work):
    shape = (2, work.sentences, work.length)
    ids = np.random.default_rng(0).integers(4, work.vocab_size, size=shape).astype("int32")
    batches = iter(tf.data.Dataset.from_tensors(tuple(ids)).repeat())
    step = TrainingStep(model_config(work), TrainingConfig(), make_strategy("one_device"))
    one = tf.constant(1)

    def take_step():
        sums = step.run(batches, one, zero_sums())
        return tf.nest.map_structure(float, sums)  # waits for the step

    return take_step


def multiply(size):
    matrix = tf.random.normal([size, size])
    product = tf.function(lambda: tf.reduce_sum(tf.matmul(matrix, matrix)))
    return lambda: product().numpy()


if __name__ == "__main__":
    step_clock.main(build, multiply)
