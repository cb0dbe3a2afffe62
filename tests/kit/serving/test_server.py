import asyncio
import contextlib
import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from keras_transformer.core.vocabulary.language_codes import Direction
from keras_transformer.core.vocabulary.terms import Term
from keras_transformer.kit.serving import server
from keras_transformer.kit.serving.application import Service
from keras_transformer.kit.serving.limits import Limits
from keras_transformer.kit.serving.server import (
    WARM_UP,
    WARM_UP_WORD,
    allowed_names,
    listening_socket,
    serve,
    warm_up_text,
)
from keras_transformer.support.errors import require
from keras_transformer.use.store.languages import ModelLanguages
from keras_transformer.use.translate.terminology import terms_in
from tests.kit.serving.running import corrections_in
from tests.refusals import refused

# Serves a translator that tells when it is called, and answers when a line of stdin lets it.
PROGRAM = """
import json, logging, sys, types
from keras_transformer.kit.serving import server
from keras_transformer.kit.serving.application import Service
from keras_transformer.kit.serving.limits import Limits
from keras_transformer.kit.serving.server import listening_socket, serve
from keras_transformer.use.translate.answers import Translation

class Slow:
    card = types.SimpleNamespace(flat=dict, languages=None, calibration=None)
    engine = types.SimpleNamespace(name="tensorflow", functions=[])
    config = types.SimpleNamespace(beam_size=1, is_greedy=False)
    def translate(self, sentences):
        if sentences == ["slow"]:
            print("called", file=sys.stderr, flush=True)
            sys.stdin.readline()
        return [[Translation(s.upper(), 0.0, 0.0, 1)] for s in sentences]

logging.basicConfig(level=logging.INFO)
service = Service(Slow(), Limits(), None)
print(json.dumps(serve(service, listening_socket("localhost", 0), "localhost")))
"""


def read_until(stream, pattern):
    for line in stream:
        if found := re.search(pattern, line):
            return found
    raise AssertionError(f"no line has {pattern}")


def post(url, value):
    request = urllib.request.Request(f"{url}/translate", json.dumps(value).encode())
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=60) as answer:
        return json.load(answer)["translations"][0][0]["text"]


