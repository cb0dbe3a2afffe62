"""Several processes that answer at one address, each on cores of its own."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from keras_transformer.errors import InputError, require

FORK = multiprocessing.get_context("fork")
INTERRUPTED = 130  # exit code of a process that is stopped before it serves


def usable_cores() -> list[int]:
    """The numbers of the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def check_processes(count: int) -> None:
    """Raises InputError for more processes than cores, and where processes cannot be forked."""
    cores = len(usable_cores())
    rule = f"processes must be from 1 to {cores}, the cores that this process may use"
    require(1 <= count <= cores, rule, count)


def serve_in_processes(count: int, serve_one: Callable[[bool], dict[str, Any]]) -> dict[str, Any]:
    """Serves in several processes until SIGINT or SIGTERM, or until one of them ends.

    They are forked, and so share the sockets that are open: whichever process is free takes a
    connection. TensorFlow cannot be forked, so it must not have been imported yet.

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
    for number in range(count):
        receiver, sender = FORK.Pipe(duplex=False)
        arguments = (sender, serve_one, number == 0, cores[number::count])
        worker = FORK.Process(target=_work, args=arguments, name=f"process {number + 1}")
        worker.start()
        sender.close()
        workers[receiver] = worker
    is_stopped = threading.Event()

    def stop(*_) -> None:
        is_stopped.set()
        for worker in workers.values():
            worker.terminate()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
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
            stop()
    if failures:
        raise failures[0]
    if not results:
        raise KeyboardInterrupt
    return _sum(results, count)


def _work(sender: Connection, serve_one: Callable, is_first: bool, cores: list[int]) -> None:
    """The life of a process; what it sends is its result, or why it could not begin."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)  # until the server has its own
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
    try:
        sender.send(serve_one(is_first))
    except InputError as error:
        sender.send(error)
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)


def _answer_of(receiver: Connection, worker: BaseProcess) -> dict[str, Any] | InputError:
    """What a process has sent before it ended, or else that it has ended."""
    try:
        answer = receiver.recv()
    except EOFError:
        answer = None
    worker.join()
    if answer is None:
        rule = "processes must have the memory that they need, and run until they are told to stop"
        ended = f"{worker.name}, which has ended with exit code {worker.exitcode}"
        answer = InputError(f"{rule}. Received: {ended}")
    return answer


def _sum(results: list[dict[str, Any]], count: int) -> dict[str, Any]:
    total = {name: sum(result[name] for result in results) for name in results[0]}
    total["seconds"] = max(result["seconds"] for result in results)
    return {**total, "processes": count}
