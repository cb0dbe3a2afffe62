"""One training step over a global batch, on any number of replicas (section 5).

TrainingStep reads from top to bottom: `run` takes several steps, `_step` takes one on all replicas,
`_replica_step` is one replica's part in it, `_gradients` and `_losses` are the backward and forward
passes over its rows. XlaTrainingStep is the same for packed batches, compiled by XLA.

The loss is divided by the tokens of the global batch, before the backward pass. Keras averages over
replicas, which gives more weight to the tokens of a replica with few of them; and a scaled sum over
thousands of tokens would overflow in float16. As every replica reads the same batch, batches do not
depend on the number of replicas, and the plain iterator can be saved, unlike a distributed one.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from keras_transformer.core.config import PAD_ID, TrainingConfig, TransformerConfig
from keras_transformer.core.model.transformer import Transformer, shift_right, teacher_forcing
from keras_transformer.core.training.adapters import add_adapters, freeze
from keras_transformer.core.training.checkpoint_files import StepSums
from keras_transformer.core.training.losses import (
    LabelSmoothedCrossEntropy,
    projected_cross_entropy,
)
from keras_transformer.core.training.optimizer import make_optimizer

# A batch: source int32 [B, S] and target int32 [B, T]. One trace serves all shapes.
BATCH_SIGNATURE = (tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None, None], tf.int32))


class LossesAndGradients(NamedTuple):
    """The result of the backward pass over some rows; a step sums over all rows."""

    smoothed_loss: tf.Tensor  # float32 scalar, summed over target tokens
    loss: tf.Tensor  # the same without label smoothing
    gradients: list[tf.Tensor]  # dense, one for each trainable variable


class TrainingStep:
    """A model, its optimizer, and the compiled function that trains them.

    Every replica receives the whole global batch, which is small, and processes its own rows: row n
    belongs to replica n mod R. So the batch and the loss are the same for any number of replicas.

    Args:
        model_config: the configuration of the model to build.
        training_config: see TrainingConfig.
        strategy: its scope holds all variables, and its replicas share the rows of each batch.

    Attributes:
        model: the Transformer, with an adapter if training_config.lora_rank is given.
        optimizer: see make_optimizer.
        total_steps: int32 variable, the number of steps in the whole run, as far as known, for a
            learning rate that decays to zero; see TrainingConfig.decay.
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
            self.model = Transformer(
                model_config, training_config.rematerialize, dtype=training_config.dtype_policy
            )
            if training_config.lora_rank is not None:
                add_adapters(self.model, training_config.lora_rank, training_config.lora_alpha)
            freeze(self.model, training_config.freeze)
            self.total_steps = tf.Variable(1, trainable=False, dtype=tf.int32)
            self.optimizer = make_optimizer(model_config.d_model, training_config, self.total_steps)
            self.optimizer.build(self.model.trainable_variables)

    # AutoGraph has nothing to convert here, but checking would double the tracing time.
    @tf.function(autograph=False, reduce_retracing=True)
    def run(self, iterator, steps: tf.Tensor, sums: StepSums) -> StepSums:
        """Takes optimizer steps. Splitting them among calls gives bit-identical results.

        Args:
            iterator: yields global batches, (source int32 [B, S], target int32 [B, T]), padded with
                zeros.
            steps: int32 scalar tensor, how many steps to take. (A Python number would cause a
                retrace for each value.)
            sums: float64 scalars, to which the steps' sums are added; see zero_sums.

        Returns:
            The new sums, float64 scalars.
        """

        def is_step(number, sums):
            return number < steps

        def take_step(number, sums):
            source, target = iterator.get_next()
            return number + 1, self._step(source, target, sums)

        _, sums = tf.while_loop(is_step, take_step, (tf.constant(0), sums))
        return sums

    @tf.function(input_signature=BATCH_SIGNATURE, autograph=False)
    def run_batch(self, source, target) -> StepSums:
        """Takes one step over a global batch of the caller's; returns its sums, float64 scalars."""
        return self._step(source, target, zero_sums())

    def _step(self, source, target, sums: StepSums) -> StepSums:
        """Takes one step over a global batch on all replicas, and adds it to the sums."""
        on_replicas = self.strategy.run(self._replica_step, args=(source, target))
        step = self.strategy.experimental_local_results(on_replicas)[0]  # equal on all replicas
        step = tf.nest.map_structure(lambda value: tf.cast(value, tf.float64), step)
        total = tf.nest.map_structure(tf.add, sums, step)
        return total._replace(skipped_in_row=(sums.skipped_in_row + 1) * step.skipped)

    def _replica_step(self, source, target) -> StepSums:
        """Does one replica's part of a step, and the update, which is the same on all replicas.

        Args:
            source: int32 [B, S], the global batch.
            target: int32 [B, T].

        Returns:
            float32 scalars for the whole global batch.
        """
        replica = tf.distribute.get_replica_context()
        batch = _count_tokens(source, target)
        tokens = tf.maximum(batch.target_tokens, 1.0)
        own_source = _rows_of_replica(source, replica)
        own_target = _rows_of_replica(target, replica)
        if self.config.accumulate_steps == 1:
            own = self._gradients(own_source, own_target, tokens)
        else:
            own = accumulate_gradients(
                self._gradients, own_source, own_target, tokens, self.config.accumulate_steps
            )
        total = replica.all_reduce(tf.distribute.ReduceOp.SUM, own)
        update = self.optimizer.apply(total.gradients, self.model.trainable_variables)
        taken = batch._replace(
            smoothed_loss=total.smoothed_loss, loss=total.loss, gradient_norm=update.gradient_norm
        )
        skipped = StepSums(skipped=1.0)
        return tf.nest.map_structure(
            lambda taken, skipped: tf.where(update.applied, taken, skipped), taken, skipped
        )

    def _gradients(self, source, target, tokens) -> LossesAndGradients:
        """Computes losses and gradients for some rows of the batch.

        Args:
            source: int32 [b, S], the rows.
            target: int32 [b, T].
            tokens: float32 scalar, the number of target tokens in the global batch, without
                padding.

        Returns:
            Losses summed over the rows, and gradients of the smoothed loss, divided by `tokens` and
            scaled for the optimizer.
        """
        variables = [variable.value for variable in self.model.trainable_variables]
        with tf.GradientTape() as tape:
            smoothed_loss, loss = self._losses(source, target)
            objective = self.optimizer.scale_loss(smoothed_loss / tokens)
        gradients = tape.gradient(objective, variables)
        dense_gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
        return LossesAndGradients(smoothed_loss, loss, dense_gradients)

    def _losses(self, source, target) -> tuple[tf.Tensor, tf.Tensor]:
        """Sums the loss over the tokens of some rows, with and without label smoothing."""
        states, labels = self._states_and_labels(source, target)
        matrix = tf.cast(self.model.logits_embedding.embeddings, states.dtype)  # [V, D]
        bias = self.model.logits_embedding.bias
        if bias is not None:  # it becomes another column of the matrix, and every state ends in 1
            states = tf.pad(states, [[0, 0], [0, 1]], constant_values=1)
            matrix = tf.concat([matrix, tf.cast(bias, states.dtype)[:, None]], axis=1)
        return projected_cross_entropy(states, matrix, labels, self.config.label_smoothing)

    def _states_and_labels(self, source, target) -> tuple[tf.Tensor, tf.Tensor]:
        """Runs the model, and selects the R positions without padding: only these need logits.

        Returns:
            The decoder's states [R, D], and labels int32 [R].
        """
        inputs = {"source": source, "target": shift_right(target)}
        states = self.model.states(inputs, training=True)  # [B, T, D]
        not_padding = tf.not_equal(target, PAD_ID)
        return tf.boolean_mask(states, not_padding), tf.boolean_mask(target, not_padding)

    @tf.function(input_signature=BATCH_SIGNATURE, autograph=False)
    def held_out_loss(self, source, target):
        """Sums the loss over a batch's tokens, without label smoothing or dropout: float32."""
        inputs, labels = teacher_forcing(source, target)
        return LabelSmoothedCrossEntropy(0.0, "sum")(labels, self.model(inputs, training=False))

    @property
    def trained_parameters(self) -> int:
        """The number of trainable parameters, without frozen parts."""
        return sum(math.prod(variable.shape) for variable in self.model.trainable_variables)

    def rates(self) -> dict[str, float]:
        """Returns the learning rate of the last update, and with float16 the loss scale."""
        rates = {"learning_rate": float(self.optimizer.last_rate())}
        if self.optimizer.scaled:
            scale = self.optimizer.loss_scale.value
            rates["loss_scale"] = float(tf.convert_to_tensor(scale))
        return rates


