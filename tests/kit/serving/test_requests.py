import dataclasses
import functools
import json
import math
import re
from pathlib import Path

import pytest

from keras_transformer.kit.serving import requests
from keras_transformer.kit.serving.errors import RequestError, as_refusal
from keras_transformer.kit.serving.limits import OWN_MACHINE, Limits
from keras_transformer.kit.serving.requests import (
    AttentionRequest,
    check_cors_origin,
    check_sender,
    parse_attention,
    parse_document,
    parse_translate,
)
from keras_transformer.support.errors import InputError
from keras_transformer.support.fields import shown
from tests.refusals import check_message, refused

LIMITS = Limits(max_sentences=3, max_characters=10)
TRANSLATE = functools.partial(parse_translate, beam_size=4)
NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (b'{"text": "a cat"}', (["a cat"], {}, 1)),
        (b'{"text": "a cat", "prefixes": ["eine"]}', (["a cat"], {"target_prefixes": ["eine"]}, 1)),
        (
            b'{"text": "a", "required_phrases": [["b", "c d"]]}',
            (["a"], {"required_phrases": [["b", "c d"]]}, 1),
        ),
        (
            b'{"texts": ["a", "b"], "prefixes": ["c", ""]}',
            (["a", "b"], {"target_prefixes": ["c", ""]}, 1),
        ),
        (b'{"text": "a", "aligned": true}', (["a"], {"aligned": True}, 1)),
        (b'{"texts": [], "n_best": 4}', ([], {}, 4)),
        (
            '{"texts": ["", "über", "\\ud83d\\ude00"], "n_best": 2}'.encode(),
            (["", "über", "😀"], {}, 2),
        ),
        (b' {"text": "12345\\n7890"}\n', (["12345\n7890"], {}, 1)),
    ],
)
def test_translate(body, wanted):
    request = parse_translate(json.loads(body), LIMITS, beam_size=4)
    assert (request.sentences, request.options(None), request.n_best) == wanted


@pytest.mark.parametrize(
    ("body", "status", "about", "received"),
    [
        (b"{}", 400, "either text, a string, or texts", "neither"),
        (b'{"text": "a", "texts": []}', 400, "either text, a string, or texts", "both"),
        (b'{"text": ["a", "b"]}', 400, "text must be of type str", '["a", "b"]'),
        (b'{"texts": ["a", null]}', 400, "texts[1] must be of type str", "null"),
        (
            b'{"text": "a", "beam\\u000a": 1}',
            400,
            "text, texts, n_best, prefixes, required_phrases, aligned, confidence, matches, to",
            r'"beam\n"',
        ),
        (b'{"text": "a", "n_best": 0}', 400, "n_best must be an integer from 1 to 4", "0"),
        (b'{"text": "a", "n_best": 5}', 400, "n_best must be an integer from 1 to 4", "5"),
        (b'{"text": "a", "prefixes": []}', 400, "prefixes", "0 for 1"),
    ],
)
def test_refused_translate(body, status, about, received):
    with pytest.raises((InputError, RequestError)) as caught:
        parse_translate(json.loads(body), LIMITS, beam_size=4)
    assert as_refusal(caught.value, None).status == status
    check_message(str(caught.value), about, received)


def test_attention():
    body = b'{"target": "Katze", "source": "cat"}'
    assert parse_attention(json.loads(body), LIMITS) == AttentionRequest("cat", "Katze")
    body = b'{"text": "cat", "to": "de"}'
    assert parse_translate(json.loads(body), LIMITS, beam_size=4).to == "de"


@pytest.mark.parametrize(
    ("body", "status", "about", "received"),
    [
        (b'{"source": "cat"}', 400, "target", "none"),
        (b'{"source": "cat", "target": ["a"]}', 400, "target", '["a"]'),
        (b'{"source": "", "target": "", "head": 1}', 400, "source, target, to", '"head"'),
    ],
)
def test_refused_attention(body, status, about, received):
    with pytest.raises((InputError, RequestError)) as caught:
        parse_attention(json.loads(body), LIMITS)
    assert as_refusal(caught.value, None).status == status
    check_message(str(caught.value), about, received)


