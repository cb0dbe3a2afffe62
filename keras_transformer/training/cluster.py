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
    names = [addresses.name(n) for n in range(len(addresses.workers)) if n != addresses.index]
    job = coordination_config_pb2.CoordinatedJob(name="worker", num_tasks=len(addresses.workers))
    context.context().configure_coordination_service(
        "standalone",
        _task(0),
        cluster_register_timeout_in_ms=int(seconds * 1000),
        heartbeat_timeout_in_ms=_SILENCE_SECONDS * 1000,
        coordinated_jobs=[job],
    )
    context.context().coordination_service.cluster_register_with_barrier = True
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({"worker": addresses.workers}),
        task_type="worker",
        task_id=addresses.index,
        num_accelerators={"GPU": len(tf.config.list_physical_devices("GPU"))},
        rpc_layer="grpc",
    )
    _require_free_port(addresses)
    logging.info("waiting for %s", ", ".join(names))
    try:
        with _signals_kept():
            if replicas is None:
                return tf.distribute.MultiWorkerMirroredStrategy(resolver)
            return _OnLogicalDevices(resolver, replicas)
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

    def __init__(self, resolver, replicas: int):
        tf.distribute.Strategy.__init__(self, _Extended(self, resolver, replicas))


class _Extended(collective.CollectiveAllReduceExtended):
    def __init__(self, strategy, resolver, replicas: int):
        self._replicas = replicas
        options = tf.distribute.experimental.CommunicationOptions()
        super().__init__(strategy, resolver, options)

    def _initialize_local_devices(self, cluster_resolver, worker_device):
        return tuple(f"{worker_device}/device:CPU:{n}" for n in range(self._replicas)), "CPU"


class Cluster:
    """A process among those that train one model; by default it is alone.

    To be used as a context, once the strategy is made: when it ends, the others are told how.

    Args:
        addresses: of all workers.

    Attributes:
        newest_checkpoint: gives the name of the newest complete checkpoint, or None. It is called
            when this worker ends because another one has died: until then, the chief may complete
            one more.
    """

    def __init__(self, addresses: Addresses | None = None):
        self.addresses = addresses
        self.index = addresses.index if addresses else 0
        self.newest_checkpoint: Callable[[], str | None] = lambda: None
        workers = range(len(addresses.workers) if addresses else 1)
        self._others = [worker for worker in workers if worker != self.index]
        self._decisions = 0
        self._failure: dict[str, Any] | None = None  # {"died": worker} or {"failed": why}
        self._over = threading.Event()

    @property
    def is_chief(self) -> bool:
        """Whether this worker decides, validates and writes for all."""
        return self.index == 0

    def agreed(self, decision: Any) -> Any:
        """What the chief has decided; the others wait for it.

        Args:
            decision: a JSON value; only the chief's counts.

        Raises:
            InputError: where a worker has died or failed.
        """
        if not self._others:
            return decision
        key, self._decisions = f"decision/{self._decisions}", self._decisions + 1
        said = None
        while said is None and self._failure is None:
            if self.is_chief:
                self._tell(key, decision)
                # Steps have been taken since, and so all have read it.
                self._forget(f"decision/{self._decisions - _DECISIONS_KEPT}")
            said = self._read(key, 1.0)
            if said is None:
                self._look()
        if said is None:
            raise InputError(self._failure_message())
        return said["value"]

    def require_same(self, settings: Mapping[str, Any]) -> None:
        """Makes sure that flags and addresses are on this worker what they are on the chief.

        Args:
            settings: JSON values by the names of flags.

        Raises:
            InputError: where one is not, or where another worker has died or failed.
        """
        if not self._others:
            return
        ours = {f"{self.addresses.source}: cluster": self.addresses.workers}
        ours |= {f"--{name}": value for name, value in settings.items()}
        ours = json.loads(json.dumps(ours))
        chiefs = self.agreed(ours)
        for name in [*chiefs, *(ours.keys() - chiefs.keys())]:
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
        self._over.set()
        if error is not None and self._failure is None:
            self._tell("failed", {"failed": self._about(self.index, f"failed: {reason(error)}")})
            _end_collectives()
        self._tell(f"left/{self.index}", True)
        if self.is_chief:
            self._wait_for_others()
        if self._failure is not None and isinstance(error, Exception):
            raise InputError(self._failure_message()) from None

    def _tell(self, key: str, value: Any) -> None:
        """Writes in the store what all can read; the first word under a key counts."""
        if self._others and self._failure != {"died": 0}:
            with contextlib.suppress(tf.errors.OpError):
                context.context().set_config_key_value(key, json.dumps({"value": value}))

    def _read(self, key: str, seconds: float = 0.1) -> dict[str, Any] | None:
        """{"value": ...}; None where nobody has said anything, or the chief has died."""
        try:
            return json.loads(context.context().get_config_key_value(key, int(seconds * 1000)))
        except tf.errors.OpError:
            return None

    def _forget(self, key: str) -> None:
        with contextlib.suppress(tf.errors.OpError):
            context.context().delete_config_key_value(key)

    def _is_alive(self, worker: int) -> bool:
        milliseconds = _SILENCE_SECONDS * 1000
        try:
            context.context().check_collective_ops_peer_health(_task(worker), milliseconds)
        except tf.errors.OpError:
            return False
        return True

    def _look(self) -> None:
        """Looks for a reason to end: that the chief has died, or what it or another has written."""
        said = self._read("failed")
        if said is None:
            watched = self._others if self.is_chief else [0]
            dead = next((worker for worker in watched if not self._is_alive(worker)), None)
            if self.is_chief and dead is not None:
                self._tell("failed", {"died": dead})
                said = self._read("failed", 1.0)
            elif dead is not None:
                said = {"value": {"died": 0}}
        if said is not None:
            self._failure = said["value"]

    def _watch(self) -> None:
        """The chief's thread: what happens to others ends a validation."""
        told = False
        while not self._over.wait(1.0):
            self._look()
            stop = not told and self._read("stop") is not None
            told = told or stop
            if (stop or self._failure is not None) and not self._over.is_set():
                _thread.interrupt_main(signal.SIGTERM)
            if self._failure is not None:
                _end_collectives()
                return

    def _wait_for_others(self) -> None:
        deadline = time.monotonic() + _PARTING_SECONDS
        for worker in self._others:
            while self._failure != {"died": worker} and time.monotonic() < deadline:
                if self._read(f"left/{worker}") or not self._is_alive(worker):
                    break

    def _about(self, worker: int, what: str) -> str:
        return f"--strategy=multi_worker: {self.addresses.name(worker)} {what}"

    def _failure_message(self) -> str:
        """Why this worker ends, and from where all can continue if another worker has died."""
        if "failed" in self._failure:
            return self._failure["failed"]
        name = self.newest_checkpoint()
        last = f"checkpoint {name}" if name else "the last checkpoint, if there is one"
        advice = f"Start all workers again: they go on from {last}"
        return self._about(self._failure["died"], f"stopped answering. {advice}")