def zero_sums() -> StepSums:
    """Returns the initial sums, as tensors."""
    return as_tensors(StepSums())


def as_tensors(sums: StepSums) -> StepSums:
    """Converts the sums to float64 scalars, for `run`."""
    return tf.nest.map_structure(lambda value: tf.constant(value, tf.float64), sums)


def _count_tokens(source, target) -> StepSums:
    """Counts the tokens and positions in a global batch: float32 scalars. All other sums are 0."""
    target_tokens = tf.math.count_nonzero(tf.not_equal(target, PAD_ID))
    source_tokens = tf.math.count_nonzero(tf.not_equal(source, PAD_ID))
    return StepSums(
        target_tokens=tf.cast(target_tokens, tf.float32),
        source_tokens=tf.cast(source_tokens, tf.float32),
        target_positions=tf.cast(tf.size(target), tf.float32),
        source_positions=tf.cast(tf.size(source), tf.float32),
    )


def _rows_of_replica(ids, replica):
    """Returns the rows n of a batch, int32 [B, L], with n mod R equal to the replica's number."""
    return ids[replica.replica_id_in_sync_group :: replica.num_replicas_in_sync]


class XlaTrainingStep(TrainingStep):
    """A TrainingStep whose forward and backward passes are compiled by XLA.

    XLA compiles them again for each batch shape, which takes seconds to minutes. So it trains on
    packed rows, which contain several sentences each (model/packing.py): all batches then have one
    shape, with hardly any padding.
    Compilation runs in a thread, as Python handles signals only between TensorFlow's calls; a
    signal then ends the run without this step, and one to a single worker interrupts all.
    """

    def __init__(
        self,
        model_config: TransformerConfig,
        training_config: TrainingConfig,
        strategy: tf.distribute.Strategy,
    ):
        super().__init__(model_config, training_config, strategy)
        self.forget()

    def forget(self) -> None:
        """Makes the next `run` trace and compile anew; TensorFlow would repeat an earlier error."""
        self._gradients = tf.function(super()._gradients, autograph=False, jit_compile=True)
        run = super().run.python_function
        self.run = tf.function(run, autograph=False, reduce_retracing=True)

    def _states_and_labels(self, source, target):
        """Runs the model on packed rows. Returns all positions: XLA needs a fixed number of them.

        Returns:
            The decoder's states [B T, D], and labels int32 [B T], 0 at padding.
        """
        states = self.model.packed_states(source, target, training=True)  # [B, T, D]
        return tf.reshape(states, [-1, states.shape[-1]]), tf.reshape(target, [-1])


def accumulate_gradients(
    gradients_of: Callable, source: tf.Tensor, target: tf.Tensor, tokens: tf.Tensor, parts: int
):
    """Sums losses and gradients over parts of a batch, computed one after another.

    Row n belongs to part n mod `parts`.

    Args:
        gradients_of: a function of (source, target, tokens) that returns a nested structure of
            tensors, as in TrainingStep: sums over the given rows.
        source: int32 [B, S].
        target: int32 [B, T].
        tokens: float32 scalar, passed through: the divisor of all gradients.
        parts: 2 or more.

    Returns:
        The structure from `gradients_of`, summed over the parts.
    """

    def gradients_of_part(number):
        return gradients_of(source[number::parts], target[number::parts], tokens)

    def is_part(number, total):
        return number < parts

    def add_part(number, total):
        return number + 1, tf.nest.map_structure(tf.add, total, gradients_of_part(number))

    first = gradients_of_part(0)
    _, total = tf.while_loop(is_part, add_part, (tf.constant(1), first))
    return total
