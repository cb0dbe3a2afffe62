import json
import re

import pytest

LINES = ["the cat", "", "a dog ran", "😀 Ω", "x" * 500, "\u2028 \x07 odd"]


@pytest.fixture(scope="module")
def lines_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("input") / "lines.txt"
    path.write_bytes("\r\n".join(LINES).encode())
    return path


@pytest.fixture(scope="module")
def wanted(untrained):
    from keras_transformer.loading import load

    translator = load(untrained, beam_size=2)
    return translator.translate(LINES)


def one_line(text):
    return text.replace("\n", " ").replace("\r", " ")


def test_file_to_file(run_program, untrained, lines_file, wanted, tmp_path):
    output = tmp_path / "out.txt"
    arguments = [f"--model_dir={untrained}", f"--input={lines_file}", f"--output={output}"]
    done = run_program("translate", *arguments, "--beam_size=2", "--one_sentence_per_line")
    assert done.code == 0
    assert done.result["lines"] == 6
    assert done.result["truncated"] == 1
    assert done.result["checkpoint"] == "step-00000020"
    assert done.result["output"] == str(output)
    answers = output.read_bytes().decode("utf-8").split("\n")
    assert answers == [*(one_line(best[0].text) for best in wanted), ""]


def test_lines_of_several_sentences(call_program, untrained, tmp_path):
    text = " the cat. A dog ran!\r\n\nA DOG RAN. see https://a.b/c\n" + "x " * 100
    flags = [f"--model_dir={untrained}", "--beam_size=2", f"--output={tmp_path}/out.txt"]
    done = call_program("translate", *flags, "--language=en", stdin=text.encode())
    assert done.code == 0, done.errors
    assert (done.result["lines"], done.result["format"]) == (4, "text")
    assert done.result["truncated"] == 0, "cut into parts"

    from keras_transformer.loading import load

    translator = load(untrained, beam_size=2, n_best=1)
    output = (tmp_path / "out.txt").read_bytes().decode()
    assert output == translator.translate_document(text, language="en")
    first = [answers[0].text for answers in translator.translate(["the cat.", "A dog ran!"])]
    lines = output.split("\n")
    assert len(lines) == 4 and lines[:2] == [f" {one_line(' '.join(first))}\r", ""]
    assert lines[2].endswith("https://a.b/c") and lines[2].upper().startswith(lines[2][:20])


def test_stream_n_best_with_scores(call_program, untrained, wanted):
    arguments = [f"--model_dir={untrained}", "--beam_size=2", "--n_best=2", "--scores"]
    done = call_program("translate", *arguments, stdin="\n".join(LINES).encode())
    assert done.code == 0
    rows = [row.split("\t", 2) for row in done.output.removesuffix("\n").split("\n")]
    flat = [(i, answer) for i, best in enumerate(wanted, start=1) for answer in best]
    assert [(row[0], row[2]) for row in rows] == [(str(i), one_line(best.text)) for i, best in flat]
    scores = [best.score for _, best in flat]
    assert [float(row[1]) for row in rows] == pytest.approx(scores, abs=1e-3)
    summary = json.loads(done.errors.splitlines()[-1])
    assert (summary["lines"], summary["output"]) == (6, "-")


def test_invalid_line_of_a_stream(call_program, untrained):
    done = call_program("translate", f"--model_dir={untrained}", stdin=b"the cat\n\n\xff\n")
    assert done.code == 1
    assert done.output.count("\n") == 2
    assert done.errors.splitlines()[-1].startswith(
        "error: stdin:3 must be UTF-8. Received: byte 0xff"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "exactly one of --model_dir and --saved_model must be given. Received: neither"),
        (
            ["--model_dir=a", "--saved_model=b"],
            "Received: model_dir and saved_model",
        ),
        (["--saved_model=b", "--alpha=1"], "--alpha is fixed in an export"),
        (["--saved_model=b", "--min_length=3"], "--min_length is fixed in an export"),
        (["--saved_model=b", "--sample"], "--sample is fixed in an export"),
        (["--model_dir=absent"], "--model_dir must be a directory that training has made"),
        (["--saved_model=absent"], "--saved_model must be a directory that an export has made"),
        (["--model_dir=a", "--input=absent"], "--input must be a file that can be read"),
        (["--model_dir=a", "--output=absent/out"], "--output must be a file in a directory"),
        (["--model_dir=a", "--format=docx"], "flag --format=docx: value should be one of"),
        (
            ["--model_dir=a", "--format=text", "--scores"],
            "--format must not be given where each line is translated as it is. Received: --scores",
        ),
        (
            ["--model_dir=a", "--one_sentence_per_line", "--case=keep"],
            "--case must not be given where each line is translated as it is",
        ),
        (
            ["--input=/dev/zero"],
            "--input must be a file, a pipe or a terminal. Received: /dev/zero",
        ),
        (["--terminology=/dev/zero"], "--terminology must be a file. Received: '/dev/zero'"),
        (["--input=a", "--output=./a"], "--output must be another file than --input. Received: "),
        (
            ["--terminology=a", "--output=a"],
            "--output must be another file than --terminology. Received: 'a'",
        ),
        (
            ["--forbidden_phrases=a", "--output=a"],
            "--output must be another file than --forbidden_phrases. Received: 'a'",
        ),
        (
            ["--model_dir=a,b.keras", "--output=b.keras"],
            "--output must be another file than --model_dir. Received: 'b.keras'",
        ),
    ],
)
def test_bad_flags(call_program, tmp_path, arguments, message):
    done = call_program("translate", *arguments, cwd=tmp_path)
    assert done.code == 1
    assert message in done.errors.splitlines()[-1]
    assert done.output == ""


