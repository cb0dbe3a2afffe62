import re
from html.parser import HTMLParser

import pytest

from keras_transformer.parsing.parseval import score_trees
from keras_transformer.parsing.tree_page import tree_page
from keras_transformer.parsing.trees import Tree, parse_trees

GOLD = "(S (NP (DT the) (NN cat)) (VP (VBD sat)) (. .))"


def tree(text: str) -> Tree:
    return next(parse_trees([text], "test"))


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
    predicted, gold = [tree(GOLD.replace("VP", "X")), tree(GOLD)], [tree(GOLD)] * 2
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
    page = tree_page([tree(GOLD), tree(GOLD)])
    assert page.count("<svg") == 2
    assert "F1" not in page
    assert "not in the gold tree" not in page


@pytest.mark.parametrize(
    ("predicted", "note"),
    [
        (tree(GOLD.replace("sat", "<b>")), "word 3 but punctuation is &#x27;&lt;b&gt;&#x27;"),
        (tree("(S (. .))"), "no words"),
    ],
)
def test_trees_that_cannot_be_compared_have_no_marks(predicted, note):
    page = tree_page([predicted], [tree(GOLD)])
    assert f"<i>{note}" in page
    assert "<g class=" not in page
