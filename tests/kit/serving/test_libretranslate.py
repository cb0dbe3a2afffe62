"""LibreTranslate's protocol, by its own client where that can ask, and by requests as it sends."""

import asyncio
import functools
import json
import logging
import random
import tracemalloc
from urllib.parse import urlsplit

import aiohttp
import pytest
from yarl import URL

from keras_transformer.kit.serving import detection
from keras_transformer.kit.serving.detection import Detected
from keras_transformer.kit.serving.forms import Upload
from keras_transformer.kit.serving.libretranslate import client_codes, parse_file
from keras_transformer.kit.serving.limits import Limits
from keras_transformer.support.errors import InputError
from tests.kit.documents.archives import archive, content_of
from tests.kit.serving.running import check_refused, got, posted, refusal_of, served
from tests.refusals import check_limit, check_message

PAIR = {"source": "en", "target": "de"}
BEST, SECOND = "die Katze schläft.", "der Kater."
ALTERNATIVES = {"alternatives": [SECOND]}


@pytest.fixture
def translator(translator):
    translator.card["data"] = {"languages": ["en", "de"]}
    return translator


@pytest.fixture
def detector(monkeypatch):
    """Returns a function: detector(languages) finds these languages in texts, None: nothing can."""

    def use(languages):
        def detect(text, known):
            return [Detected(languages[text], 97.5)]

        monkeypatch.setattr(detection, "is_available", lambda: languages is not None)
        monkeypatch.setattr(detection, "detect", detect)

    return use


def test_its_client(translator):
    api = pytest.importorskip("libretranslatepy", reason="install: pip install '.[test]'")

    async def scenario(client, service):
        libre = api.LibreTranslateAPI(str(client._base_url), api_key="none")
        languages = await asyncio.to_thread(libre.languages, 60)
        texts = ("A cat.  It sleeps.\n\nÜ & = +?", "")
        found = [await asyncio.to_thread(libre.translate, text, "en", "de", 60) for text in texts]
        return languages, found

    languages, found = served(translator, scenario)
    assert languages == [
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "de", "name": "German", "targets": []},
    ]
    assert found == [f"{BEST}  {BEST}\n\n{BEST}", ""]
    assert ["A cat.", "It sleeps.", "Ü & = +?"] in translator.calls


def test_its_client_detects(translator, detector):
    api = pytest.importorskip("libretranslatepy", reason="install: pip install '.[test]'")
    detector({"Un chat dort.": "fr"})

    async def scenario(client, service):
        libre = api.LibreTranslateAPI(str(client._base_url))
        return await asyncio.to_thread(libre.detect, "Un chat dort.", 60)

    assert served(translator, scenario) == [{"confidence": 97.5, "language": "fr"}]


def test_without_a_detector(translator, monkeypatch):
    def absent():
        raise InputError(None, "must have a package", "none", "/detect")

    monkeypatch.setattr(detection, "_identifier", absent)
    request = {"data": {"q": "Un chat dort."}, "status": 404}
    check_refused(translator, "/detect", "/detect must have a package", "none", **request)


@pytest.mark.parametrize(
    ("encoding", "fields", "wanted"),
    [
        ("json", {"q": "A cat."}, {"translatedText": BEST}),
        (
            "multipart",
            {"q": ["A cat.", "It sleeps. Yes."]},
            {"translatedText": [BEST, f"{BEST} {BEST}"]},
        ),
        (
            "urlencoded",
            {"q": "A cat. Yes.", "alternatives": 1},
            {"translatedText": f"{BEST} {BEST}", "alternatives": [f"{SECOND} {SECOND}"]},
        ),
        (
            "json",
            {"q": ["A cat.", "12"], "alternatives": 1, "api_key": "k"},
            {"translatedText": [BEST, "12"], "alternatives": [[SECOND], []]},  # no letters
        ),
        (
            "multipart",
            {"q": "<p title='A'>A cat.</p><script>x</script>", "format": "html"},
            {"translatedText": f"<p title='{BEST}'>{BEST}</p><script>x</script>"},
        ),
        # There are no more; programs ask for none, and for fewer.
        ("json", {"q": "A cat.", "alternatives": 3}, {"translatedText": BEST, **ALTERNATIVES}),
        ("json", {"q": "A cat.", "alternatives": 0}, {"translatedText": BEST}),
        ("json", {"q": "A cat.", "alternatives": -1}, {"translatedText": BEST}),
    ],
)
def test_translate(translator, encoding, fields, wanted):
    fields = PAIR | fields
    form = aiohttp.FormData(default_to_multipart=encoding == "multipart")
    for name, value in fields.items():
        for one in value if isinstance(value, list) else [value]:
            form.add_field(name, str(one))
    sent = {"json": fields} if encoding == "json" else {"data": form}
    assert posted(translator, "/translate", **sent) == wanted


