import pytest

from keras_transformer.kit.documents.formats import FORMATS, format_of, read_document
from keras_transformer.kit.documents.text.plain import read
from tests.refusals import refused


def test_each_line_is_a_segment_and_all_else_is_kept():
    text = " A dog. It sleeps. \r\n\n\tA cat.\n  \nlast"
    document = read(text, "en")
    assert [segment.text for segment in document.segments] == [
        "A dog. It sleeps.",
        "A cat.",
        "last",
    ]
    assert document.parts[0] == " " and document.parts[2] == " \r\n\n\t"
    assert document.source == text


@pytest.mark.parametrize("text", ["", " ", "\n", "\r\n\r\n", " \n\t\n ", "\v\f\n"])
def test_a_text_without_language_has_no_segments(text):
    document = read(text, "en")
    assert document.segments == [] and document.source == text


@pytest.mark.parametrize("text", ["a\rb", "a\u2028b", "a\u0085b", "\0a\0b"])
def test_nothing_else_ends_a_line(text):
    assert [segment.text for segment in read(text, "en").segments] == [text]


def test_a_megabyte_of_spaces_within_a_line_is_read_at_once():
    text = "a" + " " * 1_000_000 + "b"
    assert [segment.text for segment in read(text + "\n" + text, "en").segments] == [text, text]


def test_formats_have_names_and_endings():
    names = [
        "a.txt",
        "-",
        "letter",
        "NOTES.TXT",
        "a.po",
        "b.XLF",
        "c.srt",
        "d.VTT",
        "e.tsv",
        "f.csv",
    ]
    formats = ["text"] * 4 + ["po", "xliff", "srt", "vtt", "tsv", "csv"]
    names += [
        "t.dotx",
        "t.dotm",
        "t.potx",
        "t.ppsx",
        "t.xltx",
        "t.xltm",
        "t.ott",
        "t.otp",
        "g.jsonl",
    ]
    formats += ["docx", "docx", "pptx", "pptx", "xlsx", "xlsx", "odt", "odp", "jsonl"]
    assert [format_of(name) for name in names] == formats
    endings = [ending for format in FORMATS.values() for ending in format.endings]
    assert len(endings) == len(set(endings))


def test_another_format_is_refused():
    with refused("format", "'pdf'"):
        read_document("A dog.", "pdf", "en")
