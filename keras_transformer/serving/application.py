"""The web application: it serves the page, programs, and LibreTranslate clients.

routes.py lists the endpoints, and GET /openapi.json describes them and the fields of all request
and response bodies.

POST /translate takes three kinds of requests, distinguished by their fields: `text` or `texts` are
sentences, answered in full detail (requests.TranslateRequest); `document` is a text of any length,
which is split into sentences (requests.DocumentRequest); `q` is the same in LibreTranslate's format
(libretranslate.LibreTranslateRequest).

A rejected request, or a failure of the model, is answered with a 4xx or 5xx status and {"error":
one line}. Every request is logged in one line.
"""

import asyncio
import dataclasses
import functools
import logging
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from aiohttp import web

from keras_transformer.documents.corrections import Corrections
from keras_transformer.documents.formats import PLAIN, read_document
from keras_transformer.documents.lines import check_calibration
from keras_transformer.documents.segments import Document
from keras_transformer.documents.xml_source import MOST_MARKUP
from keras_transformer.errors import InputError, require
from keras_transformer.languages import AUTO
from keras_transformer.serving import detection
from keras_transformer.serving.batching import Batcher
from keras_transformer.serving.bodies import BODY, body_size
from keras_transformer.serving.corrections import CorrectionService, NoCorrections
from keras_transformer.serving.errors import RequestError, as_refusal, check, shown
from keras_transformer.serving.file_store import FileStore
from keras_transformer.serving.libretranslate import (
    FileAnswer,
    detected_language,
    is_libretranslate,
    language_list,
    parse_detect,
    parse_file,
    parse_libretranslate,
    translation_body,
    with_sources,
)
from keras_transformer.serving.limits import Limits
from keras_transformer.serving.openapi import JSON_TYPE, Route
from keras_transformer.serving.requests import (
    ANY_ORIGIN,
    DocumentRequest,
    Documents,
    allows,
    check_sender,
    parse_attention,
    parse_document,
    parse_translate,
    read_fields,
)
from keras_transformer.serving.responses import (
    attention_fields,
    count_fields,
    encoded,
    match_fields,
    sentence_fields,
    shown_card,
    translation_fields,
)

if TYPE_CHECKING:  # it imports TensorFlow, which checking a flag need not wait for
    from keras_transformer.translate.answer_counts import AnswerCounts
    from keras_transformer.translate.answers import PairAttention
    from keras_transformer.translate.translator import Translator

BATCH_SENTENCES = 64  # in one model call
MATCHES = 3  # sentences in the translation memory that resemble a text, at most
FILE_TYPE = "application/octet-stream"  # for documents, which browsers then save as files
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


