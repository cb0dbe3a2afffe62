import asyncio
import json
import logging
import math
import re
import threading
import tomllib
import types
from pathlib import Path

import numpy as np
import pytest

from keras_transformer.kit.documents.tree import translation as translation_of_documents
from keras_transformer.kit.serving import application, model_calls, responses
from keras_transformer.kit.serving.document_service import language_in
from keras_transformer.kit.serving.limits import Limits
from keras_transformer.kit.serving.middleware import client_of as client_of_request
from keras_transformer.support.errors import InputError
from tests.kit.serving.conftest import translation
from tests.kit.serving.running import (
    answer_to,
    check_refused,
    got,
    held,
    posted,
    served,
)
from tests.refusals import check_message

FOLDER = Path(application.__file__).parent
PAIR = {"source": "the cat sleeps.", "target": "die Katze schläft."}
WHOLE = {"truncated": False, "unfinished": False, "from_memory": False, "without_terms": []}
BEST = {"text": "die Katze schläft.", "score": -0.5, "log_prob": -1.25, **WHOLE}
SECOND = {"text": "der Kater.", "score": -1.75, "log_prob": -3.5, **WHOLE}


@pytest.mark.parametrize(
    ("request_body", "wanted"),
    [
        ({"text": "the cat sleeps.", "n_best": 2}, [[BEST, SECOND]]),
        ({"texts": ["a", ""]}, [[BEST]] * 2),
        ({"texts": [], "prefixes": []}, []),
        ({"text": "a", "prefixes": ["schläft"]}, [[BEST | {"text": "schläft b"}]]),
        (
            {"texts": ["a", "b"], "required_phrases": [["schläft", "d"], []]},
            [[BEST | {"text": "schläft+d"}], [BEST | {"text": ""}]],
        ),
    ],
)
def test_translate(translator, request_body, wanted):
    status, headers, body = answer_to(translator, "POST", "/translate", json=request_body)
    assert (status, json.loads(body)) == (200, {"translations": wanted})
    assert headers["Content-Type"] == "application/json; charset=utf-8"
    assert "schläft".encode() in body or not wanted, "readable, not escaped"
    assert "Access-Control-Allow-Origin" not in headers


def test_confidence(translator):
    answer = posted(translator, "/translate", json={"text": "a", "confidence": True})
    assert answer["translations"][0][0]["confidence"] == 0.371
    translator.confidences = {"a cat.": 0.12345}
    answer = posted(translator, "/translate", json={"document": "a cat. a dog."})
    first, second = answer["sentences"]
    assert first["confidence"] == 0.123 and "confidence" not in second


def test_aligned_translations(translator):
    answer = posted(translator, "/translate", json={"text": "a", "aligned": True})
    assert answer["translations"][0][0] == {
        **{"text": "b", "score": -0.5, "log_prob": -1.25, "pharaoh": "0-0", **WHOLE},
        **{"target_pieces": ["b", "</s>"], "log_probs": [-0.125, -1.125]},
    }


def test_what_does_not_fit_the_model_is_refused(translator):
    """The message is that of the translator above, which is the double of this folder."""
    request = {"text": "a", "required_phrases": [["b"], ["c"]]}
    status, _, body = answer_to(translator, "POST", "/translate", json=request)
    message = "required_phrases must be as many as texts. Received: 2"
    assert (status, json.loads(body)) == (400, {"error": message})


def test_what_is_cut_is_said(translator):
    def answers(sentences):
        cut = [translation("a", -0.5, -1.25, truncated=True)]
        return [cut, [translation("", -math.inf, -math.inf, unfinished=True)]]

    translator.translate = answers
    assert posted(translator, "/translate", json={"texts": ["a b", "c"]})["translations"] == [
        [{"text": "a", "score": -0.5, "log_prob": -1.25, **WHOLE, "truncated": True}],
        [{"text": "", "score": None, "log_prob": None, **WHOLE, "unfinished": True}],
    ]


TERMINOLOGIES = {"pets": {"cat": "Kater", "dog": "Hund"}, "farm": {"dog": "Hofhund"}}
LIBRE = {"source": "en", "target": "de"}


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"text": "a cat, a dog."}, ["Kater+Hund"]),
        ({"texts": ["a dog", "a cow"], "terminology": "farm"}, ["Hofhund", ""]),
        ({"text": "a dog", "required_phrases": [["x"]], "terminology": "farm"}, ["x"]),
        ({"text": "a cow"}, ["die Katze schläft."]),
        ({"text": "a dog", "terminology": ""}, ["die Katze schläft."]),
    ],
)
def test_sentences_keep_to_a_terminology(translator, fields, wanted):
    answer = posted(translator, "/translate", terminologies=TERMINOLOGIES, json=fields)
    assert [best["text"] for best, *_ in answer["translations"]] == wanted


