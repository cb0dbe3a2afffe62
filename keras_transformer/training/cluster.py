"""The workers of a run: TensorFlow's strategy for them, what they agree on, how they end together.

TensorFlow sums gradients over all workers. Whatever else depends on a clock, a signal or a disk is
decided by worker 0, the chief; the others read it in the key-value store of TensorFlow's
coordination service, which the chief runs. All private names of TensorFlow are in this file.
"""

import _thread
import contextlib
import json
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf
from absl import logging
from tensorflow.compiler.xla.tsl.protobuf import coordination_config_pb2
from tensorflow.python.distribute import collective_all_reduce_strategy as collective
from tensorflow.python.eager import context

from keras_transformer.errors import InputError, reason, require
from keras_transformer.training.addresses import Addresses

_SILENCE_SECONDS = 20  # a worker that has not answered for so long is taken for dead
_DECISIONS_KEPT = 20  # more than there are between two calls of the training step
_PARTING_SECONDS = 10  # for the chief, whose store the others read, to see them leave


def multi_worker_strategy(
    addresses: Addresses, replicas: int | None, seconds: float
) -> tf.distribute.Strategy:
    """Makes the strategy when all workers are there; see make_strategy."""
    job = coordination_config_pb2.CoordinatedJob(name="worker", num_tasks=len(addresses.workers))
    context.context().configure_coordination_service(
        "standalone",
        _task(0),
        cluster_register_timeout_in_ms=int(seconds * 1000),
        heartbeat_timeout_in_ms=_SILENCE_SECONDS * 1000,
        coordinated_jobs=[job],
    )
    context.context().coordination_service.cluster_register_with_barrier = True
    gpus = len(tf.config.list_physical_devices("GPU"))
    accelerators = {"GPU": gpus} if replicas is None else {"CPU": replicas}
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({"worker": addresses.workers}),
        task_type="worker",
        task_id=addresses.index,
        num_accelerators=accelerators,
        rpc_layer="grpc",
    )
    _require_free_port(addresses)
    names = [addresses.name(n) for n in range(len(addresses.workers)) if n != addresses.index]
    logging.info("waiting for %s", ", ".join(names))
    try:
        with _signals_kept():
            if replicas is None:
                return tf.distribute.MultiWorkerMirroredStrategy(resolver)
            return _OnLogicalDevices(resolver)
    except (tf.errors.DeadlineExceededError, tf.errors.UnavailableError) as error:
        late = re.findall(rf"^{_task('')}(\d+)$", str(error), re.MULTILINE)
        rule = f"every worker must be there within --connect_seconds={seconds:g}"
        missing = ", ".join(addresses.name(n) for n in sorted(map(int, late)) or [0])
        raise InputError(f"{rule}. Received: no word from {missing}") from None
    except (tf.errors.OpError, RuntimeError) as error:
        rule = "--strategy=multi_worker must be able to run TensorFlow's servers"
        own = addresses.workers[addresses.index]
        raise InputError(f"{rule}. Received: {reason(error)} (at {own})") from None


def _task(worker: int | str) -> str:
    return f"/job:worker/replica:0/task:{worker}"


def _end_collectives() -> None:
    """Sums that wait for a worker that does not come fail at once, here and on other workers."""
    context.context().abort_collective_ops(tf.errors.ABORTED, "a worker has failed")


def _require_free_port(addresses: Addresses) -> None:
    """TensorFlow would not say what is wrong."""
    try:
        socket.create_server(("", addresses.port)).close()
    except OSError as error:
        rule = "the address of this worker must be free on its machine"
        received = f"{addresses.workers[addresses.index]} ({error.strerror})"
        raise InputError(f"{addresses.source}: {rule}. Received: {received}") from None


