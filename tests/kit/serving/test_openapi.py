"""The description of the endpoints, held against what they take and give."""

import dataclasses
import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from keras_transformer.kit.serving import detection
from keras_transformer.kit.serving.corrections import CorrectionRequest, RemovalRequest
from keras_transformer.kit.serving.libretranslate import (
    DetectRequest,
    FileRequest,
    LibreTranslateRequest,
)
from keras_transformer.kit.serving.limits import Limits
from keras_transformer.kit.serving.requests import (
    AttentionRequest,
    DocumentRequest,
    TranslateRequest,
)
from keras_transformer.kit.serving.routes import REFUSALS, ROUTES
from tests.kit.serving.running import corrections_in, served

TYPES = {"string": str, "boolean": bool, "integer": int, "number": (int, float)}
TYPES |= {"null": type(None), "object": dict, "array": list}


def fits(value, schema, document):
    """Whether JSON is as a schema says, with the words of JSON Schema that the document uses."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/components/schemas/")
        return fits(value, document["components"]["schemas"][name], document)
    unknown = set(schema) - {"description", "type", "properties", "required", "items", "anyOf"}
    unknown -= {"additionalProperties", "contentMediaType"}
    assert not unknown, f"this test must learn {unknown}"
    if "anyOf" in schema:
        return any(fits(value, choice, document) for choice in schema["anyOf"])
    kind = TYPES[schema["type"]]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        return False
    if kind is list:
        return all(fits(item, schema["items"], document) for item in value)
    if kind is dict:
        known = schema.get("properties", {})
        if not schema.get("additionalProperties", True) and not set(value) <= set(known):
            return False
        return set(schema.get("required", [])) <= set(value) and all(
            fits(item, known[name], document) for name, item in value.items() if name in known
        )
    return True


def with_client(translator, scenario, corrections=None):
    """Runs `scenario(client, service, document)`, where document is the description."""

    async def described(client, service):
        document = json.loads(await (await client.get("/openapi.json")).read())
        return await scenario(client, service, document)

    return served(translator, described, Limits(max_sentences=3), corrections=corrections)


def test_each_route_is_described(translator):
    async def scenario(client, service, document):
        served = [
            (route.method.lower(), route.resource.canonical)
            for route in service.application(ROUTES).router.routes()
            if route.method != "HEAD"
        ]
        described = [(method, path) for path, of in document["paths"].items() for method in of]
        assert sorted(described) == sorted(served)
        assert document["openapi"] == "3.1.0"
        assert "at most 3 sentences, and a request at most 20000" in document["info"]["description"]

    with_client(translator, scenario)


def test_the_reference_lists_each_route():
    page = Path(__file__).parents[3] / "docs/reference/http.md"
    _, _, table = page.read_text(encoding="utf-8").partition("| Request |")
    listed = re.findall(r"`(GET|POST|DELETE) (\S+)`", table)
    assert sorted(listed) == sorted((route.method, route.path) for route in ROUTES)


def file_form():
    form = aiohttp.FormData({"source": "en", "target": "de"})
    form.add_field("file", b"The cat sleeps.", filename="cat.txt")
    return form


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_examples_are_answered_as_described(translator, monkeypatch, tmp_path, route):
    found = [detection.Detected("en", 99.0)]
    monkeypatch.setattr(detection, "detect", lambda text, languages: found)

    async def scenario(client, service, document):
        operation = document["paths"][route.path][route.method.lower()]
        sent = {}
        if route.request is not None:
            taken = operation["requestBody"]["content"]["application/json"]
            body = taken["example"]
            assert fits(body, taken["schema"], document)
            is_open = route.request is DetectRequest
            assert fits({**body, "beam": 4}, taken["schema"], document) == is_open
            sent["json"] = body
        elif route.form is not None:
            sent["data"] = file_form()
        path = route.path
        if route.parameters:
            file = await (await client.post("/translate_file", data=file_form())).json()
            path = urlsplit(file["translatedFileUrl"]).path
            assert [each["name"] for each in operation["parameters"]] == ["name"]
        answer = await client.request(route.method, path, **sent)
        assert answer.status == 200
        ((content_type, given),) = operation["responses"]["200"]["content"].items()
        assert answer.content_type == content_type
        if isinstance(route.answer, str):
            return
        content = await answer.json()
        assert fits(content, given["schema"], document), content
        assert not fits([content], given["schema"], document), "the test can tell"

    with_client(translator, scenario, corrections_in(tmp_path / "corrections.tmx"))


NEEDED = {
    TranslateRequest: [],
    DocumentRequest: ["document"],
    LibreTranslateRequest: ["q", "source", "target"],
    DetectRequest: ["q"],
    FileRequest: ["file", "source", "target"],
    AttentionRequest: ["source", "target"],
    CorrectionRequest: ["source", "translation"],
    RemovalRequest: ["source"],
}


def test_the_fields_of_requests_are_those_that_are_read(translator):
    async def scenario(client, service, document):
        for kind, needed in NEEDED.items():
            schema = document["components"]["schemas"][kind.__name__]
            assert list(schema["properties"]) == [field.name for field in dataclasses.fields(kind)]
            assert all(of["description"] for of in schema["properties"].values())
            assert schema["required"] == needed, kind

    with_client(translator, scenario)


def test_refusals_are_described(translator):
    async def scenario(client, service, document):
        for body, status in ((b"{", 400), (b'{"texts": ["", "", "", ""]}', 413)):
            answer = await client.post("/translate", data=body)
            assert answer.status == status
            described = document["paths"]["/translate"]["post"]["responses"][str(status)]
            assert described["description"] == REFUSALS[status]
            schema = described["content"]["application/json"]["schema"]
            assert fits(await answer.json(), schema, document)

    with_client(translator, scenario)
