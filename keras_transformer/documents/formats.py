"""The formats of documents: their names, the endings of their files, and what reads them."""

import importlib
from collections.abc import Sequence
from typing import NamedTuple

from keras_transformer.documents.segments import Document
from keras_transformer.errors import InputError, install_command, require
from keras_transformer.files.reading import uncompressed_name

TEXT = "text"
WRAPPED = "wrapped"
PLAIN = (TEXT, WRAPPED)  # in which all characters mean themselves
BYTE_ORDER_MARK = "\ufeff"  # which may begin a file, and is no text


class Format(NamedTuple):
    """A format. Its reader is `read(text: str, language: str) -> Document`.

    That of an archive is `read(content: bytes) -> Archive`.

    The reader of a table also takes `columns`, those to be translated; that of a format whose
    documents say in which language they are takes `target`, the language of the translation or
    None.
    """

    endings: tuple[str, ...]  # of the names of its files
    module: str  # in this folder; it is imported when the format is used
    reader: str = "read"
    has_columns: bool = False
    is_archive: bool = False  # its reader takes bytes
    has_language: bool = False


FORMATS = {
    TEXT: Format((".txt",), "plain"),
    WRAPPED: Format((), "wrapped"),  # text, too, whose lines are parts of paragraphs
    "markdown": Format((".md", ".markdown"), "markdown"),
    "html": Format((".html", ".htm", ".xhtml"), "html"),
    "po": Format((".po",), "po"),
    "xliff": Format((".xliff", ".xlf"), "xliff"),
    "srt": Format((".srt",), "subtitles", "read_srt"),
    "vtt": Format((".vtt",), "subtitles", "read_vtt"),
    "tsv": Format((".tsv",), "tables", "read_tsv", has_columns=True),
    "csv": Format((".csv",), "tables", "read_csv", has_columns=True),
    "jsonl": Format((".jsonl",), "tables", "read_jsonl", has_columns=True),
    "docx": Format((".docx", ".docm"), "docx", is_archive=True),
    "pptx": Format((".pptx", ".pptm"), "pptx", is_archive=True),
    "odt": Format((".odt", ".ott"), "opendocument", is_archive=True),
    "odp": Format((".odp", ".otp"), "opendocument", is_archive=True),
    "epub": Format((".epub",), "epub", is_archive=True, has_language=True),
}

# Files that LibreOffice opens, and the ending of what it can save that is read here.
_SAVED_AS = {
    **dict.fromkeys((".doc", ".dot", ".rtf", ".pages", ".wpd", ".fodt"), "as .docx"),
    **dict.fromkeys((".ppt", ".pps", ".key", ".fodp"), "as .pptx"),
    ".pdf": "as .docx, or its text as .txt",
}
# Files that are no running text, whose signs a translation would break.
_NOT_READ = (
    *(".rst", ".tex", ".adoc", ".org", ".json", ".ipynb", ".xml", ".yaml", ".yml", ".toml"),
    *(".xls", ".xlsx", ".ods", ".zip", ".png", ".jpg", ".jpeg", ".gif", ".mo", ".strings"),
)
ZIP = b"PK\x03\x04"
_OPEN_IN_LIBREOFFICE = "open it in LibreOffice and save it"
_BEGINNINGS = {
    ZIP: ("a ZIP archive, such as a document of an office", "its name tells its format"),
    b"\xd0\xcf\x11\xe0": ("an old or protected document of an office", _OPEN_IN_LIBREOFFICE),
    b"%PDF-": ("a PDF", f"{_OPEN_IN_LIBREOFFICE} as .docx or as text"),
    b"{\\rtf": ("a document in RTF", f"{_OPEN_IN_LIBREOFFICE} as .docx"),
}


def read_document(
    text: str | bytes,
    format: str,
    language: str,
    columns: Sequence[str] | None = None,
    target: str | None = None,
) -> Document:
    """Reads a document.

    Args:
        text: all of it; bytes, if the format is an archive.
        format: a name of FORMATS.
        language: of the text, as "en".
        columns: of a table, those to be translated: their names or numbers.
        target: the language that it will be translated into, if that is known.

    Raises:
        InputError: for another format, for one whose packages are not installed, or for text that
            the format cannot be. Its place is "line 7" or "the document"; see `in_file`.
    """
    check_format(format, columns)
    kind = FORMATS[format]
    try:
        module = importlib.import_module(f"{__package__}.{kind.module}")
    except ModuleNotFoundError as error:
        rule = f"must be one whose packages are installed ({install_command('documents')})"
        raise InputError("format", rule, f"{format}: {error}") from None
    reader = getattr(module, kind.reader)
    options = {"columns": columns} if kind.has_columns else {}
    options |= {"target": target} if kind.has_language else {}
    rule = f"must be {'bytes' if kind.is_archive else 'a str'} in format {format}"
    require(isinstance(text, bytes) == kind.is_archive, "text", rule, type(text).__name__)
    if kind.is_archive:
        check_beginning(text, format, "the document")
        return reader(text, **options)
    mark = text[: text.startswith(BYTE_ORDER_MARK)]
    document = reader(text[len(mark) :], language, **options)
    return Document((mark, *document.parts)) if mark else document


def in_file(error: InputError, name: str) -> InputError:
    """Returns an error of a document that was read from a file, with the name of the file.

    An error without a place is about an option, and stays as it is.
    """
    if error.place is None:
        return error
    line = error.place.removeprefix("line ")
    place = f"{name}:{line}" if line.isdecimal() else name
    return error.replaced(place=place)


def check_format(format: str, columns: Sequence[str] | None) -> None:
    """Raises an InputError for an unknown format, or for columns that do not go with it."""
    require(format in FORMATS, "format", f"must be one of {', '.join(FORMATS)}", repr(format))
    rule = "must be given for a table (tsv, csv, jsonl), and for a table only"
    received = f"{columns or 'none'} with format={format}"
    require((columns is not None) == FORMATS[format].has_columns, "columns", rule, received)


def format_of(path: str) -> str:
    """The format of a file by the ending of its name; text for an ending that is not known.

    That of a compressed file (files.opened) precedes the ending of compressed ones.

    Raises:
        InputError: for an ending of files that are neither text nor of a format that is read.
    """
    ending = uncompressed_name(path).suffix.lower()
    found = [name for name, format in FORMATS.items() if ending in format.endings]
    if found:
        return found[0]
    if ending in _SAVED_AS:
        rule = (
            f"must be of a format that is read: open it in LibreOffice, save it {_SAVED_AS[ending]}"
        )
        raise InputError("input", rule, repr(path))
    endings = ", ".join(ending for format in FORMATS.values() for ending in format.endings)
    rule = f"must be of a format that is read ({endings}), or be read as text (format=text)"
    require(ending not in _NOT_READ, "input", rule, repr(path))
    return TEXT


def check_beginning(beginning: bytes, format: str, name: str) -> None:
    """Refuses a file that is no document of its format, by its first eight bytes or more.

    Raises:
        InputError: for one of those that people take for text or for other documents.
    """
    for start, (kind, advice) in _BEGINNINGS.items():
        if FORMATS[format].is_archive and start == ZIP:
            continue
        rule = f"must be {format}; {advice}"
        require(not beginning.startswith(start), None, rule, kind, name)
