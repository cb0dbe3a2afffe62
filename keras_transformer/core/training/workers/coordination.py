"""TensorFlow's coordination service: a server that workers find each other by, and its store.

All private TensorFlow names that workers need are in this file. What TensorFlow offers publicly is
not enough: `tf.distribute` starts the service with fixed time limits, under which a lone worker
waits for more than ten minutes, and offers neither the store nor the check of a single worker.
Its MultiWorkerMirroredStrategy has only one replica on a CPU.

A thread of every worker checks each second that the others are alive: TensorFlow's other means
notice a killed process only after 20 seconds of missing heartbeats, or cannot be used after a
failure.
"""

import contextlib

import tensorflow as tf
from tensorflow.compiler.xla.tsl.protobuf import coordination_config_pb2
from tensorflow.python.distribute import collective_all_reduce_strategy as collective
from tensorflow.python.eager import context


def task(worker: int | str) -> str:
    """Returns TensorFlow's name of a worker."""
    return f"/job:worker/replica:0/task:{worker}"


def configure(workers: int, connect_milliseconds: int, silent_milliseconds: int) -> None:
    """Sets up the service, which the strategy starts at worker 0.

    Args:
        workers: how many there are.
        connect_milliseconds: how long they wait for each other.
        silent_milliseconds: the time without an answer after which a worker counts as dead.
    """
    job = coordination_config_pb2.CoordinatedJob(name="worker", num_tasks=workers)
    context.context().configure_coordination_service(
        "standalone",
        task(0),
        cluster_register_timeout_in_ms=connect_milliseconds,
        heartbeat_timeout_in_ms=silent_milliseconds,
        coordinated_jobs=[job],
    )
    context.context().coordination_service.cluster_register_with_barrier = True


def write(key: str, value: str) -> None:
    """Writes to the store; a key keeps its first value. Does nothing if the service has ended."""
    with contextlib.suppress(tf.errors.OpError):
        context.context().set_config_key_value(key, value)


def read(key: str, milliseconds: int) -> str | None:
    """Waits for a value in the store; returns None if there is none, or the service has ended."""
    with contextlib.suppress(tf.errors.OpError):
        return context.context().get_config_key_value(key, milliseconds)


def delete(key: str) -> None:
    """Removes a key from the store."""
    context.context().delete_config_key_value(key)


def answers(worker: int, milliseconds: int) -> bool:
    """Whether a worker answers within this time."""
    with contextlib.suppress(tf.errors.OpError):
        context.context().check_collective_ops_peer_health(task(worker), milliseconds)
        return True
    return False


def abort_sums(message: str) -> None:
    """Ends with an error the sums over replicas that this worker is waiting for."""
    context.context().abort_collective_ops(tf.errors.ABORTED, message)


class OnLogicalDevices(collective.CollectiveAllReduceStrategy):
    """MultiWorkerMirroredStrategy with several replicas on each worker's CPU, instead of one.

    Args:
        resolver: the cluster, with the number of replicas of a worker as its number of "CPU"
            accelerators.
    """

    def __init__(self, resolver: tf.distribute.cluster_resolver.ClusterResolver):
        options = tf.distribute.experimental.CommunicationOptions()
        tf.distribute.Strategy.__init__(self, _Extended(self, resolver, options))


class _Extended(collective.CollectiveAllReduceExtended):
    def _initialize_local_devices(self, cluster_resolver, worker_device):
        replicas = cluster_resolver.num_accelerators()["CPU"]
        return tuple(f"{worker_device}/device:CPU:{n}" for n in range(replicas)), "CPU"