@pytest.mark.parametrize(
    ("fields", "terms"),
    [
        ({"document": "a dog."}, "pets"),
        ({"document": "<p>a dog.</p>", "format": "html", "terminology": "farm"}, "farm"),
        ({"document": "a dog.", "terminology": ""}, None),
        ({"q": "a dog.", **LIBRE}, "pets"),
        ({"q": "a dog.", **LIBRE, "terminology": "farm"}, "farm"),
        ({"q": "a dog.", **LIBRE, "terminology": ""}, None),
    ],
)
def test_documents_keep_to_a_terminology(translator, fields, terms):
    posted(translator, "/translate", terminologies=TERMINOLOGIES, json=fields)
    wanted = [] if terms is None else [TERMINOLOGIES[terms]]
    assert translator.calls == [*wanted, ["a dog."]]


def test_terminologies_are_named_and_others_refused(translator):
    card = got(translator, "/model", terminologies=TERMINOLOGIES)
    assert card["terminologies"] == ["pets", "farm"]
    for terminologies, text in ((TERMINOLOGIES, "text"), (None, "document")):
        request = {"json": {text: "a", "terminology": "cars"}, "terminologies": terminologies}
        check_refused(translator, "/translate", "terminology", "cars", **request)


def test_what_is_from_a_memory_is_said(translator):
    answer = posted(translator, "/translate", json={"document": "known. a cat."})
    assert [sentence["from_memory"] for sentence in answer["sentences"]] == [True, False]
    assert answer["from_memory"] == 1
    fields = {"document": "# known.", "format": "markdown"}
    assert posted(translator, "/translate", json=fields)["from_memory"] == 1
    remembered = [[translation("a", -0.5, -1.25, from_memory=True)]]
    translator.translate = lambda sentences: remembered
    answer = posted(translator, "/translate", json={"text": "a"})
    assert answer["translations"] == [[BEST | {"text": "a", "from_memory": True}]]


def test_what_lacks_a_term_is_said(translator):
    translator.lacking = {"a dog.": ("Hund", "Hof")}
    answer = posted(translator, "/translate", json={"document": "a cat. a dog."})
    assert [one["without_terms"] for one in answer["sentences"]] == [[], ["Hund", "Hof"]]
    assert answer["without_terms"] == 1
    fields = {"document": "# a dog.", "format": "markdown"}
    assert posted(translator, "/translate", json=fields)["without_terms"] == 1
    translator.translate = lambda texts: [[translation("a", -0.5, -1.25, without_terms=("Hund",))]]
    answer = posted(translator, "/translate", json={"text": "a"})
    assert answer["translations"] == [[BEST | {"text": "a", "without_terms": ["Hund"]}]]


def test_doubtful_translations_of_a_document_are_marked(translator):
    assert got(translator, "/model")["has_confidence"] is False
    catalogue = {"document": 'msgid "a cat."\nmsgstr ""\n', "format": "po"}
    for fields in (catalogue, {"document": "a cat."}):
        for value in (0.5, 1.5):  # without a calibration; and no probability
            request = {"json": fields | {"review_below": value}}
            check_refused(translator, "/translate", "review_below", str(value), **request)

    translator.card.calibration = "of a model"
    translator.confidences = {"a cat.": 0.4}
    assert got(translator, "/model")["has_confidence"] is True
    for review_below, mark in ((0.0, ""), (0.3, ""), (0.5, "#, fuzzy\n")):
        fields = catalogue | {"review_below": review_below}
        answer = posted(translator, "/translate", json=fields)
        assert answer["doubtful"] == (1 if mark else 0)
        assert answer["translation"].startswith(f'{mark}msgid "a cat."')
    fields = {"document": "a cat. a dog.", "review_below": 0.5}
    assert posted(translator, "/translate", json=fields)["doubtful"] == 1


