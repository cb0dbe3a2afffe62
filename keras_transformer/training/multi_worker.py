"""TensorFlow's strategy for several workers, with what it does not let be set from outside."""

import signal
import threading

import tensorflow as tf
from tensorflow.compiler.xla.tsl.protobuf import coordination_config_pb2
from tensorflow.python.distribute import collective_all_reduce_strategy as collective
from tensorflow.python.eager import context

from keras_transformer.errors import InputError, reason
from keras_transformer.training.addresses import Addresses

_START_SECONDS = 120  # between the servers of workers that are all there
# TensorFlow's own idea of a dead worker, 10 s without a sign of life, ends a run for a machine that
# was paused or swapped. training/cluster.py notices a death at once; this is only to come later.
_SILENCE_SECONDS = 3600


def multi_worker_strategy(
    addresses: Addresses, replicas: int | None = None
) -> tf.distribute.Strategy:
    """Makes the strategy, and waits for those of the other workers; see make_strategy."""
    workers = len(addresses.workers)
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({"worker": addresses.workers}),
        task_type="worker",
        task_id=addresses.index,
        num_accelerators={"GPU": len(tf.config.list_physical_devices("GPU"))},
        rpc_layer="grpc",
    )
    context.context().configure_coordination_service(
        "standalone",
        "/job:worker/replica:0/task:0",
        cluster_register_timeout_in_ms=_START_SECONDS * 1000,
        heartbeat_timeout_in_ms=_SILENCE_SECONDS * 1000,
        coordinated_jobs=[coordination_config_pb2.CoordinatedJob(name="worker", num_tasks=workers)],
    )
    # Without it, a worker that dies here would leave the others waiting for an hour.
    context.context().coordination_service.cluster_register_with_barrier = True
    try:
        if replicas is None:
            return tf.distribute.MultiWorkerMirroredStrategy(resolver)
        return _OnLogicalDevices(resolver, replicas)
    except (tf.errors.OpError, RuntimeError) as error:
        rule = "--strategy=multi_worker must be able to run TensorFlow's servers"
        own = addresses.workers[addresses.index]
        raise InputError(f"{rule}. Received: {reason(error)} (at {own})") from None
    finally:
        # TensorFlow has taken SIGTERM for itself.
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))


class _OnLogicalDevices(collective.CollectiveAllReduceStrategy):
    """The same with several replicas on the CPU of each worker, where TensorFlow has one."""

    def __init__(self, resolver, replicas: int):
        tf.distribute.Strategy.__init__(self, _Extended(self, resolver, replicas))


class _Extended(collective.CollectiveAllReduceExtended):
    def __init__(self, strategy, resolver, replicas: int):
        self._replicas = replicas
        options = tf.distribute.experimental.CommunicationOptions()
        super().__init__(strategy, resolver, options)

    def _initialize_local_devices(self, cluster_resolver, worker_device):
        return tuple(f"{worker_device}/device:CPU:{n}" for n in range(self._replicas)), "CPU"
