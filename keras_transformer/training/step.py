"""One optimizer step over a global batch, on any number of replicas, compiled once."""

import bisect
import fnmatch
import time
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from keras_transformer.config import PAD_ID, TrainingConfig, TransformerConfig
from keras_transformer.errors import require
from keras_transformer.model.transformer import Transformer, shift_right, teacher_forcing
from keras_transformer.training.losses import LabelSmoothedCrossEntropy, projected_cross_entropy
from keras_transformer.training.optimizer import make_optimizer
from keras_transformer.training.run_state import SUMS

_IDS = tf.TensorSpec([None, None], tf.int32)
Shape = tuple[int, int]  # rows, length of both sides


def bucket_shapes(lengths: Sequence[int], tokens_per_batch: int, parts: int = 1) -> list[Shape]:
    """The shapes for rising lengths, of which the last is at least that of every sentence.

    tokens_per_batch bounds rows x length, and rows are rounded up to a multiple of `parts`.
    """
    return [(-(-(tokens_per_batch // length) // parts) * parts, length) for length in lengths]


def pad_to_bucket(shapes: Sequence[Shape], source: tf.Tensor, target: tf.Tensor) -> list[tf.Tensor]:
    """Pads an eager batch, int32 [b, S] and [b, T], to [B, L], the smallest shape that holds it."""
    longer = max(source.shape[1], target.shape[1])
    rows, length = shapes[bisect.bisect_left(shapes, longer, key=lambda shape: shape[1])]
    sides = (source, target)
    return [tf.pad(s, [[0, rows - s.shape[0]], [0, length - s.shape[1]]]) for s in sides]


def freeze(model: Transformer, names: str) -> None:
    """Takes variables out of training: those whose path has one of `names`, which commas separate.

    Names may be several parts of a path, and patterns: "embedding,encoder/layer_[01]". Raises
    InputError if one of them names nothing, or nothing is left to train.
    """
    paths = {f"/{variable.path}/": variable for variable in model.weights}
    parts = dict.fromkeys(part for path in paths for part in path.split("/")[1:-2])
    for name in filter(None, names.split(",")):
        found = fnmatch.filter(paths, f"*/{name}/*")
        require(found != [], f"--freeze must name parts of the model ({', '.join(parts)})", name)
        for path in found:
            paths[path].trainable = False
    require(model.trainable_variables != [], "--freeze must leave something to train", names)


class TrainingStep:
    """Model, optimizer, and the compiled function that moves both on.

    Every replica is handed the whole global batch, which is small, and works on its own rows: row
    n belongs to replica n mod R, and of these, to accumulation part (n div R) mod A. So the batch,
    its shape and the loss are the same for any number of replicas and parts.

    With `lengths`, which batches are cut by, XLA compiles forward and backward pass, for seconds to
    minutes for each shape; so batches are padded to the `shapes` of these lengths.

    Attributes:
        shapes: those of `bucket_shapes`; none without XLA.
        total_steps: int32 variable, the steps of the run as far as they are known: see `decay`.
        compiled_shapes: {(rows, length): seconds of its first step}, filled as shapes come up.
    """

    def __init__(
        self,
        model_config: TransformerConfig,
        training_config: TrainingConfig,
        strategy: tf.distribute.Strategy,
        lengths: Sequence[int] | None = None,
    ):
        self.config, self.strategy = training_config, strategy
        parts = strategy.num_replicas_in_sync * training_config.accumulate_steps
        self.shapes = bucket_shapes(lengths or [], training_config.tokens_per_batch, parts)
        self.compiled_shapes: dict[Shape, float] = {}
        if self.shapes:
            self._gradients = tf.function(self._gradients, autograph=False, jit_compile=True)
            signature = [_IDS, _IDS, tf.TensorSpec([len(SUMS)], tf.float64)]
            self._step = tf.function(self._add_step, signature, autograph=False)
        with strategy.scope():
            self.model = Transformer(
                model_config, training_config.rematerialize, dtype=training_config.dtype_policy
            )
            freeze(self.model, training_config.freeze)
            self.total_steps = tf.Variable(1, trainable=False, dtype=tf.int32)
            of_rate = (model_config.d_model, training_config, self.total_steps)
            self.optimizer = make_optimizer(*of_rate)
            self.optimizer.build(self.model.trainable_variables)

    def rates(self) -> dict[str, float]:
        """The learning rate of the next update, and for float16 the scale of the loss."""
        rates = {"learning_rate": self.optimizer.learning_rate}
        if self.optimizer.scaled:
            rates["loss_scale"] = self.optimizer.loss_scale.value
        return {name: float(tf.convert_to_tensor(value)) for name, value in rates.items()}

    def run(self, iterator, steps: int, sums: np.ndarray | None = None) -> tf.Tensor:
        """Takes optimizer steps; to the last bit, it does not matter how calls divide them.

        Args:
            iterator: of global batches, (source int32 [B, S], target int32 [B, T]), zeros padding.
            steps: how many.
            sums: float64 [len(SUMS)] to go on from; 0 by default.

        Returns:
            `sums` with those of the steps.
        """
        sums = tf.constant(np.zeros(len(SUMS)) if sums is None else sums)
        if not self.shapes:
            return self._steps(iterator, tf.constant(steps), sums)
        for _ in range(steps):
            source, target = pad_to_bucket(self.shapes, *next(iterator))
            begun = time.monotonic()
            sums = self._step(source, target, sums)
            shape = tuple(source.shape)
            if shape not in self.compiled_shapes:
                sums.numpy()  # waits
                self.compiled_shapes[shape] = time.monotonic() - begun
        return sums

    @tf.function(input_signature=[_IDS, _IDS], autograph=False)
    def held_out_loss(self, source, target):
        """float32: the loss without label smoothing and dropout, summed over a batch's tokens."""
        inputs, labels = teacher_forcing(source, target)
        return LabelSmoothedCrossEntropy(0.0, "sum")(labels, self.model(inputs, training=False))

    # There is nothing for AutoGraph to convert, and looking takes it as long as all the tracing.
    @tf.function(autograph=False, reduce_retracing=True)
    def _steps(self, iterator, steps, sums):
        def step(number, sums):
            return number + 1, self._add_step(*iterator.get_next(), sums)

        return tf.while_loop(lambda number, _: number < steps, step, (tf.constant(0), sums))[1]

    def _add_step(self, source, target, sums):
        """Takes a step over a global batch and adds what is summed of it."""
        of_replicas = self.strategy.run(self._replica_step, args=(source, target))  # all the same
        of_step = tf.cast(self.strategy.experimental_local_results(of_replicas)[0], tf.float64)
        in_row = (sums[-1:] + 1) * of_step[-1:]
        return tf.concat([sums[:-1] + of_step, in_row], axis=0)

    def _replica_step(self, source, target):
        """float32 [len(SUMS) - 1]: all SUMS of a step but the last."""
        context = tf.distribute.get_replica_context()
        replicas, parts = context.num_replicas_in_sync, self.config.accumulate_steps
        first = context.replica_id_in_sync_group
        tokens = [tf.math.count_nonzero(tf.not_equal(ids, PAD_ID)) for ids in (target, source)]
        positions = [tf.size(ids, tf.int64) for ids in (target, source)]
        counts = tf.cast(tf.stack([*tokens, *positions]), tf.float32)

        def part(number):
            rows = slice(first + replicas * number, None, replicas * parts)
            return self._gradients(source[rows], target[rows], tf.maximum(counts[0], 1.0))

        def add_part(number, *total):
            return number + 1, *tf.nest.map_structure(tf.add, total, part(number))

        losses, gradients = part(0)
        if parts > 1:
            _, losses, gradients = tf.while_loop(
                lambda number, *_: number < parts, add_part, (tf.constant(1), losses, gradients)
            )
        losses, *gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, [losses, *gradients])
        norm, updated = self.optimizer.apply(gradients, self.model.trainable_variables)
        sums = tf.concat([losses, counts, [norm, 0.0]], axis=0)
        skipped = tf.one_hot(len(SUMS) - 2, len(SUMS) - 1)
        return tf.where(updated, sums, skipped)

    def _gradients(self, source, target, tokens):
        """Sums both losses over a part of the batch, int32 [b, S] and [b, T].

        Returns:
            float32 [2], and the dense gradients of the smoothed loss, scaled for the optimizer and
            divided by `tokens`: float32 scalar, non-padding target tokens of the global batch.
        """
        not_padding = tf.not_equal(target, PAD_ID)
        with tf.GradientTape() as tape:
            inputs = {"source": source, "target": shift_right(target)}
            states = self.model.states(inputs, training=True)  # [B, T, D]
            if not self.shapes:
                # Padding takes no part in the loss: its logits are not computed.
                states = tf.boolean_mask(states, not_padding)  # [R, D]
                labels = tf.boolean_mask(target, not_padding)  # [R]
            else:  # XLA knows no dynamic shapes
                states = tf.reshape(states, [-1, states.shape[-1]])  # [B T, D]
                labels = tf.reshape(target, [-1])  # [B T]
            matrix = tf.cast(self.model.logits_embedding.embeddings, states.dtype)
            bias = self.model.logits_embedding.bias
            if bias is not None:  # one more column, which a 1 in every state meets
                states = tf.pad(states, [[0, 0], [0, 1]], constant_values=1)
                matrix = tf.concat([matrix, tf.cast(bias, states.dtype)[:, None]], axis=1)
            smoothing = self.config.label_smoothing
            smoothed, plain = projected_cross_entropy(states, matrix, labels, smoothing)
            scaled = self.optimizer.scale_loss(smoothed / tokens)
        gradients = tape.gradient(scaled, [v.value for v in self.model.trainable_variables])
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]  # dense
        return tf.stack([smoothed, plain]), gradients