def test_no_more_translations_than_beams(call_program, untrained):
    done = call_program("translate", f"--model_dir={untrained}", "--n_best=5")
    assert done.code == 1 and done.output == ""
    last = done.errors.splitlines()[-1]
    assert last == "error: --n_best must be from 1 to the beam size, 4. Received: 5"


def test_restrictions(call_program, untrained, tmp_path):
    (tmp_path / "phrases").write_text("a\n\n  \nthe cat\n")
    flags = [
        "--min_length=9",
        "--no_repeat_ngram_size=1",
        f"--forbidden_phrases={tmp_path}/phrases",
    ]
    done = call_program("translate", f"--model_dir={untrained}", *flags, stdin=b"the cat\n")
    assert done.code == 0, done.errors

    from keras_transformer.loading import load

    settings = {"min_length": 9, "no_repeat_ngram_size": 1, "forbidden_phrases": ["a", "the cat"]}
    ((best, *_),) = load(untrained, n_best=1, **settings).translate(["the cat"])
    assert done.output == one_line(best.text) + "\n"
    assert best.text != load(untrained, n_best=1).translate(["the cat"])[0][0].text


def test_terminology(call_program, untrained, tmp_path):
    (tmp_path / "terms").write_text("the cat\tbig dog\ndog\ta\n")
    flags = ["--beam_size=2", f"--terminology={tmp_path}/terms"]
    stdin = b"see the cat\n\nthe dogs\na dog\n"
    done = call_program("translate", f"--model_dir={untrained}", *flags, stdin=stdin)
    assert done.code == 0, done.errors
    answers = done.output.split("\n")
    assert json.loads(done.errors.splitlines()[-1])["lines"] == 4

    from keras_transformer.loading import load

    lines, phrases = stdin.decode().split("\n")[:4], [["big dog"], [], [], ["a"]]
    translator = load(untrained, beam_size=2, n_best=1)
    wanted = translator.translate(lines, required_phrases=phrases)
    assert answers == [*(one_line(best[0].text) for best in wanted), ""]
    assert "big dog" in answers[0]
    assert answers[2] == one_line(translator.translate(lines)[2][0].text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tb\nc\n", "terms:2 must be a source phrase, a tab and a target phrase. Received: 'c'"),
        (b"a\tb\tc\n", "terms:1 must be a source phrase, a tab and a target phrase"),
        (b"a\t \n", "terms:1 must be a source phrase, a tab and a target phrase"),
        (b"a\tb\na\tc\n", "terms:2 must have a source phrase that no line before it has. .*: 'a'"),
        (b"\xff\n", "terms:1 must be UTF-8"),
        (b"", "--terminology must not be empty"),
        (None, "--terminology must be a file. Received: '.*terms'"),
    ],
)
def test_bad_terminology(call_program, tmp_path, content, message):
    if content is not None:
        (tmp_path / "terms").write_bytes(content)
    done = call_program("translate", "--model_dir=a", f"--terminology={tmp_path}/terms")
    assert done.code == 1 and done.output == ""
    assert re.search(message, done.errors.splitlines()[-1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--forbidden_phrases=absent"], "--forbidden_phrases must be a file. Received: 'absent'"),
        (["--mbr=chrf", "--n_best=5"], "--n_best must be from 1 to the beam size, 4. Received: 5"),
        (["--top_k=3"], "--top_k needs --sample. Received: 3"),
        (
            ["--sample", "--temperature=0"],
            "--temperature must be positive and finite. Received: 0.0",
        ),
    ],
)
def test_bad_sampling(call_program, untrained, arguments, message):
    done = call_program("translate", f"--model_dir={untrained}", *arguments)
    assert done.code == 1
    assert message in done.errors.splitlines()[-1]
