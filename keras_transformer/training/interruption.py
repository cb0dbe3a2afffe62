"""Signals that end a run: Ctrl-C, and the SIGTERM of a scheduler that wants the machine back."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator


class _Interrupted(BaseException):
    """Ends an evaluation from within; like KeyboardInterrupt, no Exception to be handled."""


class Interruption:
    """Whether a signal has asked the run to end, and which.

    A step or a checkpoint under way is finished first. An evaluation is not: it changes nothing
    that is saved, and may take longer than a scheduler waits.

    Args:
        tell: called with the number of every signal that is heard.
    """

    def __init__(self, tell: Callable[[int], None]):
        self.signal: signal.Signals | None = None
        self._tell = tell
        self._evaluating = False

    def __bool__(self) -> bool:
        return self.signal is not None

    def unless_heard(self, evaluate: Callable[[], None]) -> bool:
        """Calls `evaluate`, breaking it off at a signal; returns whether it came to its end."""
        try:
            self._evaluating = True
            if self.signal is None:
                evaluate()
            self._evaluating = False
        except _Interrupted:
            pass
        return self.signal is None

    def hear(self, number: int, frame=None) -> None:
        """The handler. A second Ctrl-C ends the program at once."""
        self.signal = signal.Signals(number)
        if self.signal == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        self._tell(number)
        if self._evaluating:
            self._evaluating = False
            raise _Interrupted


@contextlib.contextmanager
def listening(tell: Callable[[int], None] = lambda number: None) -> Iterator[Interruption]:
    """Gives an Interruption that SIGINT and SIGTERM report to until the context ends."""
    interruption = Interruption(tell)
    if threading.current_thread() is not threading.main_thread():
        yield interruption  # only the main thread hears of signals
        return
    before = {
        number: signal.signal(number, interruption.hear)
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
