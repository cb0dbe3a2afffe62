"""What all requests have in common: who may send them, their errors, headers, and a line of log."""

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from keras_transformer.kit.serving.errors import as_refusal, shown
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
        requests: number of requests answered so far.
        errors: number of those that were rejected or failed.
    """

    def __init__(self, host_names: frozenset[str] | None, cors_origin: str | None):
        self.host_names = host_names
        self.cors_origin = cors_origin
        self.requests = 0
        self.errors = 0

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
            self.errors += 1
        self.requests += 1
        response.headers.update({**HEADERS, **self.cors_headers(request)})
        path = request.raw_path.partition("?")[0]  # clients may send their texts behind it
        what = f"{request.method} {shown(path)} {response.status}"
        LOG.info("%s in %.3f s %s", what, time.monotonic() - started, message)
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
