"""The weights of an export: each stored once, as float32 or bfloat16, and computed with as float32.

The only place that decides what an exported graph reads where a layer reads a variable.
"""

import contextlib
import hashlib
from collections.abc import Callable

import keras
import tensorflow as tf


class Float32Copies(tf.saved_model.experimental.TrackableResource):
    """float32 copies of weights, which are not stored, but made when a SavedModel is loaded.

    They are found by name, and the name by their content: who loads a SavedModel again gets the
    copies that the process has already.
    """

    def __init__(self, weights: list[tf.Variable]):
        super().__init__()
        self._weights = weights
        digest = hashlib.sha256()
        for weight in weights:
            digest.update(tf.io.serialize_tensor(weight).numpy())
        self._name = digest.hexdigest()
        self._initialize()

    def _create_resource(self):
        # TensorFlow wants one handle. The copies have their own.
        return tf.raw_ops.VarHandleOp(dtype=tf.bool, shape=[], shared_name=self._name)

    def _initialize(self):
        for handle, weight in zip(self._handles(), self._weights, strict=True):
            value = tf.cast(weight, tf.float32)
            tf.raw_ops.AssignVariableOp(resource=handle, value=value)

    def _handles(self) -> list[tf.Tensor]:
        return [
            tf.raw_ops.VarHandleOp(
                dtype=tf.float32, shape=weight.shape, shared_name=f"{self._name}_{place}"
            )
            for place, weight in enumerate(self._weights)
        ]

    def read(self) -> list[tf.Tensor]:
        """Gives the copies in a graph."""
        return [
            tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
            for handle in self._handles()
        ]


def stored_weights(
    model: keras.Model, dtype: str
) -> tuple[list, Callable[[], contextlib.AbstractContextManager]]:
    """Prepares a model's weights for an export.

    Args:
        model: any Transformer.
        dtype: how they are stored, "float32" or "bfloat16". From bfloat16, half the size, float32
            copies are made on loading: computing in bfloat16 rounds more, and few CPUs are faster
            at it.

    Returns:
        What the exported tf.Module must hold; and what makes a context for tracing a graph, in
        which the model's layers read these weights.
    """
    # The variables alone: what else a Keras model would save is not needed.
    variables = model.trainable_variables
    if dtype == "float32":
        return [variable.value for variable in variables], contextlib.nullcontext
    narrow = [tf.Variable(tf.cast(variable.value, dtype)) for variable in variables]
    wide = Float32Copies(narrow)
    return [*narrow, wide], lambda: keras.StatelessScope(zip(variables, wide.read(), strict=True))
