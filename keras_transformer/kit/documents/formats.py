"""The document formats: their names, file extensions and readers."""

import dataclasses
import importlib
from collections.abc import Sequence
from typing import NamedTuple

from keras_transformer.kit.documents.text.xml_source import MOST_MARKUP
from keras_transformer.kit.documents.tree.segments import Document
from keras_transformer.support.errors import InputError, install_command, require
from keras_transformer.support.files.reading import uncompressed_name

TEXT = "text"
WRAPPED = "wrapped"
PLAIN = (TEXT, WRAPPED)  # without special characters
BYTE_ORDER_MARK = "\ufeff"  # may begin a file; not part of its text


class Format(NamedTuple):
    """A format. Its reader is `read(text: str, language: str) -> Document`.

    The reader of an archive is `read(content: bytes, most_markup: int) -> Archive`.

    The reader of a table also takes `columns`, the columns to translate. The reader of a format
    whose documents declare their language takes `target`, the language of the translation or None.
    A table with a column for the confidence, or an archive with comments, is read in another way:
    their readers take `is_reviewed`.
    """

    endings: tuple[str, ...]  # file extensions
    module: str  # in office/ for archives, otherwise in text/; imported when the format is used
    reader: str = "read"
    has_columns: bool = False
    is_archive: bool = False  # its reader takes bytes
    has_language: bool = False
    review_mark: str = ""  # what marks doubtful translations


_COLUMN = "the column confidence"
FORMATS = {
    TEXT: Format((".txt",), "plain"),
    WRAPPED: Format((), "wrapped"),  # also text, but a paragraph may span several lines
    "markdown": Format((".md", ".markdown"), "markdown"),
    "html": Format((".html", ".htm", ".xhtml"), "html"),
    "po": Format((".po",), "po", review_mark="the flag fuzzy"),
    "xliff": Format((".xliff", ".xlf"), "xliff", review_mark="the state needs-review-translation"),
    "srt": Format((".srt",), "subtitles", "read_srt"),
    "vtt": Format((".vtt",), "subtitles", "read_vtt"),
    "tsv": Format((".tsv",), "tables", "read_tsv", has_columns=True, review_mark=_COLUMN),
    "csv": Format((".csv",), "tables", "read_csv", has_columns=True, review_mark=_COLUMN),
    "jsonl": Format(
        (".jsonl",), "tables", "read_jsonl", has_columns=True, review_mark="the key confidence"
    ),
    "docx": Format(
        (".docx", ".docm", ".dotx", ".dotm"),
        "docx",
        is_archive=True,
        has_language=True,
        review_mark="comments",
    ),
    "pptx": Format(
        (".pptx", ".pptm", ".potx", ".potm", ".ppsx", ".ppsm"),
        "pptx",
        is_archive=True,
        has_language=True,
    ),
    "xlsx": Format((".xlsx", ".xlsm", ".xltx", ".xltm"), "xlsx", is_archive=True),
    "odt": Format(
        (".odt", ".ott"),
        "opendocument",
        is_archive=True,
        has_language=True,
        review_mark="comments",
    ),
    "odp": Format((".odp", ".otp"), "opendocument", is_archive=True, has_language=True),
    "ods": Format((".ods", ".ots"), "opendocument", is_archive=True, has_language=True),
    "epub": Format((".epub",), "epub", is_archive=True, has_language=True),
}

# Files that LibreOffice can open, and a supported format in which it can save them.
_SAVED_AS = {
    **dict.fromkeys((".doc", ".dot", ".rtf", ".pages", ".wpd", ".fodt"), "as .docx"),
    **dict.fromkeys((".ppt", ".pps", ".key", ".fodp"), "as .pptx"),
    **dict.fromkeys((".xls", ".xlsb", ".numbers", ".fods"), "as .xlsx"),
    ".pdf": "as .docx, or its text as .txt",
}
# Files that are not running text, whose syntax a translation would break.
_NOT_READ = (
    *(".rst", ".tex", ".adoc", ".org", ".json", ".ipynb", ".xml", ".yaml", ".yml", ".toml"),
    *(".zip", ".png", ".jpg", ".jpeg", ".gif", ".mo", ".strings"),
)
ZIP = b"PK\x03\x04"
_OPEN_IN_LIBREOFFICE = "open it in LibreOffice and save it"
_BEGINNINGS = {
    ZIP: ("a ZIP archive, such as an office document", "the file extension gives its format"),
    b"\xd0\xcf\x11\xe0": ("an old or protected office document", _OPEN_IN_LIBREOFFICE),
    b"%PDF-": ("a PDF", f"{_OPEN_IN_LIBREOFFICE} as .docx or as text"),
    b"{\\rtf": ("an RTF document", f"{_OPEN_IN_LIBREOFFICE} as .docx"),
}


