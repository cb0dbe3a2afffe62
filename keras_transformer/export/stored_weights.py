"""The weights of an export: each stored once, as float32 or bfloat16, and computed with as float32.

The only place that decides what an exported graph reads where a layer reads a variable.
"""

import contextlib
import hashlib
from collections.abc import Callable

import keras
import tensorflow as tf

DTYPES = ("float32", "bfloat16")


class LoadedTensors(tf.saved_model.experimental.TrackableResource):
    """Tensors that are not stored, but computed from what is when a SavedModel is loaded.

    Args:
        compute: gives a list of them.
        name: different from that of any others in the process, unless those are equal. Who loads a
            SavedModel again gets the tensors of before: they stay with the process.
    """

    def __init__(self, compute: Callable[[], list[tf.Tensor]], name: str):
        super().__init__()
        self._compute, self._name = compute, name
        self._specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in compute()]
        self._initialize()

    def _create_resource(self):
        # TensorFlow wants one handle. The tensors have their own, found by name.
        return tf.raw_ops.VarHandleOp(dtype=tf.bool, shape=[], shared_name=self._name)

    def _initialize(self):
        for handle, value in zip(self._handles(), self._compute(), strict=True):
            tf.raw_ops.AssignVariableOp(resource=handle, value=value)

    def _handles(self) -> list[tf.Tensor]:
        return [
            tf.raw_ops.VarHandleOp(
                dtype=spec.dtype, shape=spec.shape, shared_name=f"{self._name}_{place}"
            )
            for place, spec in enumerate(self._specs)
        ]

    def read(self) -> list[tf.Tensor]:
        """Gives the tensors in a graph."""
        return [
            tf.raw_ops.ReadVariableOp(resource=handle, dtype=spec.dtype)
            for handle, spec in zip(self._handles(), self._specs, strict=True)
        ]


def stored_weights(
    model: keras.Model, dtype: str
) -> tuple[list, Callable[[], contextlib.AbstractContextManager]]:
    """Prepares a model's weights for an export.

    Args:
        model: any Transformer.
        dtype: how they are stored, one of DTYPES. From bfloat16, half the size, float32 copies are
            made on loading: computing in bfloat16 rounds more, and few CPUs are faster at it.

    Returns:
        What the exported tf.Module must hold; and what makes a context for tracing a graph, in
        which the model's layers read these weights.
    """
    # The variables alone: what else a Keras model would save is not needed.
    variables = model.trainable_variables
    if dtype == "float32":
        return [variable.value for variable in variables], contextlib.nullcontext
    narrow = [tf.Variable(tf.cast(variable.value, dtype)) for variable in variables]
    digest = hashlib.sha256()
    for weight in narrow:
        digest.update(tf.io.serialize_tensor(weight).numpy())
    wide = LoadedTensors(
        lambda: [tf.cast(weight, tf.float32) for weight in narrow], digest.hexdigest()
    )

    def context():
        return keras.StatelessScope(list(zip(variables, wide.read(), strict=True)))

    return [*narrow, wide], context
