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
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from aiohttp import web

from keras_transformer.kit.documents.formats import PLAIN
from keras_transformer.kit.documents.memory.corrections import Corrections
from keras_transformer.kit.serving import detection
from keras_transformer.kit.serving.corrections import CorrectionService, NoCorrections
from keras_transformer.kit.serving.document_service import (
    DocumentService,
    TranslatedDocuments,
    language_in,
)
from keras_transformer.kit.serving.errors import check, shown
from keras_transformer.kit.serving.file_store import FileStore
from keras_transformer.kit.serving.joint_translation import JointTranslation, size_of
from keras_transformer.kit.serving.libretranslate import (
    FileAnswer,
    SettingsAnswer,
    client_codes,
    detected_language,
    is_libretranslate,
    is_translated,
    language_list,
    parse_detect,
    parse_file,
    parse_libretranslate,
    translation_body,
    with_sources,
)
from keras_transformer.kit.serving.limits import Limits
from keras_transformer.kit.serving.metrics import metrics_text
from keras_transformer.kit.serving.middleware import Middleware, json_response, origin_of
from keras_transformer.kit.serving.model_calls import BATCH_SENTENCES, ModelCalls
from keras_transformer.kit.serving.openapi import Route
from keras_transformer.kit.serving.requests import (
    BY_ENDING,
    FILE_FORMATS,
    SERVED_FORMATS,
    Documents,
    parse_attention,
    parse_document,
    parse_translate,
    read_within_limits,
)
from keras_transformer.kit.serving.responses import (
    attention_body,
    count_fields,
    match_fields,
    sentence_fields,
    shown_card,
    translation_fields,
)
from keras_transformer.support.errors import require
from keras_transformer.use.store.languages import AUTO

if TYPE_CHECKING:  # it imports TensorFlow, which checking a flag need not wait for
    from keras_transformer.kit.documents.text_translator import TextTranslator

MATCHES = 3  # sentences in the translation memory that resemble a text, at most
FILE_TYPE = "application/octet-stream"  # for documents, which browsers then save as files
METRICS_TYPE = "text/plain"
METRICS_HEADERS = {"Content-Type": f"{METRICS_TYPE}; version=0.0.4; charset=utf-8"}