def refuses_connections(port):
    """Waits for a port to take no more connections; False if it still does after a minute."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            socket.create_connection(("localhost", port), timeout=60).close()
        except OSError:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize(
    ("languages", "text"),
    [
        (None, "Warm-up."),
        (ModelLanguages((Direction("en", "de"),), ("de",)), "Warm-up."),
        (ModelLanguages((Direction("en", "cs"),), ("cs", "de"), has_codes=True), ">>cs<< Warm-up."),
        (ModelLanguages((), ("de", "en"), True, ("en", "de")), ">>de<< >>en<< Warm-up."),
    ],
)
def test_the_first_text_has_the_codes_that_the_model_needs(languages, text):
    assert warm_up_text(languages) == text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_directly_after_the_line_stops_the_server(translator, monkeypatch, number):
    def unheeded(*_):
        raise AssertionError("the signal came before its handler")

    before = signal.signal(number, unheeded)
    try:
        monkeypatch.setattr(server.LOG, "info", lambda *_: signal.raise_signal(number))
        service = Service(translator, Limits(), None)
        result = serve(service, listening_socket("127.0.0.1", 0), "127.0.0.1")
    finally:
        signal.signal(number, before)
    assert (result["requests"], result["errors"]) == (0, 0)


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM]
)
def test_signal_lets_running_requests_finish(number):
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        cwd=Path(__file__).resolve().parents[3],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    async def interrupted(url):
        answer = asyncio.create_task(asyncio.to_thread(post, url, {"text": "slow"}))
        called = asyncio.to_thread(read_until, process.stderr, "called")
        await asyncio.wait_for(called, timeout=60)
        os.kill(process.pid, number)
        assert await asyncio.to_thread(refuses_connections, int(url.rsplit(":", 1)[1]))
        if number == signal.SIGTERM:  # a second one changes nothing
            os.kill(process.pid, number)
        process.stdin.write("\n")
        process.stdin.flush()
        return await answer

    with process:
        try:
            url = read_until(process.stderr, r"serving at (http://localhost:\d+) until").group(1)
            assert post(url, {"text": "quick"}) == "QUICK"
            assert asyncio.run(interrupted(url)) == "SLOW"
            assert process.wait(timeout=60) == 0
            result = json.loads(process.stdout.read())
            errors = process.stderr.read()
        finally:
            process.kill()
    assert result["requests"] >= 2
    assert result["errors"] == 0
    assert result["sentences"] >= result["batches"] >= 2
    assert "Traceback" not in errors


@pytest.mark.slow  # a new interpreter
def test_a_second_interruption_does_not_wait_for_the_model():
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        cwd=Path(__file__).resolve().parents[3],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process, contextlib.ExitStack() as stack:
        stack.callback(process.kill)
        port = int(read_until(process.stderr, r"http://localhost:(\d+) until").group(1))
        client = stack.enter_context(socket.create_connection(("localhost", port), timeout=60))
        body = b'{"text": "slow"}'
        head = f"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        client.sendall(head.encode() + body)
        read_until(process.stderr, "called")
        process.send_signal(signal.SIGINT)
        assert refuses_connections(port)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == -signal.SIGINT


def test_terms_that_the_model_cannot_use_are_refused_at_once(translator):
    def check_terms(terms):
        require(terms == {"a dog": "ein Hund"}, "terminology", "must be spelled", terms)

    translator.check_terms = check_terms
    terms = {"pets": {"a dog": "ein Hund"}, "cars": {"a car": "\N{AUTOMOBILE}"}}
    service = Service(translator, Limits(), None, terminologies=terms)
    with listening_socket("127.0.0.1", 0) as listening, refused("terminology", "a car"):
        serve(service, listening, "127.0.0.1")


@pytest.mark.parametrize(("host", "warnings"), [("127.0.0.1", 0), ("0.0.0.0", 1)])
def test_a_server_for_others_warns_that_they_may_correct(
    translator, tmp_path, monkeypatch, caplog, host, warnings
):
    async def end(service, listening, host):
        assert service.corrections.is_available

    monkeypatch.setattr(server, "_serve", end)
    translator.score = lambda sources, targets: None
    corrections = corrections_in(tmp_path / "corrections.tmx")
    service = Service(translator, Limits(), None, corrections=corrections)
    with listening_socket(host, 0) as listening:
        serve(service, listening, host)
    assert [record.levelname for record in caplog.records] == ["WARNING"] * warnings


def forced(target):
    return {"terminology": {"Warm": target}}


@pytest.mark.parametrize(
    ("calibration", "terminology", "options"),
    [
        (None, {}, [{}]),
        ("one", {}, [{}, {"confidence": True}]),
        (None, {"empty": {}}, [{}]),
        (None, {"dairy": {"milk": "Milch", "cow": "Kuh"}}, [{}, forced("Milch")]),
        (None, {"dairy": {"milk": "Milch"}, "other": {"cow": "Kuh"}}, [{}, forced("Milch")]),
    ],
)
def test_what_the_model_and_its_terms_need_is_warmed_up(
    translator, monkeypatch, calibration, terminology, options
):
    async def end(service, listening, host):
        assert requested == options

    requested = []
    monkeypatch.setattr(server, "_serve", end)
    monkeypatch.setattr(translator, "translate", lambda _, **options: requested.append(options))
    translator.check_terms = lambda terms: None
    translator.card.calibration = calibration
    service = Service(translator, Limits(), None, terminologies=terminology)
    with listening_socket("127.0.0.1", 0) as listening:
        serve(service, listening, "127.0.0.1")


def test_the_word_that_is_warmed_up_is_a_term():
    assert terms_in([WARM_UP], {WARM_UP_WORD: "Milch"}) == [[Term(0, 4, "Milch")]]


def test_port_in_use():
    with listening_socket("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with refused("port", f"127.0.0.1:{port}: {os.strerror(errno.EADDRINUSE)}", about="free"):
            listening_socket("127.0.0.1", port)


@pytest.mark.parametrize(
    "host",
    [
        "no.such.host.invalid",
        "300.1.1.1",
        "ho st",
        "a" * 300,
        "192.0.2.1",  # not ours
    ],
)
def test_no_such_host(monkeypatch, host):
    def without_network(*address, flags=0, **settings):
        return getaddrinfo(*address, flags=flags | socket.AI_NUMERICHOST, **settings)

    getaddrinfo = socket.getaddrinfo
    monkeypatch.setattr(server.socket, "getaddrinfo", without_network)
    with refused("host", f"'{host}': "):
        listening_socket(host, 0)


def test_port_that_this_user_may_not_take(monkeypatch):
    def denied(*address, **settings):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(server.socket, "create_server", denied)
    with refused("port", "127.0.0.1:80: Permission denied", about="may bind"):
        listening_socket("127.0.0.1", 80)


def test_allowed_names():
    with listening_socket("127.0.0.1", 0) as own:
        assert allowed_names("MyMachine", own) == {"localhost", "127.0.0.1", "::1", "mymachine"}
    with listening_socket("0.0.0.0", 0) as everywhere:
        assert allowed_names("0.0.0.0", everywhere) is None
