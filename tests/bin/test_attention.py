import json
import re
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
        *(f"--output={page}", f"--svg={picture}", "--kind=memory", "--layer=1", "--heads=2"),
    )
    assert done.code == 0, done.errors
    assert done.result["output"] == str(page)
    assert done.result["bytes"] == page.stat().st_size
    assert done.result["checkpoint"] == "step-00000020"
    assert done.result["translation"] is None
    views = data_of(page.read_text("utf-8"))["views"]
    assert views[0]["keys"] == done.result["source_pieces"]
    assert views[2]["queries"] == done.result["target_pieces"]
    texts = ElementTree.parse(picture).getroot().iter("{http://www.w3.org/2000/svg}text")
    assert [text.text for text in texts] == [*views[2]["keys"], *views[2]["queries"]]
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
        (["--model_dir=absent"], "--model_dir must be a directory that bin/train.py made"),
        (["--output=absent/page.html"], "--output must be a file in a directory that can be"),
        (["--svg=absent/head.svg"], "--svg must be a file in a directory that can be written"),
        (["--svg=a.svg", "--layer=2"], "--layer must be from 1 to 1. Received: 2"),
        (["--svg=a.svg", "--heads=1,3"], "--heads must be from 1 to 2. Received: 3"),
        (["--svg=a.svg", "--heads=one"], "--heads must be from 1 to 2. Received: one"),
        (["--svg=a.svg", "--kind=other"], "--kind=other"),
        (["--svg=page.html"], "--svg and --output must be two files. Received: page.html"),
        (["--heads=1,2"], "--heads goes with --svg only. Received: 1,2"),
        (["--svg=a.svg", "--word=dog"], "--word must be one of"),
    ],
)
def test_bad_flags(call_program, untrained, tmp_path, arguments, message):
    given = [f"--model_dir={untrained}", "--source=the cat", "--target=die", "--output=page.html"]
    done = call_program("attention", *given, *arguments, cwd=tmp_path)
    assert done.code == 1
    assert message in done.errors.splitlines()[-1]
    assert done.output == ""
    assert list(tmp_path.iterdir()) == []