@pytest.mark.parametrize(
    ("path", "sent", "wanted"),
    [
        # deep-translator; and Translate You, which always asks for three alternatives
        ("/translate?q=A+cat.%0AIt+sleeps.&source=en&target=de", {}, f"{BEST}\n{BEST}"),
        ("/translate?q=A+cat.&source=en&target=de&alternatives=3&api_key=", {}, BEST),
        (f"/translate?q={'%E2%82%AC' * 5000}&source=en&target=de", {}, "€" * 5000),
        # npm's libretranslate, and the page of LibreTranslate itself
        ("/translate", {"json": {"q": "A cat.", **PAIR, "apiKey": ""}}, BEST),
        ("/translate", {"data": {"q": "A cat.", **PAIR, "secret": "a"}}, BEST),
        # programs that add "/translate" to an address that ends with a slash
        ("//translate", {"json": {"q": "A cat.", **PAIR}}, BEST),
        # Rocket.Chat, which sends a message's lines
        ("/translate", {"json": {"q": ["A cat."] * 100, **PAIR}}, [BEST] * 100),
    ],
)
def test_requests_as_clients_send_them(translator, caplog, path, sent, wanted):
    caplog.set_level(logging.INFO, "keras_transformer")

    async def scenario(client, service):
        url = URL(str(client._base_url).rstrip("/") + path, encoded=True)
        answer = await client.post(url, **sent)
        return answer.status, await answer.json()

    status, body = served(translator, scenario)
    assert status == 200, body
    assert body["translatedText"] == wanted
    assert all("q=" not in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/detect?q=A+cat.&api_key=", {"data": aiohttp.FormData(default_to_multipart=True)}),  # PHP
        ("/detect", {"json": {"q": "A cat.", "format": "text", "api_key": None}}),  # TypeScript
    ],
)
def test_detection_as_clients_ask_for_it(translator, detector, path, sent):
    detector({"A cat.": "en"})
    assert posted(translator, path, **sent) == [{"language": "en", "confidence": 97.5}]


def test_a_file_as_a_client_sends_it(translator):
    posted(translator, "/translate_file", data=file_form(format="html"))  # PHP


def test_what_a_client_reads_first(translator):
    """GNOME's Dialect asks whether this is LibreTranslate, and what to offer."""

    async def scenario(client, service):
        answers = [await client.get(path) for path in ("/spec", "/frontend/settings")]
        return [await answer.json() for answer in answers]

    specification, settings = served(translator, scenario, Limits(max_characters=99))
    assert specification["info"]["title"] == "LibreTranslate"
    assert "/translate" in specification["paths"]
    no = dict.fromkeys(("apiKeys", "keyRequired", "suggestions"), False)
    assert settings == {"charLimit": 99, **no}


@pytest.mark.parametrize("q", ["Un chat.", ["Un chat.", "Oui."], []])
@pytest.mark.parametrize("has_detector", [True, False])
def test_source_that_is_not_named(translator, detector, q, has_detector):
    detector({"Un chat.": "fr", "Oui.": "fr"} if has_detector else None)
    fields = {"q": q, "source": "auto", "target": "de"}
    one = {"language": "en", "confidence": 0.0}
    if has_detector:
        one = {"language": "fr", "confidence": 97.5}
    found = posted(translator, "/translate", json=fields)["detectedLanguage"]
    assert found == ([one] * len(q) if isinstance(q, list) else one)


