import json
import shutil

import numpy as np
import pytest

from keras_transformer.kit.exchange import saved_model
from keras_transformer.kit.exchange.web.page import RUNTIME
from tests.refusals import check_line


def test_result(call_program, untrained, tmp_path):
    export_dir = tmp_path / "model" / "1"
    arguments = [f"--model_dir={untrained}", f"--export_dir={export_dir}", "--beam_size=2"]
    arguments += ["--checkpoint=average:2", "--date=2017-06-12", "--signatures=score"]
    done = call_program("export", *arguments)
    assert done.code == 0, done.errors
    assert done.result["saved_model"] == str(export_dir)
    assert done.result["checkpoint"] == "average:2"
    size = sum(path.stat().st_size for path in export_dir.rglob("*") if path.is_file())
    assert done.result["bytes"] == size
    card = json.loads((export_dir / "assets.extra" / "model_card.json").read_text())
    assert (card["date"], card["weights"]) == ("2017-06-12", "float32")
    assert card["decoding"]["beam_size"] == 2


@pytest.mark.slow  # loads an export and traces its search again
def test_translate_gives_the_same_from_both(call_program, exported, untrained, tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_text("the cat\n\nbig red dogs\n")
    outputs = []
    for place in (
        [f"--saved_model={exported}"],
        [f"--model_dir={untrained}", "--checkpoint=average:2", "--beam_size=2"],
    ):
        output = tmp_path / f"out{len(outputs)}.txt"
        files = [f"--input={lines}", f"--output={output}"]
        done = call_program("translate", *place, *files, "--n_best=2")
        assert done.result["checkpoint"] == "average:2"
        outputs.append(output.read_text(encoding="utf-8"))
    assert outputs[0] == outputs[1]
    assert outputs[0].count("\n") == 5, "the blank line has one answer"


def test_second_export_needs_overwrite(call_program, exported, untrained, tmp_path, monkeypatch):
    monkeypatch.setattr(saved_model, "_graphs_named", lambda *_: {})  # none of them is run
    export_dir = shutil.copytree(exported, tmp_path / "export")
    arguments = [f"--model_dir={untrained}", f"--export_dir={export_dir}"]
    done = call_program("export", *arguments)
    assert done.code == 1
    check_line(done.errors, "--export_dir", export_dir, "overwrite")
    done = call_program("export", *arguments, "--overwrite", "--checkpoint=best")
    assert done.result["checkpoint"] == "step-00000020"


def test_ctranslate2(call_program, untrained, tmp_path):
    export_dir = tmp_path / "ct2"
    arguments = [f"--model_dir={untrained}", f"--export_dir={export_dir}", "--format=ctranslate2"]
    done = call_program("export", *arguments, "--checkpoint=best")
    assert done.code == 0, done.errors
    assert done.result["ctranslate2"] == str(export_dir)
    assert done.result["checkpoint"] == "step-00000020"
    card = json.loads((export_dir / "assets.extra" / "model_card.json").read_text())
    assert card["checkpoint"]["checkpoint"] == "step-00000020"
    assert card["description"]["preset"] == "tiny"
    done = call_program("export", *arguments)
    assert done.code == 1
    check_line(done.errors, "--export_dir", export_dir, "overwrite")
    options = ["--overwrite", "--weights=int8", "--alpha=1.2", "--date=2026-11-26"]
    done = call_program("export", *arguments, *options)
    assert done.code == 0, done.errors
    smaller = json.loads((export_dir / "assets.extra" / "model_card.json").read_text())
    assert (smaller["weights"], smaller["date"]) == ("int8", "2026-11-26")
    assert smaller["decoding"]["alpha"] == 1.2


def test_argos(call_program, untrained, tmp_path):
    arguments = [f"--model_dir={untrained}", f"--export_dir={tmp_path / 'argos'}"]
    done = call_program("export", *arguments, "--format=argos", "--directions=en-de")
    assert done.code == 0, done.errors
    assert done.result["argos"] == [str(tmp_path / "argos" / "translate-en_de.argosmodel")]
    files = [path for path in (tmp_path / "argos").rglob("*") if path.is_file()]
    assert done.result["bytes"] == sum(path.stat().st_size for path in files)
    assert len(files) == 2, "the package and the card"


def test_onnx(call_program, untrained, tmp_path):
    export_dir = tmp_path / "onnx"
    arguments = [f"--model_dir={untrained}", f"--export_dir={export_dir}", "--format=onnx"]
    done = call_program("export", *arguments, "--weights=int8", "--checkpoint=best")
    assert done.code == 0, done.errors
    assert done.result["onnx"] == str(export_dir)
    assert done.result["checkpoint"] == "step-00000020"
    card = json.loads((export_dir / "assets.extra" / "model_card.json").read_text())
    assert (card["weights"], card["decoding"]["alpha"]) == ("int8", 0.6)
    assert card["description"]["preset"] == "tiny"
    assert card["files"].keys() == {"encoder.onnx", "decoder.onnx", "vocabulary.model"}


def test_web(call_program, untrained, tmp_path):
    export_dir, runtime = tmp_path / "page", tmp_path / "dist"
    runtime.mkdir()
    for file in RUNTIME.values():
        (runtime / file.name).write_text("ONNX Runtime")
    arguments = [f"--model_dir={untrained}", f"--export_dir={export_dir}", "--format=web"]
    options = [f"--runtime={runtime}", "--weights=int8", "--beam_size=2", "--alpha=1.4"]
    done = call_program("export", *arguments, *options)
    assert done.code == 0, done.errors
    assert done.result["web"] == str(export_dir)
    card = json.loads((export_dir / "model.json").read_text())["card"]
    assert (card["weights"], card["beam_size"], card["alpha"]) == ("int8", 2, 1.4)
    done = call_program("export", *arguments, f"--runtime={tmp_path}", "--overwrite")
    check_line(done.errors, "--runtime", tmp_path)


@pytest.mark.slow  # another export, of two models
def test_ensemble(call_program, untrained, tmp_path):
    names = ("step-00000010", "step-00000020")
    model_dirs = ",".join(str(untrained / "checkpoints" / name) for name in names)
    export_dir = tmp_path / "export"
    arguments = ["--beam_size=2", f"--model_dir={model_dirs}"]
    signatures = "--signatures=search_ids,align_ids"
    done = call_program("export", *arguments, f"--export_dir={export_dir}", signatures)
    assert done.code == 0, done.errors
    assert done.result["checkpoint"] == " + ".join(names)
    answers = []
    single = [f"--model_dir={untrained}", "--beam_size=2"]
    for place in ([f"--saved_model={export_dir}"], arguments, single):
        stdin = b"the cat\n\nbig red dogs\n"
        shown = ["--scores"] if place is single else ["--scores", "--alignments"]
        done = call_program("translate", *place, *shown, stdin=stdin)
        assert done.code == 0, done.errors
        answers.append([line.split("\t") for line in done.output.splitlines()])
    scores = [[float(row.pop(0)) for row in rows] for rows in answers]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-4, atol=1e-5)
    assert answers[0] == answers[1] and scores[1] != scores[2]
    card = json.loads((export_dir / "assets.extra" / "model_card.json").read_text())
    assert [each["step"] for each in card["ensemble"]] == [10, 20]


def test_what_an_ensemble_cannot_be(call_program, untrained, tmp_path):
    arguments = [f"--model_dir={untrained},{untrained}", f"--export_dir={tmp_path / 'export'}"]
    done = call_program("export", *arguments, "--format=onnx")
    assert done.code == 1
    check_line(done.errors, "--model_dir", "2 models", "single")


@pytest.mark.parametrize(
    ("arguments", "subject", "received"),
    [
        (["--format=argos", "--beam_size=3"], "--beam_size", "3"),
        (["--format=ctranslate2", "--constraints"], "--constraints", "True"),
        (["--signatures=score,nbest"], "--signatures", "'nbest'"),
        *(
            ([f"--date={date}"], "--date", f"'{date}'")
            for date in ("2017-02-29", "20170612", "2017-6-12")
        ),
    ],
)
def test_bad_flags(call_program, untrained, tmp_path, arguments, subject, received):
    export_dir = tmp_path / "export"
    done = call_program(
        "export", f"--model_dir={untrained}", f"--export_dir={export_dir}", *arguments
    )
    assert done.code == 1
    check_line(done.errors, subject, received)
    assert not export_dir.exists()
