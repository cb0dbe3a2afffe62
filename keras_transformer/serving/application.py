"""What answers the requests of the page, of programs, and of clients of LibreTranslate.

What is answered where stands in routes.py, and GET /openapi.json describes it, with the fields of
all bodies.

POST /translate takes three kinds of requests, which differ by their fields: `text` or `texts` are
sentences, of which all is told (requests.TranslateRequest); `document` is a text of any length,
whose sentences are found (requests.DocumentRequest); `q` is the same as clients of LibreTranslate
send it (libretranslate.LibreTranslateRequest).

A request that is refused, or at which the model fails, is answered with a status of 4xx or 5xx and
{"error": one line}. Every request has one line in the log.
"""

import asyncio
import functools
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from aiohttp import web

from keras_transformer.documents.formats import PLAIN, read_document
from keras_transformer.documents.segments import Segment
from keras_transformer.errors import InputError, reason
from keras_transformer.serving import detection
from keras_transformer.serving.batching import Batcher
from keras_transformer.serving.file_store import FileStore
from keras_transformer.serving.languages import AUTO, model_languages
from keras_transformer.serving.libretranslate import (
    DocumentCall,
    detected_language,
    is_libretranslate,
    language_list,
    parse_detect,
    parse_file,
    parse_libretranslate,
    translation_body,
)
from keras_transformer.serving.openapi import Route
from keras_transformer.serving.requests import (
    DocumentRequest,
    Limits,
    RequestError,
    allows,
    check,
    check_sender,
    fields_of,
    parse_attention,
    parse_document,
    parse_translate,
    shown,
)
from keras_transformer.serving.responses import (
    attention_fields,
    encoded,
    translation_fields,
)

if TYPE_CHECKING:  # it imports TensorFlow, and checking a flag need not wait for that
    from keras_transformer.decoding.answers import PairAttention
    from keras_transformer.decoding.translator import Translator