def test_texts_in_the_target_language_stay(translator, monkeypatch):
    asked = []

    def detect(text, languages):
        asked.append(languages)
        return [Detected("de" if text == "Zwei Hunde." else "en", 60.0)]

    monkeypatch.setattr(detection, "is_available", lambda: True)
    monkeypatch.setattr(detection, "detect", detect)
    fields = {"q": "Zwei Hunde.", "source": "auto", "target": "DE", "alternatives": 1}
    answer = posted(translator, "/translate", json=fields)
    assert (answer["translatedText"], answer["alternatives"]) == ("Zwei Hunde.", [])
    assert asked == [["en", "de"]] and translator.calls == []
    fields["q"] = ["Two dogs.", "Zwei Hunde.", "Yes."]
    answer = posted(translator, "/translate", json=fields)
    assert answer["translatedText"] == [BEST, "Zwei Hunde.", BEST]
    assert answer["alternatives"] == [[SECOND], [], [SECOND]]
    assert [one["language"] for one in answer["detectedLanguage"]] == ["en", "de", "en"]


def test_markup_is_not_detected(translator, detector):
    detector({"Un chat.": "en"})  # and no other text
    html = "<p class=a>Un <b>chat</b>.</p><style>p {}</style>"
    posted(
        translator,
        "/translate",
        json={"q": html, "source": "auto", "target": "de", "format": "html"},
    )


def test_model_without_known_languages(translator):
    translator.card["data"] = {"languages": ["", "txt"]}
    assert got(translator, "/languages") == []
    fields = {"q": "a", "source": "anything", "target": "else"}
    assert posted(translator, "/translate", json=fields) == {"translatedText": BEST}


@pytest.mark.parametrize(
    ("fields", "about", "received"),
    [
        (PAIR, "q", "none"),
        ({"q": [["a"]]} | PAIR, "q[0]", '["a"]'),
        ({"q": "a", "source": "en"}, "target", "none"),
        ({"q": "a", **PAIR, "source": "fr"}, 'source must be one of "en" and "auto"', '"fr"'),
        ({"q": "a", **PAIR, "target": "fr"}, 'target must be "de"', '"fr"'),
        ({"q": "a", **PAIR, "target": "en"}, 'target must be "de"', '"en"'),
        ({"q": "a", **PAIR, "format": "pdf"}, "format must be one of text,", '"pdf"'),
        ({"q": "a", **PAIR, "alternatives": None}, "alternatives must be of type int", "null"),
    ],
)
def test_refused(translator, fields, about, received):
    check_refused(translator, "/translate", about, received, json=fields)


@pytest.fixture
def many(translator):
    """A model of several directions."""
    directions = [["en", "de"], ["en", "cs"], ["de", "cs"]]
    options = {"target_languages": ["de", "cs"], "directions": directions}
    translator.card.update(task_options=options, data={"languages": ["en", "de", "cs"]})
    return translator


class TestSeveralDirections:
    def test_languages(self, many):
        assert got(many, "/languages") == [
            {"code": "en", "name": "English", "targets": ["de", "cs"]},
            {"code": "de", "name": "German", "targets": ["cs"]},
            {"code": "cs", "name": "Czech", "targets": []},
        ]

    @pytest.mark.parametrize(
        ("source", "target", "call"),
        [("en-GB", "CS", ("cs", "en")), ("auto", "de", ("de", None))],
    )
    def test_the_target_is_that_of_the_request(self, many, detector, source, target, call):
        detector(None)
        fields = {"q": "A cat.", "source": source, "target": target}
        answer = posted(many, "/translate", json=fields)
        assert answer["translatedText"] == BEST and many.calls[0] == call
        if source == "auto":  # there is more than one that it may be
            assert answer["detectedLanguage"] == {"language": "und", "confidence": 0.0}

    def test_files(self, many):
        posted(many, "/translate_file", data=file_form(target="cs"))
        assert many.calls[0] == ("cs", "en")

    @pytest.mark.parametrize(
        ("fields", "about", "received"),
        [
            ({"q": "a", "source": "cs"}, 'source must be one of "en", "de" and "auto"', '"cs"'),
            ({"q": "a", "source": "de"}, 'target must be "cs"', '"de"'),
            ({"q": "a", "target": "fr"}, 'target must be one of "de", "cs"', '"fr"'),
            ({"q": ">>cs<< a"}, "texts must be without codes", "['>>cs<< a']"),
        ],
    )
    def test_others_are_refused(self, many, fields, about, received):
        check_refused(many, "/translate", about, received, json=PAIR | fields)

    def test_sentences_and_documents(self, many):
        posted(many, "/translate", json={"texts": ["a", "b"], "to": "cs"})
        posted(many, "/attention", json={"source": "a", "target": "b", "to": "cs"})
        assert many.calls == [[">>cs<< a", ">>cs<< b"], (">>cs<< a", "b")]
        many.calls.clear()
        posted(many, "/translate", json={"document": "A cat. Yes.", "to": "de"})
        assert many.calls[0] == ("de", None)

    @pytest.mark.parametrize(
        ("fields", "received"), [({"text": "a"}, "None"), ({"document": "a", "to": "fr"}, "fr")]
    )
    def test_a_language_that_is_missing_or_unknown_is_one_line(self, many, fields, received):
        about = "to must be one of de, cs"
        check_refused(many, "/translate", about, received, json=fields)


