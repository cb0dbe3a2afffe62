"""One optimizer step over a global batch, on any number of replicas, compiled once."""

import time

import numpy as np
import tensorflow as tf

from keras_transformer.config import PAD_ID, TrainingConfig, TransformerConfig
from keras_transformer.model.transformer import Transformer, shift_right
from keras_transformer.training.buckets import Buckets, Shape
from keras_transformer.training.losses import projected_cross_entropy
from keras_transformer.training.optimizer import make_optimizer

# What `TrainingStep.run` sums over its steps, in this order. Of a step that is skipped, as its
# gradients are not finite, only that is counted.
SUMS = (
    "smoothed_loss",  # over non-padding target tokens
    "loss",  # the same without smoothing
    "target_tokens",  # without padding
    "source_tokens",
    "target_positions",  # with padding
    "source_positions",
    "gradient_norm",  # of the mean loss over the global batch; summed over steps
    "skipped",  # steps
    "skipped_in_row",  # no sum: the last steps, back to one that was not skipped
)
SUMS_SPEC = tf.TensorSpec([len(SUMS)], tf.float64)


class TrainingStep:
    """Model, optimizer, and the compiled function that moves both on.

    Every replica is handed the whole global batch, which is small, and works on its own rows: row
    n belongs to replica n mod R, and of these, to accumulation part (n div R) mod A. So the batch,
    its shape and the loss are the same for any number of replicas and parts.

    With `buckets`, XLA compiles forward and backward pass, once for each shape. Batches are then
    padded to these shapes, and padding takes part in the softmax, as XLA knows no dynamic shapes.

    Args:
        model_config, training_config: what to build.
        strategy: where it runs; variables are made in its scope.
        buckets: the shapes to compile for; None leaves XLA out.

    Attributes:
        compiled_shapes: {(rows, length): seconds of its first step}, filled as shapes come up.
    """

    def __init__(
        self,
        model_config: TransformerConfig,
        training_config: TrainingConfig,
        strategy: tf.distribute.Strategy,
        buckets: Buckets | None = None,
    ):
        self.config = training_config
        self.strategy = strategy
        self.buckets = buckets
        self.parts = strategy.num_replicas_in_sync * training_config.accumulate_steps
        self.compiled_shapes: dict[Shape, float] = {}
        self._gradients_of_part = self._gradients
        if buckets is not None:
            self._gradients_of_part = tf.function(
                self._gradients, autograph=False, jit_compile=True
            )
        with strategy.scope():
            self.model = Transformer(
                model_config, training_config.rematerialize, dtype=training_config.dtype_policy
            )
            self.optimizer = make_optimizer(model_config.d_model, training_config)
            self.optimizer.build(self.model.trainable_variables)

    @property
    def replicas(self) -> int:
        return self.strategy.num_replicas_in_sync

    def rates(self) -> dict[str, float]:
        """The learning rate of the next update, and for float16 the scale of the loss."""
        rates = {"learning_rate": self.optimizer.learning_rate}
        if self.optimizer.scaled:
            rates["loss_scale"] = self.optimizer.loss_scale.value
        return {name: float(tf.convert_to_tensor(value)) for name, value in rates.items()}

    def run(self, iterator, steps: int, sums: np.ndarray | None = None) -> tf.Tensor:
        """Takes `steps` optimizer steps.

        Args:
            iterator: of global batches, (source int32 [B, S], target int32 [B, T]), zeros padding.
            steps: how many.
            sums: float64 [len(SUMS)] to go on from. Summed so, they do not depend on how steps are
                parted among calls, to the last bit.

        Returns:
            float64 [len(SUMS)], the sums over the steps.
        """
        sums = np.zeros(len(SUMS)) if sums is None else sums
        if self.buckets is None:
            return self._steps(iterator, tf.constant(steps), tf.constant(sums))
        sums = tf.constant(sums)
        for _ in range(steps):
            source, target = self.buckets.pad(*next(iterator), self.parts)
            begun = time.monotonic()
            sums = self._step(source, target, sums)
            shape = tuple(source.shape)
            if shape not in self.compiled_shapes:
                sums.numpy()  # waits
                self.compiled_shapes[shape] = time.monotonic() - begun
        return sums

    # There is nothing for AutoGraph to convert, and looking takes it as long as all the tracing.
    @tf.function(autograph=False, reduce_retracing=True)
    def _steps(self, iterator, steps, sums):
        def step(number, sums):
            return number + 1, self._add_step(*iterator.get_next(), sums)

        return tf.while_loop(lambda number, _: number < steps, step, (tf.constant(0), sums))[1]

    @tf.function(
        input_signature=[*[tf.TensorSpec([None, None], tf.int32)] * 2, SUMS_SPEC], autograph=False
    )
    def _step(self, source, target, sums):
        return self._add_step(source, target, sums)

    def _add_step(self, source, target, sums):
        """Takes a step over a global batch, and adds what is summed of it."""
        of_replicas = self.strategy.run(self._replica_step, args=(source, target))
        # The same on every replica.
        of_step = self.strategy.experimental_local_results(of_replicas)[0]
        of_step = tf.cast(of_step, tf.float64)
        in_row = (sums[-1:] + 1) * of_step[-1:]
        return tf.concat([sums[:-1] + of_step, in_row], axis=0)

    def _replica_step(self, source, target):
        context = tf.distribute.get_replica_context()
        replicas, parts = context.num_replicas_in_sync, self.config.accumulate_steps
        first = context.replica_id_in_sync_group
        counts = _counts(source, target)

        def part(number):
            rows = slice(first + replicas * number, None, replicas * parts)
            return self._gradients_of_part(
                source[rows], target[rows], tokens=tf.maximum(counts[0], 1.0)
            )

        losses, gradients = part(0)
        if parts > 1:
            _, losses, gradients = tf.while_loop(
                lambda number, *_: number < parts,
                lambda number, *total: (number + 1, *_add(total, part(number))),
                (tf.constant(1), losses, gradients),
            )
        losses, *gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, [losses, *gradients])
        norm, updated = self.optimizer.apply(gradients, self.model.trainable_variables)
        sums = tf.concat([losses, counts, [norm, 0.0]], axis=0)
        skipped = tf.one_hot(len(SUMS) - 2, len(SUMS) - 1)
        return tf.where(updated, sums, skipped)

    def _gradients(self, source, target, tokens):
        """The sums of both losses over a part of the batch, and the smoothed one's gradients.

        Args:
            source, target: int32 [b, S] and [b, T], rows of the part.
            tokens: float32 scalar, by which the gradients are divided: non-padding target tokens
                of the whole global batch.

        Returns:
            float32 [2], and dense gradients, one a trainable variable, scaled for the optimizer.
        """
        not_padding = tf.not_equal(target, PAD_ID)
        with tf.GradientTape() as tape:
            inputs = {"source": source, "target": shift_right(target)}
            states = self.model.states(inputs, training=True)  # [B, T, D]
            if self.buckets is None:
                # Padding takes no part in the loss: its logits are not computed.
                states = tf.boolean_mask(states, not_padding)  # [R, D]
                labels = tf.boolean_mask(target, not_padding)  # [R]
            else:
                states = tf.reshape(states, [-1, states.shape[-1]])  # [B T, D]
                labels = tf.reshape(target, [-1])  # [B T]
            matrix = self.model.logits_embedding.matrix.value
            matrix = tf.cast(tf.convert_to_tensor(matrix), states.dtype)
            smoothed, plain = projected_cross_entropy(
                states, matrix, labels, self.config.label_smoothing
            )
            scaled = self.optimizer.scale_loss(smoothed / tokens)
        gradients = tape.gradient(scaled, [v.value for v in self.model.trainable_variables])
        losses = tf.stack([smoothed, plain])
        return losses, [tf.convert_to_tensor(gradient) for gradient in gradients]


def _counts(source, target):
    """float32 [4]: tokens of target and source, then positions of both, padding included."""
    counts = [
        tf.math.count_nonzero(tf.not_equal(target, PAD_ID)),
        tf.math.count_nonzero(tf.not_equal(source, PAD_ID)),
        tf.size(target, tf.int64),
        tf.size(source, tf.int64),
    ]
    return tf.cast(tf.stack(counts), tf.float32)


def _add(total, more):
    return tf.nest.map_structure(tf.add, total, more)
