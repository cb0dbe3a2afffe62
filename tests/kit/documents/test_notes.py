"""Marks of notes stay. Other superscripts, and subscripts, stay on their characters, or go."""

import re

import pytest

from keras_transformer.kit.documents.tree.translation import AlignedText
from keras_transformer.use.translate.answers import Link
from tests.kit.documents.archives import translated
from tests.kit.documents.doubles import documents
from tests.kit.documents.test_formatting import slide, slide_run
from tests.kit.documents.test_office import paragraph, run

RAISED, LOWERED = '<w:vertAlign w:val="superscript"/>', '<w:vertAlign w:val="subscript"/>'
UP, DOWN = '<a:rPr baseline="30000"/>', '<a:rPr baseline="-25000"/>'
STYLES = (
    '<style:style style:name="T1"><style:text-properties style:text-position="{}"/></style:style>'
)
SPAN = '<text:span text:style-name="T1">{}</text:span>'


def result_of(format, content, sentences):
    """Translates a document by a table of sentences; words are aligned in their order."""

    def answer(text):
        source, target = spans_of(text), spans_of(sentences[text])
        last = len(target) - 1
        links = [Link(span, target[min(n, last)]) for n, span in enumerate(source)]
        return AlignedText(sentences[text], links)

    return translated(format, content, documents(answer).translate)


def spans_of(text):
    return [match.span() for match in re.finditer(r"\S+", text)]


def in_word(*parts, properties=RAISED):
    """A paragraph of runs, every second one with properties."""
    return paragraph(*(run(part, properties * (n % 2)) for n, part in enumerate(parts)))


def in_slide(*parts, properties=UP):
    return slide(*(slide_run(part, properties * (n % 2)) for n, part in enumerate(parts)))


def in_text(*parts, position="super 58%"):
    spans = (SPAN.format(part) if n % 2 else part for n, part in enumerate(parts))
    return f"{STYLES.format(position)}<text:p>{''.join(spans)}</text:p>"


def in_page(*parts, tag="sup"):
    return "".join(f"<{tag}>{p}</{tag}>" if n % 2 else p for n, p in enumerate(parts))


FORMATS_OF_PARTS = {"docx": in_word, "pptx": in_slide, "odt": in_text, "html": in_page}


@pytest.mark.parametrize("format", FORMATS_OF_PARTS)
@pytest.mark.parametrize(
    ("parts", "sentences", "wanted"),
    [
        (("A window.", "1"), {"A window.": "Fenster."}, ("Fenster.", "1")),
        (
            ("A window.", "1", " A door."),
            {"A window.": "Fenster.", "A door.": "Tür."},
            ("Fenster.", "1", " Tür."),
        ),
        (("A window", "*", " opens"), {"A window opens": "Es öffnet"}, ("Es öffnet", "*")),
        (("Two m", "2", " is it"), {"Two m is it": "Zwei m sind"}, ("Zwei m", "2", " sind")),
        (("H", "2", "O is water"), {"H2O is water": "Affen Wasser"}, ("Affen Wasser",)),
        (("H", "2", "O is water"), {"H2O is water": "Wasser ist H2O"}, ("Wasser ist H", "2", "O")),
        (("The 2", "nd", " day"), {"The 2nd day": "Der 2. Tag"}, ("Der 2. Tag",)),
        (("Voilà", "*", " là"), {"Voilà là": "Da da"}, ("Da", "*", " da")),
    ],
)
def test_superscripts(format, parts, sentences, wanted):
    write = FORMATS_OF_PARTS[format]
    assert result_of(format, write(*parts), sentences) == write(*wanted)


@pytest.mark.parametrize(
    ("format", "write", "options"),
    [
        ("docx", in_word, {"properties": LOWERED}),
        ("pptx", in_slide, {"properties": DOWN}),
        ("odt", in_text, {"position": "-33% 58%"}),
        ("html", in_page, {"tag": "sub"}),
        ("markdown", in_page, {"tag": "sub"}),
    ],
)
@pytest.mark.parametrize(
    ("answer", "wanted"),
    [("Gas ist CO2", ("Gas ist CO", "2")), ("Affen ist Gas", ("Affen ist Gas",))],
)
def test_subscripts(format, write, options, answer, wanted):
    content = write("CO", "2", " is gas", **options)
    sentences = {"CO2 is gas": answer}
    assert result_of(format, content, sentences) == write(*wanted, **options)


def test_a_note_mark_typed_by_the_author_of_a_document_stays():
    note = (
        '<w:r><w:rPr><w:rStyle w:val="x"/></w:rPr>'
        '<w:footnoteReference w:customMarkFollows="1" w:id="2"/><w:t>a</w:t></w:r>'
    )
    written = result_of("docx", paragraph(run("A dog."), note), {"A dog.": "Ein Hund."})
    assert written == paragraph(run("Ein Hund."), note)
