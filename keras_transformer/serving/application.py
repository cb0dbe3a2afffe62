"""The web application: a page to look at, and the JSON endpoints that it uses.

    GET  /           the page
    GET  /healthz    {"status": "ok"}
    GET  /model      the model's card, and the limits of a request
    POST /translate  {"text": string} or {"texts": [string, ...]}, optionally "n_best": n, and
                     "prefixes": [string, ...], what the translations of each begin with, and
                     "required_phrases": [[string, ...], ...], what those of each contain
                     -> {"translations": [[{"text", "score", "log_prob"}, ...], ...]}; with
                     "aligned": true also the fields of an AlignedPair, and "pharaoh"
    POST /attention  {"source": string, "target": string}
                     -> {"source_pieces": [string] * S, "target_pieces": [string] * T,
                         "source_labels", "target_labels": the pieces as a reader expects them,
                         "encoder": [N, H, S, S], "decoder": [N, H, T, T], "memory": [N, H, T, S],
                         "alignment": [T]}

A parsing model's texts are trees in brackets, as its card says: {"task": "parsing", ...}.

Row t of `decoder` and `memory` is what the decoder attended to when it predicted target piece t;
column t of `decoder` is the piece it had read there: BOS for t = 0, target piece t - 1 otherwise.

A request that is refused, or at which the model fails, is answered with a status of 4xx or 5xx and
{"error": one line}. Every request has one line in the log.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from aiohttp import web

from keras_transformer.attention.views import word_labels
from keras_transformer.errors import InputError, reason
from keras_transformer.serving.batching import Batcher
from keras_transformer.serving.requests import (
    Limits,
    RequestError,
    TranslateCall,
    check,
    check_sender,
    parse_attention,
    parse_translate,
    shown,
)

if TYPE_CHECKING:  # it imports TensorFlow, and checking a flag need not wait for that
    from keras_transformer.decoding.translator import PairAttention, Translation, Translator

BATCH_SENTENCES = 64  # in one call of the model
ANSWER_WEIGHTS = 2_000_000  # about six bytes each: 6 layers of 8 heads, 118 pieces a side
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


class PageFile(NamedTuple):
    """A file of the page."""

    content_type: str
    path: str  # within the package


# The figure is that of offline attention pages, and so is the style.
PAGE = {
    "/": PageFile("text/html", "serving/page.html"),
    "/page.js": PageFile("text/javascript", "serving/page.js"),
    "/page.css": PageFile("text/css", "attention/figure.css"),
    "/figure.js": PageFile("text/javascript", "attention/figure.js"),
}


class Service:
    """Answers requests with a translator, which runs in threads beside the event loop.

    Args:
        translator: from keras_transformer.load.
        limits: of a request.
        host_names: those by which the server may be called; None for any.

    Attributes:
        requests: how many requests were answered so far.
        errors: how many of them were refused or failed.
        translations: the batcher of sentences to translate, which counts sentences and batches.
    """

    def __init__(self, translator: "Translator", limits: Limits, host_names: frozenset[str] | None):
        self.translator = translator
        self.limits = limits
        self.host_names = host_names
        self.requests = 0
        self.errors = 0
        self.translations = Batcher(translator.translate, BATCH_SENTENCES, limits.max_waiting)
        # Request by request: an error about a prefix must not become that of other requests.
        self._single_calls = Batcher(self._translate_calls, 1, limits.max_waiting)
        # Pair by pair: an answer is large, and its error is its own, too.
        self._attentions = Batcher(self._attention_bodies, 1, limits.max_waiting)

    def application(self) -> web.Application:
        """Makes the application that aiohttp runs: what is answered where, and how."""
        application = web.Application(
            middlewares=[self._report, self._guard],
            client_max_size=self.limits.body_bytes,
        )
        router = application.router
        for path, (content_type, file) in PAGE.items():
            content = (Path(__file__).parents[1] / file).read_bytes()
            router.add_get(path, fixed_answer(content, content_type))
        router.add_get("/healthz", fixed_answer(encoded({"status": "ok"})))
        router.add_get("/model", fixed_answer(encoded(self._describe_model())))
        router.add_post("/translate", self._translate)
        router.add_post("/attention", self._attention)
        return application

    def _describe_model(self) -> dict[str, Any]:
        limits = {"sentences": self.limits.max_sentences, "characters": self.limits.max_characters}
        signatures = sorted(self.translator.graphs)
        return {**self.translator.card.to_json(), "signatures": signatures, "limits": limits}

    @web.middleware
    async def _report(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Turns errors into answers of one line, and writes a line about every request."""
        started = time.monotonic()
        message = ""
        try:
            response = await handler(request)
        except ConnectionError:
            raise  # nobody is left to answer
        except Exception as error:
            refusal = as_refusal(request, error)
            message = str(refusal)
            body = encoded({"error": message})
            response = json_response(body, refusal.status, refusal.headers)
            self.errors += 1
        self.requests += 1
        response.headers.update(HEADERS)
        what = f"{request.method} {shown(request.raw_path)} {response.status}"
        LOG.info("%s in %.3f s %s", what, time.monotonic() - started, message)
        return response

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuses what other web pages send, before anything is done with it."""
        check_sender(request.headers, self.host_names)
        return await handler(request)

    async def _translate(self, request: web.Request) -> web.Response:
        body = await self._read_body(request)
        call = parse_translate(body, self.limits, self.translator.config.beam_size)
        if call.options:
            try:
                (answers,) = await self._submit(self._single_calls, [call])
            except InputError as error:  # a prefix or phrases that do not fit
                raise RequestError(400, str(error)) from None
        else:
            answers = await self._submit(self.translations, call.texts)
        aligned = "aligned" in call.options
        translations = [
            [translation_fields(translation, aligned) for translation in answer[: call.n_best]]
            for answer in answers
        ]
        return json_response(encoded({"translations": translations}))

    async def _attention(self, request: web.Request) -> web.Response:
        pair = parse_attention(await self._read_body(request), self.limits)
        (body,) = await self._submit(self._attentions, [pair])
        return json_response(body)

    async def _read_body(self, request: web.Request) -> bytes:
        """Reads what a client sends, within the time limit."""
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
        """Has the model answer `items`, within the time limit."""
        try:
            async with asyncio.timeout(self.limits.timeout):
                return await batcher.submit(items)
        except TimeoutError:
            message = f"the model took more than {self.limits.timeout:g} seconds"
            raise RequestError(504, message) from None
        except asyncio.QueueFull:
            message = f"{self.limits.max_waiting} requests wait already: try again"
            raise RequestError(503, message, {"Retry-After": "1"}) from None

    def _translate_calls(self, calls: list[TranslateCall]) -> list[list]:
        return [self.translator.translate(call.texts, **call.options) for call in calls]

    def _attention_bodies(self, pairs: list[tuple[str, str]]) -> list[bytes]:
        """Makes whole bodies: making JSON of attention takes long, and this is no event loop."""
        return [attention_body(self.translator.attention(*pair)) for pair in pairs]


def as_refusal(request: web.Request, error: Exception) -> RequestError:
    """Says in one line why a request has no answer, whoever refused it."""
    if isinstance(error, RequestError):
        return error
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
    if isinstance(error, InputError):
        return RequestError(500, str(error))
    return RequestError(500, f"the model failed: {type(error).__name__}: {reason(error)}")


def fixed_answer(body: bytes, content_type: str = "application/json") -> Handler:
    """Returns a handler that always gives the same answer."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=body, content_type=content_type, charset="utf-8")

    return answer