@pytest.fixture
def multilingual(translator):
    """A model that reads the source language, too."""
    languages = ["deu_Latn", "eng_Latn", "zho_Hans"]
    options = {"target_languages": languages, "source_languages": languages}
    translator.card.update(task_options=options, data={"languages": None})
    return translator


class TestSourceLanguages:
    def test_languages(self, multilingual):
        first, *_ = got(multilingual, "/languages")
        assert first == {"code": "de", "name": "German", "targets": ["en", "zh"]}

    def test_short_codes_that_two_languages_would_have(self, multilingual):
        codes = ["aka_Latn", "deu_Latn", "twi_Latn"]
        options = {"target_languages": codes, "source_languages": codes}
        multilingual.card["task_options"] = options
        found = client_codes(multilingual.card.languages)
        assert list(found.values()) == ["aka_Latn", "de", "twi_Latn"]

    @pytest.mark.parametrize(
        ("source", "target", "call"),
        [
            ("en", "zh", ("eng_Latn-zho_Hans", "eng_Latn")),
            ("deu_Latn", "eng_Latn", ("deu_Latn-eng_Latn", "deu_Latn")),
        ],
    )
    def test_directions(self, multilingual, source, target, call):
        posted(multilingual, "/translate", json={"q": "A cat.", "source": source, "target": target})
        assert multilingual.calls[0] == call

    def test_each_text_is_translated_from_its_language(self, multilingual, detector):
        detector({"Eine Katze.": "de", "A cat.": "en", "Un gatto.": "it"})
        fields = {"q": ["A cat.", "Un gatto."], "source": "auto", "target": "zh"}
        check_refused(multilingual, "/translate", "source must be given", '"it"', json=fields)
        fields["q"] = ["Eine Katze.", "A cat."]
        answer = posted(multilingual, "/translate", json=fields)
        assert answer["translatedText"] == [BEST, BEST]
        assert [one["language"] for one in answer["detectedLanguage"]] == ["de", "en"]
        assert [call for call in multilingual.calls if isinstance(call, tuple)] == [
            ("deu_Latn-zho_Hans", "deu_Latn"),
            ("eng_Latn-zho_Hans", "eng_Latn"),
        ]

    def test_the_language_of_a_file_must_be_given(self, multilingual):
        form = file_form(source="auto", target="de")
        about = "source must be given for a file"
        check_refused(multilingual, "/translate_file", about, '"auto"', data=form)
        posted(multilingual, "/translate_file", data=file_form(source="en", target="de"))
        assert multilingual.calls[0] == ("eng_Latn-deu_Latn", "eng_Latn")


def test_parsing_models_do_not_translate(translator):
    translator.card["task"] = "parsing"
    for fields in ({"q": "a"} | PAIR, {"document": "a"}):
        received = "a request to a parsing model"
        check_refused(translator, "/translate", "translation model", received, json=fields)


