"""Dropout that draws a different mask on each replica, with half the random bits.

A replica's number is added to the first word of the seed. The second word counts calls: adding the
number there would repeat an earlier mask of another replica.
"""

import keras
from keras import ops

from keras_transformer.support.errors import require


@keras.saving.register_keras_serializable(package="keras_transformer")
class Dropout(keras.layers.Dropout):
    """Sets each element to 0 with probability `rate` and divides the others by 1 - rate.

    It differs from keras.layers.Dropout in two ways, both on TensorFlow only. Under a tf.distribute
    strategy each replica draws its own mask; the Keras layer draws the same mask on all of them.
    And the mask uses 16 random bits per element instead of 32, because drawing them is one of the
    slower operations in a training step on a CPU. So `rate` is rounded to a multiple of 2^-16, and
    elements are divided by 1 minus the rounded rate.

    Args:
        rate: P_drop, in [0, 1].
        noise_shape: the shape of the mask, a tuple; None for that of `inputs`. A None in the tuple
            stands for that dimension of `inputs`, and 1 for elements that are dropped together.
        seed: an int, or None for a random seed.

    Call arguments:
        inputs: any shape, floating.
        training: whether to drop elements; without it, `inputs` are returned unchanged.

    Returns:
        The shape and dtype of `inputs`.

    Raises:
        InputError: when called, if `noise_shape` and `inputs` differ in their number of dimensions.

    Example:
        >>> layer = Dropout(0.1)
        >>> keras.ops.shape(layer(keras.random.normal((2, 10, 512)), training=True))
        (2, 10, 512)
    """

    def call(self, inputs, training=False):
        if not training or self.rate == 0:
            return inputs
        if self.rate == 1:
            return ops.zeros_like(inputs)
        if keras.backend.backend() != "tensorflow":
            return super().call(inputs, training=training)
        shape = self._mask_shape(ops.shape(inputs))
        keep, scale = keep_mask(shape, self.rate, self.seed_generator)
        return ops.where(keep, inputs * ops.cast(scale, inputs.dtype), 0)

    def _mask_shape(self, inputs_shape):
        if self.noise_shape is None:
            return inputs_shape
        rule = "must have as many dimensions as inputs"
        received = f"{self.noise_shape} and {len(inputs_shape)}"
        require(len(self.noise_shape) == len(inputs_shape), "noise_shape", rule, received)
        sizes = zip(self.noise_shape, inputs_shape, strict=True)
        return [size if fixed is None else fixed for fixed, size in sizes]


def keep_mask(shape, rate: float, seed_generator: keras.random.SeedGenerator):
    """Draws which elements dropout keeps, on TensorFlow.

    Args:
        shape: the shape of the mask.
        rate: the probability of dropping an element, below 1.
        seed_generator: provides the seed for this draw, and counts it.

    Returns:
        bool in `shape`, True for the elements to keep, and the factor to multiply them by.
    """
    import tensorflow as tf

    seed = seed_generator.next()  # [2]: the generator's own seed, and the number of this draw
    replica = tf.distribute.get_replica_context()
    if replica is not None and replica.num_replicas_in_sync > 1:
        # Added to the generator's seed: adding it to the number of the draw would repeat the mask
        # of another replica's earlier draw.
        replica_id = tf.cast(replica.replica_id_in_sync_group, seed.dtype)
        seed = seed + tf.stack([replica_id, tf.zeros_like(replica_id)])
    elements = tf.reduce_prod(shape)
    words = tf.random.stateless_uniform(
        [(elements + 1) // 2], tf.cast(seed, tf.int32), None, None, tf.int32, alg="philox"
    )
    draws = tf.reshape(tf.bitcast(words, tf.uint16), [-1])[:elements]  # two draws from each word
    threshold = min(round(rate * 2**16), 2**16 - 1)  # the largest 16-bit number
    keep = tf.reshape(draws, shape) >= threshold
    return keep, 2**16 / (2**16 - threshold)
