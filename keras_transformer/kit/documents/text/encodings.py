"""Decodes a document by its byte order mark, its declared encoding, or as UTF-8.

All output is UTF-8. So if a document declares another encoding, reading replaces the declaration by
UTF-8 and leaves the rest unchanged.
"""

import codecs
import re

from keras_transformer.kit.documents.text.html import tags_of
from keras_transformer.support.errors import InputError
from keras_transformer.support.files.reading import UTF_16_MARKS

UTF_8 = "utf-8"
_BYTE_ORDER_MARKS = {codecs.BOM_UTF8: UTF_8, **UTF_16_MARKS}
# Browsers read pages that declare the first as the second, which has more characters.
_BROWSER_CODECS = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
_CHARSET_PLACEHOLDER = "CHARSET"  # in a catalogue made from a template: not declared yet
_HEAD = 4096  # characters of a page to search for a declaration; browsers search 1024 bytes

_NAME = r"(?P<name>[\w.:-]+)"
_XML_DECLARATION = re.compile(rf"\ufeff?\s*<\?xml(?=\s)[^>]*?\sencoding\s*=\s*[\"']{_NAME}")
_META_CHARSET = re.compile(rf"\bcharset\s*=\s*[\"']?\s*{_NAME}", re.IGNORECASE)
_PO_CHARSET = re.compile(rf'^"Content-Type:[^"\n]*\bcharset={_NAME}', re.MULTILINE)

Declaration = re.Match  # its group "name" is the name of the encoding


def decoded(content: bytes, format: str, name: str) -> str:
    """Decodes a document, and replaces its declared encoding by UTF-8.

    Args:
        content: the whole document. A byte order mark overrides a declaration, and stays.
        format: a name in formats.FORMATS, or "xml". XML, HTML and catalogues declare their
            encoding.
        name: the name of the document, for errors.

    Raises:
        InputError: names the line, for an unknown encoding or bytes that it cannot decode.
    """
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if content.startswith(mark):
            return _declaring_utf_8(_text(content, encoding, encoding, name), format)
    by_byte = content.decode("latin-1")  # one character per byte
    declarations = _declarations(by_byte, format)
    declared = declarations[0]["name"] if declarations else UTF_8
    try:
        encoding = _encoding_of(declared, format)
    except (LookupError, UnicodeError):  # unknown to Python, or its codec "undefined"
        line = by_byte.count("\n", 0, declarations[0].start("name")) + 1
        rule = "must declare a known encoding"
        raise InputError(None, rule, repr(declared), f"{name}:{line}") from None
    if format == "html" and not declarations and (page := _undeclared(content)) is not None:
        return page
    return _text(_declaring_utf_8(by_byte, format).encode("latin-1"), encoding, declared, name)


def _undeclared(content: bytes) -> str | None:
    """Decodes a page without a declaration that is not UTF-8 like browsers, or returns None.

    A byte order mark is added to declare UTF-8, the encoding of the output.
    """
    try:
        content.decode(UTF_8)
        return None
    except UnicodeDecodeError:
        try:
            return "\ufeff" + content.decode("cp1252")
        except UnicodeDecodeError:
            return None


def _encoding_of(declared: str, format: str) -> str:
    """Returns the name of Python's codec for a declared encoding.

    Raises:
        LookupError: if there is none.
    """
    if declared == _CHARSET_PLACEHOLDER and format == "po":
        return UTF_8
    encoding = codecs.lookup(declared).name
    if declared.encode(encoding) != declared.encode("ascii"):  # as UTF-16: unreadable
        return UTF_8
    return _BROWSER_CODECS.get(encoding, encoding) if format == "html" else encoding


def _text(content: bytes, encoding: str, declared: str, name: str) -> str:
    """Decodes bytes in a declared encoding."""
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        byte = f"byte 0x{content[error.start]:02x} at column {column}"
        raise InputError(None, f"must be {declared.upper()}", byte, f"{name}:{line}") from None


def _declaring_utf_8(text: str, format: str) -> str:
    """Replaces a document's declarations by UTF-8."""
    for declaration in reversed(_declarations(text, format)):
        start, end = declaration.span("name")
        if declaration["name"].lower() not in (UTF_8, "utf8"):
            text = f"{text[:start]}UTF-8{text[end:]}"
    return text


def _declarations(text: str, format: str) -> list[Declaration]:
    """Finds a document's declarations of its encoding; the first one counts."""
    found = []
    if format in ("xliff", "xml", "html"):
        found.append(_XML_DECLARATION.match(text))
    if format == "html":
        found += _declarations_of_page(text[:_HEAD])
    if format == "po":
        found.append(_PO_CHARSET.search(text))
    return [declaration for declaration in found if declaration is not None]


def _declarations_of_page(head: str) -> list[Declaration | None]:
    """Finds the encoding in `<meta charset="...">`, or in its longer form."""
    found = []
    place = 0
    for tag in tags_of(head):
        end = place + len(tag.source)
        attributes = dict(tag.attributes)
        is_of_type = (attributes.get("http-equiv") or "").lower() == "content-type"
        if tag.name == "meta" and ("charset" in attributes or is_of_type):
            found.append(_META_CHARSET.search(head, place, end))
        place = end
    return found
