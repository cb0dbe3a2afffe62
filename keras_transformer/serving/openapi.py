"""The description of the endpoints in the OpenAPI format, made of the table that serves them.

A body is a dataclass whose fields say what they are for: Annotated[str, "One sentence."]. So what
is described, what is checked and what is served stand in one place.
"""

import dataclasses
import types
import typing
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple

from aiohttp import web

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
    """What is answered to one method at one path."""

    method: str
    path: str
    handler: Callable[[Any, web.Request], Awaitable[web.StreamResponse]]  # of the service, too
    summary: str
    answer: type | str  # a dataclass or dict, in JSON; or the content type of a file
    request: type | None = None  # a dataclass, in JSON
    example: dict[str, Any] | None = None  # of a request
    refusals: tuple[int, ...] = ()  # the statuses that it may be refused with


def openapi_document(
    routes: Iterable[Route], refusals: dict[int, str], error: type, limits: str
) -> dict[str, Any]:
    """Describes the routes.

    Args:
        routes: all that is served.
        refusals: what the statuses mean that the routes name.
        error: the dataclass of the body of a refusal.
        limits: the most that a request may have, in words.

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
        if route.request is not None:
            body = _content(JSON_TYPE, _reference(route.request, schemas, is_closed=True))
            body[JSON_TYPE]["example"] = route.example
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


def _response(description: str, content: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": content}


def _reference(kind: type, schemas: dict[str, Any], is_closed: bool = False) -> dict[str, Any]:
    """Refers to the schema of a dataclass, which is added to `schemas`.

    Args:
        kind: the dataclass.
        schemas: those of the document, by name.
        is_closed: whether further fields are refused.
    """
    hints = typing.get_type_hints(kind, include_extras=True)
    properties, required = {}, []
    for field in dataclasses.fields(kind):
        field_kind, description = typing.get_args(hints[field.name])
        schema = _schema(field_kind, schemas)
        properties[field.name] = {**schema, "description": description}
        if field.default is dataclasses.MISSING:
            required.append(field.name)
    schema = {"type": "object", "properties": properties, "required": required}
    if is_closed:
        schema["additionalProperties"] = False
    schemas[kind.__name__] = {"description": kind.__doc__, **schema}
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def _schema(kind: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a dataclass, of a list, of a plain type, or of one of them or null."""
    if kind in PLAIN:
        return {"type": PLAIN[kind]}
    arguments = typing.get_args(kind)
    if isinstance(kind, types.UnionType):
        return {"anyOf": [_schema(argument, schemas) for argument in arguments]}
    if typing.get_origin(kind) is list:
        return {"type": "array", "items": _schema(arguments[0], schemas)}
    return _reference(kind, schemas)
