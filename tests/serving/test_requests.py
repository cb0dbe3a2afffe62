import json
import math

import pytest

from keras_transformer.errors import InputError
from keras_transformer.serving.requests import (
    Limits,
    RequestError,
    check_sender,
    parse_attention,
    parse_translate,
)

LIMITS = Limits(max_sentences=3, max_characters=10)
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
    assert parse_translate(body, LIMITS, beam_size=4) == wanted


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 400, "the body must be JSON in UTF-8. Received: Expecting value: line 1 column 1"),
        (b'{"text": "a"', 400, "must be JSON in UTF-8. Received: Expecting ',' delimiter"),
        (b'{"text": "a\xff"}', 400, "'utf-8' codec can't decode byte 0xff in position 11"),
        (b"[" * 100_000, 400, "the body must be JSON in UTF-8. Received: maximum recursion depth"),
        (
            b'{"n_best": ' + b"9" * 5000 + b"}",
            400,
            "the body must be JSON in UTF-8. Received: Exceeds",
        ),
        (b'["a"]', 400, 'the body: its content must be of type dict. Received: ["a"]'),
        (b"null", 400, "the body: its content must be of type dict. Received: null"),
        (b"{}", 400, "exactly one of text and texts must be given. Received: neither"),
        (b'{"text": "a", "texts": []}', 400, "Received: both"),
        (b'{"text": 1}', 400, "the body: text must be of type str. Received: 1"),
        (b'{"texts": "a"}', 400, 'the body: texts must be of type list. Received: "a"'),
        (b'{"texts": ["a", null]}', 400, "the body: texts[1] must be of type str. Received: null"),
        (
            b'{"text": "a", "beam\\u000a": 1}',
            400,
            r"the body: beam  must be a field that this version knows. Received: 1",
        ),
        (b'{"text": "a", "n_best": 0}', 400, "n_best must be an integer from 1 to 4, the model's"),
        (b'{"text": "a", "n_best": 5}', 400, "Received: 5"),
        (b'{"text": "a", "n_best": true}', 400, "Received: true"),
        (b'{"text": "a", "n_best": 1.0}', 400, "Received: 1.0"),
        (b'{"text": "a", "n_best": NaN}', 400, "Received: NaN"),
        (
            b'{"text": "a", "prefixes": []}',
            400,
            "prefixes must be as many as texts. Received: 0 for 1",
        ),
        (
            b'{"text": "123456", "prefixes": ["12345"]}',
            413,
            "at most 10 characters of text. Received",
        ),
        (b'{"texts": ["", "", "", ""]}', 413, "a request must have at most 3 texts. Received: 4"),
        (b'{"text": "12345678901"}', 413, "at most 10 characters of text. Received: 11"),
        (b'{"texts": ["12345", "678901"]}', 413, "at most 10 characters of text. Received: 11"),
    ],
)
def test_refused_translate(body, status, message):
    with pytest.raises(RequestError) as caught:
        parse_translate(body, LIMITS, beam_size=4)
    assert caught.value.status == status
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_attention():
    body = b'{"target": "Katze", "source": "cat"}'
    assert parse_attention(body, LIMITS) == ("cat", "Katze")


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b'{"source": "cat"}', 400, "the body: target must be given. Received: none"),
        (b"{}", 400, "the body: source must be given. Received: none"),
        (
            b'{"source": "cat", "target": ["a"]}',
            400,
            'the body: target must be of type str. Received: ["a"]',
        ),
        (
            b'{"source": "", "target": "", "head": 1}',
            400,
            "the body: head must be a field that this version knows. Received: 1",
        ),
        (b'{"source": "12345", "target": "678901"}', 413, "Received: 11"),
    ],
)
def test_refused_attention(body, status, message):
    with pytest.raises(RequestError) as caught:
        parse_attention(body, LIMITS)
    assert caught.value.status == status
    assert message in str(caught.value)


def test_body_has_room_for_all_that_is_allowed():
    longest = json.dumps({"texts": ["😀" * 8, "😀", "😀"], "n_best": 4})
    assert len(longest) <= LIMITS.body_bytes
    assert len(parse_translate(longest.encode(), LIMITS, beam_size=4)[0]) == 3


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


def test_any_name_where_all_are_allowed():
    check_sender({"Host": "translate.example"}, None)
    with pytest.raises(RequestError, match="must come from the server's own page"):
        check_sender({"Host": "translate.example", "Origin": "http://other.example"}, None)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"timeout": 0}, "timeout must be positive seconds. Received: 0"),
        ({"timeout": math.nan}, "timeout must be positive seconds. Received: nan"),
        ({"timeout": math.inf}, "timeout must be positive seconds. Received: inf"),
        ({"max_sentences": 0}, "max_sentences must be at least 1. Received: 0"),
        ({"max_characters": -1}, "max_characters must be at least 1. Received: -1"),
        ({"max_waiting": 0}, "max_waiting must be at least 1. Received: 0"),
    ],
)
def test_limits(limits, message):
    with pytest.raises(InputError, match=message):
        Limits(**limits)
