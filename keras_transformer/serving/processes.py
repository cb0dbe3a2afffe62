"""Several processes that answer at one address, each on cores of its own."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from keras_transformer.errors import InputError, require

FORK = multiprocessing.get_context("fork")
STOPPING = (signal.SIGTERM, signal.SIGINT)
INTERRUPTED = 130  # exit code of a process that is stopped before it serves


def usable_cores() -> list[int]:
    """The numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def check_processes(count: int) -> None:
    """Raises InputError for more processes than cores, and where processes cannot be forked."""
    cores = len(usable_cores())
    rule = f"must be from 1 to {cores}, the cores that this process may use"
    require(1 <= count <= cores, "processes", rule, count)


def serve_in_processes(count: int, serve_one: Callable[[bool], dict[str, Any]]) -> dict[str, Any]:
    """Serves in several processes until SIGINT or SIGTERM, or until one of them or this one ends.

    They are forked, and so share the sockets that are open: whichever process is free takes a
    connection. A signal is passed on to each of them, which then finishes what it has begun.
    TensorFlow cannot be forked, so it must not have been imported yet.

    Args:
        count: the number of processes.
        serve_one: is called in each of them, with True in the first; it returns counts, as
            `server.serve` does.

    Returns:
        The sums of their counts, the longest "seconds", and "processes", their number.

    Raises:
        InputError: as `serve_one` does in one of them, and where one of them ends by itself.
        KeyboardInterrupt: where they are stopped before they have begun to serve.
    """
    cores = usable_cores()
    workers = {}
    is_stopped = threading.Event()

    def stop(number: int, *_) -> None:
        is_stopped.set()
        for worker in workers.values():
            if worker.is_alive():
                os.kill(worker.pid, number)

    for number in STOPPING:
        signal.signal(number, stop)
    parent_ends, parent_lives = FORK.Pipe(duplex=False)
    with parent_ends, parent_lives:
        with _stopping_later():
            for number in range(count):
                receiver, sender = FORK.Pipe(duplex=False)
                share = cores[number::count]
                arguments = (sender, parent_ends, parent_lives, serve_one, number == 0, share)
                worker = FORK.Process(target=_work, args=arguments, name=f"process {number + 1}")
                worker.start()
                sender.close()
                workers[receiver] = worker
        return _sum(_results(workers, stop, is_stopped), count)


@contextlib.contextmanager
def _stopping_later() -> Iterator[None]:
    """Holds back the signals that stop a process until the block ends.

    A process that is forked in the block holds them back, too.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)


def _results(
    workers: Mapping[Connection, BaseProcess],
    stop: Callable[[int], None],
    is_stopped: threading.Event,
) -> list[dict[str, Any]]:
    """Waits for all processes; when the first one ends, the others are stopped."""
    results = []
    failures = []
    waiting = dict(workers)
    while waiting:
        for receiver in wait(waiting):
            answer = _answer_of(receiver, waiting.pop(receiver))
            if isinstance(answer, dict):
                results.append(answer)
            elif not is_stopped.is_set():
                failures.append(answer)
            if not is_stopped.is_set():
                stop(signal.SIGTERM)
    if failures:
        raise failures[0]
    if not results:
        raise KeyboardInterrupt
    return results


def _work(
    sender: Connection,
    parent_ends: Connection,
    parent_lives: Connection,
    serve_one: Callable,
    is_first: bool,
    cores: list[int],
) -> None:
    """The life of a process; what it sends is its result, or why it could not begin."""
    os.setpgid(0, 0)  # Ctrl-C in a terminal reaches the parent alone, which passes it on
    for number in STOPPING:
        signal.signal(number, signal.default_int_handler)  # until the server has its own
    parent_lives.close()  # only the parent's own end keeps the pipe open
    threading.Thread(target=_stop_at_end_of, args=[parent_ends], daemon=True).start()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
        sender.send(serve_one(is_first))
    except InputError as error:
        sender.send(error)
    except (KeyboardInterrupt, BrokenPipeError):  # of a pipe to a parent that has ended
        os._exit(INTERRUPTED)


def _stop_at_end_of(parent_ends: Connection) -> None:
    """Stops this process when its parent has ended, even by SIGKILL, which the parent cannot see.

    Nothing is sent through the pipe: it ends when nobody holds its other end.
    """
    with contextlib.suppress(EOFError, OSError):
        parent_ends.recv()
    os.kill(os.getpid(), signal.SIGTERM)


def _answer_of(receiver: Connection, worker: BaseProcess) -> dict[str, Any] | InputError:
    """What a process has sent before it ended, or else that it has ended."""
    try:
        answer = receiver.recv()
    except EOFError:
        answer = None
    worker.join()
    if answer is None:
        rule = "must have the memory that they need, and run until they are told to stop"
        ended = f"{worker.name}, which has ended with exit code {worker.exitcode}"
        answer = InputError("processes", rule, ended)
    return answer


def _sum(results: list[dict[str, Any]], count: int) -> dict[str, Any]:
    total = {name: sum(result[name] for result in results) for name in results[0]}
    total["seconds"] = max(result["seconds"] for result in results)
    return {**total, "processes": count}
