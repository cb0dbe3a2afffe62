import random
import time

import pytest

from keras_transformer.errors import InputError
from keras_transformer.serving.forms import Upload, form_fields, is_form
from tests.refusals import refused

URL_ENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=xyz"


def multipart(*parts, end=b"--xyz--\r\n"):
    return b"".join(b"--xyz\r\n" + part + b"\r\n" for part in parts) + end


def part(name, content, more=b""):
    disposition = b'Content-Disposition: form-data; name="' + name + b'"' + more
    return disposition + b"\r\n\r\n" + content


FILE = b'; filename="\xc3\xbcber.md"\r\nContent-Type: text/markdown'


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
    ],
)
def test_fields(body, content_type, wanted):
    assert is_form(body, content_type)
    assert form_fields(body, content_type) == wanted


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b'{"q": "a"}', URL_ENCODED),  # as curl -d sends it
        (b' ["q"]', MULTIPART),
        (b"q=a", "application/json"),
        (b"q=a", ""),
    ],
)
def test_what_is_no_form(body, content_type):
    assert not is_form(body, content_type)


@pytest.mark.parametrize(
    ("body", "content_type", "argument", "received", "about"),
    [
        (b"q=\xff", URL_ENCODED, None, "byte 0xff", "UTF-8"),
        (b"q=%ff", URL_ENCODED, None, "byte 0xff", "UTF-8"),
        (b"q=a", "multipart/form-data", None, "multipart/form-data", "parts"),
        (b"", MULTIPART, None, MULTIPART, "parts"),
        (b"q=a", MULTIPART, None, MULTIPART, "parts"),
        (multipart(part(b"q", b"a"), end=b"--xyz\r\n"), MULTIPART, None, "end", "boundary and --"),
        (multipart(part(b"q", b"a"), end=b""), MULTIPART, None, "end", "boundary and --"),
        (multipart(b"\r\nabc"), MULTIPART, None, "without a name", "name"),
        (multipart(part(b"q", b"\xff")), MULTIPART, None, "byte 0xff", "UTF-8"),
        (
            multipart(part(b"f", b"a", FILE), part(b"f", b"b")),
            MULTIPART,
            "f",
            "several",
            "one file",
        ),
        (
            multipart(
                part(
                    b"q", b"--i\r\n\r\na\r\n--i--", b"\r\nContent-Type: multipart/mixed; boundary=i"
                )
            ),
            MULTIPART,
            "q",
            "a form",
            "a text or a file",
        ),
    ],
)
def test_refused(body, content_type, argument, received, about):
    with refused(argument, received, place="the body", about=about):
        form_fields(body, content_type)


@pytest.mark.parametrize("count", [60, pytest.param(600, marks=pytest.mark.slow)])
def test_damaged_forms_are_fields_or_refused(count):
    """Whatever bytes there are: either an error of one line, or fields of text and files."""
    numbers = random.Random(7)
    whole = multipart(part(b"q", b"a cat"), part(b"file", b"# A\r\n", FILE))
    odd = [b"\r\n", b"--xyz", b'"', b";", b"=", b"*0*=utf-8''%", b"\xff", b"\x00", b":", b"?="]
    odd += [b"Content-Transfer-Encoding: base64\r\n", b"Content-Type: multipart/mixed\r\n"]
    for _ in range(count):
        body = bytearray(whole)
        for _ in range(numbers.choice([1, 2, 5])):
            place = numbers.randrange(len(body))
            body[place : place + numbers.choice([0, 1, 9])] = numbers.choice(odd)
        try:
            fields = form_fields(bytes(body), MULTIPART)
        except InputError as error:
            assert "\n" not in str(error)
            continue
        for value in fields.values():
            assert isinstance(value, (str, Upload, list))


def test_deeply_nested_parts_are_refused():
    nested = b"Content-Type: multipart/mixed; boundary=xyz\r\n\r\n--xyz\r\n" * 5000
    with pytest.raises(InputError):
        form_fields(b"--xyz\r\n" + nested, MULTIPART)


def test_many_fields_are_read_in_time_in_proportion():
    started = time.process_time()
    assert form_fields(b"q=&" * 80_000, URL_ENCODED) == {"q": [""] * 80_000}
    many = multipart(*[part(b"q", b"")] * 4_000)
    assert form_fields(many, MULTIPART) == {"q": [""] * 4_000}
    assert time.process_time() - started < 20
