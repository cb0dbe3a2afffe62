import codecs

import pytest

from keras_transformer.kit.documents.text.encodings import decoded
from tests.refusals import refused

XML = "<?xml version='1.0' encoding=\"{}\"?>\n<xliff>é</xliff>"
PAGE = "<!doctype html>\n<!-- <meta charset=koi8-r> é -->\n<META CharSet = {} name=é><p>charset=x“"
LONG_PAGE = (
    "<meta name=description content='charset=x'>"
    "<meta http-equiv=Content-Type content='text/html; charset={}'>“é”"
)
CATALOGUE = (
    '# é charset=x\nmsgid ""\nmsgstr ""\n"Content-Type: text/plain; charset={}\\n"\n\n'
    'msgid "charset=x"\nmsgstr "é"\n'
)


@pytest.mark.parametrize(
    ("format", "document", "declared", "encoding"),
    [
        ("xliff", XML, "ISO-8859-1", "latin-1"),
        ("xliff", XML, "windows-1250", "cp1250"),
        ("html", PAGE, "windows-1252", "cp1252"),
        ("html", PAGE, "'iso-8859-1'", "cp1252"),  # as browsers read it
        ("html", LONG_PAGE, "US-ASCII", "cp1252"),
        ("html", LONG_PAGE, "GB2312", "gb18030"),
        ("html", XML, "ISO-8859-15", "iso8859-15"),  # XHTML
        ("po", CATALOGUE, "ISO-8859-2", "iso8859-2"),
        ("po", CATALOGUE, "CHARSET", "utf-8"),
        ("html", PAGE, "utf-16", "utf-8"),  # a readable declaration rules out UTF-16
    ],
)
def test_what_is_declared_is_read_and_becomes_utf_8(format, document, declared, encoding):
    content = document.format(declared).encode(encoding)
    quote = "'" if "'" in declared else ""
    assert decoded(content, format, "a") == document.format(f"{quote}UTF-8{quote}")


def test_an_undeclared_page_is_read_as_browsers_do_and_a_mark_declares_utf_8():
    assert decoded("<p>“café”".encode("cp1252"), "html", "a") == "\ufeff<p>“café”"
    assert decoded("<p>“café”".encode(), "html", "a") == "<p>“café”"


@pytest.mark.parametrize("mark", ["utf-8", "utf-16-le", "utf-16-be"])
def test_a_byte_order_mark_decides(mark):
    for format, document in (("xliff", XML), ("html", PAGE), ("po", CATALOGUE), ("csv", "é;{}")):
        content = f"\ufeff{document}".format("ISO-8859-1").encode(mark)
        wanted = "ISO-8859-1" if format == "csv" else "UTF-8"
        assert decoded(content, format, "a") == f"\ufeff{document}".format(wanted)


@pytest.mark.parametrize("declared", ["UTF-8", "utf-8", "utf8"])
def test_documents_in_utf_8_stay_as_they_are(declared):
    for format, document in (("xliff", XML), ("html", PAGE), ("po", CATALOGUE)):
        text = document.format(declared)
        assert decoded(text.encode(), format, "a") == text
        assert decoded(codecs.BOM_UTF8 + text.encode(), format, "a") == f"\ufeff{text}"


@pytest.mark.parametrize(
    ("format", "content", "place", "received", "about"),
    [
        ("html", b"<p>\n<meta charset=x-no>", "a:2", "'x-no'", "known"),
        ("html", b"<meta charset=undefined>", "a:1", "'undefined'", "known"),
        ("html", b"<p>\x81", "a:1", "byte 0x81 at column 4", "UTF-8"),
        ("xliff", b"<?xml version='1.0' encoding='hex'?>", "a:1", "'hex'", "known"),
        ("po", b'"Content-Type: charset=ascii"\n\xe9', "a:2", "byte 0xe9 at column 1", "ASCII"),
        ("csv", b"a\n b\xff\n", "a:2", "byte 0xff at column 3", "UTF-8"),
        ("csv", codecs.BOM_UTF16_LE + b"a\0b", "a:1", "byte 0x62 at column 5", "UTF-16-LE"),
    ],
)
def test_documents_that_cannot_be_decoded(format, content, place, received, about):
    with refused(None, received, place, about):
        decoded(content, format, "a")
