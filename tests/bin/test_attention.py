import json
import re
import sys
from xml.etree import ElementTree

import pytest


def data_of(page):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(found[1])


def test_page_picture_and_table(run_program, untrained, tmp_path):
    page, picture = tmp_path / "page.html", tmp_path / "head.svg"
    done = run_program(
        "attention",
        *(f"--model_dir={untrained}", "--source=the cat", "--target=die katze"),
        *(f"--output={page}", f"--picture={picture}", "--kind=cross", "--layer=1", "--heads=2"),
    )
    assert done.code == 0, done.errors
    assert done.result["output"] == str(page)
    assert done.result["bytes"] == page.stat().st_size
    assert done.result["checkpoint"] == "step-00000020"
    assert done.result["translation"] is None
    assert done.result["picture"] == str(picture)
    assert "".join(done.result["source_pieces"]).replace("·", "") == "thecat</s>"
    assert "".join(done.result["target_pieces"]).replace("·", "") == "diekatze</s>"
    text = page.read_text("utf-8")
    data = data_of(text)
    assert data["source_labels"] == done.result["source_pieces"]
    assert data["target_labels"] == done.result["target_pieces"]
    shapes = [data[field]["shape"] for field in ("encoder", "decoder", "memory")]
    assert shapes == [[1, 2, 3, 3], [1, 2, 4, 4], [1, 2, 4, 3]]
    assert '<h1 dir="auto">the cat</h1>\n<p class="translation" dir="auto">die katze</p>' in text
    texts = ElementTree.parse(picture).getroot().iter("{http://www.w3.org/2000/svg}text")
    words = [*done.result["source_pieces"], *done.result["target_pieces"]]
    assert [text.text for text in texts] == words
    rows = [line for line in done.errors.splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + 3 * 2, "a header, a rule, two heads of one layer of three kinds"
    assert sorted(tmp_path.iterdir()) == [picture, page]


def test_the_model_translates(call_program, untrained, tmp_path):
    from keras_transformer.loading import load

    arguments = [f"--model_dir={untrained}", "--source=a dog ran", "--beam_size=1"]
    done = call_program("attention", *arguments, f"--output={tmp_path / 'page.html'}")
    assert done.code == 0, done.errors
    translator = load(untrained, beam_size=1)
    assert done.result["translation"] == translator.translate(["a dog ran"])[0][0].text
    assert done.result["target_pieces"][-1] == "</s>"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--source= "], "--source must hold a word. Received: ' '"),
        (["--target="], "--target must hold a word. Received: ''"),
        (["--model_dir=absent"], "--model_dir must be a directory that training has made"),
        (["--output=absent/page.html"], "--output must be a file in a directory that can be"),
        (
            ["--picture=absent/head.svg"],
            "--picture must be a file in a directory that can be written",
        ),
        (["--picture=a.svg", "--layer=2"], "--layer must be from 1 to 1. Received: 2"),
        (["--picture=a.svg", "--heads=1,3"], "--heads must be from 1 to 2. Received: 3"),
        (["--picture=a.svg", "--heads=one"], "--heads must be from 1 to 2. Received: one"),
        (["--picture=a.svg", "--kind=other"], "--kind=other"),
        (["--picture=page.html"], "--picture must end in .svg, .png, .pdf. Received: page.html"),
        (
            ["--picture=a.svg", "--output=./a.svg"],
            "--picture must be another file than --output. Received: 'a.svg'",
        ),
        (["--heads=1,2"], "--heads must be given with --picture only. Received: 1,2"),
        (["--picture=a.svg", "--word=dog"], "--word must be one of"),
    ],
)
def test_bad_flags(call_program, untrained, tmp_path, arguments, message):
    given = [f"--model_dir={untrained}", "--source=the cat", "--target=die", "--output=page.html"]
    done = call_program("attention", *given, *arguments, cwd=tmp_path)
    assert done.code == 1
    assert message in done.errors.splitlines()[-1]
    assert done.output == ""
    assert list(tmp_path.iterdir()) == []


def test_the_layer_of_a_picture_is_one_of_its_side(call_program, prepared, tmp_path):
    from tests.program_fixtures import make_model_dir

    model_dir = make_model_dir(
        prepared, tmp_path / "model", {1: (1, 1.0)}, num_layers=4, decoder_layers=2
    )
    given = [f"--model_dir={model_dir}", "--source=the cat", "--target=die", "--output=page.html"]
    for kind, layers in (("encoder", 4), ("decoder", 2), ("cross", 2)):
        picture = [*given, f"--picture={kind}.svg", f"--kind={kind}"]
        assert call_program("attention", *picture, cwd=tmp_path).code == 0
        done = call_program("attention", *picture, "--layer=5", cwd=tmp_path)
        assert f"--layer must be from 1 to {layers}. Received: 5" in done.errors


def test_picture_without_matplotlib(call_program, untrained, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    given = [f"--model_dir={untrained}", "--source=the cat", "--target=die"]
    done = call_program("attention", *given, "--output=page.html", "--picture=a.svg", cwd=tmp_path)
    assert done.code == 1
    assert 'pip install "keras-transformer-nmt[figures]"' in done.errors.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []
