"""Reads requests: a body becomes a dataclass, or is rejected.

An InputError here is the sender's mistake; errors.as_refusal answers it with status 400.
"""

import asyncio
import dataclasses
import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

from aiohttp import web

from keras_transformer.kit.documents.formats import FORMATS
from keras_transformer.kit.serving.errors import RequestError, check
from keras_transformer.kit.serving.forms import BODY, MULTIPART, URL_ENCODED, Open, form_fields
from keras_transformer.kit.serving.limits import Limits
from keras_transformer.support.errors import InputError, require
from keras_transformer.support.fields import from_json, shown
from keras_transformer.support.files.json_files import parse_json
from keras_transformer.use.translate.terminology import terms_in

# Document formats; a table would also need the columns to translate. An archive is not text, and
# must be sent as a file.
FILE_FORMATS = {name: format for name, format in FORMATS.items() if not format.has_columns}
SERVED_FORMATS = {name: format for name, format in FILE_FORMATS.items() if not format.is_archive}
BY_ENDING = {end: name for name, format in FILE_FORMATS.items() for end in format.endings}
ANY_ORIGIN = "*"
_is_origin = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[1-9][0-9]{0,4})?").fullmatch


def check_cors_origin(origin: str | None) -> None:
    """Raises an InputError unless `origin` is an origin as sent by browsers, "*", or None."""
    rule = "must be an origin, such as https://example.org, or * for any"
    fits = origin in (None, ANY_ORIGIN) or _is_origin(origin) is not None
    require(fits, "cors_origin", rule, repr(origin))


def allows(cors_origin: str | None, origin: str | None) -> bool:
    """Whether pages from `origin` may call this server, and read its answers."""
    return origin is not None and cors_origin in (origin, ANY_ORIGIN)


def check_sender(
    headers: Mapping[str, str], host_names: frozenset[str] | None, cors_origin: str | None = None
) -> None:
    """Rejects requests that other web pages send without the user's knowledge.

    Such a page can make its own server's name resolve to this one (DNS rebinding). The browser then
    sends that name as Host, which must therefore be one of `host_names`. Or the page sends a
    request without reading the answer. The browser then sends the page's server as Origin, which
    must therefore be this one.

    Args:
        headers: the request headers.
        host_names: host names that requests may use; None for any.
        cors_origin: origin of other pages that may call this server; "*" for all.

    Raises:
        RequestError: 403.
    """
    host = headers.get("Host", "")
    try:
        name = urlsplit(f"//{host}").hostname  # without the port and brackets
    except ValueError:
        name = None
    if host_names is not None:
        rule = f"the Host header must name {' or '.join(sorted(host_names))}"
        check(name in host_names, 403, rule, repr(host))
    origin = headers.get("Origin")
    is_own = origin is None or origin.partition("://")[2] == host
    rule = "requests must come from the server's own page, from no page, or from its cors_origin"
    check(is_own or allows(cors_origin, origin), 403, rule, f"Origin {origin!r}")


To = Annotated[
    str | None,
    "Target language, if the model has several: one of task_options.target_languages in /model. If "
    "it has source_languages, too: the direction, such as en-de.",
]

Terminology = Annotated[
    str | None,
    'Terminology: one of terminologies in /model, or "" for none; the first by default.',
]


ReviewBelow = Annotated[
    float, "Mark translations that are good with less than this probability; 0 for none."
]


@dataclass(frozen=True)
class TranslateRequest:
    """Sentences to translate: either `text` or `texts`."""

    text: Annotated[str | None, "One sentence."] = None
    texts: Annotated[list[str] | None, "Several sentences, translated separately."] = None
    n_best: Annotated[int, "Number of translations of each, up to the model's beam_size."] = 1
    prefixes: Annotated[list[str] | None, "Prefix of the translations of each."] = None
    required_phrases: Annotated[
        list[list[str]] | None, "Phrases that the translations of each must contain."
    ] = None
    aligned: Annotated[bool, "Whether to return subwords and alignments, too."] = False
    confidence: Annotated[
        bool, "Whether to return confidence, too, if the model has a calibration."
    ] = False
    matches: Annotated[
        bool, "Whether to return similar sentences in the translation memory, too."
    ] = False
    to: To = None
    terminology: Terminology = None

    @property
    def sentences(self) -> list[str]:
        """Returns the texts to translate."""
        return self.texts if self.text is None else [self.text]

    def options(self, terms: dict[str, str] | None) -> dict[str, Any]:
        """Returns further arguments for `Translator.translate`; empty if there are only texts.

        Args:
            terms: the terminology's terms.
        """
        options = {
            "target_prefixes": self.prefixes,
            "aligned": self.aligned,
            "confidence": self.confidence,
            "required_phrases": self.required_phrases,
            "terminology": terms if any(terms_in(self.sentences, terms)) else None,
        }
        return {name: value for name, value in options.items() if value}


@dataclass(frozen=True)
class DocumentRequest:
    """A text of any length: its sentences are translated, all else is kept."""

    document: Annotated[str, "The whole text."]
    format: Annotated[
        str,
        'Its format: "text", with one paragraph per line; "wrapped", with paragraphs that span '
        "several lines; or another.",
    ] = "text"
    to: To = None
    terminology: Terminology = None
    review_below: ReviewBelow = 0.0


