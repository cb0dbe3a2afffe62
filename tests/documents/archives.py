"""Writes and reads minimal documents in archive formats, for tests."""

import io
import zipfile

from keras_transformer.documents.formats import read_document

NAMES = {
    "docx": "word/document.xml",
    "pptx": "ppt/slides/slide1.xml",
    "odt": "content.xml",
    "odp": "content.xml",
    "epub": "chapter.xhtml",
}
_AROUND = {
    "docx": '<w:document xmlns:w="w" xmlns:wp="wp" xmlns:r="r" xmlns:m="m">{}</w:document>',
    "pptx": '<p:sld xmlns:p="p" xmlns:a="a" xmlns:r="r">{}</p:sld>',
    "odt": '<office:document-content xmlns:office="o" xmlns:text="t" xmlns:draw="d" xmlns:svg="s" '
    'xmlns:style="st" xmlns:officeooo="oo">{}</office:document-content>',
    "epub": '<html xmlns="h"><head><title>1</title></head><body>{}</body></html>',
}
_AROUND["odp"] = _AROUND["odt"]
_MAIN = {"pptx": "ppt/presentation.xml", "epub": "META-INF/container.xml"}


def archive(format, content, **members):
    """Makes a document. Names of further members have "__" for "/" and "_" for "."."""
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("mimetype", "x", zipfile.ZIP_STORED)
        if format in _MAIN:
            target.writestr(_MAIN[format], "<x/>")
        target.writestr("picture.png", b"\x89PNG\x00")
        text = f"<?xml version='1.0'?>\n{_AROUND[format].format(content)}"
        target.writestr(NAMES[format], text)
        for name, member in members.items():
            target.writestr(name.replace("__", "/").replace("_", "."), member)
    return result.getvalue()


def content_of(format, document):
    """Returns the content of such a document."""
    with zipfile.ZipFile(io.BytesIO(document)) as source:
        text = source.read(NAMES[format]).decode()
    before, after = _AROUND[format].split("{}")
    return text.partition("\n")[2].removeprefix(before).removesuffix(after)


def translated(format, content, translate):
    """Translates a document; returns its new content.

    Args:
        format: the document's.
        content: the document's.
        translate: parts -> translated parts.
    """
    document = read_document(archive(format, content), format, "en")
    (result,) = document.written(translate(document.parts))
    return content_of(format, result)