def read_document(
    text: str | bytes,
    format: str,
    language: str,
    columns: Sequence[str] | None = None,
    target: str | None = None,
    most_markup: int = MOST_MARKUP,
    is_reviewed: bool = False,
) -> Document:
    """Reads a document.

    Args:
        text: the whole document; bytes if the format is an archive.
        format: a name in FORMATS.
        language: the language of the text, such as "en".
        columns: the columns of a table to translate, by name or number.
        target: the language of the translation, if known.
        most_markup: the most tags and attributes of an archive.
        is_reviewed: whether the document marks doubtful translations, if its format has marks.

    Raises:
        InputError: for an unknown format, a format whose packages are not installed, or text that
            is not in the format. Its place is "line 7" or "the document"; see `in_file`.
    """
    check_format(format, columns)
    kind = FORMATS[format]
    try:
        folder = "office" if kind.is_archive else "text"
        module = importlib.import_module(f"{__package__}.{folder}.{kind.module}")
    except ModuleNotFoundError as error:
        rule = f"must be one whose packages are installed ({install_command('documents')})"
        raise InputError("format", rule, f"{format}: {error}") from None
    reader = getattr(module, kind.reader)
    options = {"columns": columns} if kind.has_columns else {}
    if kind.has_language:
        options["target"] = target and target.replace("_", "-")  # as documents write it
    if kind.review_mark and (kind.has_columns or kind.is_archive):
        options["is_reviewed"] = is_reviewed
    rule = f"must be {'bytes' if kind.is_archive else 'a str'} in format {format}"
    require(isinstance(text, bytes) == kind.is_archive, "text", rule, type(text).__name__)
    if kind.is_archive:
        check_beginning(text, format, "the document")
        return reader(text, most_markup=most_markup, **options)
    mark = text[: text.startswith(BYTE_ORDER_MARK)]
    document = reader(text[len(mark) :], language, **options)
    if not mark:
        return document
    return dataclasses.replace(document, parts=(mark, *document.parts))


def in_file(error: InputError, name: str) -> InputError:
    """Adds the name of the file to an error in a document.

    An error without a place is about an option, and stays unchanged.
    """
    if error.place is None:
        return error
    line = error.place.removeprefix("line ")
    place = f"{name}:{line}" if line.isdecimal() else name
    return error.replaced(place=place)


def check_format(format: str, columns: Sequence[str] | None) -> None:
    """Raises an InputError for an unknown format, or columns that do not fit it."""
    require(format in FORMATS, "format", f"must be one of {', '.join(FORMATS)}", repr(format))
    rule = "must be given for a table (tsv, csv, jsonl), and for a table only"
    received = f"{columns or 'none'} with format={format}"
    require((columns is not None) == FORMATS[format].has_columns, "columns", rule, received)


def format_of(path: str) -> str:
    """Returns a file's format by its extension; text for unknown extensions.

    For a compressed file (files.opened), the extension before the compression's counts.

    Raises:
        InputError: for the extension of files that are neither text nor in a supported format.
    """
    ending = uncompressed_name(path).suffix.lower()
    found = [name for name, format in FORMATS.items() if ending in format.endings]
    if found:
        return found[0]
    advice = saving_advice(path)
    require(advice is None, "input", f"must be in a supported format: {advice}", repr(path))
    endings = ", ".join(ending for format in FORMATS.values() for ending in format.endings)
    rule = f"must be in a supported format ({endings}), or be read as text (format=text)"
    require(ending not in _NOT_READ, "input", rule, repr(path))
    return TEXT


def saving_advice(path: str) -> str | None:
    """Returns how to save a file in a supported format, if LibreOffice can; else None."""
    saved_as = _SAVED_AS.get(uncompressed_name(path).suffix.lower())
    return None if saved_as is None else f"open it in LibreOffice, save it {saved_as}"


def check_beginning(beginning: bytes, format: str, name: str) -> None:
    """Rejects a file that is not in its format, by its first eight bytes or more.

    Raises:
        InputError: for file types that are often mistaken for text or other documents.
    """
    for start, (kind, advice) in _BEGINNINGS.items():
        if FORMATS[format].is_archive and start == ZIP:
            continue
        rule = f"must be {format}; {advice}"
        require(not beginning.startswith(start), None, rule, kind, name)