@dataclass(frozen=True)
class AttentionRequest:
    """A sentence and a translation, for which attention is requested."""

    source: Annotated[str, "A sentence."]
    target: Annotated[str, "Its translation."]
    to: To = None


class Documents(NamedTuple):
    """Texts of any length to translate."""

    texts: list[str | bytes]  # bytes for an archive
    format: str
    count: int = 1  # number of translations of each
    to: str | None = None  # the target language or the direction, if texts must select it
    language: str | None = None  # the source language, if there are several
    terminology: str | None = None  # the terminology's name; None for the first one
    review_below: float = 0.0  # the confidence below which documents mark a translation


async def read_fields(request: web.Request) -> dict[str, Any]:
    """Reads JSON, or a form if the content type says so, or if the fields are only in the URL.

    Raises:
        InputError: for any other body, or one that is compressed.
        web.HTTPRequestEntityTooLarge: for a body larger than the application allows.
    """
    encoding = request.headers.get("Content-Encoding", "").lower()
    require(encoding in ("", "identity"), None, "must not be compressed", shown(encoding), BODY)
    if request.content_type == MULTIPART:
        return await form_fields(request)
    body = await request.read()
    is_json = body.lstrip().startswith((b"{", b"["))  # curl -d declares it as a form
    is_in_url = not body and request.query
    if is_in_url or (request.content_type == URL_ENCODED and not is_json):
        return await form_fields(request)
    content = parse_json(body, BODY, Any)
    if not isinstance(content, dict):  # only then is the whole content written as JSON again
        raise InputError(None, "must be a JSON object", shown(content), BODY)
    return content


async def read_within_limits(
    request: web.Request, limits: Limits, too_large: Callable[[str], RequestError]
) -> dict[str, Any]:
    """Reads a body, within the time limit; `too_large` makes the error for "SIZE bytes"."""
    try:
        async with asyncio.timeout(limits.timeout):
            return await read_fields(request)
    except TimeoutError:
        rule = f"the whole body must arrive within {limits.time}"
        raise RequestError(408, f"{rule}. Received: part of it") from None
    except web.HTTPRequestEntityTooLarge:
        raise too_large(_body_size(request)) from None
    except web.RequestPayloadError:
        rule = "must be encoded as its headers declare"
        raise InputError(None, rule, "one that is not, or only part of it", BODY) from None


def _body_size(request: web.Request) -> str:
    """Returns the size, in words, of a body larger than the application allows."""
    length, most = request.content_length, request.client_max_size
    is_declared = length is not None and length > most  # else it comes in chunks
    return f"{length:,} bytes" if is_declared else f"more than {most:,} bytes"


def parse_translate(fields: dict[str, Any], limits: Limits, beam_size: int) -> TranslateRequest:
    """Reads a TranslateRequest.

    Args:
        fields: the fields of the body.
        limits: the limits on requests.
        beam_size: the model's beam size, the number of translations that it finds.

    Raises:
        InputError: for any other request. RequestError: 413 if there is too much text.
    """
    request = checked(TranslateRequest, fields)
    rule = "must have either text, a string, or texts, a list of strings"
    require(request.text is not None or request.texts is not None, None, rule, "neither", BODY)
    require(request.text is None or request.texts is None, None, rule, "both", BODY)
    count = len(request.sentences)
    prefixes = request.prefixes
    if prefixes is not None:
        received = f"{len(prefixes)} for {count}"
        require(len(prefixes) == count, "prefixes", "must be as many as texts", received)
    phrases = itertools.chain.from_iterable(request.required_phrases or [])
    limits.check_texts(request.sentences, [*(prefixes or []), *phrases])
    rule = f"must be an integer from 1 to {beam_size}, the model's beam size"
    require(1 <= request.n_best <= beam_size, "n_best", rule, request.n_best)
    return request


def parse_document(fields: dict[str, Any], limits: Limits) -> DocumentRequest:
    """Reads a DocumentRequest; raises as `parse_translate` does."""
    request = checked(DocumentRequest, fields)
    limits.check_texts([request.document])
    check_format(request.format)
    check_review_below(request.review_below)
    return request


def check_review_below(bound: float) -> None:
    """Rejects what is no probability."""
    require(0 <= bound < 1, "review_below", "must be from 0 to below 1", bound)


def check_format(format: str) -> None:
    """Rejects unknown document formats."""
    rule = f"must be one of {', '.join(SERVED_FORMATS)}"
    require(format in SERVED_FORMATS, "format", rule, shown(format))


def parse_attention(fields: dict[str, Any], limits: Limits) -> AttentionRequest:
    """Reads an AttentionRequest; raises as `parse_translate` does."""
    request = checked(AttentionRequest, fields)
    limits.check_texts([request.source, request.target])
    return request


def checked(kind: type, fields: dict[str, Any]) -> Any:
    """Converts the fields of a body to a dataclass.

    Raises:
        InputError: for a field that is missing or of the wrong type, or unknown, unless the class
            is Open.
    """
    known = [field.name for field in dataclasses.fields(kind)]
    if issubclass(kind, Open):
        return from_json(kind, {name: fields[name] for name in known if name in fields}, BODY)
    rule = f"must only have the fields {', '.join(known)}"
    for name in fields:
        require(name in known, None, rule, shown(name), BODY)
    return from_json(kind, fields, BODY)
