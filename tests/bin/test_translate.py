import json

import pytest

from keras_transformer.kit.documents import document_file, lines
from tests.kit.documents.archives import archive, content_of
from tests.refusals import check_line

LINES = ["the cat", "", "a dog ran", "😀 Ω", "x" * 500, "\u2028 \x07 odd"]


@pytest.fixture(scope="module")
def lines_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("input") / "lines.txt"
    path.write_bytes("\r\n".join(LINES).encode())
    return path


@pytest.fixture(scope="module")
def translator(untrained):
    from keras_transformer.loading import load

    return load(untrained, beam_size=2)


@pytest.fixture(scope="module")
def wanted(translator):
    return translator.translate(LINES)


def one_line(text):
    return text.replace("\n", " ").replace("\r", " ")


def test_file_to_file(call_program, untrained, lines_file, wanted, tmp_path):
    output = tmp_path / "out.txt"
    arguments = [f"--model_dir={untrained}", f"--input={lines_file}", f"--output={output}"]
    done = call_program("translate", *arguments, "--beam_size=2", "--one_sentence_per_line")
    assert done.code == 0
    assert done.result["lines"] == 6
    assert done.result["truncated"] == 1
    assert done.result["checkpoint"] == "step-00000020"
    assert done.result["output"] == str(output)
    assert "loading the model ...\n" in done.errors
    reason = "it ended at step 20, inside its warm-up of "
    assert done.errors.count(f"warning: this model is hardly trained ({reason}") == 1
    assert "with more train_minutes or train_steps" in done.errors
    answers = output.read_bytes().decode("utf-8").split("\n")
    assert answers == [*(one_line(best[0].text) for best in wanted), ""]


def test_lines_of_several_sentences(call_program, untrained, translator, tmp_path):
    text = " the cat. A dog ran!\r\n\nA DOG RAN. see https://a.b/c\n" + "x " * 100
    flags = [f"--model_dir={untrained}", "--beam_size=2", f"--output={tmp_path}/out.txt"]
    done = call_program("translate", *flags, "--language=en", stdin=text.encode())
    assert done.code == 0, done.errors
    assert (done.result["lines"], done.result["format"]) == (4, "text")
    assert done.result["truncated"] == 0, "cut into parts"

    output = (tmp_path / "out.txt").read_bytes().decode()
    assert output == translator.translate_document(text, language="en")
    first = [answers[0].text for answers in translator.translate(["the cat.", "A dog ran!"])]
    answers = output.split("\n")
    assert len(answers) == 4 and answers[:2] == [f" {one_line(' '.join(first))}\r", ""]
    assert answers[2].endswith("https://a.b/c") and answers[2].upper().startswith(answers[2][:20])


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
    arguments = [f"--model_dir={untrained}", "--beam_size=2"]
    done = call_program("translate", *arguments, stdin=b"the cat\n\n\xff\n")
    assert done.code == 1
    assert done.output.count("\n") == 2
    check_line(done.errors, "stdin:3", "0xff")


@pytest.mark.parametrize(
    ("arguments", "subject", "received", "about"),
    [
        ("", "--model_dir", "neither", None),
        ("--model_dir=a --saved_model=b", "--model_dir", "model_dir and saved_model", None),
        ("--model_dir=a --input=absent", "--input", "absent", "read"),
        ("--model_dir=a --output=absent/out", "--output", "absent/out", "writable"),
        ("--model_dir=a --format=text --scores", "--format", "--scores", "each line"),
        ("--model_dir=a --one_sentence_per_line --case=keep", "--case", "--one_sent", "each line"),
        ("--input=/dev/zero", "--input", "/dev/zero", "a file"),
        ("--terminology=/dev/zero", "--terminology", "'/dev/zero'", "a file"),
        ("--input=a --output=./a", "--output", "a", "--input"),
        ("--terminology=a --output=a", "--output", "'a'", "--terminology"),
        ("--memory=a.tmx --output=a.tmx", "--output", "'a.tmx'", "--memory"),
        ("--memory=a.txt", "--memory", "a.txt", ".tmx"),
        ("--memory=absent.tmx", "--memory", "absent.tmx", "a file"),
        ("--matches", "--matches", "True", "--memory"),
        ("--forbidden_phrases=a --output=a", "--output", "'a'", "--forbidden_phrases"),
        ("--model_dir=a,b.keras --output=b.keras", "--output", "'b.keras'", "--model_dir"),
    ],
)
def test_bad_flags(call_program, tmp_path, arguments, subject, received, about):
    done = call_program("translate", *arguments.split(), cwd=tmp_path)
    assert done.code == 1
    check_line(done.errors, subject, received, about)
    assert done.output == ""


