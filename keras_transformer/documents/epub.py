"""Electronic books (.epub): chapters, which are pages (html.py), title, and table of contents.

A book declares its language in its package (.opf), and at the beginning of each member.
"""

import functools
import re

from keras_transformer.documents import html
from keras_transformer.documents.archive import Archive, Reader, read_archive
from keras_transformer.documents.segment_builder import joined
from keras_transformer.documents.segments import Parts
from keras_transformer.documents.xml_source import XmlSource

_MAIN = "META-INF/container.xml"
_CHAPTERS = re.compile(r".*\.(xhtml|html?)", re.IGNORECASE)
_PACKAGE = re.compile(r".*\.(opf|ncx)", re.IGNORECASE)
_TITLES = ("dc:title", "dc:description", "text")  # in the package, and in the table of contents
# Declarations of the language: an attribute of the root element; an element.
_ROOT = re.compile(r"<(?:html|package|ncx)\b[^>]*>")
_ATTRIBUTE = re.compile(r"""(\s(?:xml:)?lang\s*=\s*)(?:"[^"]*"|'[^']*')""")
_ELEMENT = re.compile(r"(<dc:language\b[^>]*>)[^<]*")


def read(content: bytes, target: str | None) -> Archive:
    """Reads a book that will be translated into the language `target`, if known."""
    readers = {_CHAPTERS: _read_chapter, _PACKAGE: _read_titles}
    readers = {
        names: functools.partial(_read_member, reader, target) for names, reader in readers.items()
    }
    return read_archive(_MAIN, readers, content)


def _read_member(reader: Reader, target: str | None, text: str) -> Parts:
    return reader(text if target is None else _in_language(text, target.replace("_", "-")))


def _in_language(text: str, language: str) -> str:
    """Replaces the declared language of a member, if it declares one."""
    text = _ELEMENT.sub(rf"\g<1>{language}", text)
    root = _ROOT.search(text)
    if root is None:
        return text
    tag = _ATTRIBUTE.sub(rf'\g<1>"{language}"', root[0])
    return text[: root.start()] + tag + text[root.end() :]


def _read_chapter(text: str) -> Parts:
    return joined(html.parts_of(text))


def _read_titles(text: str) -> Parts:
    xml = XmlSource(text)
    titles = [element for element in xml.root.walk() if element.name in _TITLES]
    return xml.parts(found for title in titles for found in xml.content(title))
