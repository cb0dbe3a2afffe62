"""The routes: the page, the endpoints that it uses, and LibreTranslate's."""

from pathlib import Path

from aiohttp import web

from keras_transformer.kit.serving.application import FILE_TYPE, METRICS_TYPE, Service
from keras_transformer.kit.serving.corrections import (
    CorrectionAnswer,
    CorrectionRequest,
    RemovalAnswer,
    RemovalRequest,
)
from keras_transformer.kit.serving.errors import REFUSALS
from keras_transformer.kit.serving.libretranslate import (
    DetectedAnswer,
    DetectRequest,
    FileAnswer,
    FileRequest,
    LanguageAnswer,
    LibreTranslateAnswer,
    LibreTranslateRequest,
    SettingsAnswer,
)
from keras_transformer.kit.serving.middleware import json_response
from keras_transformer.kit.serving.openapi import Route, openapi_document
from keras_transformer.kit.serving.requests import (
    AttentionRequest,
    DocumentRequest,
    TranslateRequest,
)
from keras_transformer.kit.serving.responses import (
    AttentionAnswer,
    DocumentAnswer,
    ErrorAnswer,
    HealthAnswer,
    ModelAnswer,
    TranslateAnswer,
)


async def description(service: Service, request: web.Request) -> web.Response:
    """Describes the endpoints."""
    document = openapi_document(ROUTES, REFUSALS, ErrorAnswer, service.limits.rule)
    return json_response(document)


async def specification(service: Service, request: web.Request) -> web.Response:
    """Describes the endpoints to clients that check whether they are LibreTranslate's."""
    document = openapi_document(ROUTES, REFUSALS, ErrorAnswer, service.limits.rule)
    document["info"]["title"] = "LibreTranslate"
    return json_response(document)


def file_route(path: str, file: str, content_type: str, summary: str) -> Route:
    """Makes the route for one of the page's files.

    Args:
        path: the URL path.
        file: its path within the package.
        content_type: its content type.
        summary: its description.
    """
    content = (Path(__file__).parents[2] / file).read_bytes()

    async def answer(service: Service, request: web.Request) -> web.Response:
        return web.Response(body=content, content_type=content_type, charset="utf-8")

    return Route("GET", path, answer, summary, content_type)


MODEL_REFUSALS = tuple(status for status in REFUSALS if status not in (404, 507))
CORRECTION_REFUSALS = tuple(REFUSALS)
EXAMPLE = "The cat sleeps."
ROUTES = (
    # The same figure and style as in offline attention pages.
    file_route("/", "kit/serving/page.html", "text/html", "The page."),
    file_route("/page.js", "kit/serving/page.js", "text/javascript", "Its script."),
    file_route(
        "/translator.js",
        "kit/serving/translator.js",
        "text/javascript",
        "Its requests to the model.",
    ),
    file_route("/page.css", "kit/serving/page.css", "text/css", "Its style."),
    file_route("/figure.js", "kit/figures/figure.js", "text/javascript", "Its figure."),
    file_route("/figure.css", "kit/figures/figure.css", "text/css", "The style of its figure."),
    Route("GET", "/healthz", Service.health, "Whether the server is up.", HealthAnswer),
    Route("GET", "/health", Service.health, "LibreTranslate: the same.", HealthAnswer),
    Route("GET", "/metrics", Service.metrics, "Counts in the format of Prometheus.", METRICS_TYPE),
    Route("GET", "/openapi.json", description, "This description.", dict),
    Route(
        "GET",
        "/model",
        Service.model,
        "Facts about the model, and the request limits.",
        ModelAnswer,
    ),
    Route(
        "POST",
        "/translate",
        Service.translate,
        "Translates sentences, or documents of any length.",
        TranslateAnswer | DocumentAnswer | LibreTranslateAnswer,
        TranslateRequest | DocumentRequest | LibreTranslateRequest,
        {"text": EXAMPLE, "n_best": 2},
        MODEL_REFUSALS,
        form=LibreTranslateRequest,
    ),
    Route(
        "GET",
        "/languages",
        Service.languages,
        "LibreTranslate: the model's languages; none if unknown.",
        list[LanguageAnswer],
    ),
    Route(
        "GET",
        "/frontend/settings",
        Service.settings,
        "LibreTranslate: what clients may offer.",
        SettingsAnswer,
    ),
    Route(
        "GET",
        "/spec",
        specification,
        "LibreTranslate: this description, by which clients recognize its protocol.",
        dict,
    ),
    Route(
        "POST",
        "/detect",
        Service.detect,
        "LibreTranslate: the likely languages of a text, most likely first.",
        list[DetectedAnswer],
        DetectRequest,
        {"q": EXAMPLE},
        (*MODEL_REFUSALS, 404),
        form=DetectRequest,
    ),
    Route(
        "POST",
        "/translate_file",
        Service.translate_file,
        "LibreTranslate: translates a document; the answer has its download address.",
        FileAnswer,
        refusals=MODEL_REFUSALS,
        form=FileRequest,
    ),
    Route(
        "GET",
        "/download_file/{name}",
        Service.download,
        "LibreTranslate: a translated document.",
        FILE_TYPE,
        refusals=(403, 404),
        parameters={"name": "From translatedFileUrl."},
    ),
    Route(
        "POST",
        "/corrections",
        Service.correct,
        "Saves a correction, which is used from now on as a match in the translation memory.",
        CorrectionAnswer,
        CorrectionRequest,
        {"source": EXAMPLE, "translation": "Die Katze schlummert."},
        CORRECTION_REFUSALS,
    ),
    Route(
        "DELETE",
        "/corrections",
        Service.remove_correction,
        "Removes the corrections of a sentence.",
        RemovalAnswer,
        RemovalRequest,
        {"source": EXAMPLE},
        CORRECTION_REFUSALS,
    ),
    Route(
        "POST",
        "/attention",
        Service.attention,
        "The model's attention for a sentence and its translation.",
        AttentionAnswer,
        AttentionRequest,
        {"source": EXAMPLE, "target": "Die Katze schläft."},
        MODEL_REFUSALS,
    ),
)
