"""A client's connection, which may be closed in one direction before it is in the other."""

from aiohttp import web

from keras_transformer.serving.requests import shown
from keras_transformer.serving.responses import encoded


class Connection(web.RequestHandler):
    """Answers a client that has sent its last request and says so by closing its side (EOF).

    aiohttp closes the whole connection then, and the client gets no answer. From EOF alone, nobody
    can tell such a client from one that has gone: that one's request is worked on, too, until
    something is written to it, or until its connection is reset.
    """

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answers what is no HTTP as the application answers other errors."""
        response = super().handle_error(request, status, exc, message)
        why = " ".join((message or "").split())
        rule = "a request must be whole and valid HTTP/1.1"
        response.body = encoded({"error": shown(f"{rule}. Received: {why}")})
        response.content_type = "application/json"
        return response

    def eof_received(self) -> bool:
        """Has the connection closed after the answer; true keeps it open until then."""
        self.close()
        self._loop.call_soon(self._stop_reading)  # what came just before is being answered then
        return True

    def _stop_reading(self) -> None:
        """Closes the connection if no answer is due, or ends the wait for the rest of a body."""
        request = self._current_request
        if not self._request_in_progress:
            self.force_close()
        elif request is not None and not request.content.is_eof():
            request.content.set_exception(web.RequestPayloadError("the body ends too early"))
            request.content.feed_eof()
