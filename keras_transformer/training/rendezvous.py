"""How the workers of a run find each other, before any of them starts TensorFlow.

TensorFlow waits for workers without saying for whom. So every worker first calls at the chief's
address, says who it is and with which settings it was started, and waits for its word to begin. The
connections stay open; what is said over them later is the business of cluster.py.
"""

import contextlib
import json
import select
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any

from absl import logging

from keras_transformer.errors import InputError, reason
from keras_transformer.training.addresses import Addresses, host_and_port

_HELLO_SECONDS = 5.0  # for a caller to say who it is
_RETRY_SECONDS = 0.2
# A machine that has vanished is given up after idle + interval x count seconds without an answer.
# A process that is only stopped, or slow, is not: its machine answers for it.
_KEEP_ALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}
_UNANSWERED_MILLISECONDS = 30_000


class Link:
    """JSON objects over a TCP connection, one a line."""

    def __init__(self, connection: socket.socket):
        self._connection = connection
        # Of threads, that is: a signal handler that speaks while its own thread does is let in.
        self._one_at_a_time = threading.RLock()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        options = {**_KEEP_ALIVE, "TCP_USER_TIMEOUT": _UNANSWERED_MILLISECONDS}
        for name, value in options.items():
            if hasattr(socket, name):  # Linux has them all
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        self._lines = connection.makefile("rb")

    def send(self, word: dict[str, Any]) -> None:
        """Says something; to one that is gone, nothing."""
        with contextlib.suppress(OSError), self._one_at_a_time:
            self._connection.sendall(json.dumps(word).encode() + b"\n")

    def read(self, seconds: float | None = None) -> dict[str, Any] | None:
        """What the other one says next; None where it has gone, or says nothing for so long."""
        try:
            self._connection.settimeout(seconds)
            line = self._lines.readline()
            self._connection.settimeout(None)
            word = json.loads(line)
        except (OSError, ValueError):
            return None
        return word if isinstance(word, dict) else None

    def gone(self) -> bool:
        """Whether the other one, which has nothing to say now, has closed the connection."""
        readable, _, _ = select.select([self._connection], [], [], 0)
        try:
            return bool(readable) and not self._connection.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def close(self) -> None:
        self._lines.close()
        self._connection.close()


def meet(addresses: Addresses, settings: Mapping[str, Any], seconds: float) -> dict[int, Link]:
    """Waits until all workers are there.

    Args:
        addresses: of all of them.
        settings: JSON values by the names of flags, which must be the same everywhere.
        seconds: how long to wait.

    Returns:
        {worker: link}: the chief's to each of the others; any other's to the chief, alone.

    Raises:
        InputError: where some do not come in time, where this one's address is in use, or where
            this one is not what the chief expects.
    """
    settings = json.loads(json.dumps(dict(settings)))
    with _listener(addresses) as listener:
        if addresses.index == 0:
            return _gather(addresses, listener, settings, seconds)
    return {0: _join(addresses, settings, seconds)}


def _listener(addresses: Addresses) -> socket.socket:
    """Listens at the worker's own port, where TensorFlow is going to."""
    host, port = addresses.own
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server(("", port), family=family)
    except OSError as error:
        rule = "the address of this worker must be free on its machine"
        received = f"{addresses.workers[addresses.index]} ({error.strerror})"
        raise InputError(f"{addresses.source}: {rule}. Received: {received}") from None


def _gather(addresses, listener, settings, seconds) -> dict[int, Link]:
    """The chief's part."""
    deadline = time.monotonic() + seconds
    links: dict[int, Link] = {}
    said = None
    while missing := [n for n in range(1, len(addresses.workers)) if n not in links]:
        names = ", ".join(map(addresses.name, missing))
        if names != said:
            logging.info("waiting for %s", names)
        said = names
        if time.monotonic() > deadline:
            message = _too_late(seconds, names)
            for link in links.values():
                link.send({"failed": message})
            raise InputError(message)
        if select.select([listener], [], [], _RETRY_SECONDS)[0]:
            _admit(listener.accept()[0], links, addresses, settings)
        links = {worker: link for worker, link in links.items() if not link.gone()}
    for link in links.values():
        link.send({"begin": True})
    return links


def _admit(connection, links, addresses, settings) -> None:
    """Adds a caller to `links`, or tells it why not."""
    link = Link(connection)
    hello = link.read(_HELLO_SECONDS)
    worker = hello.get("worker") if hello else None
    if worker not in range(1, len(addresses.workers)):
        link.close()  # somebody else's: a port scanner, a health check
        return
    refusal = _refusal(hello, links, addresses, settings)
    if refusal is None:
        links[worker] = link
        return
    logging.warning("%s was turned away: %s", addresses.name(worker), refusal)
    link.send({"failed": refusal})
    link.close()


def _refusal(hello, links, addresses, settings) -> str | None:
    """What keeps a caller from being the worker that it says it is."""
    worker, source = hello["worker"], addresses.source
    if hello.get("workers") != list(addresses.workers):
        rule = "cluster must be the same on every worker"
        theirs, ours = hello.get("workers"), list(addresses.workers)
        return f"{source}: {rule}. Received: {theirs} on worker {worker}, {ours} on worker 0"
    if worker in links and not links[worker].gone():
        rule = "task.index must be another one for every worker"
        return f"{source}: {rule}. Received: {worker}, which another process is"
    theirs = hello.get("settings", {})
    for name in [*settings, *(theirs.keys() - settings.keys())]:
        if theirs.get(name) != settings.get(name):
            received = f"{theirs.get(name)} on worker {worker}, {settings.get(name)} on worker 0"
            return f"--{name} must be the same on every worker. Received: {received}"
    return None


def _join(addresses, settings, seconds) -> Link:
    """The part of any worker but the chief."""
    deadline = time.monotonic() + seconds
    hello = {"worker": addresses.index, "workers": addresses.workers, "settings": settings}
    chief, why = addresses.workers[0], "no answer"
    logging.info("waiting for %s", addresses.name(0))
    while time.monotonic() < deadline:
        try:
            link = Link(socket.create_connection(host_and_port(chief), timeout=_HELLO_SECONDS))
            link.send(hello)
            # From here on the chief looks at the clock, which may have started later than this one.
            word = link.read(seconds + _HELLO_SECONDS) or {}
        except OSError as error:
            word, why = {}, reason(error)
        if "begin" in word:
            return link
        if "failed" in word:
            raise InputError(word["failed"])
        time.sleep(_RETRY_SECONDS)
    raise InputError(_too_late(seconds, f"{addresses.name(0)}: {why}"))


def _too_late(seconds: float, *missing: str) -> str:
    rule = f"every worker must be there within --connect_seconds={seconds:g}"
    return f"{rule}. Received: no word from {', '.join(missing)}"