Answer = TypeVar("Answer")


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
        http: counts requests and errors.
        calls: the queues of the model.
        documents: number of texts of any length translated so far.
    """

    def __init__(
        self,
        translator: "TextTranslator",
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
        self.http = Middleware(host_names, cors_origin)
        self.documents = 0
        self._documents = DocumentService(translator, limits)
        self._joint = JointTranslation(translator.translate, self._documents, self._terms)
        self._single_sentences = 0  # translated for one request at a time
        self.calls = ModelCalls(self._joint, limits)
        self._languages = translator.card.languages
        self._codes = list(client_codes(self._languages).values())
        self._has_codes = self._languages is not None and self._languages.has_codes
        self._files = FileStore()

    @property
    def sentences(self) -> int:
        """The number of sentences translated so far, also those of documents."""
        return self._joint.sentences + self._single_sentences

    def application(self, routes: Iterable[Route]) -> web.Application:
        """Makes the application that aiohttp runs.

        Args:
            routes: the endpoints, routes.ROUTES.
        """
        # As in LibreTranslate: clients may add "/translate" to an address that ends with a slash.
        redirect = web.normalize_path_middleware(append_slash=False, merge_slashes=True)
        application = web.Application(
            middlewares=[redirect, self.http.report, self.http.guard],
            client_max_size=self.limits.body_bytes,
        )
        for route in routes:
            handler = functools.partial(route.handler, self)
            if route.method == "GET":
                application.router.add_get(route.path, handler)  # and HEAD
            else:
                application.router.add_route(route.method, route.path, handler)
        return application

    async def health(self, request: web.Request) -> web.Response:
        """Reports that the server is up."""
        return json_response({"status": "ok"})

    async def metrics(self, request: web.Request) -> web.Response:
        """Returns counts for monitoring."""
        text = metrics_text(
            self.http.counts,
            self.sentences,
            self.documents,
            self.calls.joint.calls,
            self.calls.waiting(),
        )
        return web.Response(body=text.encode(), headers=METRICS_HEADERS)

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
            "file_formats": BY_ENDING,
            "archives": [name for name in FILE_FORMATS if name not in SERVED_FORMATS],
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
            answers = await self.calls.call(self.calls.single, work, error_status=400)
            self._single_sentences += len(texts)
        else:
            answers = await self.calls.submit(self.calls.joint, texts)
        translations = []
        for answer in answers:
            best = answer[: request.n_best]
            translations.append([translation_fields(one) for one in best])
        if not request.matches:
            return {"translations": translations}
        self._require_translations()
        work = functools.partial(self.translator.matches, request.sentences, MATCHES, to=request.to)
        found = await self.calls.call(self.calls.memory, work)
        matches = [[match_fields(match) for match in row] for row in found]
        return {"translations": translations, "matches": matches}

    async def _document(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Answers a DocumentRequest."""
        self._require_translations()
        request = parse_document(fields, self.limits)
        self._check_target([request.document], request.to)
        documents = Documents(
            [request.document],
            request.format,
            to=request.to,
            terminology=request.terminology,
            review_below=request.review_below,
        )
        if request.format not in PLAIN:
            translated = await self._translate_documents(documents)
            ((translation,),) = translated.rows
            return {"translation": translation, **count_fields(translated.counts)}
        self._documents.check_review(request.review_below)
        terms = self._terms(request.terminology)
        work = functools.partial(self._documents.translate_sentences, documents, terms)
        translation, rows, counts = await self._call_for_document(work, terms)
        self.documents += 1
        self._single_sentences += counts.sentences
        sentences = [sentence_fields(row) for row in rows]
        return {"translation": translation, **count_fields(counts), "sentences": sentences}

    async def _libretranslate(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Answers a LibreTranslateRequest."""
        self._require_translations()
        beam_size = self.translator.config.beam_size
        request, documents = parse_libretranslate(fields, self.limits, self._languages, beam_size)
        if request.source != AUTO:
            return translation_body(request, await self._translate_parts([documents]), None)
        detected = await self._detected(documents)
        stays = [is_translated(one, request.target, self._languages) for one in detected]
        parts = with_sources(documents, detected, stays, self._languages)
        rows = iter(await self._translate_parts(parts))
        texts = zip(documents.texts, stays, strict=True)
        translations = [[text] if is_kept else next(rows) for text, is_kept in texts]
        return translation_body(request, translations, detected)

    async def _translate_parts(self, parts: list[Documents]) -> list[list[str]]:
        """Returns the translations of each text of LibreTranslate clients, best first."""
        for part in parts:
            self._check_target(part.texts, part.to)
        rows = []
        for part in parts:
            if size_of(part) <= BATCH_SENTENCES:
                rows += await self._translate_jointly(part)
            else:
                rows += (await self._translate_documents(part)).rows
        return rows

    async def _detected(self, documents: Documents) -> list[dict[str, Any]]:
        """Returns the detectedLanguage of each text."""
        candidates = [None] * len(documents.texts)
        if detection.is_available():
            texts = [language_in(text, documents.format) for text in documents.texts]
            work = functools.partial(detect_all, texts, self._codes)
            candidates = await self.calls.call(self.calls.detections, work)
        return [detected_language(one, self._languages) for one in candidates]

    async def languages(self, request: web.Request) -> web.Response:
        """Returns the model's languages; none if unknown."""
        return json_response(language_list(self._languages))

    async def settings(self, request: web.Request) -> web.Response:
        """Returns what LibreTranslate clients offer their users."""
        settings = SettingsAnswer(charLimit=self.limits.max_characters)
        return json_response(dataclasses.asdict(settings))

    async def detect(self, request: web.Request) -> web.Response:
        """Detects the language of a text."""
        text = parse_detect(await self._read_fields(request), self.limits)
        # An error if no detector is installed.
        work = functools.partial(detection.detect, text, self._codes)
        candidates = await self.calls.call(self.calls.detections, work, error_status=404)
        return json_response([one._asdict() for one in candidates])

    async def translate_file(self, request: web.Request) -> web.Response:
        """Translates a document, and stores it for download."""
        self._require_translations()
        request = request.clone(client_max_size=self.limits.max_file_bytes)
        fields = await read_within_limits(request, self.limits, self.limits.file_refusal)
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
        self.http.check_change(request)
        work = functools.partial(change, await self._read_fields(request))
        answer = await self.calls.call(self.calls.memory, work, error_status=400)
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
        body = await self.calls.call(self.calls.attentions, work, error_status=status)
        return json_response(body)

    async def _read_fields(self, request: web.Request) -> dict[str, Any]:
        """Reads the body of a request with texts."""
        return await read_within_limits(request, self.limits, self.limits.body_refusal)

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

    def _terms(self, name: str | None) -> dict[str, str] | None:
        """Returns the terms of a named terminology; None means the first one, "" means no terms."""
        if name is None:
            return next(iter(self.terminologies.values()), None)
        names = [*self.terminologies, ""]
        rule = f"must be one of {', '.join(map(repr, names))}"
        require(name in names, "terminology", rule, shown(name))
        return self.terminologies.get(name)

    async def _call_for_document(
        self, work: Callable[[], Answer], terms: dict[str, str] | None
    ) -> Answer:
        """Translates a document in a call of its own."""
        return await self.calls.call(self.calls.single, work, _status_with(terms))

    async def _translate_jointly(self, documents: Documents) -> list[list[str]]:
        """Translates short documents, together with those of other requests."""
        status = _status_with(self._terms(documents.terminology))
        (rows,) = await self.calls.submit(self.calls.joint, [documents], status)
        self.documents += len(documents.texts)
        return rows

    async def _translate_documents(self, documents: Documents) -> TranslatedDocuments:
        """Translates documents within the time limit."""
        self._documents.check_review(documents.review_below)
        terms = self._terms(documents.terminology)
        given_up = threading.Event()
        work = functools.partial(self._documents.translations_of, documents, terms, given_up)
        try:
            translated = await self._call_for_document(work, terms)
        finally:
            given_up.set()  # the time is over, or the client has gone
        self.documents += len(documents.texts)
        self._single_sentences += translated.counts.sentences
        return translated

    def _attention_body(self, source: str, target: str) -> bytes:
        """Computes attention as JSON; this is slow, and must not run in the event loop."""
        return attention_body(self.translator.attention(source, target))


def _status_with(terms: dict[str, str] | None) -> int:
    """Returns the status for a document's InputError: terms may not fit into its sentences."""
    return 400 if terms else 500


def detect_all(texts: list[str], languages: list[str]) -> list[list[detection.Detected]]:
    """Detects the language of each text, which is one of `languages`."""
    return [detection.detect(text, languages) for text in texts]