def test_attention(translator):
    status, _, body = answer_to(translator, "POST", "/attention", json=PAIR)
    answer, made = json.loads(body), translator.attention("", "")
    assert status == 200
    assert translator.calls[0] == ("the cat sleeps.", "die Katze schläft.")
    assert answer["source_pieces"] == ["▁the", "▁cat", "▁sleeps", ".", "</s>"]
    assert answer["source_labels"] == ["the", "cat", "sleeps", ".", "</s>"]
    assert answer["target_pieces"] == ["▁die", "▁Ka", "tze", "▁schläft", ".", "</s>"]
    assert answer["target_labels"] == ["die", "Ka", "·tze", "schläft", ".", "</s>"]
    assert answer["alignment"] == [0, 1, 1, 2, 3, 4]
    assert answer["memory"][1][0] == np.eye(5)[[0, 1, 1, 2, 3, 4]].tolist()
    assert answer["decoder"][0][1][2] == [0.333, 0.333, 0.333, 0, 0, 0], "rounded"
    for name in ("encoder", "decoder", "memory"):
        np.testing.assert_allclose(answer[name], getattr(made, name), atol=5e-4)


def test_attention_that_is_too_much(translator, monkeypatch):
    # 2 layers of 2 heads of 5 x 5, 6 x 6 and 6 x 5 pieces
    monkeypatch.setattr(responses, "ANSWER_WEIGHTS", 363)
    status, _, body = answer_to(translator, "POST", "/attention", json=PAIR)
    assert status == 413
    check_message(json.loads(body)["error"], "363 weights", "one of 364")


def test_model_and_health(translator):
    card = got(translator, "/model", limits=Limits(max_sentences=7, max_characters=99))
    formats, archives = card.pop("file_formats"), card.pop("archives")
    assert (formats[".md"], formats[".htm"], formats[".dotx"]) == ("markdown", "html", "docx")
    assert archives == ["docx", "pptx", "xlsx", "odt", "odp", "ods", "epub"]
    assert ".csv" not in formats, "it would also need columns"
    assert card == {
        **translator.card,
        "signatures": ["attention_ids", "search_ids"],
        "limits": {"sentences": 7, "characters": 99},
        "terminologies": [],
        "has_memory": False,
        "has_corrections": False,
        "has_confidence": False,
    }
    assert got(translator, "/healthz") == {"status": "ok"}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html"),
        ("/page.css", "text/css"),
        ("/page.js", "text/javascript"),
        ("/translator.js", "text/javascript"),
        ("/figure.js", "text/javascript"),
        ("/figure.css", "text/css"),
    ],
)
def test_page(translator, path, kind):
    status, headers, body = answer_to(translator, "GET", path)
    assert status == 200
    assert headers["Content-Type"] == f"{kind}; charset=utf-8"
    assert "default-src 'none'; script-src 'self'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    foreign = set(re.findall(r"https?://[\w./]+", body.decode()))
    assert foreign <= {"http://www.w3.org/2000/svg"}, "nothing comes from elsewhere"
    status, _, body = answer_to(translator, "HEAD", path)
    assert (status, body) == (200, b"")


