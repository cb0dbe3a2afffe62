"""Formatting is dropped if its words are not translated. Links and the like stay."""

import pytest

from keras_transformer.kit.documents.tree.alignment import units
from tests.kit.documents.archives import translated
from tests.kit.documents.doubles import capitals, documents, joined
from tests.kit.documents.test_office import paragraph, run


def without_red(text):
    """Translates a sentence into capitals, without the word "red"."""
    kept = [unit for unit in units(text) if text[slice(*unit)] != "red"]
    return joined([(unit, capitals(text[slice(*unit)])) for unit in kept])


def slide(*runs):
    return f"<a:p>{''.join(runs)}</a:p>"


def slide_run(text, properties=""):
    return f"<a:r>{properties}<a:t>{text}</a:t></a:r>"


CUE = "1\n00:00:01,000 --> 00:00:02,000\n{}\n"
XLIFF = (
    "<xliff version='1.2'><file source-language='en'><body><trans-unit id='1'>"
    "<source>{}</source>{}</trans-unit></body></file></xliff>"
)
BOLD, LINK = '<a:rPr b="1"/>', "<a:rPr><a:hlinkClick/></a:rPr>"


@pytest.mark.parametrize(
    ("format", "content", "wanted"),
    [
        ("html", "A <b class='x'>red</b> dog", "A DOG"),
        ("html", "A <span style='x'><i>red</i></span> dog", "A DOG"),
        ("html", "A <i>red<img src=x></i> dog", "A <img src=x> DOG"),
        ("html", "A <b id='x'>red</b> dog", "<b id='x'>A</b> DOG"),
        ("html", "A <a href='x'>red</a> dog", "<a href='x'>A</a> DOG"),
        ("html", "A <ins>red</ins> dog", "<ins>A</ins> DOG"),
        ("html", "A <b title='a'>red</b> dog", "<b title='A'>A</b> DOG"),
        ("html", "A <b>red dog</b>", "A <b>DOG</b>"),
        ("markdown", "A **red** dog", "A DOG"),
        ("markdown", "A ~~red~~ dog", "A DOG"),
        ("markdown", "A <em>red</em> dog", "A DOG"),
        ("markdown", "A [**red**](x) dog", "[**A**](x) DOG"),
        ("srt", CUE.format("A <i>red</i> dog"), CUE.format("A DOG")),
        (
            "srt",
            CUE.format("A <font color='x'>red</font> dog"),
            CUE.format("<font color='x'>A</font> DOG"),
        ),
        (
            "xliff",
            XLIFF.format("A <g id='1'>red</g> dog", "<target/>"),
            XLIFF.format("A <g id='1'>red</g> dog", "<target><g id='1'>A</g> DOG</target>"),
        ),
        ("epub", "<p>A <b>red</b> dog</p>", "<p>A DOG</p>"),
        ("odt", "<text:p>A <text:span>red</text:span> dog</text:p>", "<text:p>A DOG</text:p>"),
        (
            "odt",
            "<text:p>A <text:a x='y'>red</text:a> dog</text:p>",
            "<text:p><text:a x='y'>A</text:a> DOG</text:p>",
        ),
        (
            "docx",
            paragraph(run("A "), run("red", "<w:b/>"), run(" dog")),
            paragraph(run("A DOG")),
        ),
        (
            "docx",
            paragraph(run("A "), "<w:ins>", run("red"), "</w:ins>", run(" dog")),
            paragraph("<w:ins>", run("A"), "</w:ins>", run(" DOG")),
        ),
        (
            "pptx",
            slide(slide_run("A "), slide_run("red", BOLD), slide_run(" dog")),
            slide(slide_run("A DOG")),
        ),
        (
            "pptx",
            slide(slide_run("A "), slide_run("red", LINK), slide_run(" dog")),
            slide(slide_run("A", LINK), slide_run(" DOG")),
        ),
    ],
)
def test_only_formatting_is_dropped_with_its_words(format, content, wanted):
    assert translated(format, content, documents(without_red).translate) == wanted
