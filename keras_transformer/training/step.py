"""One optimizer step over a global batch, on any number of replicas, compiled once."""

import tensorflow as tf

from keras_transformer.config import PAD_ID, TrainingConfig, TransformerConfig
from keras_transformer.model.transformer import build_transformer, shift_right, states_model
from keras_transformer.training.losses import projected_cross_entropy
from keras_transformer.training.optimizer import make_optimizer

# What `TrainingStep.run` sums over its steps, in this order.
SUMS = (
    "smoothed_loss",  # over non-padding target tokens
    "loss",  # the same without smoothing
    "target_tokens",  # without padding
    "source_tokens",
    "target_positions",  # with padding
    "source_positions",
    "gradient_norm",  # of the mean loss over the global batch; summed over steps
)


class TrainingStep:
    """Model, optimizer, and the compiled function that moves both on.

    Every replica is handed the whole global batch, which is small, and works on its own rows: row
    n belongs to replica n mod R, and of these, to accumulation part (n div R) mod A. So the batch,
    its shape and the loss are the same for any number of replicas and parts.

    Args:
        model_config, training_config: what to build.
        strategy: where it runs; variables are made in its scope.
    """

    def __init__(
        self,
        model_config: TransformerConfig,
        training_config: TrainingConfig,
        strategy: tf.distribute.Strategy,
    ):
        self.config = training_config
        self.strategy = strategy
        with strategy.scope():
            self.model = build_transformer(model_config, training_config.precision)
            self.states = states_model(self.model)
            self.optimizer = make_optimizer(model_config.d_model, training_config)
            self.optimizer.build(self.model.trainable_variables)

    def learning_rate(self) -> float:
        """The rate of the next update."""
        return float(tf.convert_to_tensor(self.optimizer.learning_rate))

    @tf.function(reduce_retracing=True)
    def run(self, iterator, steps):
        """Takes `steps` optimizer steps.

        Args:
            iterator: of global batches, (source int32 [B, S], target int32 [B, T]), zeros padding.
            steps: int32 scalar tensor.

        Returns:
            float32 [len(SUMS)], the sums over the steps.
        """
        sums = tf.zeros([len(SUMS)])
        for _ in tf.range(steps):
            source, target = next(iterator)
            of_replicas = self.strategy.run(self._replica_step, args=(source, target))
            # The same on every replica.
            sums += self.strategy.experimental_local_results(of_replicas)[0]
        return sums

    def _replica_step(self, source, target):
        context = tf.distribute.get_replica_context()
        replicas, parts = context.num_replicas_in_sync, self.config.accumulate_steps
        first = context.replica_id_in_sync_group
        counts = _counts(source, target)

        def part(number):
            rows = slice(first + replicas * number, None, replicas * parts)
            return self._gradients(source[rows], target[rows], tokens=tf.maximum(counts[0], 1.0))

        losses, gradients = part(0)
        if parts > 1:
            _, losses, gradients = tf.while_loop(
                lambda number, *_: number < parts,
                lambda number, *total: (number + 1, *_add(total, part(number))),
                (tf.constant(1), losses, gradients),
            )
        losses, *gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, [losses, *gradients])
        norm = tf.linalg.global_norm(gradients) / self.optimizer.scale_loss(1.0)
        self.optimizer.apply(gradients, self.model.trainable_variables)
        return tf.concat([losses, counts, [norm]], axis=0)

    def _gradients(self, source, target, tokens):
        """The sums of both losses over a part of the batch, and the smoothed one's gradients.

        Args:
            source, target: int32 [b, S] and [b, T], rows of the part.
            tokens: float32 scalar, by which the gradients are divided: non-padding target tokens
                of the whole global batch.

        Returns:
            float32 [2], and dense gradients, one a trainable variable, scaled for the optimizer.
        """
        real = tf.not_equal(target, PAD_ID)
        with tf.GradientTape() as tape:
            inputs = {"source": source, "target": shift_right(target)}
            states = self.states(inputs, training=True)  # [B, T, D]
            # Padding takes no part in the loss: its logits are not computed.
            states = tf.boolean_mask(states, real)  # [R, D]
            labels = tf.boolean_mask(target, real)  # [R]
            matrix = self.model.get_layer("logits").matrix.value
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