def test_pages_are_in_the_wheel():
    project = tomllib.loads((FOLDER.parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["setuptools"]["package-data"] == {"*": ["*"]}


@pytest.mark.parametrize(
    ("method", "path", "request_options", "status", "named"),
    [
        ("GET", "/absent", {}, 404, "'/absent'"),
        ("GET", "/%0aforged", {}, 404, r"'/\nforged'"),
        ("GET", "/../requests.py", {}, 404, "'/requests.py'"),
        ("GET", "/page.html", {}, 404, "'/page.html'"),
        ("GET", "/translate", {}, 405, "Received: GET"),
        ("DELETE", "/attention", {}, 405, "Received: DELETE"),
        ("POST", "/", {"data": b""}, 405, "Received: POST"),
        ("POST", "/translate", {"data": b"{"}, 400, "JSON"),
        ("POST", "/translate", {"data": rb'{"text": "\ud83d"}'}, 400, "surrogates"),
        ("POST", "/translate", {"json": {"text": "x" * 100_000}}, 413, "100,000 characters"),
        ("GET", "/", {"headers": {"Host": "rebound.example"}}, 403, "'rebound.example'"),
        (
            "POST",
            "/translate",
            {"json": {"text": "a"}, "headers": {"Origin": "http://other.example"}},
            403,
            "'http://other.example'",
        ),
    ],
)
def test_refusals(translator, caplog, method, path, request_options, status, named):
    caplog.set_level(logging.INFO, "keras_transformer")
    found, headers, body = answer_to(translator, method, path, **request_options)
    assert found == status
    error = json.loads(body)["error"]
    assert named in error
    assert set(json.loads(body)) == {"error"}
    assert "Traceback" not in body.decode() and "\n" not in body.decode()
    assert headers["X-Content-Type-Options"] == "nosniff"
    lines = [record for record in caplog.records if record.name.startswith("keras_transformer")]
    assert len(lines) == 1 and lines[0].exc_info is None
    message = lines[0].getMessage()
    assert "\n" not in message and re.match(rf"127\.0\.0\.1 {method} \S+ {status} in ", message)
    assert translator.calls == []
    assert status != 405 or headers["Allow"] in error


@pytest.mark.parametrize(
    ("forwarded", "logged"),
    [(None, "127.0.0.1"), ("10.0.0.1, 192.0.2.7", "192.0.2.7"), ("a\tb", "a\\tb")],
)
def test_the_log_has_the_client_of_a_proxy(translator, caplog, forwarded, logged):
    caplog.set_level(logging.INFO, "keras_transformer")
    headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
    answer_to(translator, "GET", "/health", headers=headers)
    (line,) = [each.getMessage() for each in caplog.records if "/health" in each.getMessage()]
    assert line.startswith(f"{logged} GET /health 200 in ")


@pytest.mark.parametrize(("peer", "logged"), [("127.0.0.1", "192.0.2.7"), ("10.0.0.9", "10.0.0.9")])
def test_only_a_proxy_on_this_machine_is_believed(peer, logged):
    request = types.SimpleNamespace(remote=peer, headers={"X-Forwarded-For": "192.0.2.7"})
    assert client_of_request(request) == logged


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("first line\nsecond line"), "the model failed: ValueError: first line"),
        (InputError("weights", "must be finite", "nan"), "weights must be finite. Received: nan"),
    ],
)
def test_failing_model(translator, caplog, error, message):
    def fail():
        raise error

    async def scenario(client, service):
        translator.before_call = fail
        for path, body in (("/translate", {"text": "a"}), ("/attention", PAIR)):
            answer = await client.post(path, json=body)
            assert answer.status == 500
            assert await answer.json() == {"error": message}
        translator.before_call = lambda: None
        assert (await client.post("/translate", json={"text": "a"})).status == 200
        return service.http.counts.requests, service.http.counts.errors

    assert served(translator, scenario) == (3, 2)
    assert all(record.exc_info is None for record in caplog.records)


def test_sentences_and_short_documents_share_a_call(translator):
    bodies = [
        {"text": "one"},
        {"q": "A cat. A dog.", **LIBRE},
        {"q": ["A cow.", "A cat."], **LIBRE},
        {"text": "two"},
        {"q": "<p>A hen.</p>", **LIBRE, "format": "html"},  # which is not read like the others
    ]

    async def scenario(client, service):
        with held(translator) as (begun, go_on):
            first = asyncio.create_task(client.post("/translate", json={"text": "first"}))
            assert await asyncio.to_thread(begun.wait, 60)
            assert (await client.get("/healthz")).status == 200, "the model does not hold it up"
            posts = [client.post("/translate", json=body) for body in bodies]
            others = [asyncio.create_task(post) for post in posts]
            while service.calls.joint.waiting < len(bodies):
                await asyncio.sleep(0)
            go_on.set()
            await first
            answers = [await (await other).json() for other in others]
        best = BEST["text"]
        assert answers[1] == {"translatedText": f"{best} {best}"}
        assert answers[2] == {"translatedText": [best, best]}
        assert [answers[index]["translations"] for index in (0, 3)] == [[[BEST]]] * 2
        first, *joint = translator.calls
        assert first == ["first"]
        assert answers[4] == {"translatedText": f"<p>{best}</p>"}
        together = [["A cat.", "A cow.", "A dog."], ["A hen."], ["one", "two"]]
        assert sorted(map(sorted, joint)) == together
        assert service.calls.joint.calls == 2
        assert (service.sentences, service.documents) == (7, 4), "equal sentences count once"

    served(translator, scenario)


def test_a_long_document_has_a_call_of_its_own(translator):
    async def scenario(client, service):
        for sentences in (250, 1000):  # about 1,750 and 7,000 characters
            await client.post("/translate", json={"q": "A cat. " * sentences, **LIBRE})
        assert (service.calls.joint.calls, service.calls.single.calls) == (1, 1)

    served(translator, scenario)


