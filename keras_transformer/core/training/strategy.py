"""Where training runs, and how reproducible it is."""

import os
from typing import TYPE_CHECKING

import keras
import tensorflow as tf

from keras_transformer.core.training.workers.addresses import Addresses
from keras_transformer.core.training.workers.lone_worker import LoneWorker
from keras_transformer.support.errors import require

if TYPE_CHECKING:  # private TensorFlow names, needed only with several workers
    from keras_transformer.core.training.workers.cluster import Cluster


def make_strategy(
    name: str,
    replicas: int | None = None,
    addresses: Addresses | None = None,
    connect_seconds: float = 300,
) -> tf.distribute.Strategy:
    """Makes the strategy for training a model. Must be called before any device is used.

    Args:
        name: "one_device", the first GPU or the CPU; "mirrored", all GPUs on this machine; or
            "multi_worker", the GPUs or CPUs of all workers. All workers must call this.
        replicas: number of logical CPU devices per worker instead of all GPUs, to try the last two
            on any machine.
        addresses: the workers, for "multi_worker".
        connect_seconds: how long to wait for all workers.

    Raises:
        InputError: if the arguments are incompatible, there is no GPU for "mirrored", workers are
            missing, or TensorFlow cannot start a server at this worker's address.
    """
    rule = "must be used with the strategy mirrored or multi_worker"
    require(replicas is None or name != "one_device", "replicas", rule, name)
    require(replicas is None or replicas >= 1, "replicas", "must be at least 1", replicas)
    if name == "one_device":
        return tf.distribute.get_strategy()
    may_use_cpu = replicas is not None or name == "multi_worker"
    has_device = may_use_cpu or bool(tf.config.list_physical_devices("GPU"))
    rule = "must not be mirrored without a GPU, unless replicas=N requests N replicas on the CPU"
    require(has_device, "strategy", rule, "no GPU")
    if replicas is not None:
        cpu = tf.config.list_physical_devices("CPU")[0]
        devices = [tf.config.LogicalDeviceConfiguration() for _ in range(replicas)]
        tf.config.set_logical_device_configuration(cpu, devices)
    if name == "multi_worker":
        from keras_transformer.core.training.workers.cluster import multi_worker_strategy

        return multi_worker_strategy(addresses, replicas, connect_seconds)
    devices = None if replicas is None else [f"CPU:{n}" for n in range(replicas)]
    return tf.distribute.MirroredStrategy(devices)


def uses_xla(xla: str, replicas: int | None = None) -> bool:
    """Whether XLA compiles the training step.

    Args:
        xla: "on", "off", or "auto", which is on with a GPU: there a compiled step is several times
            as fast. On a CPU it is not.
        replicas: see make_strategy.
    """
    if xla == "auto":
        return replicas is None and bool(tf.config.list_physical_devices("GPU"))
    return xla == "on"


def make_cluster(
    addresses: Addresses | None, model_dir: str | os.PathLike
) -> "Cluster | LoneWorker":
    """Makes the cluster of workers, once their strategy is made.

    Args:
        addresses: the workers, for "multi_worker"; None for any other strategy.
        model_dir: the model directory.
    """
    if addresses is None or len(addresses.workers) == 1:
        return LoneWorker()
    from keras_transformer.core.training.workers.cluster import Cluster

    return Cluster(addresses, model_dir)


def make_repeatable(seed: int, deterministic: bool) -> None:
    """Seeds weights and dropout.

    Args:
        seed: the seed for Python, NumPy and Keras.
        deterministic: whether to use deterministic operations, which are slower on GPUs.
    """
    keras.utils.set_random_seed(seed)
    if deterministic:
        tf.config.experimental.enable_op_determinism()
