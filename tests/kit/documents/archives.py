"""Writes and reads minimal documents in archive formats, for tests."""

import io
import re
import zipfile

from keras_transformer.kit.documents.formats import FORMATS, read_document

NAMES = {
    "docx": "word/document.xml",
    "pptx": "ppt/slides/slide1.xml",
    "xlsx": "xl/sharedStrings.xml",
    "odt": "content.xml",
    "odp": "content.xml",
    "ods": "content.xml",
    "epub": "chapter.xhtml",
}
_OPEN_XML = "http://schemas.openxmlformats.org"
_OPEN_DOCUMENT = "urn:oasis:names:tc:opendocument:xmlns"
NAMESPACES = {
    "w": f"{_OPEN_XML}/wordprocessingml/2006/main",
    "wp": f"{_OPEN_XML}/drawingml/2006/wordprocessingDrawing",
    "r": f"{_OPEN_XML}/officeDocument/2006/relationships",
    "m": f"{_OPEN_XML}/officeDocument/2006/math",
    "v": "urn:schemas-microsoft-com:vml",
    "p": f"{_OPEN_XML}/presentationml/2006/main",
    "a": f"{_OPEN_XML}/drawingml/2006/main",
    "c": f"{_OPEN_XML}/drawingml/2006/chart",
    "x": f"{_OPEN_XML}/spreadsheetml/2006/main",
    "office": f"{_OPEN_DOCUMENT}:office:1.0",
    "text": f"{_OPEN_DOCUMENT}:text:1.0",
    "table": f"{_OPEN_DOCUMENT}:table:1.0",
    "draw": f"{_OPEN_DOCUMENT}:drawing:1.0",
    "style": f"{_OPEN_DOCUMENT}:style:1.0",
    "svg": f"{_OPEN_DOCUMENT}:svg-compatible:1.0",
    "fo": f"{_OPEN_DOCUMENT}:xsl-fo-compatible:1.0",
    "presentation": f"{_OPEN_DOCUMENT}:presentation:1.0",
    "officeooo": "http://openoffice.org/2009/office",
    "dc": "http://purl.org/dc/elements/1.1/",
}


def declared(*prefixes):
    """Returns declarations of namespaces."""
    return " ".join(f'xmlns:{prefix}="{NAMESPACES[prefix]}"' for prefix in prefixes)


_WORD = declared("w", "wp", "r", "m", "v", "a")
_SLIDE = declared("p", "a", "r", "c")
_OFFICE = declared(
    *("office", "text", "table", "draw", "style", "svg", "fo", "presentation", "officeooo")
)
_AROUND = {
    "docx": f"<w:document {_WORD}>{{}}</w:document>",
    "pptx": f"<p:sld {_SLIDE}>{{}}</p:sld>",
    "xlsx": f'<sst xmlns="{NAMESPACES["x"]}">{{}}</sst>',
    "odt": f"<office:document-content {_OFFICE}>{{}}</office:document-content>",
    "epub": '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>1</title></head>'
    "<body>{}</body></html>",
}
_AROUND["odp"] = _AROUND["ods"] = _AROUND["odt"]
_TYPE = "application/vnd.openxmlformats-officedocument"
# The types of members, by their names without numbers.
_TYPES = {
    "word/document.xml": f"{_TYPE}.wordprocessingml.document.main+xml",
    "ppt/presentation.xml": f"{_TYPE}.presentationml.presentation.main+xml",
    "ppt/slides/slide1.xml": f"{_TYPE}.presentationml.slide+xml",
    "xl/workbook.xml": f"{_TYPE}.spreadsheetml.sheet.main+xml",
    "xl/sharedStrings.xml": f"{_TYPE}.spreadsheetml.sharedStrings+xml",
    "docProps/core.xml": "application/vnd.openxmlformats-package.core-properties+xml",
}
_FOLDER_TYPES = {"word": "wordprocessingml", "ppt": "presentationml", "xl": "spreadsheetml"}
_MAIN = {
    "pptx": ("ppt/presentation.xml", "<x/>"),
    "xlsx": ("xl/workbook.xml", "<x/>"),
    "epub": (
        "META-INF/container.xml",
        '<container><rootfiles><rootfile full-path="a.opf"/></rootfiles></container>',
    ),
}
PACKAGE = (
    f"<package xmlns='http://www.idpf.org/2007/opf' {declared('dc')}>{{}}<manifest>"
    "<item href='chapter.xhtml' media-type='application/xhtml+xml'/>"
    "<item href='b.XHTML' media-type='application/xhtml+xml'/>"
    "<item href='toc.ncx' media-type='application/x-dtbncx+xml'/></manifest></package>"
)


def types_of(names):
    """Writes [Content_Types].xml for members with these names."""
    overrides = []
    for name in names:
        folder, _, rest = name.partition("/")
        kind = re.sub(r"\d*\.xml$", "", rest.rpartition("/")[2])
        default = f"{_TYPE}.{_FOLDER_TYPES.get(folder, 'x')}.{kind}+xml"
        if folder == "charts":
            default = f"{_TYPE}.drawingml.{kind}+xml"
        overrides.append(
            f'<Override PartName="/{name}" ContentType="{_TYPES.get(name, default)}"/>'
        )
    namespace = f"{_OPEN_XML}/package/2006/content-types"
    return f'<Types xmlns="{namespace}">{"".join(overrides)}</Types>'


def archive(format, content, **members):
    """Makes a document. Names of further members have "__" for "/" and "_" for "."."""
    texts = {
        re.sub("(?<!/)_", ".", name.replace("__", "/")): text for name, text in members.items()
    }
    if format in _MAIN:
        name, text = _MAIN[format]
        texts = {name: text, **texts}
    if format == "epub":
        texts = {"a.opf": PACKAGE.format(""), **texts}
    texts.setdefault(NAMES[format], f"<?xml version='1.0'?>\n{_AROUND[format].format(content)}")
    result = io.BytesIO()
    with zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("mimetype", "x", zipfile.ZIP_STORED)
        if format in ("docx", "pptx", "xlsx"):
            target.writestr("[Content_Types].xml", types_of(texts))
        target.writestr("picture.png", b"\x89PNG\x00")
        for name, text in texts.items():
            target.writestr(name, text)
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
        content: the document's, or that of an archive.
        translate: parts -> translated parts.
    """
    if not FORMATS[format].is_archive:
        return "".join(translate(read_document(content, format, "en").parts))
    document = read_document(archive(format, content), format, "en")
    (result,) = document.written(translate(document.parts))
    return content_of(format, result)