@pytest.mark.parametrize(("argument", "received"), [("--alpha=1", "1.0"), ("--sample", "True")])
def test_what_an_export_has_fixed(call_program, exported, argument, received):
    done = call_program("translate", f"--saved_model={exported}", argument)
    assert done.code == 1 and done.output == ""
    check_line(done.errors, argument.partition("=")[0], received, "export")


@pytest.mark.parametrize("holder", ["untrained", "exported", "for_ctranslate2"])
def test_devices_of_every_engine(call_program, request, holder):
    flag = "model_dir" if holder == "untrained" else "saved_model"
    model = [f"--{flag}={request.getfixturevalue(holder)}"]
    if holder == "untrained":
        model.append("--beam_size=2")  # exports have it; other tests have traced this search
    done = {
        device: call_program("translate", *model, f"--device={device}", stdin=b"the cat\n")
        for device in ("auto", "cpu", "cuda", "tpu")
    }
    assert done["auto"].code == done["cpu"].code == 0, done["cpu"].errors
    assert done["auto"].output == done["cpu"].output != ""
    assert done["cuda"].code == done["tpu"].code == 1
    received = "CUDA" if holder == "for_ctranslate2" else "no GPU"
    check_line(done["cuda"].errors, "--device", received, "cuda")
    assert "--device" in done["tpu"].errors and "auto|cpu|cuda" in done["tpu"].errors


def test_no_more_translations_than_beams(call_program, untrained):
    done = call_program("translate", f"--model_dir={untrained}", "--n_best=5")
    assert done.code == 1 and done.output == ""
    check_line(done.errors, "--n_best", "5", "4")


def test_terms_reach_documents_and_lines(call_program, untrained, tmp_path, monkeypatch):
    terminologies = []

    def keep(translator, config):
        terminologies.append(config.terminology)
        return {"output": config.output}

    monkeypatch.setattr(document_file, "translate_file", keep)
    monkeypatch.setattr(lines, "translate_lines", keep)
    (tmp_path / "terms").write_text("the cat\tbig dog\ndog \t red cats\n")
    flags = [f"--model_dir={untrained}", "--beam_size=2", f"--terminology={tmp_path}/terms"]
    for more in ([], ["--scores"]):
        done = call_program("translate", *flags, *more)
        assert done.code == 0, done.errors
    assert terminologies == [{"the cat": "big dog", "dog": "red cats"}] * 2


def test_memory(call_program, untrained, translator, tmp_path):
    (tmp_path / "memory.tsv").write_text("See the cat.\tDer Kater!\n")
    flags = [f"--model_dir={untrained}", "--beam_size=2", f"--memory={tmp_path}/memory.tsv"]
    stdin = b"See  the cat. a dog\nSee the cat\n"
    done = call_program("translate", *flags, f"--output={tmp_path}/out", stdin=stdin)
    assert done.code == 0, done.errors
    assert done.result["from_memory"] == 1
    written = (tmp_path / "out").read_text().splitlines()
    (dog,), (cat,) = (answers[:1] for answers in translator.translate(["a dog", "See the cat"]))
    assert written == [f"Der Kater! {one_line(dog.text)}", one_line(cat.text)]
    done = call_program("translate", *flags, "--matches", stdin=b"See the cats.\nb\n")
    assert done.code == 0, done.errors
    columns = [line.split("\t")[:3] for line in done.output.splitlines()]
    assert columns == [["0.923", "See the cat.", "Der Kater!"], ["", "", ""]]


@pytest.mark.parametrize(
    ("content", "line", "received", "about"),
    [
        (b"a\tb\nc\n", 2, "'c'", "tab"),
        (b"a\tb\tc\n", 1, r"'a\tb\tc'", "tab"),
        (b"a\t \n", 1, r"'a\t '", "tab"),
        (b"a\tb\na\tc\n", 2, "'a'", "earlier"),
        (b"\xff\n", 1, "0xff", "UTF-8"),
        (b"", None, "terms", "empty"),
        (None, None, "terms", "a file"),
    ],
)
def test_bad_terminology(call_program, tmp_path, content, line, received, about):
    if content is not None:
        (tmp_path / "terms").write_bytes(content)
    done = call_program("translate", "--model_dir=a", f"--terminology={tmp_path}/terms")
    assert done.code == 1 and done.output == ""
    subject = "--terminology" if line is None else f"{tmp_path}/terms:{line}"
    check_line(done.errors, subject, received, about)


