"""OpenAPI description of the endpoints, generated from the table that serves them.

A body is a dataclass whose fields carry descriptions: Annotated[str, "One sentence."]. So the
endpoints are described, checked and served from a single definition. Libraries that do this for
aiohttp need pydantic or marshmallow, with types and messages of their own beside those of
support/fields.py.
"""

import dataclasses
import types
import typing
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple

from aiohttp import web

from keras_transformer.kit.serving.forms import MULTIPART, URL_ENCODED, Open, Upload

PLAIN = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    dict: "object",
    type(None): "null",
}
JSON_TYPE = "application/json"


class Route(NamedTuple):
    """One method at one path, and its answers."""

    method: str
    path: str
    handler: Callable[[Any, web.Request], Awaitable[web.StreamResponse]]  # of the service, too
    summary: str
    answer: Any  # dataclasses or dict, as JSON; or the content type of a file
    request: Any = None  # a dataclass, or one of several, as JSON
    example: dict[str, Any] | None = None  # an example request
    refusals: tuple[int, ...] = (403,)  # statuses of possible rejections
    form: type | None = None  # a dataclass, whose fields may also come as a form
    parameters: dict[str, str] | None = None  # meanings of the names in braces in the path


def openapi_document(
    routes: Iterable[Route], refusals: dict[int, str], error: type, limits: str
) -> dict[str, Any]:
    """Describes the routes.

    Args:
        routes: all routes.
        refusals: the meanings of the routes' error statuses.
        error: the dataclass of an error body.
        limits: the request limits, in words.

    Returns:
        An OpenAPI 3.1 document.
    """
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for route in routes:
        if isinstance(route.answer, str):
            answer = _content(route.answer, {"type": "string"})
        else:
            answer = _content(JSON_TYPE, _schema(route.answer, schemas))
        operation = {"summary": route.summary, "responses": {"200": _response("OK", answer)}}
        for status in route.refusals:
            body = _content(JSON_TYPE, _reference(error, schemas))
            operation["responses"][str(status)] = _response(refusals[status], body)
        if route.parameters:
            operation["parameters"] = [
                _parameter(*parameter) for parameter in route.parameters.items()
            ]
        body = {}
        if route.request is not None:
            body |= _content(JSON_TYPE, _schema(route.request, schemas, is_closed=True))
            body[JSON_TYPE]["example"] = route.example
        if route.form is not None:
            schema = _schema(route.form, schemas, is_closed=True)
            has_file = any(field.type is Upload for field in _fields(route.form))
            for content_type in [MULTIPART] if has_file else [URL_ENCODED, MULTIPART]:
                body |= _content(content_type, schema)
        if body:
            operation["requestBody"] = {"required": True, "content": body}
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "keras-transformer", "version": "1", "description": limits},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _content(body_type: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {body_type: {"schema": schema}}


def _parameter(name: str, description: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": description,
        "schema": {"type": "string"},
    }


def _response(description: str, content: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": content}


def _reference(kind: type, schemas: dict[str, Any], is_closed: bool = False) -> dict[str, Any]:
    """Returns a reference to a dataclass's schema, which is added to `schemas`.

    Args:
        kind: the dataclass.
        schemas: the document's schemas, by name.
        is_closed: whether further fields are rejected, unless it is Open.
    """
    properties, required = {}, []
    for field in _fields(kind):
        properties[field.name] = {
            **_schema(field.type, schemas),
            "description": field.description,
        }
        if field.is_required:
            required.append(field.name)
    schema = {"type": "object", "properties": properties, "required": required}
    if is_closed and not issubclass(kind, Open):
        schema["additionalProperties"] = False
    schemas[kind.__name__] = {"description": kind.__doc__, **schema}
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


class _Field(NamedTuple):
    """A field of a dataclass."""

    name: str
    type: Any
    description: str
    is_required: bool


def _fields(kind: type) -> list[_Field]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return [
        _Field(
            field.name,
            *typing.get_args(hints[field.name]),
            is_required=field.default is dataclasses.MISSING,
        )
        for field in dataclasses.fields(kind)
    ]


def _schema(kind: Any, schemas: dict[str, Any], is_closed: bool = False) -> dict[str, Any]:
    """Returns the JSON Schema for a dataclass, a list, a dict, a plain type, a file, or a union."""
    if kind in PLAIN:
        return {"type": PLAIN[kind]}
    if kind is Upload:
        return {"type": "string", "contentMediaType": "application/octet-stream"}
    arguments = typing.get_args(kind)
    if isinstance(kind, types.UnionType):
        return {"anyOf": [_schema(argument, schemas, is_closed) for argument in arguments]}
    if typing.get_origin(kind) is list:
        return {"type": "array", "items": _schema(arguments[0], schemas)}
    if typing.get_origin(kind) is dict:
        return {"type": "object", "additionalProperties": _schema(arguments[1], schemas)}
    return _reference(kind, schemas, is_closed)
