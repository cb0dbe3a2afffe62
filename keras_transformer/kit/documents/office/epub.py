"""Electronic books (.epub): chapters, which are pages (html.py), title, and table of contents.

A book's package (.opf) lists its members; others, such as those that a computer adds when it makes
an archive, are not read. A book declares its language in its package, and at the beginning of each
member.
"""

import functools
import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from urllib.parse import unquote

from keras_transformer.kit.documents.office.archive import (
    PLACE,
    Archive,
    Package,
    Reader,
    read_archive,
)
from keras_transformer.kit.documents.text import html
from keras_transformer.kit.documents.text.xml_source import XmlSource
from keras_transformer.kit.documents.tree.segment_builder import joined
from keras_transformer.kit.documents.tree.segments import Parts
from keras_transformer.support.errors import require

_MAIN = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_TITLES = ("dc:title", "dc:description", "ncx:text", "text")  # in the package and the contents
# Declarations of the language: an attribute of the root element; an element.
_ROOT = re.compile(r"<(?:[\w.-]+:)?(?:html|package|ncx)\b[^>]*>")
_ATTRIBUTE = re.compile(r"""(\s(?:xml:)?lang\s*=\s*)(?:"[^"]*"|'[^']*')""")
_ELEMENT = re.compile(r"(<(?:[\w.-]+:)?language\b[^>]*>)[^<]*(?=</)")


def read(content: bytes, target: str | None, most_markup: int) -> Archive:
    """Reads a book that will be translated into the language `target`, if known."""

    def find_readers(package: Package) -> dict[str, Reader]:
        package.require_member(_MAIN)
        readers = {name: reader for name, reader in _readers(package) if name in package.names}
        _refuse_protection(package, readers)
        return {
            name: functools.partial(_read_member, reader, target)
            for name, reader in readers.items()
        }

    return read_archive(content, find_readers, most_markup)


def _readers(package: Package) -> Iterator[tuple[str, Reader]]:
    """Yields the members with text that the packages of a book list, with their readers."""
    for root in package.xml(_MAIN).root.walk():
        name = root.attributes.get("full-path", "")
        if root.local != "rootfile" or name not in package.names:
            continue
        yield name, _read_titles
        for item in package.xml(name).root.walk():
            if item.local == "item":
                path = posixpath.join(
                    posixpath.dirname(name), unquote(item.attributes.get("href", ""))
                )
                reader = _BY_TYPE.get(item.attributes.get("media-type", "").lower())
                if reader is not None:
                    yield posixpath.normpath(path), reader


def _refuse_protection(package: Package, readers: dict[str, Reader]) -> None:
    """Rejects a book whose chapters are encrypted; fonts may be."""
    if _ENCRYPTION not in package.names:
        return
    encrypted = {
        unquote(reference.attributes.get("URI", "")).lstrip("/")
        for reference in package.xml(_ENCRYPTION).root.walk()
        if reference.local == "CipherReference"
    }
    chapters = sorted(encrypted & readers.keys())
    rule = "must not have copy protection: get it from its publisher without"
    require(not chapters, None, rule, ", ".join(chapters[:3]), PLACE)


def _read_member(reader: Reader, target: str | None, text: str, left: Counter[str]) -> Parts:
    return reader(text if target is None else _in_language(text, target), left)


def _in_language(text: str, language: str) -> str:
    """Replaces the declared language of a member, if it declares one."""
    root = _ROOT.search(text)
    if root is None:
        return text
    if "package" in root[0]:
        text = _ELEMENT.sub(rf"\g<1>{language}", text)
    tag = _ATTRIBUTE.sub(rf'\g<1>"{language}"', root[0])
    return text[: root.start()] + tag + text[root.end() :]


def _read_chapter(text: str, left: Counter[str]) -> Parts:
    return joined(html.parts_of(text, left, is_xml=True))


def _read_titles(text: str, left: Counter[str]) -> Parts:
    xml = XmlSource(text)
    return xml.parts(xml.contents(_TITLES))


_BY_TYPE = {
    "application/xhtml+xml": _read_chapter,
    "text/html": _read_chapter,
    "application/x-dtbncx+xml": _read_titles,
    "image/svg+xml": _read_chapter,
}
