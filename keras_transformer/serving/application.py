"""The web application: a page to look at, and the JSON endpoints it is made of.

    GET  /           the page
    GET  /healthz    {"status": "ok"}
    GET  /model      the model's card, and the limits of a request
    POST /translate  {"text": string} or {"texts": [string, ...]}, optionally "n_best": n
                     -> {"translations": [[{"text", "score", "log_prob"}, ...], ...]}
    POST /attention  {"source": string, "target": string}
                     -> {"source_pieces": [string] * S, "target_pieces": [string] * T,
                         "encoder": [N, H, S, S], "decoder": [N, H, T, T], "memory": [N, H, T, S],
                         "alignment": [T]}

A parsing model's texts are trees in brackets, as its card says: {"task": "parsing", ...}.

Row t of `decoder` and `memory` is what the decoder attended to when it predicted target piece t;
column t of `decoder` is the piece it had read there: BOS for t = 0, target piece t - 1 otherwise.

Whatever cannot be answered gets a 4xx or 5xx with {"error": one line}, and one line in the log;
what is no HTTP to begin with, aiohttp refuses in plain text.
"""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from aiohttp import web

from keras_transformer.errors import InputError, reason
from keras_transformer.serving.batching import Batcher, QueueFullError
from keras_transformer.serving.requests import (
    SHOWN_CHARACTERS,
    AttentionRequest,
    Limits,
    RequestError,
    check_sender,
    parse_attention,
    parse_translate,
    shown,
)

if TYPE_CHECKING:  # it imports TensorFlow, and checking a flag need not wait for that
    from keras_transformer.decoding.translator import PairAttention, Translation, Translator

# Sentences of one call of the model.
BATCH_SENTENCES = 64
# Weights of one answer, about six bytes each: 6 layers of 8 heads, 118 pieces a side.
ANSWER_WEIGHTS = 2_000_000
WEIGHT_DIGITS = 3
SCORE_DIGITS = 6
MAPS = ("encoder", "decoder", "memory")
# Files of the package. The figure is that of offline attention pages, and so is the style.
PAGE = {
    "/": "serving/page.html",
    "/page.js": "serving/page.js",
    "/page.css": "analysis/attention_figure.css",
    "/figure.js": "analysis/attention_figure.js",
}
CONTENT_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
LOG = logging.getLogger(__name__)


