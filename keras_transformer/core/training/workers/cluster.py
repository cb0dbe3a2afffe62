"""The workers in a run: their TensorFlow strategy, their shared decisions, their common end.

TensorFlow sums gradients over all workers. Everything else that depends on a clock, a signal or a
disk is decided by worker 0, the chief. The others read its decisions from the key-value store of
TensorFlow's coordination service, which the chief runs. A single-process run uses a LoneWorker
instead.

The store keeps floats exact, works after a worker has died, and can be read with a time limit, so
that signals are noticed while waiting. A sum over all workers would block each main thread.
"""

import _thread
import contextlib
import json
import os
import re
import signal
import threading
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from absl import logging

from keras_transformer.core.training.checkpoint_files import read_records
from keras_transformer.core.training.workers import coordination
from keras_transformer.core.training.workers.addresses import Addresses
from keras_transformer.support.errors import InputError, reason, require

_SILENCE = 20_000  # milliseconds without an answer after which a worker counts as dead
# Decisions kept in the store. There are fewer between two steps, and no worker can take a step
# before all have read the previous decisions.
_DECISIONS_KEPT = 20
_PARTING_SECONDS = 10  # how long the chief, whose store the others read, waits for each to leave


def multi_worker_strategy(
    addresses: Addresses, replicas: int | None, seconds: float
) -> tf.distribute.Strategy:
    """Waits for all workers, and makes their strategy.

    Args:
        addresses: the addresses of all workers.
        replicas: number of logical CPU devices per worker; None for all GPUs, or the CPU.
        seconds: how long to wait for the others.

    Raises:
        InputError: if workers are missing, or TensorFlow cannot start a server at this worker's
            address.
    """
    coordination.configure(len(addresses.workers), int(seconds * 1000), _SILENCE)
    gpus = len(tf.config.list_physical_devices("GPU"))
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({"worker": addresses.workers}),
        task_type="worker",
        task_id=addresses.index,
        num_accelerators={"GPU": gpus} if replicas is None else {"CPU": replicas},
        rpc_layer="grpc",
    )
    logging.info("waiting, as worker %d of %s", addresses.index, ", ".join(addresses.workers))
    try:
        with _signals_kept():
            if replicas is None:
                return tf.distribute.MultiWorkerMirroredStrategy(resolver)
            return coordination.OnLogicalDevices(resolver)
    except (tf.errors.DeadlineExceededError, tf.errors.UnavailableError) as error:
        late = re.findall(rf"^{coordination.task('')}(\d+)$", str(error), re.MULTILINE)
        rule = "must be long enough for all workers to connect"
        missing = ", ".join(addresses.name(n) for n in sorted(map(int, late)) or [0])
        received = f"{seconds:g}, without {missing}"
        raise InputError("connect_seconds", rule, received) from None
    except (tf.errors.OpError, RuntimeError) as error:
        rule = "must have addresses that TensorFlow can use, including this worker's own"
        received = f"{addresses.workers[addresses.index]} ({reason(error)})"
        raise InputError("cluster", rule, received, addresses.source) from None


class WorkerError(InputError):
    """Ends a worker because another one has ended.

    Args:
        name: the other worker's name, with its address.
        what: what happened to it.
        details: its error, or what to do.
    """

    def __init__(self, name: str, what: str, details: str):
        super().__init__(name, what, details, "strategy=multi_worker")

    def message(self, argument: str | None) -> str:
        """Returns the error's message, without a received value, as there is none to correct."""
        return f"{self.place}: {argument} {self.rule}: {self.received}"


@contextlib.contextmanager
def _signals_kept():
    """Handles signals while TensorFlow connects: Python's handlers do not run, and it sets its own.

    Ctrl-C ends the process at once, SIGTERM as soon as the wait for the workers is over.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        with _default_handlers(signal.SIGINT, signal.SIGTERM):
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


@contextlib.contextmanager
def _default_handlers(*numbers: int):
    """Disables Python's handlers for these signals."""
    main = threading.current_thread() is threading.main_thread()  # others cannot set handlers
    handlers = {number: signal.signal(number, signal.SIG_DFL) for number in numbers if main}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