@pytest.mark.parametrize(
    ("arguments", "flag", "received", "about"),
    [
        (["--forbidden_phrases=absent"], "--forbidden_phrases", "'absent'", "a file"),
        (["--mbr=chrf", "--n_best=5"], "--n_best", "5", "4"),
        (["--top_k=3"], "--top_k", "3", "--sample"),
        (["--sample", "--temperature=0"], "--temperature", "0.0", "positive"),
    ],
)
def test_bad_sampling(call_program, untrained, arguments, flag, received, about):
    done = call_program("translate", f"--model_dir={untrained}", *arguments)
    assert done.code == 1
    check_line(done.errors, flag, received, about)


# A model with several target languages.
MANY = {
    "task_options": {"target_languages": ["de", "cs"], "directions": [["en", "de"], ["en", "cs"]]},
    "languages": ["en", "de", "cs"],
}
LETTER = archive("docx", "<w:p><w:r><w:t>the cat</w:t></w:r></w:p>")


def test_a_document_on_a_terminal_is_a_new_file_next_to_it(call_program, exported, tmp_path):
    (tmp_path / "letter.docx").write_bytes(LETTER)
    flags = [f"--saved_model={exported}", f"--input={tmp_path}/letter.docx"]
    done = call_program("translate", *flags, terminal=True)
    assert done.code == 0, done.errors
    path = tmp_path / "letter.translation.docx"  # its data names no languages
    assert done.result["output"] == str(path), "the result is on stdout"
    assert len(done.output.splitlines()) == 1 and str(path) in done.errors
    written = path.read_bytes()
    assert content_of("docx", written).startswith("<w:p><w:r><w:t")

    done = call_program("translate", *flags, terminal=True)
    assert done.code == 1 and done.output == ""
    check_line(done.errors, "--output", path, "must be given")
    assert path.read_bytes() == written

    piped = call_program("translate", *flags)
    assert json.loads(piped.errors.splitlines()[-1])["output"] == "-"
    assert piped.output.startswith("PK\x03\x04")


@pytest.mark.parametrize(
    ("description", "flags", "name"),
    [
        ({"languages": ["de", "en"]}, "", "letter.en.docx"),
        ({"languages": ["src", "tgt"]}, "", "letter.translation.docx"),
        ({"languages": None}, "", "letter.translation.docx"),
        (MANY, "--to=cs", "letter.cs.docx"),
        (MANY, "--to=../cs", "letter.translation.docx"),
        (MANY, "", "letter.translation.docx"),
    ],
)
def test_a_file_that_exists_is_refused_before_a_model_is_loaded(
    call_program, untrained, tmp_path, description, flags, name
):
    """The model directory has no checkpoint."""
    config = json.loads((untrained / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | description))
    (tmp_path / "letter.docx").write_bytes(LETTER)
    (tmp_path / name).write_bytes(b"edited")
    arguments = f"--model_dir=. --input=letter.docx {flags}".split()
    done = call_program("translate", *arguments, terminal=True, cwd=tmp_path)
    assert done.code == 1 and done.output == ""
    check_line(done.errors, "--output", f"'{name}'", "exists")
    assert (tmp_path / name).read_bytes() == b"edited"


def test_no_document_of_bytes_is_written_to_a_terminal(call_program, untrained, tmp_path):
    (tmp_path / "letter.docx").write_bytes(LETTER)
    flags = [f"--model_dir={untrained}", "--beam_size=2"]
    for arguments in (["--input=letter.docx", "--output=-"], ["--format=docx"]):
        done = call_program("translate", *flags, *arguments, terminal=True, cwd=tmp_path)
        assert done.code == 1 and done.output == ""
        check_line(done.errors, "--output", "a terminal", "must be a file")
    assert list(tmp_path.iterdir()) == [tmp_path / "letter.docx"]
    done = call_program("translate", *flags, stdin=b"the cat\n", terminal=True)
    assert done.code == 0 and done.output.count("\n") == 1, "text is printed"