@contextlib.contextmanager
def _signals_kept():
    """While TensorFlow connects, no handler of Python runs, and TensorFlow sets one for SIGTERM.

    Ctrl-C ends the process at once, and SIGTERM as soon as all workers have come, or have not.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


class _OnLogicalDevices(collective.CollectiveAllReduceStrategy):
    """The strategy with several replicas on the CPU of each worker, where TensorFlow has one."""

    def __init__(self, resolver):
        options = tf.distribute.experimental.CommunicationOptions()
        tf.distribute.Strategy.__init__(self, _Extended(self, resolver, options))


class _Extended(collective.CollectiveAllReduceExtended):
    def _initialize_local_devices(self, cluster_resolver, worker_device):
        replicas = cluster_resolver.num_accelerators()["CPU"]
        return tuple(f"{worker_device}/device:CPU:{n}" for n in range(replicas)), "CPU"


class Cluster:
    """A process among those that train one model; by default it is alone.

    To be used as a context, once the strategy is made: when it ends, the others are told how.

    Attributes:
        is_chief: whether this worker decides, validates and writes for all.
        newest_checkpoint: gives the name of the newest complete checkpoint, or None. It is called
            when this worker ends because another one has died: until then, the chief may complete
            one more.
    """

    def __init__(self, addresses: Addresses | None = None):
        self.addresses = addresses
        self.index = addresses.index if addresses else 0
        self.is_chief = self.index == 0
        self.newest_checkpoint: Callable[[], str | None] = lambda: None
        workers = range(len(addresses.workers) if addresses else 1)
        self._others = [worker for worker in workers if worker != self.index]
        self._decisions = 0
        # The first worker to fail, and why: None if it has died.
        self._failure: tuple[int, str | None] | None = None
        self._over = threading.Event()

    def agreed(self, decision: Any) -> Any:
        """What the chief has decided, a JSON value. The others wait for it; theirs is not used.

        Raises:
            InputError: where a worker has died or failed.
        """
        if not self._others:
            return decision
        key, self._decisions = f"decision/{self._decisions}", self._decisions + 1
        said = None
        if self.is_chief:
            said = [decision]
            self._tell(key, said)
            # Steps have been taken since, and so all have read it.
            with contextlib.suppress(tf.errors.OpError):
                old = f"decision/{self._decisions - _DECISIONS_KEPT}"
                context.context().delete_config_key_value(old)
        while said is None and self._failure is None:
            said = self._read(key, 1.0)
            if said is None:
                self._look()
        if self._failure is not None:
            raise InputError(self._failure_message())
        return said[0]

    def require_same(self, settings: Mapping[str, Any]) -> None:
        """Compares addresses and `settings`, JSON values by names of flags, with the chief's.

        Raises:
            InputError: where one is another, or another worker has died or failed.
        """
        if not self._others:
            return
        ours = {f"{self.addresses.source}: cluster": self.addresses.workers}
        ours |= {f"--{name}": value for name, value in settings.items()}
        ours = json.loads(json.dumps(ours))
        chiefs = self.agreed(ours)
        for name in {**chiefs, **ours}:
            here, there = ours.get(name), chiefs.get(name)
            received = f"{here} on worker {self.index}, {there} on worker 0"
            require(here == there, f"{name} must be the same on every worker", received)

    def pass_on(self, number: int) -> None:
        """Tells the chief of a signal to end the run, which it then has heard itself."""
        if not self.is_chief:
            self._tell("stop", number)

    def __enter__(self) -> "Cluster":
        if self._others and self.is_chief:
            threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, kind, error, traceback) -> None:
        if not self._others:
            return
        if isinstance(error, tf.errors.OpError):  # most often because another worker has died
            deadline = time.monotonic() + _SILENCE_SECONDS
            while self._failure is None and time.monotonic() < deadline:
                time.sleep(0.2)
                if not self.is_chief:  # for which _watch looks
                    self._look()
        told = self._failure is not None  # for _watch may read the own error in the store
        self._over.set()
        if error is not None and not told:
            self._tell("failed", (self.index, reason(error)))
            _end_collectives()
        self._tell(f"left/{self.index}", True)
        if self.is_chief:
            deadline = time.monotonic() + _PARTING_SECONDS
            for worker in self._others:
                while self._failure != (worker, None) and time.monotonic() < deadline:
                    if self._read(f"left/{worker}") or not self._is_alive(worker):
                        break
        if told and isinstance(error, Exception):
            raise InputError(self._failure_message()) from None

    def _tell(self, key: str, value: Any) -> None:
        """Writes in the store what all can read; the first word under a key counts."""
        if self._failure != (0, None):
            with contextlib.suppress(tf.errors.OpError):
                context.context().set_config_key_value(key, json.dumps(value))

    def _read(self, key: str, seconds: float = 0.1) -> Any:
        """None where nobody has said anything, or the chief has died."""
        try:
            return json.loads(context.context().get_config_key_value(key, int(seconds * 1000)))
        except tf.errors.OpError:
            return None

    def _is_alive(self, worker: int) -> bool:
        milliseconds = _SILENCE_SECONDS * 1000
        try:
            context.context().check_collective_ops_peer_health(_task(worker), milliseconds)
        except tf.errors.OpError:
            return False
        return True

    def _look(self) -> None:
        """Looks for a reason to end: that the chief has died, or what it or another has written."""
        failure = self._read("failed")
        if failure is None:
            watched = self._others if self.is_chief else [0]
            dead = next((worker for worker in watched if not self._is_alive(worker)), None)
            if dead is None:
                return
            if self.is_chief:
                self._tell("failed", (dead, None))
            failure = self._read("failed") or (dead, None)  # another may have written first
        self._failure = tuple(failure)

    def _watch(self) -> None:
        """The chief's thread: what happens to others ends a validation."""
        told = False
        while not self._over.wait(1.0) and self._failure is None:
            self._look()
            if not told and (self._failure is not None or self._read("stop") is not None):
                told = True
                _thread.interrupt_main(signal.SIGTERM)
            if self._failure is not None:
                _end_collectives()

    def _failure_message(self) -> str:
        """Why this worker ends, and from where all can continue if another worker has died."""
        worker, why = self._failure
        about = f"--strategy=multi_worker: {self.addresses.name(worker)}"
        if why is not None:
            return f"{about} failed: {why}"
        name = self.newest_checkpoint()
        last = f"checkpoint {name}" if name else "the last checkpoint, if there is one"
        return f"{about} stopped answering. Start all workers again: they go on from {last}"
