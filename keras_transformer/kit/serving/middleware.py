"""Common to all requests: who may send them, their errors, headers, and a line of log."""

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from keras_transformer.kit.serving.errors import as_refusal, shown
from keras_transformer.kit.serving.metrics import RequestCounts
from keras_transformer.kit.serving.openapi import JSON_TYPE
from keras_transformer.kit.serving.requests import ANY_ORIGIN, allows, check_sender
from keras_transformer.kit.serving.responses import encoded

HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
LOG = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Middleware:
    """Runs before and after the handler of each request.

    Args:
        host_names: host names that requests may use; None for any.
        cors_origin: origin of other pages that may call the server; "*" for all, None for none.

    Attributes:
        counts: of the requests answered so far.
    """

    def __init__(self, host_names: frozenset[str] | None, cors_origin: str | None):
        self.host_names = host_names
        self.cors_origin = cors_origin
        self.counts = RequestCounts()

    @web.middleware
    async def report(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Turns errors into one-line answers, and logs a line for every request."""
        started = time.monotonic()
        message = ""
        try:
            response = await handler(request)
        except ConnectionError:
            raise  # the client has gone
        except Exception as error:
            refusal = as_refusal(error, request)
            message = str(refusal)
            response = json_response({"error": message}, refusal.status, refusal.headers)
        seconds = time.monotonic() - started
        self.counts.add(path_of(request), response.status, seconds)
        response.headers.update({**HEADERS, **self.cors_headers(request)})
        path = request.raw_path.partition("?")[0]  # clients may send their texts behind it
        what = f"{client_of(request)} {request.method} {shown(path)} {response.status}"
        LOG.info("%s in %.3f s %s", what, seconds, message)
        return response

    @web.middleware
    async def guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Rejects requests from other web pages before processing them."""
        check_sender(request.headers, self.host_names, self.cors_origin)
        refusal = request.match_info.http_exception
        is_preflight = request.method == "OPTIONS" and self.cors_headers(request)
        if is_preflight and isinstance(refusal, web.HTTPMethodNotAllowed):
            allowed = {
                "Access-Control-Allow-Methods": refusal.headers["Allow"],
                "Access-Control-Allow-Headers": "Content-Type",
            }
            return web.Response(status=204, headers=allowed)
        return await handler(request)

    def check_change(self, request: web.Request) -> None:
        """Rejects requests for changes from other pages, even if any page may read."""
        origin = None if self.cors_origin == ANY_ORIGIN else self.cors_origin
        check_sender(request.headers, self.host_names, origin)

    def cors_headers(self, request: web.Request) -> dict[str, str]:
        """Returns the headers that let an allowed page from another origin read the answer."""
        origin = request.headers.get("Origin")
        if self.cors_origin is None or not allows(self.cors_origin, origin):
            return {}
        return {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}


def path_of(request: web.Request) -> str:
    """Returns the path of the endpoint, as in its route; "other" if there is none."""
    resource = request.match_info.route.resource
    return "other" if resource is None else resource.canonical


def client_of(request: web.Request) -> str:
    """Returns the client's address for the log; that of a proxy's client, if the proxy names it.

    Only a proxy on this machine is believed.
    """
    address = request.remote or "unknown"
    forwarded = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
    is_proxy = address in ("127.0.0.1", "::1", "::ffff:127.0.0.1")
    return shown(forwarded) if is_proxy and forwarded else address


def origin_of(request: web.Request) -> str:
    """Returns the address at which the client reaches the server, possibly through a proxy."""
    scheme = request.headers.get("X-Forwarded-Proto", request.scheme)
    host = request.headers.get("X-Forwarded-Host", request.host)
    return f"{scheme}://{host}"


def json_response(
    content: Any, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    """Makes a response from a JSON value, or from bytes that are already JSON."""
    body = content if isinstance(content, bytes) else encoded(content)
    return web.Response(
        body=body, status=status, headers=headers, content_type=JSON_TYPE, charset="utf-8"
    )
