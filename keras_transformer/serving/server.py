"""Runs the web application on a socket until it is told to stop."""

import asyncio
import contextlib
import ipaddress
import math
import os
import signal
import socket
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from aiohttp import web

from keras_transformer.errors import InputError, reason
from keras_transformer.serving.application import LOG, Service
from keras_transformer.serving.requests import Limits, RequestError

if TYPE_CHECKING:
    from keras_transformer.decoding.translator import Translator

CONNECTIONS = 500  # at once; more of them wait to be accepted, as many as the system lets wait
RETRY_SECONDS = 0.1  # until a connection is accepted where there was no room for it
LINE_SECONDS = 60.0  # between lines about that


def listening_socket(host: str, port: int) -> socket.socket:
    """Takes an address before anything slow is done; whoever connects has to wait for that.

    Raises:
        InputError: where the address cannot be had.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, *_, address = found[0]
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server(address, family=family, dualstack_ipv6=both)
    except (socket.gaierror, UnicodeError) as error:
        rule = "--host must be a name or an address of this machine"
        raise InputError(f"{rule}. Received: {host!r}: {reason(error)}") from None
    except OSError as error:
        rule = "--host and --port must be an address that is free"
        why = f"{os.strerror(error.errno)}. --port=0 takes any free port"
        raise InputError(f"{rule}. Received: {host}:{port}: {why}") from None


def allowed_names(host: str, listening: socket.socket) -> frozenset[str] | None:
    """Names by which the server may be called: any, unless it is for this machine alone."""
    address = listening.getsockname()[0]
    if not ipaddress.ip_address(address).is_loopback:
        return None
    return frozenset({"localhost", "127.0.0.1", "::1", address, host.lower()})


def serve(
    translator: "Translator", listening: socket.socket, host: str, limits: Limits
) -> dict[str, Any]:
    """Serves on a `listening_socket` of `host` until SIGINT or SIGTERM; finishes what it has begun.

    Returns:
        {"requests", "errors" (those refused or failed), "sentences", "batches", "seconds"}.

    Raises:
        InputError: where the model's weights are not finite.
    """
    translator.translate(["Warm-up."])  # the first call prepares what the others use
    started = time.monotonic()
    service = Service(translator, limits, allowed_names(host, listening))
    asyncio.run(_serve(service, listening, host))
    return {
        "requests": service.requests,
        "errors": service.errors,
        "sentences": service.translations.items,
        "batches": service.translations.calls,
        "seconds": round(time.monotonic() - started, 3),
    }


async def _serve(service: Service, listening: socket.socket, host: str) -> None:
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    async with answering(service, listening):
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stopped.set)
        shown_host = f"[{host}]" if ":" in host else host
        port = listening.getsockname()[1]
        LOG.info("serving at http://%s:%d until Ctrl-C", shown_host, port)
        await stopped.wait()
        for number in (signal.SIGINT, signal.SIGTERM):  # a second one ends it at once
            loop.remove_signal_handler(number)


@contextlib.asynccontextmanager
async def answering(service: Service, listening: socket.socket) -> AsyncIterator[None]:
    """Answers requests while the block runs; then closes the socket and finishes those begun."""
    listening.setblocking(False)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux closes connections whose answers are not read
        milliseconds = min(round(1000 * service.limits.timeout), 2**31 - 1)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
    server = web.Server(service.answer, handler_cancellation=True)
    accepting = asyncio.create_task(_accept(service, server, listening))
    try:
        yield
    finally:
        accepting.cancel()
        await asyncio.wait([accepting])
        listening.close()
        server.pre_shutdown()
        await server.shutdown(service.limits.timeout)


async def _accept(service: Service, server: web.Server, listening: socket.socket) -> None:
    """Accepts connections while there are few enough of them.

    An asyncio.Server sets no limit, and without a file descriptor it fills the log with tracebacks.
    """
    loop, last_line = asyncio.get_running_loop(), -math.inf
    while True:
        problem = f"{CONNECTIONS} are open"
        try:
            if len(server.connections) < CONNECTIONS:
                accepted, _ = await loop.sock_accept(listening)
                await loop.connect_accepted_socket(lambda: Connection(service, server), accepted)
                continue
        except OSError as error:
            problem = reason(error)
        if loop.time() > last_line + LINE_SECONDS:
            last_line = loop.time()
            LOG.warning("connections have to wait: %s", problem)
        await asyncio.sleep(RETRY_SECONDS)


class Connection(web.RequestHandler):
    """A connection, whose client must keep to the time limit, and gets JSON even for bad HTTP."""

    def __init__(self, service: Service, server: web.Server):
        self._service, loop = service, asyncio.get_running_loop()
        # The limit for connections without a request is one for its headers, too.
        seconds = service.limits.timeout
        super().__init__(server, loop=loop, access_log=None, keepalive_timeout=seconds)

    def handle_error(self, request, status=500, exc=None, message=None):
        """Refuses what is no HTTP, or encoded in a way that aiohttp does not know."""
        rule = "the request must be HTTP that can be read"
        first_line = str(message).strip().partition("\n")[0]
        error = RequestError(status, f"{rule}. Received: {first_line}")
        answer = self._service.refusal(request, error, seconds=0)
        answer.force_close()
        return answer

    def log_exception(self, message, *values, exc_info=None):
        """Says nothing: each request has its line already, and no error needs a traceback."""
