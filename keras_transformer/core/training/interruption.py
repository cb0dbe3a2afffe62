"""Signals that end a run: Ctrl-C, and SIGTERM from a scheduler that reclaims the machine."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
_THREAD = "interruptible"


class _Interrupted(BaseException):
    """Ends a validation from within. Not an Exception, so that no library handles it."""


class Interruption:
    """Records the signal that asked the run to end, if any.

    A running step or checkpoint is finished first. A validation is not: it changes nothing that is
    saved, and may take longer than a scheduler waits.

    Args:
        on_signal: called with the number of every signal.

    Attributes:
        signal: the last signal; None until there is one.
    """

    def __init__(self, on_signal: Callable[[int], None]):
        self.signal: signal.Signals | None = None
        self._on_signal = on_signal
        self._validating = False

    def unless_interrupted(self, validate: Callable[[], T]) -> T | None:
        """Calls `validate`, which a signal ends. Returns its result, or None after a signal."""
        result = None
        with contextlib.suppress(_Interrupted):
            self._validating = True
            if self.signal is None:
                result = validate()
            self._validating = False
        return result if self.signal is None else None

    def handle(self, number: int, frame=None) -> None:
        """Handles a signal. A second Ctrl-C ends the program at once."""
        self.signal = signal.Signals(number)
        if self.signal == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        self._on_signal(number)
        if self._validating:
            self._validating = False
            raise _Interrupted


def in_thread(function: Callable[[], T]) -> T:
    """Calls a function in another thread, so that Python handles signals meanwhile.

    In one thread, a signal has to wait until a call of TensorFlow returns. If its handler raises an
    error, the function goes on in its thread, until the process ends; see `is_in_thread`.
    """
    thread = ThreadPoolExecutor(1, _THREAD)
    future = thread.submit(function)
    thread.shutdown(wait=False)  # once the function has ended
    while not future.done():
        wait([future], timeout=0.2)  # a signal at the very beginning of a wait does not end it
    return future.result()


def is_in_thread() -> bool:
    """Whether a function called by `in_thread` is still running."""
    return any(thread.name.startswith(_THREAD) for thread in threading.enumerate())


def _ignore(number: int) -> None:
    pass


@contextlib.contextmanager
def listening(on_signal: Callable[[int], None] = _ignore) -> Iterator[Interruption]:
    """Yields an Interruption that handles SIGINT and SIGTERM until the context ends.

    Args:
        on_signal: see Interruption.
    """
    interruption = Interruption(on_signal)
    earlier = {}
    if threading.current_thread() is threading.main_thread():  # other threads cannot handle signals
        for number in (signal.SIGINT, signal.SIGTERM):
            earlier[number] = signal.signal(number, interruption.handle)
    try:
        yield interruption
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
