"""Electronic books (.epub): chapters, which are pages (html.py), title, and table of contents."""

import functools

from keras_transformer.documents import html
from keras_transformer.documents.archive import Reader, read_archive
from keras_transformer.documents.segment_builder import joined
from keras_transformer.documents.segments import Parts
from keras_transformer.documents.xml_source import XmlSource

_MAIN = "META-INF/container.xml"
_TITLES = ("dc:title", "dc:description", "text")  # of the book, and of its chapters


def _reader_of(name: str) -> Reader | None:
    if name.lower().endswith((".xhtml", ".html", ".htm")):
        return _read_chapter
    return _read_titles if name.lower().endswith((".opf", ".ncx")) else None


read = functools.partial(read_archive, _MAIN, _reader_of)


def _read_chapter(text: str) -> Parts:
    return joined(html.parts_of(text))


def _read_titles(text: str) -> Parts:
    xml = XmlSource(text)
    titles = [element for element in xml.root.walk() if element.name in _TITLES]
    return xml.parts(found for title in titles for found in xml.content(title))
