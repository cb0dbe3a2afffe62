"""The web application: a page to look at, and the JSON endpoints it is made of.

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

Whatever cannot be answered gets a 4xx or 5xx with {"error": one line}, and one line in the log.
"""

import asyncio
import json
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from aiohttp import HttpVersion11, web

from keras_transformer.attention.views import word_labels
from keras_transformer.errors import InputError, reason
from keras_transformer.serving.batching import Batcher
from keras_transformer.serving.requests import (
    Limits,
    RequestError,
    check,
    check_sender,
    parse_attention,
    parse_translate,
    shown,
)

if TYPE_CHECKING:  # it imports TensorFlow, and checking a flag need not wait for that
    from keras_transformer.decoding.translator import PairAttention, Translation, Translator

BATCH_SENTENCES = 64  # of one call of the model
ANSWER_WEIGHTS = 2_000_000  # about six bytes each: 6 layers of 8 heads, 118 pieces a side
JSON = "application/json"
# Files of the package. The figure is that of offline attention pages, and so is the style.
PAGE = {
    "/": ("text/html", "serving/page.html"),
    "/page.js": ("text/javascript", "serving/page.js"),
    "/page.css": ("text/css", "attention/figure.css"),
    "/figure.js": ("text/javascript", "attention/figure.js"),
}
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
        self.translator, self.limits, self.host_names = translator, limits, host_names
        self.requests = self.errors = 0
        self.translations = Batcher(translator.translate, BATCH_SENTENCES, limits.waiting)
        # Request by request, as no prefix's error may become another's.
        self.alone = Batcher(self._translate_alone, 1, limits.waiting)
        # Pair by pair: an answer is large, and no pair's error may become another's.
        self.attentions = Batcher(self._attention_bodies, 1, limits.waiting)
        self._posts = {"/translate": self._translate, "/attention": self._attention}
        names = sorted(translator.graphs)
        served = {"sentences": limits.sentences, "characters": limits.characters}
        self._gets = {
            "/healthz": (JSON, encoded({"status": "ok"})),
            "/model": (JSON, encoded({**translator.card, "signatures": names, "limits": served})),
        }
        for path, (kind, file) in PAGE.items():
            self._gets[path] = (kind, (Path(__file__).parents[1] / file).read_bytes())

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answers a request, with one line of JSON where something goes wrong."""
        started = time.monotonic()
        try:
            check_sender(request.headers, self.host_names)
            kind, body = await self._found(request)
        except ConnectionError:
            raise  # nobody is left to answer
        except Exception as error:
            return self.refusal(request, error, time.monotonic() - started)
        self._count(request, 200, time.monotonic() - started)
        return web.Response(body=body, headers=HEADERS, content_type=kind, charset="utf-8")

    def refusal(self, request: web.BaseRequest, error: Exception, seconds: float) -> web.Response:
        """Makes the answer to a request that is refused, or at which the model failed."""
        if not isinstance(error, RequestError):
            failed = f"the model failed: {type(error).__name__}: {reason(error)}"
            error = RequestError(500, str(error) if isinstance(error, InputError) else failed)
        self._count(request, error.status, seconds, str(error))
        headers = HEADERS | error.headers
        return web.json_response({"error": str(error)}, status=error.status, headers=headers)

    def _count(self, request: web.BaseRequest, status: int, seconds: float, message: str = ""):
        self.requests += 1
        self.errors += status >= 400
        what = f"{request.method} {shown(request.raw_path)} {status}"
        LOG.info("%s in %.3f s %s", what, seconds, message)

    async def _found(self, request: web.BaseRequest) -> tuple[str, bytes]:
        """Gives type and body of the answer."""
        path, method = request.path, request.method
        if path not in self._gets | self._posts:
            raise RequestError(404, f"there is no {path!r}")
        allowed = "GET,HEAD" if path in self._gets else "POST"
        if method not in allowed.split(","):
            rule = f"{path} allows {allowed} only"
            raise RequestError(405, f"{rule}. Received: {method}", {"Allow": allowed})
        expect = request.headers.get("Expect", "100-continue")
        check(expect.lower() == "100-continue", 417, "Expect must be 100-continue", repr(expect))
        if path in self._gets:
            return self._gets[path]
        return JSON, await self._posts[path](await self._body(request))

    async def _body(self, request: web.BaseRequest) -> bytes:
        body, most = bytearray(), self.limits.body_bytes
        try:
            async with asyncio.timeout(self.limits.timeout):
                if "Expect" in request.headers and request.version == HttpVersion11:
                    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                    request.writer.output_size = 0  # that was not the answer yet
                async for part in request.content.iter_any():
                    body += part
                    rule = f"the body must have at most {most} bytes"
                    check(len(body) <= most, 413, rule, "more")
        except TimeoutError:
            rule = f"the body must arrive within {self.limits.timeout:g} seconds"
            raise RequestError(408, f"{rule}. Received: a part of it") from None
        except web.RequestPayloadError:
            rule = "the body must be encoded as its headers say"
            raise RequestError(400, f"{rule}. Received: one that is not, or a part") from None
        return bytes(body)

    async def _translate(self, body: bytes) -> bytes:
        beams = self.translator.card["beam_size"]
        texts, options, n_best = parse_translate(body, self.limits, beams)
        if options:
            try:
                (answers,) = await self._submit(self.alone, [(texts, options)])
            except InputError as error:  # a prefix or phrases that do not fit
                raise RequestError(400, str(error)) from None
        else:
            answers = await self._submit(self.translations, texts)

        def fields(best: "Translation") -> dict[str, Any]:
            score, log_prob = round(best.score, 6), round(best.log_prob, 6)
            found = {"text": best.text, "score": score, "log_prob": log_prob}
            if "aligned" in options:
                found |= best.pair._asdict() | {"pharaoh": best.pair.pharaoh}
            return found

        rows = [[fields(best) for best in answer[:n_best]] for answer in answers]
        return encoded({"translations": rows})

    async def _attention(self, body: bytes) -> bytes:
        (answer,) = await self._submit(self.attentions, [parse_attention(body, self.limits)])
        return answer

    async def _submit(self, batcher: Batcher, items: list[Any]) -> list[Any]:
        try:
            async with asyncio.timeout(self.limits.timeout):
                return await batcher.submit(items)
        except TimeoutError:
            message = f"the model took more than {self.limits.timeout:g} seconds"
            raise RequestError(504, message) from None
        except asyncio.QueueFull:
            message = f"{self.limits.waiting} requests wait already: try again"
            raise RequestError(503, message, {"Retry-After": "1"}) from None

    def _translate_alone(self, requests: list[tuple[list[str], dict]]) -> list[list]:
        return [self.translator.translate(texts, **options) for texts, options in requests]

    def _attention_bodies(self, pairs: list[tuple[str, str]]) -> list[bytes]:
        """Gives whole bodies: making JSON of them, too, would hold up the event loop."""
        return [attention_body(self.translator.attention(*pair)) for pair in pairs]


def attention_body(attention: "PairAttention") -> bytes:
    """The attention of one pair as JSON.

    Raises:
        RequestError: 413 where it is too much.
    """
    maps = {name: getattr(attention, name) for name in ("encoder", "decoder", "memory")}
    count = sum(weights.size for weights in maps.values())
    rule = f"an answer must have at most {ANSWER_WEIGHTS} weights: ask for a shorter sentence"
    check(count <= ANSWER_WEIGHTS, 413, rule, f"one of {count}")
    lists = {  # doubles, as the digits of a rounded float32 go on when printed
        name: np.round(weights.astype(np.float64), 3).tolist() for name, weights in maps.items()
    }
    pieces = {
        "source_pieces": attention.source_pieces,
        "source_labels": word_labels(attention.source_pieces),
        "target_pieces": attention.target_pieces,
        "target_labels": word_labels(attention.target_pieces),
    }
    return encoded({**pieces, **lists, "alignment": attention.alignment.tolist()})


def encoded(value: Any) -> bytes:
    """JSON in UTF-8; half a surrogate pair, which UTF-8 cannot hold, becomes "?"."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", errors="replace")
