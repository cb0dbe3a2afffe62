"""Where training runs, and how far it is repeatable."""

import keras
import tensorflow as tf

from keras_transformer.errors import InputError


def make_strategy(name: str, replicas: int | None = None) -> tf.distribute.Strategy:
    """Makes the strategy that variables and steps live in.

    Must be called before TensorFlow touches a device where `replicas` is given.

    Args:
        name: "one_device", the first GPU or the CPU; or "mirrored", all GPUs of this machine.
        replicas: for "mirrored", so many logical CPU devices instead, so that it can be tried
            on any machine.

    Raises:
        InputError: for replicas without mirrored, or fewer than 1; for mirrored without a GPU.
    """
    if replicas is not None and name != "mirrored":
        raise InputError(f"--replicas must go with --strategy=mirrored. Received: {name}")
    if name == "one_device":
        return tf.distribute.get_strategy()
    if replicas is None:
        if not tf.config.list_physical_devices("GPU"):
            raise InputError(
                "--strategy=mirrored must find a GPU, or be given --replicas=N to run N replicas "
                "on the CPU. Received: no GPU"
            )
        return tf.distribute.MirroredStrategy()
    if replicas < 1:
        raise InputError(f"--replicas must be at least 1. Received: {replicas}")
    cpu = tf.config.list_physical_devices("CPU")[0]
    devices = [tf.config.LogicalDeviceConfiguration() for _ in range(replicas)]
    tf.config.set_logical_device_configuration(cpu, devices)
    return tf.distribute.MirroredStrategy([f"CPU:{n}" for n in range(replicas)])


def compiles(xla: str) -> bool:
    """Whether XLA compiles training steps: "on", "off", or "auto", which is on where a GPU is.

    On CPUs it gains nothing and compiles for 10 to 25 s a shape.
    """
    return xla == "on" or (xla == "auto" and bool(tf.config.list_physical_devices("GPU")))


def make_repeatable(seed: int, deterministic: bool) -> None:
    """Seeds weights and dropout; `deterministic` chooses operations that repeat bit for bit."""
    keras.utils.set_random_seed(seed)
    if deterministic:
        tf.config.experimental.enable_op_determinism()
