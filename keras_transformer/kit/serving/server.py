"""Runs the web application on a socket until it is stopped.

The default limits depend on the address: on loopback, the only sender is the owner, who may have a
book to translate; elsewhere, no request may keep the model for an hour. On many cores, a proxy
distributes requests to several servers.
"""

import asyncio
import contextlib
import errno
import ipaddress
import logging
import os
import signal
import socket
import time
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web

from keras_transformer.core.vocabulary.language_codes import Direction
from keras_transformer.kit.serving.application import Service
from keras_transformer.kit.serving.errors import shown
from keras_transformer.kit.serving.middleware import LOG
from keras_transformer.kit.serving.routes import ROUTES
from keras_transformer.support.errors import InputError, reason
from keras_transformer.use.store.languages import ModelLanguages

BACKLOG = 128  # connections that the system queues for the server

LINE_BYTES = 1 << 16  # of a request's first line, where LibreTranslate clients may send their text

WARM_UP = "Warm-up."  # a first text, which makes the later ones fast
WARM_UP_WORD = "Warm"  # in it


def listening_socket(host: str, port: int) -> socket.socket:
    """Binds an address before any slow work; clients that connect early wait.

    Args:
        host: a name or an address of this machine.
        port: a number, or 0 for any free port.

    Raises:
        InputError: if the address is not available.
    """
    host_rule = "must be a name or an address of this machine"
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, *_, address = addresses[0]
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server(address, family=family, dualstack_ipv6=both)
    except (socket.gaierror, UnicodeError) as error:
        raise InputError("host", host_rule, f"{host!r}: {reason(error)}") from None
    except OSError as error:
        why = os.strerror(error.errno)
        if error.errno == errno.EADDRNOTAVAIL:
            raise InputError("host", host_rule, f"{host!r}: {why}") from None
        rule = "must be free, or 0 for any free port"
        if error.errno == errno.EACCES:
            rule = "must be one that this user may bind, such as 8501"
        raise InputError("port", rule, f"{host}:{port}: {why}") from None


def allowed_names(host: str, listening: socket.socket) -> frozenset[str] | None:
    """Returns the host names that requests may use: any (None), unless bound to loopback only."""
    if not is_own_machine(listening):
        return None
    address = listening.getsockname()[0]
    return frozenset({"localhost", "127.0.0.1", "::1", address, host.lower()})


def is_own_machine(listening: socket.socket) -> bool:
    """Whether only programs on this machine can connect."""
    return ipaddress.ip_address(listening.getsockname()[0]).is_loopback


def serve(service: Service, listening: socket.socket, host: str) -> dict[str, Any]:
    """Serves until SIGINT or SIGTERM, and then finishes the running requests.

    Args:
        service: answers the requests.
        listening: from `listening_socket`.
        host: the name that `listening` was made with.

    Returns:
        {"requests", "errors" (those rejected or failed), "sentences" (also those of documents),
        "batches" (of several requests), "documents" (texts of any length), "engine", "seconds"}.

    Raises:
        InputError: if the model's weights are not finite, or it does not support terminologies.
    """
    translator = service.translator
    text = warm_up_text(translator.card.languages)
    translator.translate([text])  # the first call warms up the model
    if translator.config.is_greedy:  # for documents
        translator.translate([text], scores=False)
    if translator.card.calibration is not None:  # the page asks for confidence
        translator.translate([text], confidence=True)
    if service.corrections.is_available:  # their sentences are scored, not translated
        translator.score([text], [WARM_UP])
    lists = service.terminologies.values()
    for terms in lists:
        translator.check_terms(terms)
    target = next((target for terms in lists for target in terms.values()), None)
    if target is not None:  # terms are forced by another search
        translator.translate([text], terminology={WARM_UP_WORD: target})
    for name in ("aiohttp.server", "asyncio"):
        logging.getLogger(name).addFilter(OneLine())
    started = time.monotonic()
    if service.corrections.is_available and not is_own_machine(listening):
        LOG.warning("everyone who can reach this server can change its corrections")
    asyncio.run(_serve(service, listening, host))
    return {
        "requests": service.http.counts.requests,
        "errors": service.http.counts.errors,
        "sentences": service.sentences,
        "batches": service.calls.joint.calls,
        "documents": service.documents,
        "engine": translator.engine.name,
        "seconds": round(time.monotonic() - started, 3),
    }


def warm_up_text(languages: ModelLanguages | None) -> str:
    """Returns a text as a model reads it, in any of its directions."""
    if languages is None:
        return WARM_UP
    source = next(iter(languages.sources), "")
    return languages.coded(WARM_UP, Direction(source, languages.targets[0]))


async def _serve(service: Service, listening: socket.socket, host: str) -> None:
    """Answers requests until SIGINT or SIGTERM; another SIGINT ends the process at once."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    async with answering(service, listening):
        loop.add_signal_handler(signal.SIGINT, stopped.set)
        loop.add_signal_handler(signal.SIGTERM, stopped.set)
        shown_host = f"[{host}]" if ":" in host else host
        port = listening.getsockname()[1]
        LOG.info("serving at http://%s:%d until Ctrl-C", shown_host, port)
        await stopped.wait()
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own handler waits for the model
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.asynccontextmanager
async def answering(service: Service, listening: socket.socket) -> AsyncIterator[None]:
    """Answers requests while the block runs; then closes the socket and finishes running ones."""
    runner = web.AppRunner(
        service.application(ROUTES),
        access_log=None,  # the application logs requests itself
        auto_decompress=False,  # compressed bodies are rejected
        max_line_size=LINE_BYTES,
        keepalive_timeout=service.limits.timeout,  # until a request's headers have arrived
        handler_cancellation=True,  # no work for clients that have gone
        shutdown_timeout=service.limits.timeout,
    )
    await runner.setup()
    await web.SockSite(runner, listening, backlog=BACKLOG).start()
    try:
        yield
    finally:
        await runner.cleanup()


class OneLine(logging.Filter):
    """Logs an HTTP server error as one line, and suppresses repetitions.

    Such an error is usually malformed HTTP, or more connections than the system allows, for which
    asyncio would log thousands of tracebacks within seconds.
    """

    def __init__(self):
        super().__init__()
        self._last = ""

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.exc_info:
            return True
        message = shown(f"{record.getMessage()}: {reason(record.exc_info[1])}")
        is_new = message != self._last
        self._last = message
        record.msg = message
        record.args = ()
        record.exc_info = None
        return is_new
