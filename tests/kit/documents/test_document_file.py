import errno
import functools
import gzip
import types

import pytest

from keras_transformer.kit.documents import document_file
from keras_transformer.kit.documents.document_file import (
    DocumentConfig,
    path_beside,
    translate_file,
)
from keras_transformer.kit.documents.tree.translation import AlignedText, DocumentTranslator, Model
from keras_transformer.use.translate.answer_counts import AnswerCounts
from keras_transformer.use.translate.answers import Translation
from keras_transformer.use.translate.translator import Translator
from tests.kit.documents.archives import archive, content_of
from tests.kit.documents.doubles import run_on
from tests.refusals import check, refused


class Shouter:
    """Translates sentences by capitalizing them."""

    new_counts = AnswerCounts
    require_calibration = Translator.require_calibration

    def __init__(self):
        self.checkpoint, self.calls = {"step": 7}, []
        self.card = types.SimpleNamespace(calibration="of a model")

    def document_translator(self, language, case, terminology, to, counts, review_below):
        def translate(texts, aligned):
            self.calls.append(list(texts))
            counts.without_terms += sum("spoiled" in text for text in texts)
            if review_below is not None:
                counts.add(
                    Translation(text, None, None, 1, confidence=len(text) / 10) for text in texts
                )
            return [
                AlignedText(text.upper(), (), None if review_below is None else len(text) / 10)
                for text in texts
            ]

        model = Model(translate, lambda texts: [len(text.split()) for text in texts], 50)
        return DocumentTranslator(model, language or "en", case, review_below=review_below or 0.0)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Translates bytes to bytes, from file to file or from stdin to stdout."""

    def translate(content, streams=False, terminal=False, **settings):
        translator = Shouter()
        result, error, output = run_on(
            functools.partial(translate_file, translator),
            functools.partial(DocumentConfig, **settings),
            *(content, tmp_path, monkeypatch, streams, terminal),
        )
        calls = translator.calls
        return types.SimpleNamespace(result=result, error=error, output=output, calls=calls)

    return translate


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(
    ("content", "count"),
    [
        (b"", 0),
        (b"a. b.\n\n c\n", 3),
        (b"\xef\xbb\xbfa\r\nb\r\n", 2),
        ("\x0b\x0cc\x85\n \ud7ffd\u2028".encode(), 2),
        (b" \n\t\n", 2),
        (b"x" * 100_000, 1),
    ],
)
def test_all_but_the_text_stays(run, streams, content, count):
    done = run(content, streams)
    assert done.output == content.decode().upper().encode()
    assert done.result["lines"] == count and done.result["step"] == 7
    assert done.result["format"] == "text"


def test_lines_of_a_terminal_are_answered_one_by_one(run, monkeypatch):
    assert run(b"Ab. Cd\ne\n", streams=True, terminal=True).calls == [["Ab.", "Cd"], ["e"]]
    monkeypatch.setattr(document_file, "CHUNK_LINES", 2)
    assert run(b"Ab. Cd\ne\nf", streams=True).calls == [["Ab.", "Cd", "e"], ["f"]]


def test_pieces_that_stay_are_counted_by_kind(run, capsys):
    done = run(b"a\n\n`b`\n\n```\nd\n```\n", format="markdown")
    assert done.result["left"] == {"code": 2}
    assert "no text" not in capsys.readouterr().err
    done = run(b"12:30\n", format="markdown")
    assert done.result["left"] == {}
    assert "no text to translate" in capsys.readouterr().err


def test_a_line_that_is_no_utf8_ends_the_output(run):
    done = run(b"a\n\nb\xff\nc\n")
    check(done.error, None, "0xff at column 2", place="in.txt:3")
    assert done.output is False, "no file"
    done = run(b"a\n\nb\xff\nc\n", streams=True)
    assert done.output == b"A\n\n"
    check(done.error, None, "0xff at column 2", place="stdin:3")


def test_a_compressed_file_is_read_in_the_format_that_its_name_tells(tmp_path):
    source, output = tmp_path / "page.html.gz", tmp_path / "out.html"
    source.write_bytes(gzip.compress(b"<p>a cat"))
    result = translate_file(Shouter(), DocumentConfig(str(source), str(output)))
    assert (result["format"], output.read_bytes()) == ("html", b"<p>A CAT")
    source.write_bytes(gzip.compress(b"<p>a cat" * 99)[:-9])
    with refused("input", "page.html.gz"):
        translate_file(Shouter(), DocumentConfig(str(source), str(output)))


def test_a_file_that_is_not_what_its_ending_says_is_named(tmp_path):
    for name in ("page.html.zst", "text.txt.zst", "text.txt.gz"):
        source = tmp_path / name
        source.write_bytes(b"<p>a cat" * 9)
        with refused("input", name):
            translate_file(Shouter(), DocumentConfig(str(source), str(tmp_path / "out.html")))
        assert not (tmp_path / "out.html").exists()


def test_a_document_is_read_in_the_encoding_that_it_declares(tmp_path):
    page = '<meta charset="{}"><p>a café'
    source, output = tmp_path / "page.html", tmp_path / "out.html"
    source.write_bytes(page.format("windows-1252").encode("cp1252"))
    translate_file(Shouter(), DocumentConfig(str(source), str(output)))
    assert output.read_text(encoding="utf-8") == '<meta charset="UTF-8"><p>A CAFÉ'


def test_an_input_that_cannot_be_read_is_named(tmp_path):
    # This file can be opened, but reading it fails.
    config = DocumentConfig("/proc/self/mem", str(tmp_path / "out"))
    with pytest.raises(OSError) as error:
        translate_file(Shouter(), config)
    assert (error.value.errno, error.value.filename) == (errno.EIO, "/proc/self/mem")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("argument", "value"),
    [("format", "pdf"), ("case", "x")],
)
def test_wrong_configurations(argument, value):
    with refused(argument, value):
        DocumentConfig(**{argument: value})


def test_a_document_of_an_office_is_bytes(tmp_path):
    source, output = tmp_path / "letter.docx", tmp_path / "out.docx"
    source.write_bytes(archive("docx", "<w:p><w:r><w:t>a cat</w:t></w:r></w:p>"))
    with refused("output", "out.pdf", about=".docx"):
        DocumentConfig(str(source), "out.pdf")
    template = tmp_path / "letter.dotx"
    template.write_bytes(source.read_bytes())
    DocumentConfig(str(template), "out.dotx").check_content()
    with refused("output", "out.docx", about=".dotx"):  # Word would not open it
        DocumentConfig(str(template), "out.docx")
    config = DocumentConfig(str(source), str(output))
    config.check_content()
    result = translate_file(Shouter(), config)
    assert (result["format"], result["lines"]) == ("docx", 1)
    assert ">A CAT<" in content_of("docx", output.read_bytes())
    source.write_bytes(b"a cat")
    with refused(None, "not a zip file", place="letter.docx"):
        config.check_content()


@pytest.mark.parametrize(
    ("path", "format", "language", "wanted"),
    [
        ("letter.docx", "docx", "de", "letter.de.docx"),
        ("letter.docx", "docx", None, "letter.translation.docx"),
        ("a b/c.d.ODT", "odt", "pt-BR", "a b/c.d.pt-BR.ODT"),
        ("/books/novel.epub.gz", "epub", "de", "/books/novel.de.epub"),
        ("letter", "docx", "de", "letter.de.docx"),
        ("letter.zip", "docx", "de", "letter.zip.de.docx"),
    ],
)
def test_the_file_next_to_a_document_is_named_after_it(path, format, language, wanted):
    assert path_beside(path, format, language) == wanted


@pytest.mark.parametrize("name", ["a.rst", "a.json.gz", "paper.tex", "letter.doc", "b.PDF"])
def test_files_of_other_kinds_are_refused_by_their_names(tmp_path, name):
    (tmp_path / name).write_bytes(b"a cat")
    with refused("input", name):
        DocumentConfig(str(tmp_path / name))
    assert DocumentConfig(str(tmp_path / name), format="text").read_as == "text"


@pytest.mark.parametrize(
    "content", [b"PK\x03\x04 x", b"%PDF-1.4 x", b"{\\rtf1 x", b"\xd0\xcf\x11\xe0"]
)
@pytest.mark.parametrize("name", ["a.html", "letter", "letter.txt"])
def test_files_of_other_kinds_are_refused_by_their_first_bytes(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with refused(None, place=name, about="must be"):
        DocumentConfig(str(tmp_path / name)).check_content()


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [("a.txt", b"a\nb\xff", 2), ("a.html", b"<meta charset=x-no>", 1), ("a.po", b"\nmsgid", 2)],
)
def test_what_cannot_be_read_is_refused_before_a_model_is_loaded(tmp_path, name, content, line):
    (tmp_path / name).write_bytes(content)
    with refused(None, place=f"{name}:{line}"):
        DocumentConfig(str(tmp_path / name)).check_content()


@pytest.mark.parametrize("language", ["klingon", "English", "e", ""])
def test_what_is_no_code_of_a_language_is_refused(language):
    with refused("language", language):
        DocumentConfig(language=language)
    assert DocumentConfig(language="pt_BR").language == "pt_BR"


WRAPPED_LINES = b"This is a sentence of a letter which goes on\nin the next line. It ends.\n"


def test_lines_of_a_paragraph_are_translated_together(run, capsys):
    done = run(WRAPPED_LINES, format="wrapped")
    given = "This is a sentence of a letter which goes on in the next line."
    assert done.calls == [[given, "It ends."]]
    assert done.output == WRAPPED_LINES.upper()
    assert done.result["format"] == "wrapped" and done.result["lines"] == 2
    assert "format=" not in capsys.readouterr().err


@pytest.mark.parametrize("streams", [False, True])
def test_a_text_that_looks_wrapped_is_told_of(run, capsys, streams):
    assert run(WRAPPED_LINES, streams).output == WRAPPED_LINES.upper()
    hints = [line for line in capsys.readouterr().err.splitlines() if "format=" in line]
    assert len(hints) == 1 and ":1: this line seems to continue on the next" in hints[0]
    run(WRAPPED_LINES, format="text")
    run(b"A sentence.\nAnother one.\n")
    assert "format=" not in capsys.readouterr().err


def test_sentences_that_terms_would_spoil_are_counted(run, capsys):
    done = run(b"spoiled. a.\nb spoiled.\n", terminology={"a": "b"})
    assert done.result["without_terms"] == 2
    assert "in.txt: 2 sentences: the translation lacks a term" in capsys.readouterr().err
    assert run(b"a.\n").result["without_terms"] == 0
    assert "term" not in capsys.readouterr().err


def test_terms_that_occur_nowhere_are_named(run, capsys):
    run(b"das Buch.\n", terminology={"book": "Buch"})
    assert "in.txt: none of the terms occurs in the text" in capsys.readouterr().err
    for content in (b"das Buch. A book.\n", b"\n"):
        run(content, terminology={"book": "Buch"})
        assert "none of the terms" not in capsys.readouterr().err


def test_doubtful_sentences_are_counted(run, capsys):
    done = run(b"abc. de. fghijk.\n", review_below=0.5)
    assert done.output == b"ABC. DE. FGHIJK.\n"
    assert (done.result["doubtful"], done.result["marked_by"]) == (2, None)
    assert "2 sentences have less confidence than 0.5" in capsys.readouterr().err
    assert run(b"abcdef\n", review_below=0.5).result["doubtful"] == 0
    assert "confidence" not in capsys.readouterr().err
    assert not {"doubtful", "marked_by"} & set(run(b"a\n").result)


def test_doubtful_translations_are_marked(run, capsys):
    catalogue = b'msgid "ab"\nmsgstr ""\n'
    done = run(catalogue, review_below=0.5, format="po")
    assert done.output == b'#, fuzzy\nmsgid "ab"\nmsgstr "AB"\n'
    assert (done.result["doubtful"], done.result["marked_by"]) == (1, "the flag fuzzy")
    assert "marked by the flag fuzzy" in capsys.readouterr().err
    assert run(catalogue, format="po").output == b'msgid "ab"\nmsgstr "AB"\n'


def test_doubts_of_a_model_without_a_calibration_are_refused(tmp_path):
    translator = Shouter()
    translator.card.calibration = None
    (tmp_path / "in.txt").write_text("a\n")
    names = str(tmp_path / "in.txt"), str(tmp_path / "out.txt")
    with refused("review_below", "0.5"):
        translate_file(translator, DocumentConfig(*names, review_below=0.5))
    assert not (tmp_path / "out.txt").exists()
