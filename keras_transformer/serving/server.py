"""Runs the web application on a socket until it is told to stop."""

import asyncio
import contextlib
import ipaddress
import logging
import signal
import socket
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from aiohttp import web

from keras_transformer.errors import InputError, reason
from keras_transformer.serving.application import LOG, Service
from keras_transformer.serving.requests import Limits

if TYPE_CHECKING:
    from keras_transformer.decoding.translator import Translator

WARM_UP = "A first sentence, to have everything in its place."


def bound_socket(host: str, port: int) -> socket.socket:
    """Takes an address before anything slow is done; nobody can connect to it yet.

    Args:
        host: a name or an address.
        port: 0 for any that is free.

    Raises:
        InputError: where the address cannot be had.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        rule = "--host must be a name or an address of this machine"
        raise InputError(f"{rule}. Received: {host!r}: {reason(error)}") from None
    bound = socket.socket(family, kind, protocol)
    try:
        # A port is free again as soon as its server has gone.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise address_error(host, port, error) from None
    return bound


def address_error(host: str, port: int, error: OSError) -> InputError:
    """What to say of an address that cannot be had."""
    rule = "--host and --port must be an address that is free"
    return InputError(f"{rule}. Received: {host}:{port}: {error.strerror or reason(error)}")


def allowed_names(host: str, bound: socket.socket) -> frozenset[str] | None:
    """Names by which the server may be called: any, unless it is for this machine alone."""
    address = bound.getsockname()[0]
    if not ipaddress.ip_address(address).is_loopback:
        return None
    return frozenset({"localhost", "127.0.0.1", "::1", address, host.lower()})


def serve(
    translator: "Translator", bound: socket.socket, host: str, limits: Limits
) -> dict[str, Any]:
    """Serves until SIGINT or SIGTERM, and finishes what it has begun then.

    Args:
        translator: what to serve.
        bound: from `bound_socket`.
        host: that `bound` was made with.
        limits: of a request.

    Returns:
        {"requests", "errors" (those refused or failed), "sentences", "batches", "seconds"}.

    Raises:
        InputError: where the address was taken meanwhile, or the model's weights are not finite.
    """
    translator.translate([WARM_UP])  # the first call prepares what the others use
    service = Service(translator, limits, allowed_names(host, bound))
    return asyncio.run(_serve(service, bound, host))


async def _serve(service: Service, bound: socket.socket, host: str) -> dict[str, Any]:
    started, port = time.monotonic(), bound.getsockname()[1]
    runner = web.AppRunner(
        service.application(),
        handler_cancellation=True,  # nobody waits for the answer to a closed connection
        shutdown_timeout=service.limits.timeout,
        access_log=None,
        logger=one_line_logger(),
    )
    await runner.setup()
    try:
        await web.SockSite(runner, bound).start()
        shown_host = f"[{host}]" if ":" in host else host
        with stop_signals() as stopped:  # before the line that whoever stops it may wait for
            LOG.info("serving at http://%s:%d until Ctrl-C", shown_host, port)
            await stopped.wait()
    except OSError as error:
        raise address_error(host, port, error) from None
    finally:
        await runner.cleanup()
    return {
        "requests": service.requests,
        "errors": service.errors,
        "sentences": service.translations.items,
        "batches": service.translations.calls,
        "seconds": round(time.monotonic() - started, 3),
    }


@contextlib.contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """Gives an event that SIGINT or SIGTERM sets; afterwards they do what they do elsewhere."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    try:
        yield stopped
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def one_line_logger() -> logging.Logger:
    """A logger for aiohttp, which reports with a traceback what is no HTTP at all."""

    def without_traceback(record: logging.LogRecord) -> bool:
        if record.exc_info:
            error = record.exc_info[1]
            if isinstance(error, web.RequestPayloadError):
                return False  # its request has been answered, and has its line
            record.msg, record.args = f"{record.getMessage()}: {type(error).__name__}", ()
            record.exc_info = None
        return True

    logger = logging.getLogger(f"{__name__}.connections")
    if not logger.filters:
        logger.addFilter(without_traceback)
    return logger