def test_a_document_in_which_the_model_fails_is_the_only_one(translator):
    def fail():
        if any("bad" in text for text in translator.calls[-1]):
            raise InputError("texts", "must be good", "bad")

    async def scenario(client, service):
        translator.before_call = fail
        bodies = [{"q": text, **LIBRE} for text in ("A cat.", "bad.", "A dog.")]
        posts = [client.post("/translate", json=body) for body in bodies]
        return [answer.status for answer in await asyncio.gather(*posts)]

    assert served(translator, scenario) == [200, 500, 200]


def test_metrics(translator):
    async def scenario(client, service):
        for body in ({"text": "a"}, {"q": "A cat. A dog.", **LIBRE}, {"wrong": 1}):
            await client.post("/translate", json=body)
        for path in ("/health", "/absent", "/absent2"):
            await client.get(path)
        answer = await client.get("/metrics")
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        return await answer.text()

    lines = served(translator, scenario).splitlines()
    assert [line for line in lines if "requests_total{" in line] == [
        'keras_transformer_requests_total{path="/health",status="200"} 1',
        'keras_transformer_requests_total{path="/translate",status="200"} 2',
        'keras_transformer_requests_total{path="/translate",status="400"} 1',
        'keras_transformer_requests_total{path="other",status="404"} 2',
    ]
    assert "keras_transformer_sentences_total 3" in lines
    assert "keras_transformer_documents_total 1" in lines
    assert "keras_transformer_batches_total 2" in lines
    assert 'keras_transformer_request_seconds_count{path="/translate"} 3' in lines
    assert 'keras_transformer_waiting_requests{queue="joint"} 0' in lines
    types = [line for line in lines if line.startswith("# TYPE")]
    assert "# TYPE keras_transformer_requests_total counter" in types
    assert "# TYPE keras_transformer_request_seconds summary" in types


@pytest.fixture
def timeouts(monkeypatch):
    """The timeouts of calls of the model, as none of them is to pass by itself."""
    made = []

    def timeout(seconds):
        made.append(asyncio.timeout(seconds))
        return made[-1]

    patched = types.SimpleNamespace(**vars(asyncio) | {"timeout": timeout})
    monkeypatch.setattr(model_calls, "asyncio", patched)
    return made


def test_slow_model_and_full_queue(translator, timeouts):
    async def scenario(client, service):
        now = asyncio.get_running_loop().time
        with held(translator) as (begun, go_on):
            first = asyncio.create_task(client.post("/translate", json={"text": "slow"}))
            assert await asyncio.to_thread(begun.wait, 60)
            timeouts[-1].reschedule(now())
            slow = await first
            assert slow.status == 504
            assert "60 seconds" in (await slow.json())["error"]
            waiting = asyncio.create_task(client.post("/translate", json={"text": "waiting"}))
            while not service.calls.joint._jobs:
                await asyncio.sleep(0)
            patience = timeouts[-1]
            refused = await client.post("/translate", json={"text": "refused"})
            assert refused.status == 503
            assert refused.headers["Retry-After"] == "1"
            assert "already waiting" in (await refused.json())["error"]
            patience.reschedule(now())
            assert (await waiting).status == 504
        go_on.set()
        assert (await client.post("/translate", json={"text": "after"})).status == 200
        assert translator.calls == [["slow"], ["after"]], "who gave up is not translated"

    served(translator, scenario, Limits(timeout=60, max_waiting=1))


def test_a_document_that_nobody_waits_for_is_not_translated_to_its_end(translator, monkeypatch):
    monkeypatch.setattr(translation_of_documents, "CHUNK_SENTENCES", 1)
    page = {"document": "<p>a</p><p>b</p><p>c</p>", "format": "html"}

    async def scenario(client, service):
        with held(translator) as (begun, go_on):
            waiting = asyncio.create_task(client.post("/translate", json=page))
            assert await asyncio.to_thread(begun.wait, 60)
            waiting.cancel()  # closes the connection
            while not given_up:
                await asyncio.sleep(0)
            go_on.set()
        answer = await client.post("/translate", json={"document": "after"})
        assert answer.status == 200
        assert translator.calls == [["a"], ["after"]]

    class Event(threading.Event):
        def set(self):
            given_up.append(self)
            super().set()

    given_up = []
    patched = types.SimpleNamespace(**vars(threading) | {"Event": Event})
    monkeypatch.setattr(application, "threading", patched)
    served(translator, scenario)
    translator.calls.clear()
    posted(translator, "/translate", json=page)
    assert translator.calls == [["a"], ["b"], ["c"]]


