"""Forms, as browsers and clients of LibreTranslate send them: fields of a request's bytes."""

import email
import email.message
import email.policy
from email.errors import CloseBoundaryNotFoundDefect
from typing import NamedTuple
from urllib.parse import parse_qsl

from keras_transformer.errors import InputError, reason, require
from keras_transformer.fields import shown

URL_ENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
CONTENT_TYPES = (URL_ENCODED, MULTIPART)


class Upload(NamedTuple):
    """A file of a form."""

    name: str  # as the client calls it; never a path here
    content: bytes


FormField = str | Upload
_PLACE = "the body"  # of errors


def is_form(body: bytes, content_type: str) -> bool:
    """Whether a body is a form; curl -d sends JSON with the content type of one."""
    kind = content_type.partition(";")[0].strip().lower()
    return kind in CONTENT_TYPES and body.lstrip()[:1] not in (b"{", b"[")


def form_fields(body: bytes, content_type: str) -> dict[str, FormField | list[str]]:
    """Reads a form.

    Args:
        body: all of it.
        content_type: the header, which says where parts of a MULTIPART begin.

    Returns:
        The fields by name. A text that is given several times is a list, as in q=one&q=two.

    Raises:
        InputError: for what is no such form.
    """
    try:
        if content_type.strip().lower().startswith(MULTIPART):
            pairs = _multipart(body, content_type)
        else:
            decoded = body.decode("utf-8")
            pairs = parse_qsl(decoded, keep_blank_values=True, encoding="utf-8", errors="strict")
    except InputError:
        raise
    # Python's parser of messages is made for mail that can be read somehow; what else it raises
    # at malformed headers is not documented.
    except Exception as error:
        rule = "must be a form as its Content-Type says, in UTF-8"
        raise InputError(None, rule, reason(error), _PLACE) from None
    values: dict[str, list[FormField]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    for name, several in values.items():
        has_file = any(isinstance(value, Upload) for value in several)
        require(len(several) == 1 or not has_file, name, "must be one file", "several", _PLACE)
    return {name: several[0] if len(several) == 1 else several for name, several in values.items()}


def _multipart(body: bytes, content_type: str) -> list[tuple[str, FormField]]:
    head = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1")
    message = email.message_from_bytes(head + body, policy=email.policy.compat32)
    rule = "must have parts, between the boundary that Content-Type names"
    require(message.is_multipart(), None, rule, shown(content_type), _PLACE)
    is_cut = any(isinstance(each, CloseBoundaryNotFoundDefect) for each in message.defects)
    require(not is_cut, None, "must end with its boundary and --", "one without an end", _PLACE)
    return [_part(part) for part in message.get_payload()]


def _part(part: email.message.Message) -> tuple[str, FormField]:
    disposition = email.message.Message()
    for header, value in part.raw_items():
        if header.lower() == "content-disposition":  # in UTF-8, as browsers send it, unlike mail
            disposition[header] = value.encode("utf-8", "surrogateescape").decode("utf-8")
    name = disposition.get_param("name", header="content-disposition")
    require(isinstance(name, str), None, "must name each part", "a part without a name", _PLACE)
    require(not part.is_multipart(), name, "must be a text or a file", "a form", _PLACE)
    content = part.get_payload(decode=True)
    file_name = disposition.get_filename()
    if file_name is not None:
        return name, Upload(file_name, content)
    return name, content.decode("utf-8")
