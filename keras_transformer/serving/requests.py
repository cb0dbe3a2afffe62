"""What a request may say, and what of it is refused: pure functions of a request's bytes."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from keras_transformer.errors import InputError

# Longest part of a value that an error repeats.
SHOWN_CHARACTERS = 60
# One character takes at most so many bytes of JSON: two escapes, as in "\ud83d\ude00".
BYTES_PER_CHARACTER = 12


class RequestError(Exception):
    """A request that is refused; its message is one line.

    Args:
        status: of HTTP, 400 to 599.
        message: the rule, and what was received.
        headers: for the response.
    """

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None):
        super().__init__(message)
        self.status = status
        self.headers = headers or {}


@dataclass(frozen=True)
class Limits:
    """What is served at most.

    Raises:
        InputError: for a limit that would let nothing through.
    """

    timeout: float = 60.0  # seconds to wait for a request's body, and again for the model
    sentences: int = 64  # of one request
    characters: int = 20_000  # of one request, all its texts together
    waiting: int = 64  # requests that wait for the model

    def __post_init__(self):
        if not 0 < self.timeout < math.inf:
            rule = "--timeout must be positive seconds"
            raise InputError(f"{rule}. Received: {self.timeout}")
        for flag, value in (
            ("max_sentences", self.sentences),
            ("max_characters", self.characters),
            ("max_waiting", self.waiting),
        ):
            if value < 1:
                raise InputError(f"--{flag} must be at least 1. Received: {value}")

    @property
    def body_bytes(self) -> int:
        """Size of a body: whatever keeps to the other limits fits, however it is escaped."""
        return BYTES_PER_CHARACTER * self.characters + 8 * self.sentences + 1024


def check_sender(headers: Mapping[str, str], host_names: frozenset[str] | None) -> None:
    """Refuses what other web pages, open in the same browser, may ask for behind its user's back.

    Their own server's name can be made to point to this one (DNS rebinding): the name is in Host.
    Or they just send us something, and do not see the answer: the browser says so in Origin.

    Args:
        headers: of the request.
        host_names: those by which the server may be called; None for any.

    Raises:
        RequestError: 403.
    """
    host = headers.get("Host", "")
    if host_names is not None and host_name(host) not in host_names:
        rule = f"the Host header must name {' or '.join(sorted(host_names))}"
        raise RequestError(403, f"{rule}. Received: {shown(host)}")
    origin = headers.get("Origin")
    if origin is not None and origin.partition("://")[2] != host:
        rule = "requests must come from the server's own page, or from no page"
        raise RequestError(403, f"{rule}. Received: Origin {shown(origin)}")


def host_name(host: str) -> str | None:
    """The name in a Host header, without port and brackets; None where there is none."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


class TranslateRequest(NamedTuple):
    """Sentences to translate, and how many translations each is to have."""

    texts: list[str]
    n_best: int


class AttentionRequest(NamedTuple):
    """A sentence, and the translation whose attention is asked for."""

    source: str
    target: str


def parse_translate(body: bytes, limits: Limits, beam_size: int) -> TranslateRequest:
    """Reads {"text": string} or {"texts": [string, ...]}, either with "n_best": 1 to `beam_size`.

    Raises:
        RequestError: 400 where it says something else, 413 where it is too much.
    """
    fields = parse_object(body, ("text", "texts", "n_best"))
    if ("text" in fields) == ("texts" in fields):
        received = "both" if "text" in fields else "neither"
        raise RequestError(
            400, f"exactly one of text and texts must be given. Received: {received}"
        )
    if "text" in fields:
        texts = [string(fields, "text")]
    else:
        texts = fields["texts"]
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise RequestError(400, f"texts must be a list of strings. Received: {shown(texts)}")
    if len(texts) > limits.sentences:
        rule = f"a request must have at most {limits.sentences} texts"
        raise RequestError(413, f"{rule}. Received: {len(texts)}")
    check_characters(texts, limits)
    n_best = fields.get("n_best", 1)
    if type(n_best) is not int or not 1 <= n_best <= beam_size:
        rule = f"n_best must be an integer from 1 to {beam_size}, the model's beams"
        raise RequestError(400, f"{rule}. Received: {shown(n_best)}")
    return TranslateRequest(texts, n_best)


def parse_attention(body: bytes, limits: Limits) -> AttentionRequest:
    """Reads {"source": string, "target": string}.

    Raises:
        RequestError: 400 where it says something else, 413 where it is too much.
    """
    fields = parse_object(body, AttentionRequest._fields)
    request = AttentionRequest(*(string(fields, name) for name in AttentionRequest._fields))
    check_characters(request, limits)
    return request


def parse_object(body: bytes, names: tuple[str, ...]) -> dict[str, Any]:
    """Reads a JSON object of no other fields than `names`.

    Raises:
        RequestError: 400 where it is none.
    """
    try:
        fields = json.loads(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        byte = f"byte 0x{body[error.start]:02x} at offset {error.start}"
        raise RequestError(400, f"the body must be UTF-8. Received: {byte}") from None
    except (ValueError, RecursionError) as error:
        what = "a value nested too deep" if isinstance(error, RecursionError) else error
        raise RequestError(400, f"the body must be JSON. Received: {what}") from None
    if not isinstance(fields, dict):
        raise RequestError(400, f"the body must be a JSON object. Received: {shown(fields)}")
    for name in fields:
        if name not in names:
            rule = f"the fields must be among {', '.join(names)}"
            raise RequestError(400, f"{rule}. Received: {shown(name)}")
    return fields


def string(fields: dict[str, Any], name: str) -> str:
    """Gives a field that must be there, and be a string."""
    if name not in fields:
        raise RequestError(400, f"{name} must be given. Received: {', '.join(fields) or 'nothing'}")
    if not isinstance(fields[name], str):
        raise RequestError(400, f"{name} must be a string. Received: {shown(fields[name])}")
    return fields[name]


def check_characters(texts: tuple[str, ...] | list[str], limits: Limits) -> None:
    """Refuses more text than a request may have."""
    characters = sum(map(len, texts))
    if characters > limits.characters:
        rule = f"a request must have at most {limits.characters} characters of text"
        raise RequestError(413, f"{rule}. Received: {characters}")


def shown(value: Any) -> str:
    """A value as JSON in one line, its end left out where it is long."""
    text = json.dumps(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "..."
