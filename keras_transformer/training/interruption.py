"""Signals that end a run: Ctrl-C, and the SIGTERM of a scheduler that wants the machine back."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")


class _Interrupted(BaseException):
    """Ends a validation from within. No Exception, so that no library handles it as an error."""


class Interruption:
    """Whether a signal has asked the run to end, and which one; `tell` gets the number of each.

    A step or a checkpoint under way is finished first. A validation is not: it changes nothing that
    is saved, and may take longer than a scheduler waits.
    """

    def __init__(self, tell: Callable[[int], None]):
        self.signal: signal.Signals | None = None
        self._tell = tell
        self._validating = False

    def __bool__(self) -> bool:
        return self.signal is not None

    def unless_heard(self, validate: Callable[[], T]) -> T | None:
        """Calls `validate`, and ends it at a signal; returns its result, or None at a signal."""
        result = None
        with contextlib.suppress(_Interrupted):
            self._validating = True
            if self.signal is None:
                result = validate()
            self._validating = False
        return result if self.signal is None else None

    def hear(self, number: int, frame=None) -> None:
        """Handles a signal. A second Ctrl-C ends the program at once."""
        self.signal = signal.Signals(number)
        if self.signal == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        self._tell(number)
        if self._validating:
            self._validating = False
            raise _Interrupted


@contextlib.contextmanager
def listening(tell: Callable[[int], None] = lambda number: None) -> Iterator[Interruption]:
    """Gives an Interruption that handles SIGINT and SIGTERM until the context ends."""
    interruption, earlier = Interruption(tell), {}
    if threading.current_thread() is threading.main_thread():  # others cannot handle signals
        for number in (signal.SIGINT, signal.SIGTERM):
            earlier[number] = signal.signal(number, interruption.hear)
    try:
        yield interruption
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