class Service:
    """Answers requests with a translator, which runs in threads outside the event loop.

    Args:
        translator: from keras_transformer.load.
        limits: the limits on requests.
        host_names: host names that requests may use; None for any.
        cors_origin: origin of other pages that may call the server; "*" for all, None for none.
        terminologies: terminologies by name; requests that name none use the first one.
        corrections: the corrections that requests may change; None for none. The translator has
            them as a memory.

    Attributes:
        requests: number of requests answered so far.
        errors: number of those that were rejected or failed.
        translations: the batcher for sentences, which counts sentences and batches.
        documents: number of texts of any length translated so far.
    """

    def __init__(
        self,
        translator: "Translator",
        limits: Limits,
        host_names: frozenset[str] | None,
        cors_origin: str | None = None,
        terminologies: Mapping[str, dict[str, str]] | None = None,
        corrections: Corrections | None = None,
    ):
        self.translator = translator
        self.corrections: CorrectionService | NoCorrections = NoCorrections()
        if corrections is not None:
            self.corrections = CorrectionService(corrections, limits)
        self.terminologies = terminologies or {}
        self.limits = limits
        self.host_names = host_names
        self.cors_origin = cors_origin
        self.requests = 0
        self.errors = 0
        self.documents = 0
        self.translations = Batcher(translator.translate, BATCH_SENTENCES, limits.max_waiting)
        # Done for one request at a time, so that an error concerns that request only.
        self._single_calls = Batcher(call_all, 1, limits.max_waiting)
        self._attentions = Batcher(call_all, 1, limits.max_waiting)
        self._detections = Batcher(call_all, 1, limits.max_waiting)
        self._memory_calls = Batcher(call_all, 1, limits.max_waiting)
        self._languages = translator.card.languages
        self._has_codes = self._languages is not None and self._languages.has_codes
        self._files = FileStore()

    def application(self, routes: Iterable[Route]) -> web.Application:
        """Makes the application that aiohttp runs.

        Args:
            routes: the endpoints, routes.ROUTES.
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
        response.headers.update({**HEADERS, **self._cors_headers(request)})
        what = f"{request.method} {shown(request.raw_path)} {response.status}"
        LOG.info("%s in %.3f s %s", what, time.monotonic() - started, message)
        return response

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Rejects requests from other web pages before processing them."""
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
        """Returns the headers that let an allowed page from another origin read the answer."""
        origin = request.headers.get("Origin")
        if self.cors_origin is None or not allows(self.cors_origin, origin):
            return {}
        return {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}

    async def health(self, request: web.Request) -> web.Response:
        """Reports that the server is up."""
        return json_response({"status": "ok"})

    async def model(self, request: web.Request) -> web.Response:
        """Returns facts about the model, and the request limits."""
        limits = {"sentences": self.limits.max_sentences, "characters": self.limits.max_characters}
        signatures = sorted(self.translator.engine.functions)
        card = shown_card(self.translator.card.flat())
        own = {
            "limits": limits,
            "terminologies": list(self.terminologies),
            "has_memory": self._translates and len(self.translator.memories) > 0,
            "has_corrections": self.corrections.is_available,
            "has_confidence": self.translator.card.calibration is not None,
        }
        return json_response({**card, "signatures": signatures, **own})

    async def translate(self, request: web.Request) -> web.Response:
        """Translates sentences or documents: the three kinds of requests above."""
        fields = await self._read_fields(request)
        await self._refresh_corrections()
        if is_libretranslate(fields):
            return json_response(await self._libretranslate(fields))
        if "document" in fields:
            return json_response(await self._document(fields))
        return json_response(await self._sentences(fields))

    async def _sentences(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Answers a TranslateRequest."""
        request = parse_translate(fields, self.limits, self.translator.config.beam_size)
        texts = self._with_codes(request.sentences, request.to)
        options = request.options(self._terms(request.terminology))
        if options:  # a prefix or phrases may not suit the model
            work = functools.partial(self.translator.translate, texts, **options)
            (answers,) = await self._submit(self._single_calls, [work], error_status=400)
        else:
            answers = await self._submit(self.translations, texts)
        translations = []
        for answer in answers:
            best = answer[: request.n_best]
            translations.append([translation_fields(one) for one in best])
        if not request.matches:
            return {"translations": translations}
        self._require_translations()
        work = functools.partial(self.translator.matches, request.sentences, MATCHES, to=request.to)
        (found,) = await self._submit(self._memory_calls, [work])
        matches = [[match_fields(match) for match in row] for row in found]
        return {"translations": translations, "matches": matches}

    async def _document(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Answers a DocumentRequest."""
        self._require_translations()
        request = parse_document(fields, self.limits)
        self._check_target([request.document], request.to)
        if request.format not in PLAIN:
            documents = Documents(
                [request.document],
                request.format,
                to=request.to,
                terminology=request.terminology,
                review_below=request.review_below,
            )
            translated = await self._translate_documents(documents)
            ((translation,),) = translated.rows
            return {"translation": translation, **count_fields(translated.counts)}
        self._check_review(request.review_below)
        terms = self._terms(request.terminology)
        work = functools.partial(self._translate_sentences, request, terms)
        ((translation, rows, counts),) = await self._submit_document(work, terms)
        self.documents += 1
        sentences = [sentence_fields(row) for row in rows]
        return {"translation": translation, **count_fields(counts), "sentences": sentences}

    async def _libretranslate(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Answers a LibreTranslateRequest."""
        self._require_translations()
        beam_size = self.translator.config.beam_size
        request, documents = parse_libretranslate(fields, self.limits, self._languages, beam_size)
        detected, parts = None, [documents]
        if request.source == AUTO:
            detected = await self._detected(documents)
            parts = with_sources(documents, detected, self._languages)
        for part in parts:
            self._check_target(part.texts, part.to)
        translated = [await self._translate_documents(part) for part in parts]
        translations = [row for part in translated for row in part.rows]
        return translation_body(request, translations, detected)

    async def _detected(self, documents: Documents) -> list[dict[str, Any]]:
        """Returns the detectedLanguage of each text."""
        candidates = [None] * len(documents.texts)
        if detection.is_available():
            texts = [language_in(text, documents.format) for text in documents.texts]
            work = functools.partial(detect_all, texts)
            (candidates,) = await self._submit(self._detections, [work])
        return [detected_language(one, self._languages) for one in candidates]

    async def languages(self, request: web.Request) -> web.Response:
        """Returns the model's languages; none if unknown."""
        return json_response(language_list(self._languages))

    async def detect(self, request: web.Request) -> web.Response:
        """Detects the language of a text."""
        text = parse_detect(await self._read_fields(request), self.limits)
        work = functools.partial(detection.detect, text)  # an error if no detector is installed
        (candidates,) = await self._submit(self._detections, [work], error_status=404)
        return json_response([one._asdict() for one in candidates])

    async def translate_file(self, request: web.Request) -> web.Response:
        """Translates a document, and stores it for download."""
        self._require_translations()
        request = request.clone(client_max_size=self.limits.max_file_bytes)
        fields = await self._read_body(request, self.limits.file_refusal)
        await self._refresh_corrections()
        documents, ending = parse_file(fields, self.limits, self._languages)
        texts = [text for text in documents.texts if isinstance(text, str)]
        self._check_target(texts, documents.to)
        translated = await self._translate_documents(documents)
        ((translation,),) = translated.rows
        if isinstance(translation, str):
            translation = translation.encode("utf-8")
        name = self._files.add(translation, ending)
        url = f"{origin_of(request)}/download_file/{name}"
        answer = FileAnswer(url, **count_fields(translated.counts), left=translated.left)
        return json_response(dataclasses.asdict(answer))

    async def download(self, request: web.Request) -> web.Response:
        """Returns a translated document."""
        name = request.match_info["name"]
        content = self._files.get(name)
        rule = "the name must be that of a recently translated file"
        check(content is not None, 404, rule, shown(name))
        headers = {"Content-Disposition": "attachment"}  # never shown as a page of this server
        return web.Response(body=content, content_type=FILE_TYPE, headers=headers)

    async def correct(self, request: web.Request) -> web.Response:
        """Saves a correction."""
        return await self._change_corrections(request, self.corrections.add)

    async def remove_correction(self, request: web.Request) -> web.Response:
        """Removes the corrections of a sentence."""
        return await self._change_corrections(request, self.corrections.remove)

    async def _change_corrections(
        self, request: web.Request, change: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> web.Response:
        """Changes the corrections; any page may translate if the server says so, but not this."""
        origin = None if self.cors_origin == ANY_ORIGIN else self.cors_origin
        check_sender(request.headers, self.host_names, origin)
        work = functools.partial(change, await self._read_fields(request))
        (answer,) = await self._submit(self._memory_calls, [work], error_status=400)
        return json_response(answer)

    async def _refresh_corrections(self) -> None:
        """Reads the file of corrections again if another program has changed it."""
        if self.corrections.is_available:
            await asyncio.to_thread(self.corrections.refresh)

    async def attention(self, request: web.Request) -> web.Response:
        """Computes the attention for a sentence and its translation."""
        pair = parse_attention(await self._read_fields(request), self.limits)
        (source,) = self._with_codes([pair.source], pair.to)
        work = functools.partial(self._attention_body, source, pair.target)
        has_attention = "attention_ids" in self.translator.engine.functions
        status = 500 if has_attention else 400
        (body,) = await self._submit(self._attentions, [work], error_status=status)
        return json_response(body)

    async def _read_fields(self, request: web.Request) -> dict[str, Any]:
        """Reads the body of a request with texts, within the time limit."""
        return await self._read_body(request, self.limits.body_refusal)

    async def _read_body(
        self, request: web.Request, too_large: Callable[[str], RequestError]
    ) -> dict[str, Any]:
        """Reads a body, within the time limit; `too_large` makes the error for "SIZE bytes"."""
        try:
            async with asyncio.timeout(self.limits.timeout):
                return await read_fields(request)
        except TimeoutError:
            rule = f"the whole body must arrive within {self.limits.time}"
            raise RequestError(408, f"{rule}. Received: part of it") from None
        except web.HTTPRequestEntityTooLarge:
            raise too_large(body_size(request)) from None
        except web.RequestPayloadError:
            rule = "must be encoded as its headers declare"
            raise InputError(None, rule, "one that is not, or only part of it", BODY) from None

    async def _submit(
        self, batcher: Batcher, items: list[Any], error_status: int = 500
    ) -> list[Any]:
        """Returns a batcher's answers to `items`, within the time limit.

        Args:
            batcher: calls the model.
            items: the input of its function.
            error_status: the HTTP status for an InputError from the model.
        """
        try:
            async with asyncio.timeout(self.limits.timeout):
                return await batcher.submit(items)
        except InputError as error:
            raise RequestError(error_status, str(error)) from None
        except TimeoutError:
            message = f"the model took more than {self.limits.time}"
            raise RequestError(504, message) from None
        except asyncio.QueueFull:
            message = f"{self.limits.max_waiting} requests are already waiting: try again"
            raise RequestError(503, message, {"Retry-After": "1"}) from None

    def _require_translations(self) -> None:
        """Rejects documents if the model does not translate."""
        task = self.translator.card.description.task
        rule = "must be used with a translation model"
        received = f"a request to a {task} model"
        require(self._translates, None, rule, received, place="documents, files, matches and q")

    @property
    def _translates(self) -> bool:
        """Whether the model translates, and does not parse."""
        return self.translator.card.description.task == "translation"

    def _with_codes(self, texts: list[str], to: str | None) -> list[str]:
        """Prepends the target language's code to texts, if the model needs one."""
        if to is None and not self._has_codes:
            return texts
        return self.translator.with_codes(texts, to)

    def _check_target(self, texts: list[str], to: str | None) -> None:
        """Rejects documents without a target language, if the model needs one."""
        self._with_codes(texts, to)
        if to is None and self._has_codes:
            targets = self._languages.targets
            rule = f"must be given for documents, one of {', '.join(targets)}"
            require(len(targets) == 1, "to", rule, None)

    def _check_review(self, review_below: float) -> None:
        """Rejects a review if the model cannot judge its translations."""
        if review_below:
            check_calibration(self.translator, "review_below", review_below)

    def _terms(self, name: str | None) -> dict[str, str] | None:
        """Returns the terms of a named terminology; None means the first one, "" means no terms."""
        if name is None:
            return next(iter(self.terminologies.values()), None)
        names = [*self.terminologies, ""]
        rule = f"must be one of {', '.join(map(repr, names))}"
        require(name in names, "terminology", rule, shown(name))
        return self.terminologies.get(name)

    async def _submit_document(
        self, work: Callable[[], Any], terms: dict[str, str] | None
    ) -> list[Any]:
        """Translates a document; required terms may not fit into its sentences."""
        return await self._submit(self._single_calls, [work], error_status=400 if terms else 500)

    async def _translate_documents(self, documents: Documents) -> "TranslatedDocuments":
        """Translates documents within the time limit."""
        self._check_review(documents.review_below)
        terms = self._terms(documents.terminology)
        given_up = threading.Event()
        work = functools.partial(self._translations_of, documents, terms, given_up)
        try:
            (translated,) = await self._submit_document(work, terms)
        finally:
            given_up.set()  # the time is over, or the client has gone
        self.documents += len(documents.texts)
        return translated

    def _translations_of(
        self, documents: Documents, terms: dict[str, str] | None, given_up: threading.Event
    ) -> "TranslatedDocuments":
        """Translates documents.

        When `given_up` is set, the sentences that are left are not translated, and an error is
        raised.
        """
        counts = self.translator.new_counts(documents.review_below)
        translators = self.translator.document_translators(
            documents.count,
            documents.language,
            terminology=terms,
            to=documents.to,
            counts=counts,
            confidence=documents.review_below > 0,
        )
        rows, left = [], Counter()
        for text in documents.texts:
            first = translators[0]
            document = document_of(
                text,
                documents.format,
                first.language,
                first.target,
                self.limits.markup,
                documents.review_below,
            )
            if isinstance(text, bytes):
                self.limits.check_texts(["".join(one.text for one in document.segments)])
            translations = [until(given_up, each.translate(document.parts)) for each in translators]
            if isinstance(text, bytes):
                rows.append([b"".join(document.written(parts)) for parts in translations])
            else:
                rows.append(["".join(parts) for parts in translations])
            left.update(document.left)
        return TranslatedDocuments(rows, counts, dict(+left))

    def _translate_sentences(
        self, request: DocumentRequest, terms: dict[str, str] | None
    ) -> tuple[str, list, "AnswerCounts"]:
        """Returns the translation of plain text, its sentences, and their counts."""
        counts = self.translator.new_counts(request.review_below)
        translator = self.translator.document_translator(
            terminology=terms, to=request.to, counts=counts, confidence=True
        )
        document = document_of(request.document, request.format, translator.language)
        return *translator.translate_sentences(document.parts), counts

    def _attention_body(self, source: str, target: str) -> bytes:
        """Computes attention as JSON; this is slow, and must not run in the event loop."""
        return attention_body(self.translator.attention(source, target))


def call_all(works: list[Callable[[], Any]]) -> list[Any]:
    """Calls each function, and returns the results."""
    return [work() for work in works]


def detect_all(texts: list[str]) -> list[list[detection.Detected]]:
    """Detects the language of each text."""
    return [detection.detect(text) for text in texts]


def until(given_up: threading.Event, parts: Iterator[str]) -> Iterator[str]:
    """Yields the parts of a translation; raises an error when nobody waits for it any longer."""
    for part in parts:
        if given_up.is_set():
            raise RequestError(504, "nobody waits for the translation")
        yield part


class TranslatedDocuments(NamedTuple):
    """The translations of documents."""

    rows: list[list[str | bytes]]  # the best translations of each document, the best first
    counts: "AnswerCounts"  # of the answers to their sentences; equal ones count once
    left: dict[str, int]  # pieces that stay as they are, by kind


def document_of(
    text: str | bytes,
    format: str,
    language: str,
    target: str | None = None,
    most_markup: int = MOST_MARKUP,
    review_below: float = 0.0,
) -> Document:
    """Reads a document during a model call, where an InputError would count as the model's."""
    try:
        return read_document(text, format, language, None, target, most_markup, review_below)
    except InputError as error:
        raise RequestError(400, str(error)) from None


def language_in(text: str, format: str) -> str:
    """Returns the text of a document without its markup, to detect its language."""
    document = document_of(text, format, "en")  # neither sentences nor their language are needed
    return "\n".join(segment.text for segment in document.segments)


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


def attention_body(attention: "PairAttention") -> bytes:
    """Returns the attention for one pair as JSON.

    Raises:
        RequestError: 413 if the answer would have too many weights.
    """
    count = attention.encoder.size + attention.decoder.size + attention.memory.size
    rule = f"an answer must have at most {ANSWER_WEIGHTS} weights: send a shorter sentence"
    check(count <= ANSWER_WEIGHTS, 413, rule, f"one of {count}")
    return encoded(attention_fields(attention))
