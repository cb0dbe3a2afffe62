"""What a request may say, and what of it is refused: pure functions of a request's bytes."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from keras_transformer.errors import InputError, reason, require
from keras_transformer.fields import from_json

SHOWN_CHARACTERS = 160  # of the message of an error, of an address in the log
BYTES_PER_CHARACTER = 12  # in JSON, at most: two escapes, as in "\ud83d\ude00"


class RequestError(Exception):
    """A request that is refused, in one line, with a status of HTTP and perhaps headers."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None):
        super().__init__(shown(message))
        self.status, self.headers = status, headers or {}


def check(condition: bool, status: int, rule: str, received: Any) -> None:
    """Refuses a request that breaks a rule, as errors.require does for other input."""
    if not condition:
        raise RequestError(status, f"{rule}. Received: {received}")


@dataclass(frozen=True)
class Limits:
    """What is served at most; a limit that would let nothing through is an InputError."""

    timeout: float = 60.0  # seconds to wait for each of: a request's headers, its body, the model
    sentences: int = 64  # of one request
    characters: int = 20_000  # of one request, all its texts together
    waiting: int = 64  # requests that wait for the model

    def __post_init__(self):
        rule = "--timeout must be positive seconds"
        require(0 < self.timeout < math.inf, rule, self.timeout)
        for name in ("sentences", "characters", "waiting"):
            value = getattr(self, name)
            require(value >= 1, f"--max_{name} must be at least 1", value)

    @property
    def body_bytes(self) -> int:
        """Size of a body: whatever keeps to the other limits fits, however it is escaped."""
        return BYTES_PER_CHARACTER * self.characters + 8 * self.sentences + 1024

    def check_texts(self, texts: Sequence[str]) -> None:
        """Raises a RequestError, 413, for more text than a request may have."""
        rule = f"a request must have at most {self.sentences} texts"
        check(len(texts) <= self.sentences, 413, rule, len(texts))
        characters = sum(map(len, texts))
        rule = f"a request must have at most {self.characters} characters of text"
        check(characters <= self.characters, 413, rule, characters)


def check_sender(headers: Mapping[str, str], host_names: frozenset[str] | None) -> None:
    """Refuses, with 403, what other web pages in the same browser ask for behind its user's back.

    Their own server's name can be made to point to this one (DNS rebinding): the name is in Host,
    which must be in `host_names`, unless that is None. Or they just send us something, and do not
    see the answer: the browser says so in Origin.
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
    rule = "requests must come from the server's own page, or from no page"
    check(origin is None or origin.partition("://")[2] == host, 403, rule, f"Origin {origin!r}")


@dataclass(frozen=True)
class TranslateRequest:
    """Sentences to translate: either `text` or `texts`."""

    text: str | None = None
    texts: list[str] | None = None
    n_best: int = 1  # translations of each
    prefixes: list[str] | None = None  # what the translations of each begin with
    required_phrases: list[list[str]] | None = None  # what the translations of each contain
    aligned: bool = False  # whether to give their subwords, too


@dataclass(frozen=True)
class AttentionRequest:
    """A sentence, and the translation whose attention is asked for."""

    source: str
    target: str


def parse_translate(body: bytes, limits: Limits, beam_size: int) -> tuple[list[str], dict, int]:
    """Gives the sentences of a TranslateRequest, what `translate` gets beside them, and n_best.

    Raises:
        RequestError: 400 for anything else, 413 where it is too much.
    """
    request = _parsed(TranslateRequest, body)
    both = request.text is not None and request.texts is not None
    texts = request.texts if request.text is None else [request.text]
    rule = "exactly one of text and texts must be given"
    check(texts is not None and not both, 400, rule, "both" if both else "neither")
    prefixes = [""] * len(texts) if request.prefixes is None else request.prefixes
    rule = "prefixes must be as many as texts"
    check(len(prefixes) == len(texts), 400, rule, f"{len(prefixes)} for {len(texts)}")
    limits.check_texts(list(map(str.__add__, texts, prefixes)))
    rule = f"n_best must be an integer from 1 to {beam_size}, the model's beams"
    check(1 <= request.n_best <= beam_size, 400, rule, request.n_best)
    options = {"target_prefixes": request.prefixes, "aligned": request.aligned}
    options["required_phrases"] = request.required_phrases  # the body's size limits them
    return texts, {name: value for name, value in options.items() if value}, request.n_best


def parse_attention(body: bytes, limits: Limits) -> tuple[str, str]:
    """Gives source and target of an AttentionRequest, or raises as parse_translate does."""
    request = _parsed(AttentionRequest, body)
    limits.check_texts([request.source, request.target])
    return request.source, request.target


def _parsed(kind: type, body: bytes) -> Any:
    try:
        return from_json(kind, json.loads(body.decode("utf-8")), "the body")
    except InputError as error:
        raise RequestError(400, str(error)) from None
    except (ValueError, RecursionError) as error:
        rule = "the body must be JSON in UTF-8"
        raise RequestError(400, f"{rule}. Received: {reason(error)}") from None


def shown(text: str) -> str:
    """The beginning of a text, fit for one line of a log."""
    text = text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
