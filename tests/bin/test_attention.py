import json
import re
import sys
from xml.etree import ElementTree

import pytest

from tests.refusals import check_line


def data_of(page):
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(match[1])


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
    model = [f"--model_dir={untrained}", "--beam_size=1"]
    page = f"--output={tmp_path / 'page.html'}"
    done = call_program("attention", *model, "--source=a dog ran", page)
    assert done.code == 0, done.errors
    alone = call_program("translate", *model, "--one_sentence_per_line", stdin=b"a dog ran\n")
    assert done.result["translation"] == alone.output.removesuffix("\n")
    assert done.result["target_pieces"][-1] == "</s>"


@pytest.mark.parametrize(
    ("arguments", "flag", "received", "about"),
    [
        (["--source= "], "--source", "' '", None),
        (["--target="], "--target", "''", None),
        (["--output=absent/page.html"], "--output", "absent/page.html", None),
        (["--picture=absent/head.svg"], "--picture", "absent/head.svg", None),
        (["--picture=a.svg", "--layer=2"], "--layer", "2", "from 1 to 1"),
        (["--picture=a.svg", "--heads=1,3"], "--heads", "3", "from 1 to 2"),
        (["--picture=a.svg", "--heads=one"], "--heads", "one", "from 1 to 2"),
        (["--picture=page.html"], "--picture", "page.html", ".svg"),
        (["--picture=a.svg", "--output=./a.svg"], "--picture", "a.svg", "--output"),
        (["--heads=1,2"], "--heads", "1,2", "--picture"),
        (["--picture=a.svg", "--word=dog"], "--word", "dog", "the cat"),
    ],
)
def test_bad_flags(call_program, untrained, tmp_path, arguments, flag, received, about):
    given = [f"--model_dir={untrained}", "--source=the cat", "--target=die", "--output=page.html"]
    done = call_program("attention", *given, *arguments, cwd=tmp_path)
    assert done.code == 1
    check_line(done.errors, flag, received, about)
    assert done.output == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow  # draws several pictures
def test_the_layer_of_a_picture_is_one_of_its_side(call_program, prepared, tmp_path):
    from tests.program_fixtures import make_model_dir

    sizes = {"num_layers": 2, "decoder_layers": 1}
    model_dir = make_model_dir(prepared, tmp_path / "model", {1: (1, 1.0)}, **sizes)
    given = [f"--model_dir={model_dir}", "--source=the cat", "--target=die", "--output=page.html"]
    given.append("--picture=a.svg")
    done = call_program("attention", *given, "--kind=encoder", "--layer=2", cwd=tmp_path)
    assert done.code == 0
    for kind, layers in (("encoder", 2), ("decoder", 1), ("cross", 1)):
        flags = [f"--kind={kind}", f"--layer={layers + 1}"]
        done = call_program("attention", *given, *flags, cwd=tmp_path)
        check_line(done.errors, "--layer", str(layers + 1), f"from 1 to {layers}")


def test_a_decoder_with_ssrus_has_no_self_attention_to_draw(call_program, prepared, tmp_path):
    from tests.program_fixtures import make_model_dir

    settings = {"decoder_self_attention": "ssru"}
    model_dir = make_model_dir(prepared, tmp_path / "model", {1: (1, 1.0)}, **settings)
    given = [f"--model_dir={model_dir}", "--source=the cat", "--target=die", "--output=page.html"]
    done = call_program("attention", *given, cwd=tmp_path)
    assert done.code == 0, done.errors
    rows = [line for line in done.errors.splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + 2 * 2, "a header, a rule, two heads of one layer of two kinds"
    flags = ["--kind=decoder", "--picture=a.svg"]
    done = call_program("attention", *given, *flags, cwd=tmp_path)
    check_line(done.errors, "--kind", "decoder", "encoder or cross")


def test_the_layer_by_default_is_the_last_but_one(load_program):
    given = ["--model_dir=model", "--source=a", "--output=page.html", "--picture=a.svg"]
    chosen_layer = load_program("attention", *given).chosen_layer
    assert [chosen_layer(layers) for layers in (1, 2, 6)] == [1, 1, 5]


def test_picture_without_matplotlib(call_program, untrained, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    given = [f"--model_dir={untrained}", "--source=the cat", "--target=die"]
    done = call_program("attention", *given, "--output=page.html", "--picture=a.svg", cwd=tmp_path)
    assert done.code == 1
    check_line(done.errors, "--picture", "a.svg", 'pip install "keras-transformer-nmt[figures]"')
    assert list(tmp_path.iterdir()) == []