def file_form(content=b"A cat.\n\nYes.", name="cat.txt", **fields):
    form = aiohttp.FormData(PAIR | fields)
    form.add_field("file", content, filename=name)
    return form


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("cat.txt", "\ufeffA cat.\r\n\r\nYes.\n", f"\ufeff{BEST}\r\n\r\n{BEST}\n"),
        ("../../ü.MD", "# A cat\n\n- Yes.\n", f"# {BEST}\n\n- {BEST}\n"),
    ],
)
def test_files(translator, name, content, wanted):
    if name.endswith("MD"):
        pytest.importorskip("markdown_it", reason="install: pip install '.[documents]'")

    async def scenario(client, service):
        headers = {"X-Forwarded-Host": "translate.example", "X-Forwarded-Proto": "https"}
        for sent in ({}, headers):
            form = file_form(content.encode(), name)
            answer = await client.post("/translate_file", data=form, headers=sent)
            url = (await answer.json())["translatedFileUrl"]
            own = str(client._base_url).rstrip("/")
            base = "https://translate.example" if sent is headers else own
            assert url.startswith(f"{base}/download_file/")
            assert url.endswith(name[-4:].lower().replace("ü", "")) and ".." not in url
            file = await client.get(urlsplit(url).path)
            assert file.headers["Content-Disposition"] == "attachment"
            assert file.content_type == "application/octet-stream"
            assert (await file.read()).decode("utf-8") == wanted
        absent = await client.get("/download_file/..%2f..%2fetc%2fpasswd")
        assert absent.status == 404
        return await absent.json()

    check_message(served(translator, scenario)["error"], "file", "../../etc/passwd")


@pytest.mark.parametrize(
    ("form", "about", "received"),
    [
        (lambda: PAIR, "multipart/form-data", "none"),
        (lambda: PAIR | {"file": "a"}, "multipart/form-data", '"a"'),
        (lambda: json.dumps(PAIR), "multipart/form-data", "none"),
        (lambda: file_form(name="a.exe"), ".txt", '"a.exe"'),
        (lambda: file_form(name="a.csv"), ".vtt", '"a.csv"'),
        (lambda: file_form(b"\xff"), "cat.txt:1 must be UTF-8", "byte 0xff at column 1"),
        (lambda: file_form(name="a.doc"), "LibreOffice, save it as .docx", '"a.doc"'),
        (lambda: file_form(name="a.PDF"), "as .docx, or its text as .txt", '"a.PDF"'),
        (lambda: file_form(b"%PDF-1.7"), "cat.txt must be text; open it", "a PDF"),
        (lambda: file_form(target="fr"), 'target must be "de"', '"fr"'),
        (lambda: file_form(review_below="1.5"), "review_below must be from 0 to below 1", "1.5"),
        (lambda: file_form(review_below="half"), "review_below", "half"),
        (lambda: file_form(review_below="0.5"), "used with a model that has", "0.5"),
        (lambda: file_form(b"PK", "a.docx"), "archive", "not a zip file"),
        (lambda: file_form(archive("odt", ""), "a.docx"), "[Content_Types].xml", "mimetype"),
        (lambda: file_form(archive("docx", "<w:p/>" * 2000), "a.docx"), "2,000 tags", "2,0"),
    ],
)
def test_refused_files(translator, form, about, received):
    limits = Limits(max_sentences=3, max_characters=100)
    check_refused(translator, "/translate_file", about, received, limits=limits, data=form())


def test_a_document_of_an_office_is_translated(translator):
    picture = random.Random(1).randbytes(300_000)  # more than a body of text may have
    deleted = "<w:p><w:del><w:r><w:delText>A</w:delText></w:r></w:del></w:p>"
    text = "<w:p><w:r><w:t>A cat.</w:t></w:r></w:p>"
    content = archive("docx", f"{text}{deleted}", large_png=picture)

    async def scenario(client, service):
        form = file_form(content, "letter.DOCX")
        answer = await client.post("/translate_file", data=form)
        found = await answer.json()
        url = found["translatedFileUrl"]
        assert url.endswith(".docx") and found["left"] == {"deleted": 1}
        file = await client.get(urlsplit(url).path)
        return content_of("docx", await file.read())

    found = served(translator, scenario)
    assert found == f'<w:p><w:r><w:t xml:space="preserve">{BEST}</w:t></w:r></w:p>{deleted}'


