"""Why a request has no answer: a status of HTTP, and one line."""

from typing import Any

from aiohttp import web

from keras_transformer.errors import InputError, reason

SHOWN_CHARACTERS = 240  # of an error's message, and of an address in the log
# What each status says of a request.
REFUSALS = {
    400: "The body is not what the endpoint takes, or does not fit the model.",
    403: "The request comes from a page of another server, or was sent to another name.",
    404: "There is no such file, or no detector.",
    408: "The body did not arrive in time.",
    413: "The request has more text than the limits allow.",
    500: "The model failed.",
    503: "Too many requests wait for the model: try again.",
    504: "The model took too long.",
}


class RequestError(Exception):
    """A request that is refused.

    Args:
        status: of HTTP.
        message: why, which becomes one line.
        headers: of the answer.
    """

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None):
        super().__init__(shown(message))
        self.status = status
        self.headers = headers or {}


def check(condition: bool, status: int, rule: str, received: Any) -> None:
    """Raises a RequestError, "RULE. Received: RECEIVED", where a condition does not hold."""
    if not condition:
        raise RequestError(status, f"{rule}. Received: {received}")


def as_refusal(error: Exception, request: web.Request) -> RequestError:
    """Returns the status and the line with which a request is answered that ended with an error.

    An InputError is about the request itself; those of the model are RequestErrors already.
    """
    if isinstance(error, RequestError):
        return error
    if isinstance(error, InputError):
        return RequestError(400, str(error))
    if isinstance(error, web.HTTPNotFound):
        return RequestError(404, f"there is no {request.path!r}")
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = error.headers["Allow"]
        rule = f"{request.path} allows {allowed} only"
        return RequestError(405, f"{rule}. Received: {request.method}", {"Allow": allowed})
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        rule = f"the body must have at most {request.client_max_size} bytes"
        return RequestError(413, f"{rule}. Received: more")
    if isinstance(error, web.HTTPException):
        return RequestError(error.status, error.reason)
    return RequestError(500, f"the model failed: {type(error).__name__}: {reason(error)}")


def shown(text: str) -> str:
    """Returns the beginning of a text, in one line that a log can have."""
    if len(text) > SHOWN_CHARACTERS:
        text = f"{text[:SHOWN_CHARACTERS]}..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
