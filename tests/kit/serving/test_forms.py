import asyncio

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from keras_transformer.kit.serving.errors import as_refusal
from keras_transformer.kit.serving.forms import Upload
from keras_transformer.kit.serving.requests import read_fields
from tests.refusals import check_message

URL_ENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=xyz"


def multipart(*parts, end=b"--xyz--\r\n"):
    return b"".join(b"--xyz\r\n" + part + b"\r\n" for part in parts) + end


def part(name, content, more=b""):
    disposition = b'Content-Disposition: form-data; name="' + name + b'"' + more
    return disposition + b"\r\n\r\n" + content


FILE = b'; filename="\xc3\xbcber.md"\r\nContent-Type: text/markdown'


def read(body, content_type):
    """Gives the fields of a body that is sent to a server, or why it is refused."""
    found = []

    async def handler(request):
        try:
            found.append(await read_fields(request))
        except Exception as error:
            found.append(as_refusal(error, request))
        return web.Response()

    async def run():
        application = web.Application(client_max_size=1000)
        application.router.add_post("/", handler)
        async with TestClient(TestServer(application)) as client:
            await client.post("/", data=body, headers={"Content-Type": content_type})

    asyncio.run(run())
    return found[0]


@pytest.mark.parametrize(
    ("body", "content_type", "wanted"),
    [
        (
            b"q=a+cat%21&source=en&target=",
            URL_ENCODED,
            {"q": "a cat!", "source": "en", "target": ""},
        ),
        (b"q=%C3%BC&q=b&q=", f"{URL_ENCODED}; charset=UTF-8", {"q": ["ü", "b", ""]}),
        (b"", URL_ENCODED, {}),
        (
            multipart(part(b"q", "ü\r\n\nb ".encode()), part(b"source", b"")),
            MULTIPART,
            {"q": "ü\r\n\nb ", "source": ""},
        ),
        (multipart(part(b"q", b"a"), part(b"q", b"b")), MULTIPART, {"q": ["a", "b"]}),
        (
            multipart(part(b"file", b"# \xff\x00\r\n-\r", FILE)),
            MULTIPART,
            {"file": Upload("über.md", b"# \xff\x00\r\n-\r")},
        ),
        (multipart(part(b"file", b"", FILE)), MULTIPART, {"file": Upload("über.md", b"")}),
        (
            multipart(part(b"file", b"", b'; filename=""\r\nContent-Type: application/x')),
            MULTIPART,
            {"file": Upload("", b"")},
        ),
        (b'{"q": "a"}', URL_ENCODED, {"q": "a"}),  # as curl -d sends it
    ],
)
def test_fields(body, content_type, wanted):
    assert read(body, content_type) == wanted


@pytest.mark.parametrize(
    ("body", "content_type", "about", "received"),
    [
        (b"q=\xff", URL_ENCODED, "UTF-8", "byte 0xff"),
        (b"q=a", "multipart/form-data", "Content-Type", "boundary"),
        (b"q=a", MULTIPART, "Content-Type", "boundary"),
        (multipart(part(b"q", b"a"), end=b""), MULTIPART, "Content-Type", ""),
        (multipart(b"\r\nabc"), MULTIPART, "Content-Type", "name"),
        (multipart(part(b"q", b"\xff")), MULTIPART, "UTF-8", "byte 0xff"),
        (b"q=a", "application/json", "JSON", "line 1"),
        (b"q=a", "text/plain", "JSON", "line 1"),
        (b'["a"]', "application/json", "JSON object", '["a"]'),
        (b"[" * 900, "application/json", "JSON", ""),
    ],
)
def test_refused(body, content_type, about, received):
    refusal = read(body, content_type)
    assert refusal.status == 400
    check_message(str(refusal), about, received)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"q=" + b"a" * 999, URL_ENCODED),
        (multipart(part(b"q", b"a" * 999)), MULTIPART),
        (multipart(part(b"file", b"a" * 999, FILE)), MULTIPART),
        (multipart(*[part(b"q", b"")] * 50), MULTIPART),
    ],
)
def test_too_large(body, content_type):
    assert read(body, content_type).status == 413
