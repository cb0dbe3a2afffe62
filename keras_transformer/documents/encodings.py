"""The bytes of a document as text: by its byte order mark, else as it declares, else as UTF-8.

What this project writes is UTF-8. So a document that declares another encoding is given a
declaration of UTF-8 when it is read, and all else of it stays.
"""

import codecs
import re

from keras_transformer.documents.html import tags_of
from keras_transformer.errors import InputError
from keras_transformer.files.reading import UTF_16_MARKS

UTF_8 = "utf-8"
_BYTE_ORDER_MARKS = {codecs.BOM_UTF8: UTF_8, **UTF_16_MARKS}
# A page that declares the first is read by browsers as the second, which has further characters.
_OF_PAGES = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
_PLACE_OF_CHARSET = "CHARSET"  # in a catalogue made of a template: none has been declared yet
_HEAD = 4096  # characters of a page among which its declaration is; browsers look at 1024 bytes

_NAME = r"(?P<name>[\w.:-]+)"
_OF_XML = re.compile(rf"\ufeff?\s*<\?xml(?=\s)[^>]*?\sencoding\s*=\s*[\"']{_NAME}")
_OF_META = re.compile(rf"\bcharset\s*=\s*[\"']?\s*{_NAME}", re.IGNORECASE)
_OF_PO = re.compile(rf'^"Content-Type:[^"\n]*\bcharset={_NAME}', re.MULTILINE)

Declaration = re.Match  # with the name of the encoding as its group "name"


def decoded(content: bytes, format: str, name: str) -> str:
    """Decodes a document; what it declares becomes UTF-8.

    Args:
        content: all of it. A byte order mark decides before what is declared, and stays.
        format: a name of formats.FORMATS, or "xml". XML, HTML and catalogues declare their
            encoding.
        name: of the document, for errors.

    Raises:
        InputError: naming the line, for an encoding that is not known, or bytes that it has not.
    """
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if content.startswith(mark):
            return _declaring_utf_8(_text(content, encoding, encoding, name), format)
    by_byte = content.decode("latin-1")  # a character for each byte
    declarations = _declarations(by_byte, format)
    declared = declarations[0]["name"] if declarations else UTF_8
    try:
        encoding = _encoding_of(declared, format)
    except (LookupError, UnicodeError):  # one that Python lacks, or its codec "undefined"
        line = by_byte.count("\n", 0, declarations[0].start("name")) + 1
        rule = "must declare an encoding that is known"
        raise InputError(None, rule, repr(declared), f"{name}:{line}") from None
    if format == "html" and not declarations and (page := _undeclared(content)) is not None:
        return page
    return _text(_declaring_utf_8(by_byte, format).encode("latin-1"), encoding, declared, name)


def _undeclared(content: bytes) -> str | None:
    """A page that declares no encoding and is not UTF-8, as browsers read it; None if they do not.

    The mark before it declares UTF-8, in which it will be written.
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
    """The name of Python's codec for an encoding as a document declares it.

    Raises:
        LookupError: if there is none.
    """
    if declared == _PLACE_OF_CHARSET and format == "po":
        return UTF_8
    encoding = codecs.lookup(declared).name
    if declared.encode(encoding) != declared.encode("ascii"):  # as in UTF-16: nothing would be read
        return UTF_8
    return _OF_PAGES.get(encoding, encoding) if format == "html" else encoding


def _text(content: bytes, encoding: str, declared: str, name: str) -> str:
    """Decodes bytes that are declared to be of an encoding."""
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        byte = f"byte 0x{content[error.start]:02x} at column {column}"
        raise InputError(None, f"must be {declared.upper()}", byte, f"{name}:{line}") from None


def _declaring_utf_8(text: str, format: str) -> str:
    """A document whose declarations are those of UTF-8."""
    for declaration in reversed(_declarations(text, format)):
        start, end = declaration.span("name")
        if declaration["name"].lower() not in (UTF_8, "utf8"):
            text = f"{text[:start]}UTF-8{text[end:]}"
    return text


def _declarations(text: str, format: str) -> list[Declaration]:
    """Where a document says which encoding it has; the first one decides."""
    found = []
    if format in ("xliff", "xml", "html"):
        found.append(_OF_XML.match(text))
    if format == "html":
        found += _declarations_of_page(text[:_HEAD])
    if format == "po":
        found.append(_OF_PO.search(text))
    return [declaration for declaration in found if declaration is not None]


def _declarations_of_page(head: str) -> list[Declaration | None]:
    """Where `<meta charset="...">`, or its longer form, gives the encoding of a page."""
    found = []
    place = 0
    for tag in tags_of(head):
        end = place + len(tag.source)
        attributes = dict(tag.attributes)
        is_of_type = (attributes.get("http-equiv") or "").lower() == "content-type"
        if tag.name == "meta" and ("charset" in attributes or is_of_type):
            found.append(_OF_META.search(head, place, end))
        place = end
    return found
