"""The training step compiled by XLA, which requires batches with few different shapes."""

import bisect
import time
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf
from absl import logging

from keras_transformer.config import TrainingConfig, TransformerConfig
from keras_transformer.training.step import BATCH_SIGNATURE, TrainingStep
from keras_transformer.training.step_sums import StepSums

_SUMS_SIGNATURE = StepSums(*[tf.TensorSpec([], tf.float64) for _ in StepSums._fields])


class BatchShape(NamedTuple):
    """The shape that a batch is padded to."""

    rows: int
    length: int  # of both sides


def bucket_shapes(
    lengths: Sequence[int], tokens_per_batch: int, parts: int = 1
) -> list[BatchShape]:
    """Lists the shapes that batches are padded to, one for each length.

    Args:
        lengths: padded lengths, ascending, the last one at least that of every sentence.
        tokens_per_batch: maximum of rows x length, before rounding up the rows.
        parts: rows are rounded up to a multiple of this, so that all parts of a batch (replicas x
            accumulate_steps) have equally many rows.
    """
    shapes = []
    for length in lengths:
        rows = tokens_per_batch // length
        rows_of_a_part = -(-rows // parts)  # rounded up
        shapes.append(BatchShape(rows_of_a_part * parts, length))
    return shapes


def pad_to_bucket(
    shapes: Sequence[BatchShape], source: tf.Tensor, target: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Pads an eager batch, int32 [b, S] and [b, T], to the smallest shape [B, L] that fits."""
    longer = max(source.shape[1], target.shape[1])
    shape = shapes[bisect.bisect_left(shapes, longer, key=lambda shape: shape.length)]
    return _padded(source, shape), _padded(target, shape)


def _padded(ids: tf.Tensor, shape: BatchShape) -> tf.Tensor:
    rows, length = ids.shape
    return tf.pad(ids, [[0, shape.rows - rows], [0, shape.length - length]])


class XlaTrainingStep(TrainingStep):
    """A TrainingStep whose forward and backward passes are compiled by XLA.

    XLA recompiles for each batch shape, which takes seconds to minutes. So batches are padded to
    `shapes` with a few lengths, and logits are computed at all positions, including padding, which
    does not contribute to the loss.

    Args:
        model_config: the configuration of the model to build.
        training_config: see TrainingConfig.
        strategy: its scope holds all variables, and its replicas share the rows of each batch.
        lengths: padded lengths, ascending, of the buckets; see `bucket_shapes`.

    Attributes:
        shapes: the shapes of all batches.
        compiled_shapes: {shape: seconds of its first step}, filled as shapes occur.
    """

    def __init__(
        self,
        model_config: TransformerConfig,
        training_config: TrainingConfig,
        strategy: tf.distribute.Strategy,
        lengths: Sequence[int],
    ):
        parts = strategy.num_replicas_in_sync * training_config.accumulate_steps
        self.compiled_shapes: dict[BatchShape, float] = {}
        self.shapes = bucket_shapes(lengths, training_config.tokens_per_batch, parts)
        super().__init__(model_config, training_config, strategy)

    def run(self, iterator, steps: tf.Tensor, sums: StepSums) -> StepSums:
        """Takes optimizer steps, each in a separate call.

        Args:
            iterator: yields global batches, (source int32 [B, S], target int32 [B, T]), padded with
                zeros.
            steps: int32 scalar, how many steps to take.
            sums: float64 scalars, to which the steps' sums are added; see zero_sums.

        Returns:
            The new sums, float64 scalars.
        """
        for _ in range(int(steps)):
            source, target = pad_to_bucket(self.shapes, *next(iterator))
            shape = BatchShape(*source.shape)
            started = time.monotonic()
            sums = self._compiled_step(source, target, sums)
            if shape not in self.compiled_shapes:
                sums.loss.numpy()  # waits until the step is done
                seconds = time.monotonic() - started
                self.compiled_shapes[shape] = seconds
                count = len(self.compiled_shapes)
                message = "XLA: %dx%d took %.1f s, compilation %d"
                logging.info(message, shape.rows, shape.length, seconds, count)
        return sums

    # With a signature, one trace serves all shapes; XLA compiles the inner part for each of them.
    @tf.function(input_signature=(*BATCH_SIGNATURE, _SUMS_SIGNATURE), autograph=False)
    def _compiled_step(self, source, target, sums):
        return self._step(source, target, sums)

    @tf.function(autograph=False, jit_compile=True)
    def _gradients(self, source, target, tokens):
        return super()._gradients(source, target, tokens)

    def _states_and_labels(self, states, target):
        """Returns all positions as rows: XLA does not support value-dependent shapes."""
        states = tf.reshape(states, [-1, states.shape[-1]])  # [B T, D]
        labels = tf.reshape(target, [-1])  # [B T]
        return states, labels
