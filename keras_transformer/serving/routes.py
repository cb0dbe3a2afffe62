"""The routes: a page to look at, the endpoints that it uses, and LibreTranslate's."""

from pathlib import Path

from aiohttp import web

from keras_transformer.serving.application import FILE_TYPE, Service, json_response
from keras_transformer.serving.errors import REFUSALS
from keras_transformer.serving.libretranslate import (
    DetectedAnswer,
    DetectRequest,
    FileAnswer,
    FileRequest,
    LanguageAnswer,
    LibreTranslateAnswer,
    LibreTranslateRequest,
)
from keras_transformer.serving.openapi import Route, openapi_document
from keras_transformer.serving.requests import AttentionRequest, DocumentRequest, TranslateRequest
from keras_transformer.serving.responses import (
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


def file_route(path: str, file: str, content_type: str, summary: str) -> Route:
    """Makes the route of a file of the page.

    Args:
        path: where it is answered.
        file: its path within the package.
        content_type: of the file.
        summary: what it is.
    """
    content = (Path(__file__).parents[1] / file).read_bytes()

    async def answer(service: Service, request: web.Request) -> web.Response:
        return web.Response(body=content, content_type=content_type, charset="utf-8")

    return Route("GET", path, answer, summary, content_type)


MODEL_REFUSALS = tuple(status for status in REFUSALS if status != 404)
EXAMPLE = "The cat sleeps."
ROUTES = (
    # The figure is that of offline attention pages, with its style.
    file_route("/", "serving/page.html", "text/html", "The page."),
    file_route("/page.js", "serving/page.js", "text/javascript", "Its script."),
    file_route(
        "/translator.js", "serving/translator.js", "text/javascript", "What asks the model for it."
    ),
    file_route("/page.css", "serving/page.css", "text/css", "Its style."),
    file_route("/figure.js", "attention/figure.js", "text/javascript", "Its figure."),
    file_route("/figure.css", "attention/figure.css", "text/css", "The style of its figure."),
    Route("GET", "/healthz", Service.health, "Whether the server answers.", HealthAnswer),
    Route("GET", "/openapi.json", description, "This description.", dict),
    Route(
        "GET",
        "/model",
        Service.model,
        "The model card, and the limits of a request.",
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
        "LibreTranslate's: the languages of the model; none where it does not know them.",
        list[LanguageAnswer],
    ),
    Route(
        "POST",
        "/detect",
        Service.detect,
        "LibreTranslate's: the languages that a text may be in, the likeliest first.",
        list[DetectedAnswer],
        DetectRequest,
        {"q": EXAMPLE},
        tuple(REFUSALS),
        form=DetectRequest,
    ),
    Route(
        "POST",
        "/translate_file",
        Service.translate_file,
        "LibreTranslate's: translates a document; its answer says where it can be fetched.",
        FileAnswer,
        refusals=MODEL_REFUSALS,
        form=FileRequest,
    ),
    Route(
        "GET",
        "/download_file/{name}",
        Service.download,
        "LibreTranslate's: a document that was translated.",
        FILE_TYPE,
        refusals=(403, 404),
        parameters={"name": "As in translatedFileUrl."},
    ),
    Route(
        "POST",
        "/attention",
        Service.attention,
        "What the model attends to in a sentence and a translation of it.",
        AttentionAnswer,
        AttentionRequest,
        {"source": EXAMPLE, "target": "Die Katze schläft."},
        MODEL_REFUSALS,
    ),
)