class Cluster:
    """The processes that train one model together, as seen by one of them.

    Use it as a context manager, once the strategy is made: at its end, it tells the others how this
    worker has ended.

    Args:
        addresses: the addresses of all workers.
        model_dir: the model directory, from which all can continue if one has died.

    Attributes:
        index: the number of this worker.
        is_chief: whether this worker decides, validates and writes for all.
    """

    def __init__(self, addresses: Addresses, model_dir: str | os.PathLike):
        self.addresses = addresses
        self.model_dir = model_dir
        self.index = addresses.index
        self.is_chief = self.index == 0
        workers = range(len(addresses.workers))
        self._others = [worker for worker in workers if worker != self.index]
        self._decisions = 0
        self._failure: list | None = None  # the first worker to fail, and why: None if it died
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._over = threading.Event()
        self._has_signal = False
        self._signals = contextlib.ExitStack()

    def agreed(self, decision: Any) -> Any:
        """Waits for the chief's decision, and returns it.

        Args:
            decision: a JSON value. Only the chief's counts.

        Returns:
            The chief's decision.

        Raises:
            InputError: if a worker has died or failed.
        """
        key, self._decisions = f"decision/{self._decisions}", self._decisions + 1
        if self.is_chief:
            self._tell(key, [decision])  # in a list, as the decision may be None
            old = f"decision/{self._decisions - _DECISIONS_KEPT}"
            coordination.delete(old)
        while self._failure is None:
            message = self._read(key, 1.0)
            if message is not None:
                return message[0]
        raise self._failure_error()

    def require_same(self, settings: Mapping[str, Any]) -> None:
        """Compares this worker's addresses and settings with the chief's.

        Args:
            settings: JSON values by name.

        Raises:
            InputError: if one differs, or another worker has died or failed.
        """
        ours = json.loads(json.dumps({"cluster": self.addresses.workers, **settings}))
        chiefs = self.agreed(ours)
        for name in {**chiefs, **ours}:
            here, there = ours.get(name), chiefs.get(name)
            received = f"{here} on worker {self.index}, {there} on worker 0"
            place = self.addresses.source if name == "cluster" else None
            require(here == there, name, "must be the same on every worker", received, place)

    def pass_on(self, number: int) -> None:
        """Tells all workers that this one received a signal, which ends the run."""
        self._has_signal = True
        self._tell("stop", number)

    def newest_checkpoint(self) -> str | None:
        """Returns the name of the newest complete checkpoint; None if there is none.

        It is looked up on disk, as the chief may complete checkpoints until a worker dies.
        """
        records = read_records(self.model_dir)
        return records[-1].name if records else None

    def __enter__(self) -> "Cluster":
        # The watcher interrupts like SIGTERM, which only ends the loop.
        self._signals.enter_context(_default_handlers(signal.SIGTERM))
        self._watcher.start()
        return self

    def __exit__(self, kind, error, traceback) -> None:
        if isinstance(error, tf.errors.OpError):  # most often because another worker has died
            self._watcher.join(_SILENCE / 1000)
        self._over.set()
        self._watcher.join()
        self._signals.close()
        if error is not None and self._failure is None:
            self._tell("failed", [self.index, reason(error)])
        self._tell(f"left/{self.index}", True)
        if self.is_chief:
            for worker in self._others:
                if self._failure != [worker, None] and not self._is_dead(worker):
                    self._read(f"left/{worker}", _PARTING_SECONDS)
        if self._failure is not None and isinstance(error, Exception):
            raise self._failure_error() from None

    def _tell(self, key: str, value: Any) -> None:
        """Writes a value to the shared store; a key keeps its first value."""
        if self._failure != [0, None]:
            coordination.write(key, json.dumps(value))

    def _read(self, key: str, seconds: float = 0.1) -> Any:
        """Returns a key's value in the store; None if there is none, or the chief has died."""
        value = coordination.read(key, int(seconds * 1000))
        return None if value is None else json.loads(value)

    def _is_dead(self, worker: int) -> bool:
        """Whether a worker does not answer although it has not left."""
        return not coordination.answers(worker, _SILENCE) and not self._read(f"left/{worker}")

    def _watch(self) -> None:
        """Watches the other workers, in a thread that ends at the first failure.

        The chief watches all, and the others watch the chief. After a failure, sums over replicas
        that wait for the failed worker end with an error. This worker is interrupted as by a
        signal, so that a validation or a compilation ends, too; also if another received a signal.
        """
        watched = self._others if self.is_chief else [0]
        while self._failure is None and not self._over.wait(1.0):
            dead_workers = [worker for worker in watched if self._is_dead(worker)]
            death = [dead_workers[0], None] if dead_workers else None
            if death and self.is_chief:
                self._tell("failed", death)
            self._failure = self._read("failed") or death
            if not self._has_signal and (self._failure or self._read("stop")):
                _thread.interrupt_main(signal.SIGTERM)
            if self._failure:
                coordination.abort_sums("a worker has failed")

    def _failure_error(self) -> WorkerError:
        """Makes the error with which this worker ends after another one has failed."""
        worker, why = self._failure
        if why is not None:
            return WorkerError(self.addresses.name(worker), "has failed", why)
        name = self.newest_checkpoint()
        last = f"checkpoint {name}" if name else "the last checkpoint, if there is one"
        advice = f"restart all workers to continue from {last}"
        return WorkerError(self.addresses.name(worker), "does not answer", advice)
