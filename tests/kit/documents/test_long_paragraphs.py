"""Paragraphs and sentences of any length: the work for their marks grows in proportion to it.

Work is counted in Python's instructions, not in seconds.
"""

import sys

import pytest

from keras_transformer.kit.documents.formats import FORMATS, read_document
from keras_transformer.kit.documents.tree import segment_builder, segments
from tests.kit.documents.archives import archive
from tests.kit.documents.doubles import capitals, documents, in_reverse
from tests.kit.documents.test_office import paragraph, run
from tests.refusals import refused

FOLDER = segments.__file__.removesuffix("segments.py")


def instructions(work):
    """Counts the instructions of `documents/` that some work takes."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        if not frame.f_code.co_filename.startswith(FOLDER):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def of_words(number, between, even="{}", odd="{}"):
    """Joins a number of words, every other one in another pattern."""
    words = [f"w{chr(97 + index % 26)}x" for index in range(number)]
    return between.join((odd if index % 2 else even).format(w) for index, w in enumerate(words))


def in_docx(between="", odd="{}"):
    even = run("{} ")
    return "docx", lambda n: paragraph(of_words(n, between, even, odd.format(run("{} ", "<w:b/>"))))


def in_html(between=" ", odd="{}", around="<p>{}</p>"):
    return "html", lambda n: around.format(of_words(n, between, odd=odd))


def in_markdown(odd):
    return "markdown", lambda n: of_words(n, " ", odd=odd)


def in_odt(odd):
    return "odt", lambda n: f"<text:p>{of_words(n, ' ', odd=odd)}</text:p>"


# name -> format, and a function: number of words -> paragraph
PARAGRAPHS = {
    "runs": in_docx(),
    "links": in_docx(odd='<w:hyperlink r:id="x">{}</w:hyperlink>'),
    "footnotes": in_docx("<w:r><w:footnoteReference/></w:r>"),
    "tabs": in_docx("<w:r><w:tab/></w:r>"),
    "line breaks": in_docx("<w:r><w:br/></w:r>"),
    "spans": in_odt("<text:span>{}</text:span>"),
    "emphasis": in_markdown("**{}**"),
    "code spans": in_markdown("{} `x`"),
    "lists of code spans": in_markdown("`{}`, "),
    "placeholders": ("text", lambda n: of_words(n, " ", odd="{} {{x}}")),
    "placeholders in elements": in_html(odd="<b>{} {{x}}</b>"),
    "nested elements": in_html(odd="<a><b>{}</b> <i>x</i></a>"),
    "elements in another": in_html(odd="<b>{}</b>", around="<p>w <i>{}</i> w</p>"),
    "elements across sentences": in_html(odd="<b>{}. A</b>"),
    "elements that do not end": in_html(odd="<b>{}"),
    "elements that do not begin": in_html(odd="{}</b>"),
    "elements in words": in_html(odd="{}<sub>2</sub>O"),
    "elements without spaces": in_html("", odd="<b>{}</b>"),
    "deep elements": ("html", lambda n: "<b>w " * (20 + n) + "</b>" * (20 + n)),
}
UNALIGNED = ("runs", "footnotes", "line breaks", "nested elements", "deep elements")


@pytest.mark.parametrize(
    ("name", "has_alignment"),
    [(name, True) for name in PARAGRAPHS if name != "deep elements"]
    + [(name, False) for name in UNALIGNED],
)
def test_work_is_in_proportion_to_the_length(name, has_alignment):
    format, content = PARAGRAPHS[name]

    def answer(text):
        found = in_reverse(capitals)(text)
        return found if has_alignment else found.text

    translate = documents(answer, limit=1_000_000).translate

    def work(words):
        text = content(words)
        document = archive(format, text) if FORMATS[format].is_archive else text
        return lambda: list(translate(read_document(document, format, "en").parts))

    work(1)()  # compiles patterns
    assert instructions(work(160)) < 2.2 * instructions(work(80))


@pytest.mark.parametrize(
    ("format", "tag"),
    [
        ("docx", "<w:bookmarkStart/>"),
        ("odt", "<text:bookmark/>"),
        ("odt", "<text:span>x</text:span> "),
        ("epub", "<i/>"),
        ("epub", "<b>x</b> "),
    ],
)
def test_the_tags_of_a_paragraph_are_bounded(format, tag, monkeypatch):
    monkeypatch.setattr(segment_builder, "_MOST_TAGS", 1000)
    around = {"docx": "<w:p>{}</w:p>", "odt": "<text:p>{}</text:p>", "epub": "<p>{}</p>"}[format]
    read_document(archive(format, around.format(tag * 500)), format, "en")
    with refused(None, "more", "the document", "1,000 tags in a paragraph"):
        read_document(archive(format, around.format(tag * 1001)), format, "en")
