"""The workers of a run as one of them sees them: what they agree on, and how they end together.

TensorFlow sums gradients over all workers; whatever else depends on a clock, a signal or a disk is
decided by worker 0, the chief, and told to the others. Any worker may be asked to stop, or die.
"""

import _thread
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from keras_transformer.errors import InputError, reason
from keras_transformer.training.addresses import Addresses
from keras_transformer.training.rendezvous import Link, meet

# Where TensorFlow's sums fail before it is known which worker has died: how long to wait for that.
_SETTLING_SECONDS = 15.0
_PARTING_SECONDS = 5.0  # for the chief to see the others end
# How long a process may take to end in an orderly way once another one has died. One that waits
# for a machine that has vanished, deep inside TensorFlow, ends in no other.
_ENDING_SECONDS = 20.0


class Cluster:
    """A process among those that train one model; by default it is alone.

    To be used as a context: when it ends, the others are told how.

    Args:
        addresses: of all workers.
        links: to the other workers, as `meet` gives them.

    Attributes:
        newest_checkpoint: gives the name of the newest complete checkpoint, None where there is
            none. It is called when this worker ends because another one has died, not before:
            until then the chief may complete another checkpoint.
    """

    def __init__(self, addresses: Addresses | None = None, links: Mapping[int, Link] | None = None):
        self.addresses, self._links = addresses, dict(links or {})
        self.newest_checkpoint: Callable[[], str | None] = lambda: None
        self._decisions: queue.SimpleQueue = queue.SimpleQueue()
        self._failure: dict[str, Any] | None = None  # as it is told to the other workers
        self._failed, self._over = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._listeners: list[threading.Thread] = []

    @classmethod
    def connected(cls, addresses: Addresses, settings: Mapping[str, Any], seconds: float):
        """The cluster once all its workers are there; arguments and errors as of `meet`."""
        return cls(addresses, meet(addresses, settings, seconds))

    @property
    def index(self) -> int:
        return self.addresses.index if self.addresses else 0

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
        if self._failed.is_set():
            raise InputError(self._failure_message())
        if self.is_chief:
            self._tell({"decision": decision})
            return decision
        word = self._decisions.get()
        if word is None:
            raise InputError(self._failure_message())
        return word["decision"]

    def require_same(self, what: str, value: Any) -> None:
        """Makes sure that something is on this worker what it is on the chief.

        Raises:
            InputError: where it is not.
        """
        chiefs = self.agreed(value)
        if value != chiefs:
            rule = f"{what} must be those of worker 0, {chiefs}"
            raise InputError(f"--strategy=multi_worker: {rule}. Received: {value}")

    def pass_on(self, number: int) -> None:
        """Tells the chief of a signal to end the run, which it then has heard itself."""
        if not self.is_chief:
            self._tell({"signal": number})

    def __enter__(self) -> "Cluster":
        for worker, link in self._links.items():
            thread = threading.Thread(target=self._listen, args=(worker, link), daemon=True)
            thread.start()
            self._listeners.append(thread)
        return self

    def __exit__(self, kind, error, traceback) -> None:
        if not self._links:
            return
        if error is not None and not isinstance(error, InputError):
            self._failed.wait(_SETTLING_SECONDS)
        with self._lock:
            self._over.set()
        if error is None:
            self._tell({"done": True})
            if self.is_chief:  # the last to go: TensorFlow's workers depend on it
                deadline = time.monotonic() + _PARTING_SECONDS
                for listener in self._listeners:
                    listener.join(max(0.0, deadline - time.monotonic()))
        elif self._failure is None:
            self._tell({"failed": self._about(self.index, f"failed: {reason(error)}")})
        elif isinstance(error, Exception):
            raise InputError(self._failure_message()) from None

    def _tell(self, word: dict[str, Any]) -> None:
        for link in self._links.values():
            link.send(word)

    def _about(self, worker: int, what: str) -> str:
        return f"--strategy=multi_worker: {self.addresses.name(worker)} {what}"

    def _listen(self, worker: int, link: Link) -> None:
        """A thread for each of the others: hears what it says, or that it has died."""
        while (word := link.read()) is not None:
            if "done" in word:
                return
            if "failed" in word or "died" in word:
                self._fail(word)
                return
            if "decision" in word:
                self._decisions.put(word)
            if "signal" in word:
                _signal_to_main_thread()
        self._fail({"died": worker})

    def _failure_message(self) -> str:
        """Why this worker ends, and from where all can continue if another worker has died."""
        if "failed" in self._failure:
            return self._failure["failed"]
        name = self.newest_checkpoint()
        last = f"checkpoint {name}" if name else "the last checkpoint, if there is one"
        advice = f"Start all workers again: they go on from {last}"
        return self._about(self._failure["died"], f"stopped answering. {advice}")

    def _fail(self, failure: dict[str, Any]) -> None:
        """Ends this process for a reason that lies in another one: {"failed": why} or {"died"}."""
        with self._lock:
            if self._over.is_set() or self._failure is not None:
                return
            self._failure = failure
        self._tell(failure)
        self._failed.set()
        self._decisions.put(None)
        _signal_to_main_thread()
        if not self._over.wait(_ENDING_SECONDS):
            print(f"error: {self._failure_message()}", file=sys.stderr, flush=True)
            os._exit(1)


def _signal_to_main_thread() -> None:
    """Calls the handler of SIGTERM in the main thread, if it has one: it ends what takes long."""
    _thread.interrupt_main(signal.SIGTERM)