@pytest.mark.parametrize(
    ("parse", "fields", "message"),
    [
        (TRANSLATE, {"text": "12345678901"}, "text has 11 characters"),
        (TRANSLATE, {"texts": ["12345", "678901"]}, "request has 11 characters"),
        (TRANSLATE, {"text": "123456", "prefixes": ["12345"]}, "request has 11 characters"),
        (
            *(TRANSLATE, {"text": "12345", "required_phrases": [["12", "34"], ["56"]]}),
            "request has 11 characters",
        ),
        (parse_attention, {"source": "12345", "target": "678901"}, "request has 11 characters"),
        (parse_document, {"document": "x" * 27_890}, "text has 27,890 characters"),
    ],
)
def test_too_many_characters(parse, fields, message):
    for prefix in ("", "--"):
        with pytest.raises(RequestError) as caught:
            parse(fields, dataclasses.replace(LIMITS, prefix=prefix))
        assert caught.value.status == 413
        accepted = f"this server accepts 10 ({prefix}max_characters)"
        assert str(caught.value) == f"This {message}; {accepted}"


def test_body_has_room_for_all_that_is_allowed():
    longest = json.dumps({"texts": ["😀" * 8, "😀", "😀"], "n_best": 4})
    assert len(longest) <= LIMITS.body_bytes
    assert len(parse_translate(json.loads(longest), LIMITS, beam_size=4).sentences) == 3


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "localhost:8501"},
        {"Host": "LOCALHOST"},
        {"Host": "[::1]:80"},
        {"Host": "127.0.0.1:9", "Origin": "http://127.0.0.1:9"},
        {"Host": "localhost", "Origin": "https://localhost"},
    ],
)
def test_own_senders(headers):
    check_sender(headers, NAMES)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Host": ""},
        {"Host": "rebound.example:8501"},
        {"Host": "localhost.rebound.example"},
        {"Host": "localhost@rebound.example"},
        {"Host": "[::1"},
        {"Host": "localhost:80", "Origin": "http://localhost:81"},
        {"Host": "localhost", "Origin": "http://rebound.example"},
        {"Host": "localhost", "Origin": "null"},
    ],
)
def test_foreign_senders(headers):
    with pytest.raises(RequestError, match=r"Received: (Origin )?'") as caught:
        check_sender(headers, NAMES)
    assert caught.value.status == 403


def test_senders_of_another_origin():
    headers = {"Host": "localhost", "Origin": "https://example.org"}
    check_sender(headers, NAMES, "https://example.org")
    check_sender({**headers, "Origin": "null"}, NAMES, "*")
    for other in ("https://example.org:8000", "http://example.org", "null"):
        with pytest.raises(RequestError, match=f"Received: Origin '{other}'"):
            check_sender({**headers, "Origin": other}, NAMES, "https://example.org")
    with pytest.raises(RequestError, match=r"Host .* Received: 'rebound\.example'"):
        check_sender({**headers, "Host": "rebound.example"}, NAMES, "*")


@pytest.mark.parametrize(
    "origin", [None, "*", "https://example.org", "http://a-b.example:8080", "http://[::1]:80"]
)
def test_origin(origin):
    check_cors_origin(origin)


@pytest.mark.parametrize(
    "origin",
    [
        *("", "example.org", "https://", "https://example.org/", "https://example.org/page"),
        *("ftp://example.org", "HTTPS://example.org", "https://Example.org", "null", "**"),
        *("https://a.example,https://b.example", "https://a@b.example", "https://a.example:0"),
        *("https://a.example\n", "https://ü.example"),
    ],
)
def test_what_is_no_origin(origin):
    with refused("cors_origin", repr(origin)):
        check_cors_origin(origin)


def test_any_name_where_all_are_allowed():
    check_sender({"Host": "translate.example"}, None)
    with pytest.raises(RequestError, match=r"Received: Origin 'http://other\.example'"):
        check_sender({"Host": "translate.example", "Origin": "http://other.example"}, None)


@pytest.mark.parametrize(("name", "value"), [("timeout", math.inf), ("max_sentences", 0)])
def test_limits(name, value):
    with refused(name, shown(value)):
        Limits(**{name: value})


def test_a_server_of_its_own_machine_takes_a_book():
    limits = Limits(**OWN_MACHINE)
    limits.check_texts(["x" * 600_000])
    for name, value in OWN_MACHINE.items():
        assert value > getattr(Limits(), name)
        help = Limits.__dataclass_fields__[name].metadata["help"]
        assert help.endswith(f" {value:g}." if name == "timeout" else f" {value}.")


def test_the_page_has_words_for_each_kind_of_text_that_stays():
    page = (Path(requests.__file__).parent / "page.js").read_text(encoding="utf-8")
    reference = Path(__file__).parents[3] / "docs/reference/formats.md"
    rows = re.search(r"\| Kind \| Stays.*?\n\n", reference.read_text(encoding="utf-8"), re.S)[0]
    described = re.findall(r"`(\w+)`(?=[^|]*\|[^|]*\|)", rows)
    table = re.search(r"const LEFT = \{(.*?)\n\}", page, re.S)[1]
    assert re.findall(r"^  (\w+): \[", table, re.M) == described