def test_slow_body(translator):
    async def scenario(client, service):
        never = asyncio.Event()

        async def body():
            yield b'{"text": '
            await never.wait()

        answer = await client.post("/translate", data=body())
        assert answer.status == 408
        assert "0.05 seconds" in (await answer.json())["error"]

    served(translator, scenario, Limits(timeout=0.05))


def cors_answers(translator, cors_origin, origin, *requests):
    """Gives (status, headers) of requests that a page of `origin` sends."""

    async def scenario(client, service):
        answers = []
        for method, path, more in requests:
            headers = {"Origin": origin, **more}
            answer = await client.request(method, path, data=b"{", headers=headers)
            answers.append((answer.status, answer.headers))
        return answers

    return served(translator, scenario, cors_origin=cors_origin)


PREFLIGHT = {"Access-Control-Request-Method": "POST"}


@pytest.mark.parametrize("cors_origin", ["https://example.org", "*"])
def test_pages_of_another_origin_may_ask(translator, cors_origin):
    (preflight, headers), (status, error_headers), (absent, _) = cors_answers(
        translator,
        cors_origin,
        "https://example.org",
        ("OPTIONS", "/translate", PREFLIGHT),
        ("POST", "/translate", {"Content-Type": "application/json"}),
        ("OPTIONS", "/absent", PREFLIGHT),
    )
    assert (preflight, status, absent) == (204, 400, 404)
    assert headers["Access-Control-Allow-Origin"] == "https://example.org"
    assert headers["Access-Control-Allow-Methods"] == "POST"
    assert headers["Access-Control-Allow-Headers"] == "Content-Type"
    assert error_headers["Access-Control-Allow-Origin"] == "https://example.org"
    assert error_headers["Vary"] == "Origin"


def test_the_model_tells_strangers_of_no_folder_and_no_setting(translator):
    translator.card.update(
        checkpoint="/folder/me/a/step-7,runs\\b\\step-8",
        ensemble=[{"checkpoint": "/folder/me/a/step-7"}],
        training={"seed": 1},
        preset="tiny",
        forbidden_phrases=["a secret"],
        config={"num_layers": 2, "num_heads": 4, "dropout": 0.1},
        data={"languages": ["en", "de"], "vocabulary": "vocabulary.model"},
        evaluation={"bleu": 30.0, "data_dir": "/folder/me/data", "languages": ["en", "de"]},
        hardly_trained="this model is hardly trained",
    )
    card = got(translator, "/model")
    assert "folder" not in str(card) and "secret" not in str(card)
    assert not {"training", "preset", "ensemble", "forbidden_phrases"} & set(card)
    assert card["checkpoint"] == "step-7,step-8"
    assert card["config"] == {"num_layers": 2, "num_heads": 4}
    assert card["data"] == {"languages": ["en", "de"]}
    assert card["evaluation"] == {"bleu": 30.0, "languages": ["en", "de"]}
    assert card["hardly_trained"] == "this model is hardly trained"


@pytest.mark.parametrize("cors_origin", [None, "https://example.org"])
def test_pages_of_other_origins_may_not(translator, cors_origin):
    for status, headers in cors_answers(
        translator,
        cors_origin,
        "https://other.example",
        ("OPTIONS", "/translate", PREFLIGHT),
        ("POST", "/translate", {}),
        ("GET", "/model", {}),
    ):
        assert status == 403
        assert not [name for name in headers if name.startswith("Access-Control")]


@pytest.mark.parametrize(
    ("format", "document"),
    [
        ("html", "<p class='x'>A cat.</p><p>Yes.</p>"),
        ("po", 'msgid "A cat."\nmsgstr ""\n\nmsgid "Yes."\nmsgstr ""\n'),
        ("xliff", "<xliff>{}{}</xliff>"),
    ],
)
def test_a_language_is_detected_in_the_text_without_its_markup(format, document):
    units = (f"<trans-unit><source>{text}</source></trans-unit>" for text in ("A cat.", "Yes."))
    assert language_in(document.format(*units), format) == "A cat.\nYes."
