import itertools
import xml.etree.ElementTree as ElementTree

import pytest

from keras_transformer.parsing.drawing import (
    GAP,
    MISSED,
    ROW,
    columns,
    placed_nodes,
    svg_tree,
    text_tree,
    text_width,
)
from keras_transformer.parsing.trees import Tree, parse_trees

TEXT = "(S (NP (DT the) (NN cat)) (VP (VBD sat)) (. .))"
SVG = "{http://www.w3.org/2000/svg}"


def tree(text: str) -> Tree:
    return next(parse_trees([text], "test"))


def test_text_of_a_sentence():
    # Words are centred at 2.5, 7.5, 12.5 and 16.5; NP at 5, VP at 12.5, and S between NP and dot.
    assert text_tree(tree(TEXT)).splitlines() == [
        "          S",
        "    ┌─────┴─┬───┐",
        "    NP     VP   │",
        "  ┌─┴──┐    │   │",
        " DT   NN   VBD  .",
        " the  cat  sat  .",
    ]


def test_text_with_marks_and_a_wide_label():
    # The parent is above its middle child; the * takes part in the layout.
    assert text_tree(tree("(S (A (B a)) (WHADVP (C c)) (D d))"), {1}).splitlines() == [
        "       S",
        " ┌─────┼─────┐",
        " A*  WHADVP  │",
        " │     │     │",
        " B     C     D",
        " a     c     d",
    ]


def test_text_of_wide_and_combining_characters():
    # Two Japanese characters take four columns, e with an accent of its own takes one.
    assert columns("日本") == 4
    assert columns("e\u0301a") == 2
    assert text_tree(tree("(S (A (B 日本)) (C x) (D e\u0301a))")).splitlines() == [
        "      S",
        "  ┌───┴┬──┐",
        "  A    │  │",
        "  │    │  │",
        "  B    C  D",
        " 日本  x  e\u0301a",
    ]


def test_text_of_an_empty_constituent():
    assert text_tree(Tree("S", (Tree("NP"), Tree("X", (), "abc")))).splitlines() == [
        "   S",
        " ┌─┴──┐",
        " NP   X",
        "     abc",
    ]


def test_root_without_label_is_called_top():
    assert text_tree(tree("( (NN x))")).splitlines()[0] == " TOP"


@pytest.mark.parametrize("width", [columns, text_width])
def test_nothing_overlaps(width):
    # Labels wider than their words, chains, and many children.
    text = "(LONGROOTLABEL (WHADJP (X a)) (A (B (CCCCCCCC (D b)))) (E c) (F (G d) (H e) (I f)))"
    nodes = placed_nodes(tree(text), width, GAP)
    assert [node.label for node in nodes][:4] == ["LONGROOTLABEL", "WHADJP", "X", "A"]
    levels = {node.height for node in nodes}
    assert levels == {0, 1, 2, 3, 4}
    for level in levels:
        row = [node for node in nodes if node.height == level]
        for left, right in itertools.pairwise(row):
            room = right.center - left.center - (width(left.label) + width(right.label)) / 2
            assert room >= GAP - 1e-6
    for node in nodes:
        assert node.left - 1e-6 <= node.center <= node.left + node.width + 1e-6
        for child in node.children:
            assert child.left >= node.left - 1e-6
            assert child.left + child.width <= node.left + node.width + 1e-6


def test_deep_trees():
    deep = Tree("NN", (), "x")
    for _ in range(3000):
        deep = Tree("S", (deep,))
    assert text_tree(deep).count("S") == 3000
    assert svg_tree(deep).count(">S<") == 3000


def texts(svg: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [text for text in svg.iter(SVG + "text") if text.get("class") == kind]


def test_svg_has_words_in_a_line_and_parents_above():
    svg = ElementTree.fromstring(svg_tree(tree(TEXT)))
    words = texts(svg, "word")
    assert [word.text for word in words] == ["the", "cat", "sat", "."]
    assert len({word.get("y") for word in words}) == 1
    places = [float(word.get("x")) for word in words]
    assert places == sorted(places)
    assert [tag.text for tag in texts(svg, "tag")] == ["DT", "NN", "VBD", "."]
    labels = {text.text: text for text in texts(svg, "label")}
    assert set(labels) == {"S", "NP", "VP"}
    assert float(labels["NP"].get("y")) - float(labels["S"].get("y")) == ROW
    middle = (places[0] + places[1]) / 2
    assert float(labels["NP"].get("x")) == pytest.approx(middle, abs=0.1)
    assert all(0 < place < float(svg.get("width")) for place in places)
    assert svg.get("aria-label") == "the cat sat ."


def test_svg_stands_alone_and_knows_dark():
    svg = svg_tree(tree(TEXT))
    assert "prefers-color-scheme: dark" in svg
    for outside in ("href", "url(", "@import", "<script", "var("):
        assert outside not in svg
    assert "<style></style>" in svg_tree(tree(TEXT), style="")


def test_svg_escapes_words():
    svg = ElementTree.fromstring(svg_tree(tree("""(S (NN <&>) (NN "a"))""")))
    assert [word.text for word in texts(svg, "word")] == ["<&>", '"a"']
    assert svg.get("aria-label") == '<&> "a"'
    odd = ElementTree.fromstring(svg_tree(tree("(A&B (C< (NN x)))"), {0, 1}))
    assert [label.text for label in texts(odd, "label")] == ["A&B", "C<"]


def test_svg_marks_brackets():
    # Preorder: S 0, NP 1, DT 2, NN 3, VP 4.
    svg = ElementTree.fromstring(svg_tree(tree(TEXT), {1, 4}, MISSED))
    groups = [group for group in svg.iter(SVG + "g") if group.get("class") == "missed"]
    assert [texts(group, "label")[0].text for group in groups] == ["NP", "VP"]
    assert groups[0].find(SVG + "title").text == "NP: not in the predicted tree"
    wrong = ElementTree.fromstring(svg_tree(tree(TEXT), {0}))
    assert wrong.find(SVG + "g").find(SVG + "title").text == "S: not in the gold tree"
    assert not ElementTree.fromstring(svg_tree(tree(TEXT))).findall(SVG + "g")
