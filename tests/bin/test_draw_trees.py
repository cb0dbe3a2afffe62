import pytest

from tests.refusals import check_line

GOLD = "( (S (NP-SBJ (DT the) (NN cat)) (VP (VBD sat) (NP (-NONE- *))) (. .)) )\n"
PREDICTED = "(S (NP (DT the) (NN cat)) (X (VBD sat)) (. .))\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "gold.ptb").write_text(GOLD * 3)
    (tmp_path / "trees.ptb").write_text(PREDICTED * 3)
    return tmp_path


def test_text(files, run_program):
    done = run_program("draw_trees", "--trees", str(files / "trees.ptb"), "--first=3")
    assert done.code == 0
    assert done.output.splitlines() == [
        "tree 3",
        "S",
        "├─ NP",
        "│  ├─ DT the",
        "│  └─ NN cat",
        "├─ X",
        "│  └─ VBD sat",
        "└─ . .",
    ]
    assert '{"output": "-"}' in done.errors


def test_text_beside_gold(files, call_program):
    arguments = ("--trees", str(files / "trees.ptb"), "--gold", str(files / "gold.ptb"))
    lines = call_program("draw_trees", *arguments, "--count=1").output.splitlines()
    assert lines[0] == "tree 1"
    assert lines[5] == "├─ X*"
    assert lines[8] == "gold"
    assert lines[13] == "├─ VP*"
    raw = call_program("draw_trees", *arguments, "--count=1", "--noclean").output
    assert "NP-SBJ" in raw
    assert "-NONE-" in raw


def test_svg_and_page(files, call_program):
    arguments = ("--trees", str(files / "trees.ptb"), "--gold", str(files / "gold.ptb"))
    svg, page = files / "tree.svg", files / "trees.html"
    result = call_program("draw_trees", *arguments, "--output", str(svg)).result
    # G = P = 3, M = 2 in each.
    assert result["output"] == str(svg)
    assert (result["f1"], result["sentences"]) == (66.67, 3)
    assert svg.read_text(encoding="utf-8").count('<g class="wrong">') == 1
    call_program("draw_trees", *arguments, "--output", str(page), "--first=2")
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == 4
    assert "Trees compared: 3. F1 66.67" in text


def test_bad_input(files, call_program):
    trees, gold = str(files / "trees.ptb"), str(files / "gold.ptb")

    def refused(arguments, subject, received=None):
        done = call_program("draw_trees", *arguments)
        assert done.code == 1
        assert done.errors.count("\n") == 1
        check_line(done.errors, subject, received)

    refused([], "--trees")
    refused(["--trees=x", "--output=a.pdf"], "--output", "a.pdf")
    refused(["--trees", trees, "--first=4"], "--first", "4")
    both = ["--trees", trees, "--gold", gold]
    (files / "gold.ptb").write_text(GOLD * 2)
    refused(both, f"--trees={trees} --gold={gold}: predicted", "2 gold")
    (files / "gold.ptb").write_text(GOLD + "(S (NN x\n")
    refused(both, f"{gold}:2: brackets", "2 open")
    missing = str(files / "none" / "a.svg")
    refused(["--trees", trees, "--output", missing], "--output", missing)


def test_no_input_is_overwritten(files, call_program):
    trees, gold = files / "trees.svg", files / "gold.svg"
    trees.write_text(PREDICTED)
    gold.write_text(GOLD)
    (files / "link.svg").symlink_to(gold)
    arguments = ["--trees", str(trees), "--gold", str(gold)]
    for output, flag in ((trees, "trees"), (gold, "gold"), (files / "link.svg", "gold")):
        done = call_program("draw_trees", *arguments, "--output", str(output))
        assert done.code == 1
        check_line(done.errors, "--output", output, f"--{flag}")
    assert (trees.read_text(), gold.read_text()) == (PREDICTED, GOLD)
