"""The training step compiled by XLA, for packed batches, which all have the same shape.

XLA compiles each shape anew: with batches padded to ten shapes, each took 80 s on an H200.
Compilation runs in a thread, as Python handles signals only between TensorFlow's calls. A signal
then ends the run without this step; one to a single worker interrupts all, as none can take the
step without the others.
"""

import tensorflow as tf

from keras_transformer.core.config import TrainingConfig, TransformerConfig
from keras_transformer.core.training.step import TrainingStep


class XlaTrainingStep(TrainingStep):
    """A TrainingStep whose forward and backward passes are compiled by XLA.

    XLA compiles them again for each batch shape, which takes seconds to minutes. So it trains on
    packed rows, which contain several sentences each (model/packing.py): all batches then have one
    shape, with hardly any padding.
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
