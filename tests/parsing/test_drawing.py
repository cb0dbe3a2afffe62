import itertools
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest

from keras_transformer.parsing.drawing import (
    GAP,
    MISSED,
    ROW,
    placed_nodes,
    svg_tree,
    text_tree,
    text_width,
    tree_page,
)
from keras_transformer.parsing.parseval import score_trees
from keras_transformer.parsing.trees import Tree, parse_trees

TEXT = "(S (NP (DT the) (NN cat)) (VP (VBD sat)) (. .))"
SVG = "{http://www.w3.org/2000/svg}"


def tree(text: str) -> Tree:
    return next(parse_trees([text], "test"))


def test_text_of_a_sentence():
    assert text_tree(tree(TEXT)).splitlines() == [
        "S",
        "├─ NP",
        "│  ├─ DT the",
        "│  └─ NN cat",
        "├─ VP",
        "│  └─ VBD sat",
        "└─ . .",
    ]


def test_text_with_marks():
    # Children come before parents: DT 0, NN 1, NP 2, VBD 3, VP 4.
    lines = text_tree(tree(TEXT), {2, 4}).splitlines()
    assert [line for line in lines if "*" in line] == ["├─ NP*", "├─ VP*"]


def test_text_of_an_empty_constituent():
    lines = text_tree(Tree("S", (Tree("NP"), Tree("X", (), "abc")))).splitlines()
    assert lines == ["S", "├─ NP", "└─ X abc"]


def test_root_without_label_is_called_top():
    assert text_tree(tree("( (NN x))")).splitlines() == ["TOP", "└─ NN x"]


def test_width_of_wide_and_combining_characters():
    # A Japanese character is as wide as two small letters, and an accent has no width of its own.
    assert text_width("日本") == pytest.approx(text_width("abcd"))
    assert text_width("e\u0301a") == pytest.approx(text_width("ea"))


@pytest.mark.parametrize(
    "text",
    [
        # Labels wider than their words, chains, and many children.
        "(LONGROOTLABEL (WHADJP (X a)) (A (B (CCCCCCCC (D b)))) (E c) (F (G d) (H e) (I f)))",
        "(S (WWWWWWWWWWWWWWWWWWWWWW (A a) (B (C bbbbbbbbbbbbbb) (D d))) (E e))",
    ],
)
def test_nothing_overlaps(text):
    nodes = placed_nodes(tree(text))
    assert {node.height for node in nodes} == set(range(nodes[-1].height + 1))
    for left, right in itertools.permutations(nodes, 2):
        if left.height == right.height and left.center < right.center:
            room = right.center - left.center - (reach(left) + reach(right))
            assert room >= GAP - 1e-6
    # The line down to a child passes by the labels of the levels between it and its parent.
    for parent in nodes:
        for child in parent.children:
            for node in nodes:
                if child.height < node.height < parent.height:
                    assert abs(node.center - child.center) > reach(node)
    # Each constituent stands over its bar, and below the strip of its parent.
    for parent in filter(lambda node: node.children, nodes):
        assert parent.children[0].center <= parent.center <= parent.children[-1].center
        for child in parent.children:
            assert abs(child.center - parent.center) <= (parent.width - child.width) / 2 + 1e-6


def reach(node):
    """How far a label, or the word below it, reaches to either side."""
    return max(text_width(node.label), text_width(node.word or "")) / 2


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


def test_svg_escapes_words():
    svg = ElementTree.fromstring(svg_tree(tree("""(S (NN <&>) (NN "a"))""")))
    assert [word.text for word in texts(svg, "word")] == ["<&>", '"a"']
    assert svg.get("aria-label") == '<&> "a"'
    odd = ElementTree.fromstring(svg_tree(tree("(A&B (C< (NN x)))"), {1, 2}))
    assert [label.text for label in texts(odd, "label")] == ["C<", "A&B"]


def test_svg_of_words_with_characters_that_xml_has_not():
    odd = Tree(
        "S\0", (Tree("NN", (), "a\x1bb"), Tree("NN", (), "\ud83d\x08"), Tree("NN", (), "\t😀"))
    )
    svg = ElementTree.fromstring(svg_tree(odd, {3}))
    assert [word.text for word in texts(svg, "word")] == ["a\ufffdb", "\ufffd\ufffd", "\t😀"]
    assert [label.text for label in texts(svg, "label")] == ["S\ufffd"]
    assert svg.find(f"{SVG}g/{SVG}title").text.startswith("S\ufffd: ")
    page = tree_page([odd])
    assert "\x1b" not in page and "\0" not in page and page.encode("utf-8")


def test_svg_marks_brackets():
    # Children come before parents: DT 0, NN 1, NP 2, VBD 3, VP 4, dot 5, S 6.
    svg = ElementTree.fromstring(svg_tree(tree(TEXT), {2, 4}, MISSED))
    groups = [group for group in svg.iter(SVG + "g") if group.get("class") == "missed"]
    assert [texts(group, "label")[0].text for group in groups] == ["NP", "VP"]
    assert groups[0].find(SVG + "title").text == "NP: not in the predicted tree"
    wrong = ElementTree.fromstring(svg_tree(tree(TEXT), {6}))
    assert wrong.find(SVG + "g").find(SVG + "title").text == "S: not in the gold tree"
    assert not ElementTree.fromstring(svg_tree(tree(TEXT))).findall(SVG + "g")


class Balance(HTMLParser):
    """Checks that what is opened is closed, in order."""

    def __init__(self):
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page_of_pairs():
    # VP is called X: G = P = 3, M = 2; F1 66.67. The second tree is right.
    predicted, gold = [tree(TEXT.replace("VP", "X")), tree(TEXT)], [tree(TEXT)] * 2
    page = tree_page(predicted, gold, first=7, scores=score_trees(gold, predicted))
    assert "Trees compared: 2. F1 83.33, precision 83.33, recall 83.33." in page
    assert re.findall(r"<b>(\d+)</b>(.*?) <i>(.*?)</i>", page) == [
        ("7", "the cat sat .", "F1 66.67"),
        ("8", "the cat sat .", "F1 100.00"),
    ]
    assert page.count("<svg") == 4
    assert re.findall(r'<g class="(\w+)"><title>(\w+):', page) == [("wrong", "X"), ("missed", "VP")]
    assert page.count("<details") == 2
    assert page.count("<details open") == 1
    balance = Balance()
    balance.feed(page)
    assert not balance.open
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|<script|<link|@import", page)


def test_page_without_gold():
    page = tree_page([tree(TEXT), tree(TEXT)])
    assert page.count("<svg") == 2
    assert "F1" not in page
    assert "not in the gold tree" not in page


@pytest.mark.parametrize(
    ("predicted", "note"),
    [
        (tree(TEXT.replace("sat", "<b>")), "word 3 without punctuation is &#x27;&lt;b&gt;&#x27;"),
        (tree("(S (. .))"), "no words"),
    ],
)
def test_trees_that_cannot_be_compared_have_no_marks(predicted, note):
    pair = [predicted], [tree(TEXT)]
    page = tree_page(*pair, scores=score_trees(*reversed(pair)))
    assert f"<i>{note}" in page
    assert "<g class=" not in page