def json_response(
    body: bytes, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    """Makes a response whose body is JSON already."""
    return web.Response(
        body=body, status=status, headers=headers, content_type="application/json", charset="utf-8"
    )


def translation_fields(translation: "Translation", aligned: bool) -> dict[str, Any]:
    """Returns a translation as JSON has it; an aligned one with its subwords and alignment."""
    fields = {
        "text": translation.text,
        "score": round(translation.score, 6),
        "log_prob": round(translation.log_prob, 6),
    }
    if aligned:
        fields.update(translation.pair._asdict())
        fields["pharaoh"] = translation.pair.pharaoh
    return fields


def attention_body(attention: "PairAttention") -> bytes:
    """Returns the attention of one pair as JSON.

    Raises:
        RequestError: 413 where an answer would have too many weights.
    """
    maps = {
        "encoder": attention.encoder,
        "decoder": attention.decoder,
        "memory": attention.memory,
    }
    count = sum(weights.size for weights in maps.values())
    rule = f"an answer must have at most {ANSWER_WEIGHTS} weights: ask for a shorter sentence"
    check(count <= ANSWER_WEIGHTS, 413, rule, f"one of {count}")
    lists = {  # doubles, as the digits of a rounded float32 go on when printed
        name: np.round(weights.astype(np.float64), 3).tolist() for name, weights in maps.items()
    }
    return encoded(
        {
            "source_pieces": attention.source_pieces,
            "source_labels": word_labels(attention.source_pieces),
            "target_pieces": attention.target_pieces,
            "target_labels": word_labels(attention.target_pieces),
            **lists,
            "alignment": attention.alignment.tolist(),
        }
    )


def encoded(value: Any) -> bytes:
    """Returns JSON in UTF-8; half a surrogate pair, which UTF-8 cannot hold, becomes "?"."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", errors="replace")