def test_doubtful_translations_of_a_file_are_marked(translator):
    translator.card.calibration = "of a model"
    translator.confidences = {"A cat.": 0.4, "Yes.": 0.6}
    catalogue = b'msgid "A cat."\nmsgstr ""\n\nmsgid "Yes."\nmsgstr ""\n'

    async def scenario(client, service, content=catalogue, name="a.po", **fields):
        form = file_form(content, name, **fields)
        answer = await (await client.post("/translate_file", data=form)).json()
        file = await client.get(urlsplit(answer["translatedFileUrl"]).path)
        return answer["doubtful"], await file.read()

    filled = f'msgid "A cat."\nmsgstr "{BEST}"\n\nmsgid "Yes."\nmsgstr "{BEST}"\n'
    assert served(translator, scenario) == (0, filled.encode())
    marked = functools.partial(scenario, review_below="0.5")
    assert served(translator, marked) == (1, f"#, fuzzy\n{filled}".encode())
    word = archive("docx", "<w:p><w:r><w:t>A cat.</w:t></w:r></w:p>")
    doubtful, file = served(translator, functools.partial(marked, content=word, name="a.docx"))
    assert doubtful == 1 and "commentRangeStart" in content_of("docx", file)


TOO_LONG = archive("docx", f"<w:p><w:r><w:t>{'a' * 1001}</w:t></w:r></w:p>")


@pytest.mark.parametrize(
    ("path", "sent", "received", "accepted", "name"),
    [
        ("/translate", "x" * 1001, "1,001 characters", "1,000", "--max_characters"),
        ("/translate", "x" * 20_000, "20,0.. bytes", "1,000 characters", "--max_characters"),
        ("/translate_file", b"x" * 1001, "1,001 characters", "1,000", "--max_characters"),
        ("/translate_file", b"x" * 99_000, "99,000 bytes", "1,000 characters", "--max_characters"),
        ("/translate_file", TOO_LONG, "1,001 characters", "1,000", "--max_characters"),
        ("/translate_file", b"0" * 10**6, "1,000,... bytes", "500,000", "--max_file_bytes"),
    ],
)
def test_limits_are_told_in_the_words_of_the_sender(
    translator, path, sent, received, accepted, name
):
    limits = Limits(max_sentences=3, max_characters=1000, max_file_bytes=500_000, prefix="--")
    request = {"json": PAIR | {"q": sent}}
    if isinstance(sent, bytes):
        request = {"data": file_form(sent, "a.docx" if sent == TOO_LONG else "a.txt")}
    message = refusal_of(translator, path, 413, limits=limits, **request)
    check_limit(message, received, accepted, name)


def test_a_file_is_not_copied_when_it_is_checked():
    content = bytes(1 << 24)
    fields = PAIR | {"file": Upload("a.docx", content)}
    tracemalloc.start()
    try:
        documents, ending = parse_file(fields, Limits(), None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert ending == ".docx" and documents.texts[0] is content
    assert peak < 1 << 20


def test_documents_and_their_sentences(translator):
    document = " A 😀 cat. It sleeps!\n\nSee https://example.org/a.b now.\n"
    body = posted(translator, "/translate", json={"document": document})
    text = body["translation"]
    assert text.count("😀") == 1 and text.replace("😀 ", "").startswith(f" {BEST} {BEST}\n\n")
    assert [row["source"] for row in body["sentences"]] == [
        *("A 😀 cat.", "It sleeps!", "See https://example.org/a.b now.")
    ]
    for row in body["sentences"]:
        assert text[row["start"] : row["end"]] == row["translation"]
        assert "confidence" not in row  # of a model without a calibration
    assert "https://example.org/a.b" in body["sentences"][2]["translation"]


def test_documents_are_counted(translator):
    async def scenario(client, service):
        for fields in ({"q": ["a", "b"]} | PAIR, {"document": "a"}, {"document": "a" * 10}):
            await client.post("/translate", json=fields)
        return service.documents, service.http.counts.errors

    assert served(translator, scenario, Limits(max_characters=9)) == (3, 1)


def test_documents_of_other_formats(translator):
    pytest.importorskip("markdown_it", reason="install: pip install '.[documents]'")
    fields = {"document": "# A cat\n", "format": ""}
    about = "format must be one of text, wrapped, markdown"
    check_refused(translator, "/translate", about, '""', json=fields)
    counts = {"from_memory": 0, "without_terms": 0, "doubtful": 0}
    answer = posted(translator, "/translate", json=fields | {"format": "markdown"})
    assert answer == {"translation": f"# {BEST}\n", **counts}
