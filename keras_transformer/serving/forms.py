"""Forms, as browsers and clients of LibreTranslate send them."""

from typing import NamedTuple

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from keras_transformer.errors import InputError, reason

URL_ENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"


class Upload(NamedTuple):
    """A file of a form."""

    name: str  # as the client calls it; never a path here
    content: bytes


FormField = str | Upload


async def form_fields(request: web.Request) -> dict[str, FormField | list[FormField]]:
    """Reads the form that a request has sent.

    Returns:
        The fields by name. One that is given several times is a list, as in q=one&q=two.

    Raises:
        InputError: for a body that is no such form.
        web.HTTPRequestEntityTooLarge: for one that is larger than the application allows.
    """
    try:
        form = await request.post()
    except (ValueError, LookupError, RuntimeError, HttpProcessingError) as error:
        rule = "must be a form as its Content-Type says, in UTF-8"
        raise InputError(None, rule, reason(error), "the body") from None
    fields = {}
    for name in form:
        values = [_form_field(value) for value in form.getall(name)]
        fields[name] = values[0] if len(values) == 1 else values
    return fields


def _form_field(value: str | bytearray | web.FileField) -> FormField:
    if isinstance(value, web.FileField):
        return Upload(value.filename, value.file.read())
    if isinstance(value, bytearray):  # what a form has in place of a file that was not chosen
        return Upload("", bytes(value))
    return value