BATCH_SENTENCES = 64  # in one call of the model
FILE_TYPE = "application/octet-stream"  # of documents, which browsers then keep as files
ANSWER_WEIGHTS = 2_000_000  # about six bytes each: 6 layers of 8 heads, 118 pieces a side
HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
# Of the address at which clients reach the server, as a proxy names it.
_is_host = re.compile(r"[A-Za-z0-9.:\[\]-]{1,255}").fullmatch
LOG = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Service:
    """Answers requests with a translator, which runs in threads beside the event loop.

    Args:
        translator: from keras_transformer.load.
        limits: of a request.
        host_names: those by which the server may be called; None for any.
        cors_origin: of other pages that may use the server, all for "*"; None for no other pages.
        files: where translated files are kept until they are fetched; None for a store of its own.

    Attributes:
        requests: how many requests were answered so far.
        errors: how many of them were refused or failed.
        translations: the batcher of sentences to translate, which counts sentences and batches.
        documents: how many texts of any length were translated so far.
    """

    def __init__(
        self,
        translator: "Translator",
        limits: Limits,
        host_names: frozenset[str] | None,
        cors_origin: str | None = None,
        files: FileStore | None = None,
    ):
        self.translator = translator
        self.limits = limits
        self.host_names = host_names
        self.cors_origin = cors_origin
        self.requests = 0
        self.errors = 0
        self.documents = 0
        self.translations = Batcher(translator.translate, BATCH_SENTENCES, limits.max_waiting)
        # Request by request: an error about a prefix must not become that of other requests.
        self._single_calls = Batcher(call_all, 1, limits.max_waiting)
        # Pair by pair: an answer is large, and its error is its own, too.
        self._attentions = Batcher(self._attention_bodies, 1, limits.max_waiting)
        self._detections = Batcher(detect_all, BATCH_SENTENCES, limits.max_waiting)
        self._languages = model_languages(translator.card.to_json())
        self._files = FileStore() if files is None else files

    def application(self, routes: Iterable[Route]) -> web.Application:
        """Makes the application that aiohttp runs.

        Args:
            routes: what is answered where; routes.ROUTES has them.
        """
        application = web.Application(
            middlewares=[self._report, self._guard],
            client_max_size=self.limits.body_bytes,
        )
        for route in routes:
            handler = functools.partial(route.handler, self)
            if route.method == "GET":
                application.router.add_get(route.path, handler)  # and HEAD
            else:
                application.router.add_route(route.method, route.path, handler)
        return application

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
        response.headers.update({**HEADERS, **self._cors_headers(request)})
        what = f"{request.method} {shown(request.raw_path)} {response.status}"
        LOG.info("%s in %.3f s %s", what, time.monotonic() - started, message)
        return response

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuses what other web pages send, before anything is done with it."""
        check_sender(request.headers, self.host_names, self.cors_origin)
        refusal = request.match_info.http_exception
        is_preflight = request.method == "OPTIONS" and self._cors_headers(request)
        if is_preflight and isinstance(refusal, web.HTTPMethodNotAllowed):
            allowed = {
                "Access-Control-Allow-Methods": refusal.headers["Allow"],
                "Access-Control-Allow-Headers": "Content-Type",
            }
            return web.Response(status=204, headers=allowed)
        return await handler(request)

    def _cors_headers(self, request: web.Request) -> dict[str, str]:
        """What lets a page of another origin read the answer, if it may."""
        origin = request.headers.get("Origin")
        if self.cors_origin is None or not allows(self.cors_origin, origin):
            return {}
        return {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}

    async def health(self, request: web.Request) -> web.Response:
        """Answers that it answers."""
        return json_response(encoded({"status": "ok"}))

    async def model(self, request: web.Request) -> web.Response:
        """Gives the model card, and the limits of a request."""
        limits = {"sentences": self.limits.max_sentences, "characters": self.limits.max_characters}
        signatures = sorted(self.translator.graphs)
        card = self.translator.card.to_json()
        return json_response(encoded({**card, "signatures": signatures, "limits": limits}))

    async def translate(self, request: web.Request) -> web.Response:
        """Translates sentences or documents: three kinds of requests, see above."""
        fields = await self._read_fields(request)
        if is_libretranslate(fields):
            body = await self._libretranslate(fields)
        elif "document" in fields:
            body = await self._document(fields)
        else:
            body = await self._sentences(fields)
        return json_response(encoded(body))

    async def _sentences(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Answers a TranslateRequest."""
        call = parse_translate(fields, self.limits, self.translator.config.beam_size)
        texts = self._with_codes(call.texts, call.to)
        if call.options:
            work = functools.partial(self.translator.translate, texts, **call.options)
            try:
                (answers,) = await self._submit(self._single_calls, [work])
            except InputError as error:  # a prefix or phrases that do not fit
                raise RequestError(400, str(error)) from None
        else:
            answers = await self._submit(self.translations, texts)
        aligned = "aligned" in call.options
        translations = [
            [translation_fields(translation, aligned) for translation in answer[: call.n_best]]
            for answer in answers
        ]
        return {"translations": translations}

    async def _document(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Answers a DocumentRequest."""
        self._require_translations()
        request = parse_document(fields, self.limits)
        self._check_target([request.document], request.to)
        if request.format in PLAIN:
            work = functools.partial(self._translate_sentences, request)
            ((translation, found),) = await self._submit(self._single_calls, [work])
            self.documents += 1
            return {"translation": translation, "sentences": [row._asdict() for row in found]}
        call = DocumentCall([request.document], request.format, to=request.to)
        return {"translation": await self._translate_document(call)}

    async def _libretranslate(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Answers a LibreTranslateRequest."""
        self._require_translations()
        beam_size = self.translator.config.beam_size
        request, call = parse_libretranslate(fields, self.limits, self._languages, beam_size)
        self._check_target(call.texts, call.to)
        translations = await self._translate_documents(call)
        if request.source != AUTO:
            return translation_body(request, translations, None)
        found = [None] * len(call.texts)
        if detection.is_available():
            texts = [language_in(text, call.format) for text in call.texts]
            found = await self._submit(self._detections, texts)
        detected = [detected_language(one, self._languages) for one in found]
        return translation_body(request, translations, detected)

    async def languages(self, request: web.Request) -> web.Response:
        """Gives the languages of the model; none where it does not know them."""
        return json_response(encoded(language_list(self._languages)))

    async def detect(self, request: web.Request) -> web.Response:
        """Finds the language of a text."""
        text = parse_detect(await self._read_fields(request), self.limits)
        try:
            (found,) = await self._submit(self._detections, [text])
        except InputError as error:  # no detector is installed
            raise RequestError(404, str(error)) from None
        return json_response(encoded([one._asdict() for one in found]))

    async def translate_file(self, request: web.Request) -> web.Response:
        """Translates a document, and keeps it to be fetched."""
        self._require_translations()
        fields = await self._read_fields(request)
        call, ending = parse_file(fields, self.limits, self._languages)
        self._check_target(call.texts, call.to)
        translation = await self._translate_document(call)
        name = self._files.add(translation.encode("utf-8", errors="replace"), ending)
        url = f"{origin_of(request)}/download_file/{name}"
        return json_response(encoded({"translatedFileUrl": url}))

    async def download(self, request: web.Request) -> web.Response:
        """Gives a document that was translated."""
        content = self._files.get(request.match_info["name"])
        rule = "the name must be that of a file which was translated within the last minutes"
        check(content is not None, 404, rule, shown(request.match_info["name"]))
        headers = {"Content-Disposition": "attachment"}  # never a page of this server
        return web.Response(body=content, content_type=FILE_TYPE, headers=headers)

    async def attention(self, request: web.Request) -> web.Response:
        """Computes the attention of a sentence and its translation."""
        asked = parse_attention(await self._read_fields(request), self.limits)
        (source,) = self._with_codes([asked.source], asked.to)
        (body,) = await self._submit(self._attentions, [(source, asked.target)])
        return json_response(body)

    async def _read_fields(self, request: web.Request) -> dict[str, Any]:
        """Reads what a client sends: JSON or a form."""
        return fields_of(await self._read_body(request), request.headers.get("Content-Type", ""))

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

    def _require_translations(self) -> None:
        """Refuses documents where the model is none that translates."""
        task = self.translator.card.to_json().get("task")
        rule = "documents, files and q must be given to a translation model"
        check(task == "translation", 400, rule, f"a request to a {task} model")

    def _with_codes(self, texts: list[str], to: str | None) -> list[str]:
        """Puts the code of a target language before texts, where the model needs one."""
        has_codes = self._languages is not None and self._languages.has_codes
        if to is None and not has_codes:
            return texts
        try:
            return self.translator.with_codes(texts, to)
        except InputError as error:
            raise RequestError(400, str(error)) from None

    def _check_target(self, texts: list[str], to: str | None) -> None:
        """Refuses documents without a target language, where the model needs one."""
        self._with_codes(texts, to)
        if to is None and self._languages is not None and self._languages.has_codes:
            targets = self._languages.targets
            rule = f"to must be given with documents, one of {', '.join(targets)}"
            check(len(targets) == 1, 400, rule, "none")

    async def _translate_document(self, call: DocumentCall) -> str:
        """Gives the translation of the one text of a call, of which one is asked for."""
        (translations,) = await self._translate_documents(call)
        return translations[0]

    async def _translate_documents(self, call: DocumentCall) -> list[list[str]]:
        """Gives the translations of each text, the best first."""
        work = functools.partial(self._translations_of, call)
        (translations,) = await self._submit(self._single_calls, [work])
        self.documents += len(call.texts)
        return translations

    def _translations_of(self, call: DocumentCall) -> list[list[str]]:
        """Translates texts of any length: `call.count` translations of each, the best first."""
        options = {} if call.to is None else {"to": call.to, "language": call.language}
        translators = self.translator.document_translators(call.count, **options)
        rows = []
        for text in call.texts:
            parts = parts_of(text, call.format, translators[0].language)
            rows.append(["".join(documents.translate(parts)) for documents in translators])
        return rows

    def _translate_sentences(self, request: DocumentRequest) -> tuple[str, list]:
        """Translates plain text, and tells its sentences."""
        options = {} if request.to is None else {"to": request.to}
        documents = self.translator.document_translator(**options)
        parts = parts_of(request.document, request.format, documents.language)
        return documents.translate_sentences(parts)

    def _attention_bodies(self, pairs: list[tuple[str, str]]) -> list[bytes]:
        """Makes whole bodies: making JSON of attention takes long, and this is no event loop."""
        return [attention_body(self.translator.attention(*pair)) for pair in pairs]


def call_all(works: list[Callable[[], Any]]) -> list[Any]:
    """Does each work, and gives what it returns."""
    return [work() for work in works]


def detect_all(texts: list[str]) -> list[list[detection.Detected]]:
    """Detects the language of each text."""
    return [detection.detect(text) for text in texts]


def parts_of(text: str, format: str, language: str) -> tuple[str | Segment, ...]:
    """Reads a document; what it cannot be is its sender's mistake."""
    try:
        return read_document(text, format, language).parts
    except InputError as error:
        raise RequestError(400, str(error)) from None


def language_in(text: str, format: str) -> str:
    """What of a document is language, without markup: its language is to be detected."""
    parts = parts_of(text, format, "en")  # which language it is does not matter so far
    return "\n".join(part.text for part in parts if isinstance(part, Segment))


def origin_of(request: web.Request) -> str:
    """Where the client reaches the server: as the proxy before it says, if there is one."""
    scheme = request.headers.get("X-Forwarded-Proto", request.scheme)
    host = request.headers.get("X-Forwarded-Host", request.host)
    is_address = scheme in ("http", "https") and _is_host(host)
    return f"{scheme}://{host}" if is_address else f"{request.scheme}://{request.host}"


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


def json_response(
    body: bytes, status: int = 200, headers: dict[str, str] | None = None
) -> web.Response:
    """Makes a response whose body is JSON already."""
    return web.Response(
        body=body, status=status, headers=headers, content_type="application/json", charset="utf-8"
    )


def attention_body(attention: "PairAttention") -> bytes:
    """Returns the attention of one pair as JSON.

    Raises:
        RequestError: 413 where an answer would have too many weights.
    """
    count = attention.encoder.size + attention.decoder.size + attention.memory.size
    rule = f"an answer must have at most {ANSWER_WEIGHTS} weights: ask for a shorter sentence"
    check(count <= ANSWER_WEIGHTS, 413, rule, f"one of {count}")
    return encoded(attention_fields(attention))
