"""Requests that no client should send: each is refused in one line, and nothing fails."""

import asyncio
import gzip
import json
import logging
import random

import pytest
from yarl import URL

from keras_transformer.serving.application import Service
from keras_transformer.serving.requests import Limits
from keras_transformer.serving.routes import ROUTES
from keras_transformer.serving.server import OneLine
from tests.serving.running import client_of

SEED = 7
# In place of a value, as JSON: other types, sizes and characters.
VALUES = [
    *("null", "true", "0", "-1", "1.5", "1e400", "NaN", "-Infinity", "9" * 5000, "[]", "{}", '""'),
    *('"a"', '["a"]', '[["a"]]', "[null]", "[[1]]", '{"a": 1}', "[" * 100_000, '{"a":' * 100_000),
    *(r'"\ud83d"', r'"\u0000"', r'"\u001b[31m"', r'"\ud83d\ude00"', json.dumps("ü" * 3000)),
    *(json.dumps(["a"] * 9), json.dumps([["a"] * 2000]), json.dumps(["\t", "a\nb\r"])),
]
UNKNOWN = ["beam", "", "text\\n", "__class__", "x" * 3000]
# (path, fields that requests may have, a valid request)
REQUESTS = [
    (
        "/translate",
        ["text", "texts", "n_best", "prefixes", "required_phrases", "aligned"],
        {"text": '"the cat sleeps."', "n_best": "2"},
    ),
    ("/translate", ["document", "format"], {"document": '"the cat sleeps."'}),
    (
        "/translate",
        ["q", "source", "target", "format", "alternatives", "api_key"],
        {"q": '"the cat sleeps."', "source": '"en"', "target": '"de"'},
    ),
    ("/attention", ["source", "target"], {"source": '"the cat"', "target": '"die Katze"'}),
]
HEADERS = [
    {},
    {"Content-Type": "text/plain"},
    {"Content-Type": "application/x-www-form-urlencoded"},
    {"Content-Type": "multipart/form-data"},  # without the boundary that it needs
    {"Content-Type": "application/json; charset=utf-16"},
    {"Content-Type": "\u00fc"},
    {"Accept": "text/html"},
]
PATHS = [
    *("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc/passwd", "/page.html"),
    *(
        "/x//translate",
        "/translate/",
        "/Translate",
        "/%00",
        "/%ff",
        "/" + "a" * 7000,
        "/translate;x",
    ),
]
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"]


def mutated_body(known, valid, numbers):
    """JSON of a valid request in which fields and values were exchanged; or no JSON."""
    fields = dict(valid)
    for _ in range(numbers.choice([1, 1, 2, 3])):
        name = numbers.choice(known if numbers.random() < 0.9 else UNKNOWN)
        if name in fields and numbers.random() < 0.2:
            del fields[name]
        else:
            fields[name] = numbers.choice(VALUES)
    members = ", ".join(f'"{name}": {value}' for name, value in fields.items())
    body = ("{" + members + "}").encode("utf-8")
    damage = numbers.random()
    if damage < 0.1:
        return body[: numbers.randrange(len(body))]
    if damage < 0.2:
        place = numbers.randrange(len(body))
        return body[:place] + bytes([numbers.randrange(256)]) + body[place + 1 :]
    if damage < 0.25:
        return numbers.choice(VALUES).encode("utf-8")
    return body


async def in_chunks(body):
    """Sends a body in chunks, without its length."""
    for start in range(0, len(body), 50_000):
        yield body[start : start + 50_000]


async def mutated_requests(client, count):
    """Yields what was sent, in short, and its answer."""
    numbers = random.Random(SEED)
    for _ in range(count):
        path, known, valid = numbers.choice(REQUESTS)
        body = mutated_body(known, valid, numbers)
        sent = in_chunks(body) if numbers.random() < 0.2 else body
        headers = numbers.choice(HEADERS)
        yield (path, body[:200], headers), await client.post(path, data=sent, headers=headers)


async def odd_requests(client):
    """Yields the same of requests that are odd by themselves."""
    for route in ROUTES:
        for method in METHODS:
            if method not in (route.method, "HEAD"):
                yield (method, route.path), await client.request(method, route.path, data=b"{}")
    for path in PATHS:
        yield path, await client.post(URL(path, encoded=True), data=b"{}")
    large = b'{"text": "' + b"x" * 10_000_000 + b'"}'
    for body in (large, b" " * 10_000_000, in_chunks(large)):
        yield "10 MB", await client.post("/translate", data=body)
    packed = {"Content-Encoding": "gzip"}
    yield "a bomb", await client.post("/translate", data=gzip.compress(large), headers=packed)
    yield "half", await client.post("/translate", data=gzip.compress(large)[:99], headers=packed)


async def checked(requests):
    """Counts the answers by status; each is an answer or a refusal in one line."""
    counts = {}
    async for sent, answer in requests:
        content = await answer.read()
        counts[answer.status] = counts.get(answer.status, 0) + 1
        assert answer.status == 200 or 400 <= answer.status < 500, (sent, content)
        assert answer.content_type == "application/json", (sent, content)
        body = json.loads(content)
        if answer.status != 200:
            assert set(body) == {"error"} and body["error"].isprintable(), (sent, body)
            assert 10 < len(body["error"]) < 280, (sent, body)
    return counts


def counts_of(translator, caplog, requests):
    """Serves `requests(client)`, and counts the answers by status."""
    caplog.set_level(logging.INFO)
    server_log, one_line = logging.getLogger("aiohttp.server"), OneLine()
    server_log.addFilter(one_line)

    async def run():
        service = Service(translator, Limits(max_sentences=8, max_characters=10_000), None)
        async with client_of(service) as client:
            return await checked(requests(client))

    try:
        counts = asyncio.run(run())
    finally:
        server_log.removeFilter(one_line)
    for record in caplog.records:
        assert record.exc_info is None and record.getMessage().isprintable()
    return counts


@pytest.mark.parametrize("count", [90, pytest.param(600, marks=pytest.mark.slow)])
def test_mutated_requests(translator, caplog, count):
    counts = counts_of(translator, caplog, lambda client: mutated_requests(client, count))
    assert set(counts) == {200, 400, 413} and min(counts.values()) > count / 60


def test_odd_requests(translator, caplog):
    assert set(counts_of(translator, caplog, odd_requests)) == {400, 404, 405, 413}
