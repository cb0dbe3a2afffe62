"""What a request may say, and what of it is refused: pure functions of a request's bytes."""

import dataclasses
import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

from keras_transformer.documents.formats import FORMATS
from keras_transformer.errors import InputError, reason, require
from keras_transformer.fields import from_json
from keras_transformer.fields import shown as shown_json
from keras_transformer.serving.forms import form_fields, is_form

SHOWN_CHARACTERS = 240  # of an error's message, and of an address in the log
BYTES_PER_CHARACTER = 12  # at most, in JSON: two escapes, as in "\ud83d\ude00"
# Of documents; a table would need the columns to be translated, too.
SERVED_FORMATS = {name: format for name, format in FORMATS.items() if not format.has_columns}
_is_origin = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[1-9][0-9]{0,4})?").fullmatch


class RequestError(Exception):
    """A request that is refused: why, in one line, a status of HTTP, and perhaps headers."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None):
        super().__init__(shown(message))
        self.status = status
        self.headers = headers or {}


def check(condition: bool, status: int, rule: str, received: Any) -> None:
    """Raises a RequestError, "RULE. Received: RECEIVED", where a condition does not hold."""
    if not condition:
        raise RequestError(status, f"{rule}. Received: {received}")


@dataclass(frozen=True)
class Limits:
    """The most that is served; a limit that would let nothing through is an InputError."""

    timeout: float = 60.0  # seconds to wait for each of: a request's headers, its body, the model
    max_sentences: int = 64  # of one request
    max_characters: int = 20_000  # of one request, all its texts together
    max_waiting: int = 64  # requests that wait for the model

    def __post_init__(self):
        require(0 < self.timeout < math.inf, "timeout", "must be positive seconds", self.timeout)
        require(self.max_sentences >= 1, "max_sentences", "must be at least 1", self.max_sentences)
        require(
            self.max_characters >= 1, "max_characters", "must be at least 1", self.max_characters
        )
        require(self.max_waiting >= 1, "max_waiting", "must be at least 1", self.max_waiting)

    @property
    def body_bytes(self) -> int:
        """Size of a body: whatever keeps to the other limits fits, however it is escaped."""
        return BYTES_PER_CHARACTER * self.max_characters + 8 * self.max_sentences + 1024

    @property
    def rule(self) -> str:
        """What the limits are, in words."""
        return (
            f"a request must have at most {self.max_sentences} texts "
            f"and {self.max_characters} characters of text"
        )

    def check_texts(self, texts: Sequence[str], further: Sequence[str] = ()) -> None:
        """Refuses more text than a request may have.

        Args:
            texts: what is to be translated.
            further: texts that go with them, of which only the characters count.

        Raises:
            RequestError: 413.
        """
        rule = f"{self.rule}: send the rest in further requests"
        check(len(texts) <= self.max_sentences, 413, rule, f"{len(texts)} texts")
        characters = sum(map(len, texts)) + sum(map(len, further))
        check(characters <= self.max_characters, 413, rule, f"{characters} characters")


def check_cors_origin(origin: str | None) -> None:
    """Raises an InputError where `origin` is not an origin as browsers send it, "*", or None."""
    rule = "must be the origin of pages, such as https://example.org, or * for all"
    fits = origin in (None, "*") or _is_origin(origin) is not None
    require(fits, "cors_origin", rule, repr(origin))


def allows(cors_origin: str | None, origin: str | None) -> bool:
    """Whether pages of `origin` may use this server, and read its answers."""
    return origin is not None and cors_origin in (origin, "*")


def check_sender(
    headers: Mapping[str, str], host_names: frozenset[str] | None, cors_origin: str | None = None
) -> None:
    """Refuses what other web pages in the same browser send without their user's knowledge.

    Such a page can make the name of its own server point to this one (DNS rebinding). The browser
    then sends that name as Host, which must therefore be one of `host_names`. Or the page sends a
    request without seeing the answer. The browser then names the page's server as Origin, which
    must therefore be this one.

    Args:
        headers: of the request.
        host_names: by which this server may be called; None for any.
        cors_origin: of other pages that may use this server, all for "*".

    Raises:
        RequestError: 403.
    """
    host = headers.get("Host", "")
    try:
        name = urlsplit(f"//{host}").hostname  # without port and brackets
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
    "The target language, of a model of several: one of task_options.target_languages in /model.",
]


@dataclass(frozen=True)
class TranslateRequest:
    """Sentences to translate: either `text` or `texts`."""

    text: Annotated[str | None, "One sentence."] = None
    texts: Annotated[list[str] | None, "Several sentences, each by itself."] = None
    n_best: Annotated[int, "Translations of each, up to the model's beam_size."] = 1
    prefixes: Annotated[list[str] | None, "What the translations of each begin with."] = None
    required_phrases: Annotated[
        list[list[str]] | None, "What the translations of each contain."
    ] = None
    aligned: Annotated[bool, "Whether to give their subwords and alignment, too."] = False
    to: To = None


@dataclass(frozen=True)
class DocumentRequest:
    """A text of any length: its sentences are found and translated, all else stays as it is."""

    document: Annotated[str, "All of the text."]
    format: Annotated[
        str,
        'Its format: "text", in which each line is a paragraph; "wrapped", text in which a '
        "paragraph goes over several lines; or another.",
    ] = "text"
    to: To = None


@dataclass(frozen=True)
class AttentionRequest:
    """A sentence, and the translation whose attention is asked for."""

    source: Annotated[str, "A sentence."]
    target: Annotated[str, "A translation of it."]
    to: To = None


class TranslateCall(NamedTuple):
    """What `Translator.translate` is to be called with for a request."""

    texts: list[str]
    options: dict[str, Any]  # further arguments; empty where a request has only texts
    n_best: int  # translations of each text that the answer has
    to: str | None  # the target language


def parse_translate(fields: dict[str, Any], limits: Limits, beam_size: int) -> TranslateCall:
    """Reads a TranslateRequest.

    Args:
        fields: of the body.
        limits: of a request.
        beam_size: of the model, which has so many translations of a sentence.

    Raises:
        RequestError: 400 for anything else, 413 where it is too much.
    """
    if isinstance(fields.get("text"), list):
        rule = "text must be one string; texts is for a list of them"
        raise RequestError(400, f"{rule}. Received: {shown_json(fields['text'])}")
    if isinstance(fields.get("texts"), str):
        rule = "texts must be a list of strings; text is for a single one"
        raise RequestError(400, f"{rule}. Received: {shown_json(fields['texts'])}")
    request = checked(TranslateRequest, fields)
    rule = "exactly one of text, a string, and texts, a list of strings, must be given"
    if request.text is not None:
        check(request.texts is None, 400, rule, "both")
        texts = [request.text]
    else:
        check(request.texts is not None, 400, rule, "neither")
        texts = request.texts
    given = list(texts)
    if request.prefixes is not None:
        rule = "prefixes must be as many as texts"
        fits = len(request.prefixes) == len(texts)
        check(fits, 400, rule, f"{len(request.prefixes)} for {len(texts)}")
        given = [text + prefix for text, prefix in zip(texts, request.prefixes, strict=True)]
    phrases = itertools.chain.from_iterable(request.required_phrases or [])
    limits.check_texts(given, list(phrases))
    rule = f"n_best must be an integer from 1 to {beam_size}, the model's beams"
    check(1 <= request.n_best <= beam_size, 400, rule, request.n_best)
    options = {}
    if request.prefixes:
        options["target_prefixes"] = request.prefixes
    if request.aligned:
        options["aligned"] = True
    if request.required_phrases:
        options["required_phrases"] = request.required_phrases
    return TranslateCall(texts, options, request.n_best, request.to)


def parse_document(fields: dict[str, Any], limits: Limits) -> DocumentRequest:
    """Reads a DocumentRequest; raises as `parse_translate` does."""
    request = checked(DocumentRequest, fields)
    limits.check_texts([request.document])
    check_format(request.format)
    return request


def check_format(format: str) -> None:
    """Refuses a format that no document has."""
    rule = f"format must be one of {', '.join(SERVED_FORMATS)}"
    check(format in SERVED_FORMATS, 400, rule, shown_json(format))


def parse_attention(fields: dict[str, Any], limits: Limits) -> AttentionRequest:
    """Reads an AttentionRequest; raises as `parse_translate` does."""
    request = checked(AttentionRequest, fields)
    limits.check_texts([request.source, request.target])
    return request


def fields_of(body: bytes, content_type: str = "") -> dict[str, Any]:
    """Reads a body: JSON, or a form where the content type says so.

    Raises:
        RequestError: 400 for anything else.
    """
    if is_form(body, content_type):
        try:
            return form_fields(body, content_type)
        except InputError as error:
            raise RequestError(400, str(error)) from None
    try:
        content = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        rule = "the body must be a JSON object in UTF-8"
        raise RequestError(400, f"{rule}. Received: {reason(error)}") from None
    rule = "the body must be a JSON object"
    check(isinstance(content, dict), 400, rule, shown_json(content))
    return content


def checked(kind: type, fields: dict[str, Any]) -> Any:
    """Makes a dataclass of the fields of a body, in the terms of whoever has sent it.

    Raises:
        RequestError: 400 for a field that is missing, unknown or of another type.
    """
    known = [field.name for field in dataclasses.fields(kind)]
    rule = f"the fields of the body must be among {', '.join(known)}"
    for name in fields:
        check(name in known, 400, rule, shown_json(name))
    try:
        return from_json(kind, fields, "the body")
    except InputError as error:
        raise RequestError(400, str(error)) from None


def shown(text: str) -> str:
    """Returns the beginning of a text, in one line that a log can have."""
    if len(text) > SHOWN_CHARACTERS:
        text = f"{text[:SHOWN_CHARACTERS]}..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
