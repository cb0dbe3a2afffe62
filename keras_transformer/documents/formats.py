"""The formats of documents: their names, the endings of their files, and what reads them."""

import importlib
from pathlib import PurePath
from typing import NamedTuple

from keras_transformer.documents.segments import Document
from keras_transformer.errors import InputError, require

TEXT = "text"
BYTE_ORDER_MARK = "\ufeff"  # which may begin a file, and is no text


class Format(NamedTuple):
    """A format. Its module has `read(text: str, language: str) -> Document`."""

    endings: tuple[str, ...]  # of the names of its files
    module: str  # in this folder; it is imported when the format is used


FORMATS = {
    TEXT: Format((".txt",), "plain"),
    "markdown": Format((".md", ".markdown"), "markdown"),
    "html": Format((".html", ".htm", ".xhtml"), "html"),
}


def read_document(text: str, format: str, language: str) -> Document:
    """Reads a document.

    Args:
        text: all of it.
        format: a name of FORMATS.
        language: of the text, as "en".

    Raises:
        InputError: for another format, for one whose packages are not installed, or for text that
            the format cannot be.
    """
    require(format in FORMATS, f"format must be one of {', '.join(FORMATS)}", repr(format))
    try:
        reader = importlib.import_module(f"{__package__}.{FORMATS[format].module}")
    except ModuleNotFoundError as error:
        rule = f"format {format} needs packages (pip install 'keras-transformer[documents]')"
        raise InputError(f"{rule}. Received: {error}") from None
    mark = text[: text.startswith(BYTE_ORDER_MARK)]
    document = reader.read(text[len(mark) :], language)
    return Document((mark, *document.parts)) if mark else document


def format_of(path: str) -> str:
    """The format of a file by the ending of its name; text for an ending of none."""
    ending = PurePath(path).suffix.lower()
    found = [name for name, format in FORMATS.items() if ending in format.endings]
    return found[0] if found else TEXT