class Service:
    """Answers requests with a translator, which runs in threads beside the event loop.

    Args:
        translator: from keras_transformer.load.
        limits: of a request.
        host_names: those by which the server may be called; None for any.

    Attributes:
        requests, errors: how many there were so far.
    """

    def __init__(self, translator: "Translator", limits: Limits, host_names: frozenset[str] | None):
        self.translator = translator
        self.limits = limits
        self.host_names = host_names
        self.requests = 0
        self.errors = 0
        self.translations = Batcher(translator.translate, BATCH_SENTENCES, limits.waiting)
        # Pair by pair: an answer is large, and no pair's error may become another's.
        self.attentions = Batcher(self._attention_bodies, 1, limits.waiting)
        folder = Path(__file__).parents[1]
        self.page = {path: (folder / name).read_bytes() for path, name in PAGE.items()}

    def application(self) -> web.Application:
        """Makes the aiohttp application, which runs the batchers while it runs."""
        app = web.Application(middlewares=[self.guard], client_max_size=self.limits.body_bytes)
        app.cleanup_ctx.append(self._running_batchers)
        for path in PAGE:
            app.router.add_get(path, self.get_page)
        app.router.add_get("/healthz", self.get_health)
        app.router.add_get("/model", self.get_model)
        app.router.add_post("/translate", self.post_translate)
        app.router.add_post("/attention", self.post_attention)
        return app

    async def get_page(self, request: web.Request) -> web.Response:
        """The page, or a file that belongs to it."""
        kind = CONTENT_TYPES[Path(PAGE[request.path]).suffix]
        return web.Response(body=self.page[request.path], content_type=kind, charset="utf-8")

    async def get_health(self, request: web.Request) -> web.Response:
        """That the server runs."""
        return response({"status": "ok"})

    async def get_model(self, request: web.Request) -> web.Response:
        """What is served."""
        limits = {"sentences": self.limits.sentences, "characters": self.limits.characters}
        return response({**self.translator.card, "limits": limits})

    async def post_translate(self, request: web.Request) -> web.Response:
        """Translations of sentences."""
        body = await self._body(request)
        texts, n_best = parse_translate(body, self.limits, self.translator.card["beam_size"])
        answers = await self._submit(self.translations, texts)
        rows = [[translation_fields(best) for best in answer[:n_best]] for answer in answers]
        return response({"translations": rows})

    async def post_attention(self, request: web.Request) -> web.Response:
        """Attention weights of a sentence and its translation."""
        pair = parse_attention(await self._body(request), self.limits)
        (body,) = await self._submit(self.attentions, [pair])
        return web.Response(body=body, content_type="application/json", charset="utf-8")

    @web.middleware
    async def guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.Response]]
    ) -> web.Response:
        """Lets a request through to its handler, and makes one line of whatever goes wrong."""
        started, status, message, headers = time.monotonic(), 200, "", {}
        try:
            check_sender(request.headers, self.host_names)
            answer = await handler(request)
        except ConnectionError:
            raise  # nobody is left to answer
        except RequestError as error:
            status, message, headers = error.status, str(error), error.headers
        except web.HTTPException as error:
            status, message, headers = self._http_error(request, error)
        except InputError as error:
            status, message = 500, str(error)
        except Exception as error:
            status, message = 500, f"the model failed: {type(error).__name__}: {reason(error)}"
        if message:
            answer = response({"error": message}, status)
        answer.headers.update(HEADERS | headers)
        self.requests += 1
        self.errors += status >= 400
        what = f"{request.method} {request.raw_path[:SHOWN_CHARACTERS]} {status}"
        LOG.info("%s in %.3f s %s", what, time.monotonic() - started, message)
        return answer

    def _http_error(
        self, request: web.Request, error: web.HTTPException
    ) -> tuple[int, str, dict[str, str]]:
        """What aiohttp refuses, in our words: status, message, headers."""
        if isinstance(error, web.HTTPMethodNotAllowed):
            allowed = error.headers["Allow"]
            message = f"{request.path} allows {allowed} only. Received: {request.method}"
            return error.status, message, {"Allow": allowed}
        if isinstance(error, web.HTTPRequestEntityTooLarge):
            message = f"the body must have at most {self.limits.body_bytes} bytes. Received: more"
            return error.status, message, {}
        if isinstance(error, web.HTTPNotFound):
            return error.status, f"there is no {shown(request.path)}", {}
        return error.status, error.reason, {}

    async def _body(self, request: web.Request) -> bytes:
        try:
            async with asyncio.timeout(self.limits.timeout):
                return await request.read()
        except TimeoutError:
            rule = f"the body must arrive within {self.limits.timeout:g} seconds"
            raise RequestError(408, f"{rule}. Received: a part of it") from None
        except web.RequestPayloadError:
            rule = "the body must be encoded as its headers say"
            raise RequestError(400, f"{rule}. Received: one that is not, or a part") from None

    async def _submit(self, batcher: Batcher, items: list[Any]) -> list[Any]:
        try:
            async with asyncio.timeout(self.limits.timeout):
                return await batcher.submit(items)
        except TimeoutError:
            message = f"the model took more than {self.limits.timeout:g} seconds"
            raise RequestError(504, message) from None
        except QueueFullError:
            message = f"{self.limits.waiting} requests wait already: try again"
            raise RequestError(503, message, {"Retry-After": "1"}) from None

    def _attention_bodies(self, pairs: list[AttentionRequest]) -> list[bytes]:
        """Gives whole bodies: making JSON of them, too, would hold up the event loop."""
        return [attention_body(self.translator.attention(*pair)) for pair in pairs]

    async def _running_batchers(self, app: web.Application) -> AsyncIterator[None]:
        runs = [asyncio.create_task(b.run()) for b in (self.translations, self.attentions)]
        yield
        for run in runs:
            run.cancel()
        await asyncio.gather(*runs, return_exceptions=True)


def translation_fields(translation: "Translation") -> dict[str, Any]:
    """One translation as JSON has it."""
    return {
        "text": translation.text,
        "score": round(translation.score, SCORE_DIGITS),
        "log_prob": round(translation.log_prob, SCORE_DIGITS),
    }


def attention_body(attention: "PairAttention") -> bytes:
    """The attention of one pair as JSON.

    Raises:
        RequestError: 413 where it is too much.
    """
    count = sum(getattr(attention, name).size for name in MAPS)
    if count > ANSWER_WEIGHTS:
        rule = f"an answer must have at most {ANSWER_WEIGHTS} weights: ask for a shorter sentence"
        raise RequestError(413, f"{rule}. Received: one of {count}")
    fields = {name: getattr(attention, name) for name in ("source_pieces", "target_pieces")}
    for name in MAPS:  # doubles, as the digits of a rounded float32 go on when printed
        weights = getattr(attention, name).astype(np.float64)
        fields[name] = np.round(weights, WEIGHT_DIGITS).tolist()
    return encoded({**fields, "alignment": attention.alignment.tolist()})


def response(value: Any, status: int = 200) -> web.Response:
    """A JSON response."""
    body = encoded(value)
    return web.Response(body=body, status=status, content_type="application/json", charset="utf-8")


def encoded(value: Any) -> bytes:
    """JSON in UTF-8; half a surrogate pair, which UTF-8 cannot hold, becomes "?"."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", errors="replace")
