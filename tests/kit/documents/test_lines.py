import functools
import io
import os
import sys
import threading
import types

import pytest

from keras_transformer.kit.documents import lines
from keras_transformer.kit.documents.lines import LinesConfig, translate_lines
from keras_transformer.kit.documents.memory.memory import Match
from keras_transformer.support.errors import InputError
from keras_transformer.use.translate.answer_counts import AnswerCounts
from keras_transformer.use.translate.answers import AlignedPair, Translation
from keras_transformer.use.translate.translator import Translator
from tests.kit.documents.doubles import run_on
from tests.refusals import check, refused

PAIR = AlignedPair(
    ["x", "y", "</s>"], ["X", "Y", "</s>"], [0, 1, 1], [0, 1, 1], [-0.25, -0.5, -0.25], [1, 0, 2]
)


class Shouter:
    """Gives two translations of each sentence: in capitals, then reversed."""

    new_counts = AnswerCounts
    require_calibration = Translator.require_calibration

    def __init__(self):
        self.checkpoint = {"step": 7}
        self.card = types.SimpleNamespace(calibration="of a model")
        self.calls = []
        self.terms = []

    def check_terms(self, terminology):
        if terminology == {"refused": "r"}:
            raise InputError("terminology", "must not be used", "refused")

    def with_codes(self, texts, to):
        if to not in (None, "de"):
            raise InputError("to", "must be de", to)
        return texts

    def matches(self, texts, to=None):
        """Finds a match of texts with "ab"."""
        code = "" if to is None else f"{to}: "
        match = Match("", "x y", 0.9998, [], False)
        return [
            [match._replace(source=code + text.upper())] if "ab" in text else [] for text in texts
        ]

    def translate(
        self,
        sentences,
        target_prefixes=None,
        aligned=False,
        scores=True,
        to=None,
        confidence=False,
        terminology=None,
    ):
        self.terms.append(terminology)
        if to is not None:
            sentences = [f"{to}: {sentence}" for sentence in sentences]
        self.calls.append(list(sentences))
        if target_prefixes is not None:
            sentences = list(map("{1}-{0}".format, sentences, target_prefixes))
        if confidence:
            values = {"": None, "a": 0.25}
            return [
                [Translation(s.upper(), -0.5, -1.0, 3, confidence=values.get(s, 0.75))]
                for s in sentences
            ]
        if aligned:
            return [[Translation(s.upper(), -0.5, -1.0, 2, pair=PAIR)] for s in sentences]
        return [
            [
                Translation(
                    s.upper(),
                    *(-0.5, -1.0, 3, "long" in s, "endless" in s),
                    without_terms=("x",) if "spoiled" in s else (),
                ),
                Translation(s[::-1], -1.25, -2.5, 3),
            ]
            for s in sentences
        ]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Translates bytes to bytes, from file to file or from stdin to stdout."""

    def translate(content, streams=False, **settings):
        translator = Shouter()
        result, error, output = run_on(
            functools.partial(translate_lines, translator),
            functools.partial(LinesConfig, **settings),
            *(content, tmp_path, monkeypatch, streams),
        )
        return types.SimpleNamespace(
            result=result,
            error=error,
            output=output,
            calls=translator.calls,
            terms=translator.terms,
        )

    return translate


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(
    ("content", "output"),
    [
        (b"", b""),
        (b"a\nb\n", b"A\nB\n"),
        (b"a\n\nb", b"A\n\nB\n"),
        (b"\xef\xbb\xbfa\r\nb\r\n", b"A\nB\n"),
        ("a\u2028b\x0b\x0cc\x85\n".encode(), "A\u2028B\x0b\x0cC\x85\n".encode()),
        (b"a\rb\n", b"A B\n"),
    ],
)
def test_line_for_line(run, streams, content, output):
    done = run(content, streams)
    assert done.output == output
    assert (done.result["lines"], done.result["step"]) == (output.count(b"\n"), 7)


@pytest.mark.parametrize(
    ("content", "settings", "output"),
    [
        ("ab\nc", {"scores": True}, "-0.500000\tAB\n-0.500000\tC"),
        ("ab\nc", {"n_best": 2}, "1\tAB\n1\tba\n2\tC\n2\tc"),
        ("ab", {"n_best": 2, "scores": True}, "1\t-0.500000\tAB\n1\t-1.250000\tba"),
        ("ab", {"alignments": True}, "0-1 1-0\tAB"),
        (
            "ab",
            {"token_scores": True, "scores": True, "alignments": True},
            "-0.500000\t0-1 1-0\tX Y </s>\t-0.250000 -0.500000 -0.250000\tAB",
        ),
        ("a\n\nb", {"confidence": True}, "0.250\tA\n\t\n0.750\tB"),
        (
            "ab\tq\ncd\t",
            {"matches": True, "scores": True, "target_prefixes": True},
            "0.999\tAB\tx y\t-0.500000\tQ-AB\n\t\t\t-0.500000\t-CD",
        ),
        ("ab", {"matches": True, "to": "de"}, "0.999\tde: AB\tx y\tDE: AB"),
    ],
)
def test_columns(run, content, settings, output):
    assert run(f"{content}\n".encode(), **settings).output.decode() == f"{output}\n"


def test_confidence_of_a_model_without_a_calibration_is_refused(tmp_path):
    translator = Shouter()
    translator.card.calibration = None
    (tmp_path / "in.txt").write_text("a\n")
    config = LinesConfig(str(tmp_path / "in.txt"), str(tmp_path / "out.txt"), confidence=True)
    with refused("confidence", "True"):
        translate_lines(translator, config)
    assert not (tmp_path / "out.txt").exists()


def test_lines_with_the_beginnings_of_their_translations(run):
    done = run(b"ab\tCd\ne\nf\t\n\tg\th\n", target_prefixes=True)
    assert done.output == b"CD-AB\n-E\n-F\nG\tH-\n"
    assert done.calls == [["ab", "e", "f", ""]]


def test_lines_are_translated_with_terms(run):
    done = run(b"a red car\n", terminology={"red": "r"})
    assert done.terms == [{"red": "r"}] and run(b"a\n").terms == [None]
    done = run(b"a\n", terminology={"refused": "r"})
    check(done.error, "terminology", "refused")
    assert done.terms == []


def test_lines_that_terms_would_spoil_are_named(run, capsys):
    done = run(b"a\nspoiled\nb\nspoiled\n", terminology={"a": "b"})
    assert done.result["without_terms"] == 2
    assert ": lines 2, 4: the translation lacks a term" in capsys.readouterr().err
    assert run(b"a\n").result["without_terms"] == 0
    assert "term" not in capsys.readouterr().err


def test_terms_that_occur_nowhere_are_named(run, capsys):
    run(b"das Buch\ndie Katze\n", terminology={"book": "Buch"})
    assert "in.txt: none of the terms occurs in the text" in capsys.readouterr().err
    run(b"das Buch\na book\n", terminology={"book": "Buch"})
    assert "term" not in capsys.readouterr().err


def test_chunks_bound_what_is_held(run, monkeypatch):
    monkeypatch.setattr(lines, "CHUNK_LINES", 2)
    done = run(b"a\nb\nc\nd\ne\n")
    assert done.calls == [["a", "b"], ["c", "d"], ["e"]]
    assert done.output == b"A\nB\nC\nD\nE\n"
    assert run(b"a\nb\nc\n", n_best=2).output.startswith(b"1\tA\n1\ta\n2\tB\n2\tb\n3\tC\n")


def test_lines_that_are_cut_are_named_once(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(lines, "CHUNK_LINES", 2)
    text = ["a", "long", "b", "long, endless", *["long"] * 10]
    done = run("\n".join(text).encode())
    assert (done.result["truncated"], done.result["unfinished"]) == (12, 1)
    cut, unfinished = [line for line in capsys.readouterr().err.splitlines() if "limit" in line]
    assert cut.startswith(f"{tmp_path}/in.txt: lines 2, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 2 more: ")
    assert unfinished.startswith(f"{tmp_path}/in.txt: line 4: ")
    run(b"a\n")
    assert "limit" not in capsys.readouterr().err


def test_a_terminal_is_answered_line_by_line(monkeypatch, capsys):
    keyboard, terminal = os.openpty()
    os.write(keyboard, b"a\nb\n\x04")  # Ctrl-D
    stdout = types.SimpleNamespace(buffer=io.BytesIO())
    monkeypatch.setattr(sys, "stdout", stdout)
    translator = Shouter()
    with open(terminal, "rb") as stdin:
        monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=stdin))
        result = translate_lines(translator, LinesConfig())
    os.close(keyboard)
    assert (translator.calls, result["lines"]) == ([["a"], ["b"]], 2)
    assert stdout.buffer.getvalue() == b"A\nB\n"
    assert "Ctrl-D" in capsys.readouterr().err


def test_a_pipe_that_is_waited_for_is_named(tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[b"a\n"])
    writer.start()
    config = LinesConfig(str(tmp_path / "pipe"), str(tmp_path / "out"))
    assert translate_lines(Shouter(), config)["lines"] == 1
    writer.join()
    assert f"{tmp_path}/pipe\n" in capsys.readouterr().err


def test_settings_are_checked(tmp_path):
    with refused("n_best", "0"):
        LinesConfig(n_best=0)
    with refused("terminology", "{' ': 'x'}"):
        LinesConfig(terminology={"red": "r", " ": "x"})
    with refused("input", tmp_path / "absent"):
        LinesConfig(input=str(tmp_path / "absent"))
    with refused("input", tmp_path):
        LinesConfig(input=str(tmp_path))
    with refused("output", tmp_path / "absent" / "out"):
        LinesConfig(output=str(tmp_path / "absent" / "out"))
    with refused("output", tmp_path):
        LinesConfig(output=str(tmp_path))


def test_a_language_is_passed_on_and_refused_before_anything_is_read(run):
    assert run(b"a\nb\n", to="de").output == b"DE: A\nDE: B\n"
    check(run(b"\xff\n", to="fr").error, "to", "fr")
