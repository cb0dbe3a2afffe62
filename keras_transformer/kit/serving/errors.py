"""Errors of requests: an HTTP status, and one line."""

from typing import Any

from aiohttp import web

from keras_transformer.support.errors import InputError, reason

SHOWN_CHARACTERS = 240  # characters of an error message, and of an address in the log
# The meaning of each status.
REFUSALS = {
    400: "The body is invalid for the endpoint or for the model.",
    403: "The request comes from another server's page, or has another Host name.",
    404: "There is no such file, no language detector, or no file for corrections.",
    408: "The body did not arrive in time.",
    413: "The request has more text than the limits allow, or there are too many corrections.",
    500: "The model failed.",
    503: "Too many requests are waiting for the model: try again.",
    504: "The model took too long.",
    507: "The correction could not be saved; those before it are not lost.",
}


class RequestError(Exception):
    """A rejected request.

    Args:
        status: the HTTP status.
        message: the reason; becomes one line.
        headers: for the answer.
    """

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None):
        super().__init__(shown(message))
        self.status = status
        self.headers = headers or {}


def check(condition: bool, status: int, rule: str, received: Any) -> None:
    """Raises a RequestError, "RULE. Received: RECEIVED", if a condition does not hold."""
    if not condition:
        raise RequestError(status, f"{rule}. Received: {received}")


def as_refusal(error: Exception, request: web.Request) -> RequestError:
    """Returns the status and the message that answer a request after an error.

    An InputError concerns the request itself; those from the model are already RequestErrors.
    """
    if isinstance(error, RequestError):
        return error
    if isinstance(error, InputError):
        return RequestError(400, str(error))
    if isinstance(error, web.HTTPNotFound):
        return RequestError(404, f"there is no {request.path!r}")
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = error.headers["Allow"]
        rule = f"{request.path} only allows {allowed}"
        return RequestError(405, f"{rule}. Received: {request.method}", {"Allow": allowed})
    if isinstance(error, web.HTTPException):
        return RequestError(error.status, error.reason)
    return RequestError(500, f"the model failed: {type(error).__name__}: {reason(error)}")


def shown(text: str) -> str:
    """Returns the beginning of a text as one line for a log."""
    if len(text) > SHOWN_CHARACTERS:
        text = f"{text[:SHOWN_CHARACTERS]}..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
