"""Forms, as sent by browsers and LibreTranslate clients; aiohttp parses them."""

from typing import NamedTuple

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from keras_transformer.support.errors import InputError, reason

BODY = "the body"  # place in errors
URL_ENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"


class Upload(NamedTuple):
    """A file in a form."""

    name: str  # the client's name for it; never used as a path
    content: bytes


FormField = str | Upload


class Open:
    """A request whose unknown fields are ignored, as LibreTranslate does; a base of dataclasses."""


async def form_fields(request: web.Request) -> dict[str, FormField | list[FormField]]:
    """Reads the form in a request; some LibreTranslate clients send its fields in the URL.

    Returns:
        The fields by name. A repeated field is a list, as in q=one&q=two.

    Raises:
        InputError: for a body that is not a form. web.HTTPRequestEntityTooLarge: for a body larger
            than the application allows.
    """
    try:
        form = request.query.copy()
        form.update(await request.post())
    except (ValueError, LookupError, RuntimeError, HttpProcessingError) as error:
        rule = "must be a form that matches its Content-Type, in UTF-8"
        raise InputError(None, rule, reason(error), BODY) from None
    fields = {}
    for name in form:
        values = [_form_field(value) for value in form.getall(name)]
        fields[name] = values[0] if len(values) == 1 else values
    return fields


def _form_field(value: str | bytearray | web.FileField) -> FormField:
    if isinstance(value, web.FileField):
        return Upload(value.filename, value.file.read())
    if isinstance(value, bytearray):  # sent by a form if no file was chosen
        return Upload("", bytes(value))
    return value
