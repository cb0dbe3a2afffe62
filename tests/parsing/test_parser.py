from typing import NamedTuple

from keras_transformer.parsing.linearisation import Linearisation
from keras_transformer.parsing.parser import Parser


class Answer(NamedTuple):
    text: str
    score: float


class Fake:
    """A translator with given answers."""

    model = config = None
    truncated = 3

    def __init__(self, *answers):
        self.answers, self.asked = [[Answer(*pair) for pair in row] for row in answers], None

    def translate(self, sentences, progress=False):
        self.asked = sentences
        return self.answers


def test_trees_over_the_words_as_given_but_for_brackets():
    fake = Fake([("(S NN NN NN )S", -1.0)])
    parser = Parser(fake, Linearisation("tags"))
    ((best,),) = parser.translate([" f(x)  binds\tp\u00a053 "])
    assert fake.asked == ["f-LRB-x-RRB- binds p\u00a053"]
    assert best.text == "(S (NN f-LRB-x-RRB-) (NN binds) (NN p\u00a053))"
    assert best.score == -1.0 and parser.truncated == 3
    assert parser.counts()["repaired"] == 0 and not any(parser.counts()["repairs"].values())


def test_what_needs_no_repair_comes_first_and_equal_trees_come_once():
    texts = ["(S XX", "(S XX XX )S", "(S XX XX XX )S", "(X XX XX )X", "(Y XX XX"]
    answers = [(text, -rank) for rank, text in enumerate(texts, start=1)]
    parser = Parser(Fake(answers), Linearisation())
    (found,) = parser.translate(["a b"])
    # The first answer, a word too short, becomes the tree of the second, which is then not new.
    assert [(parse.text[:2], parse.score) for parse in found] == [
        ("(S", -2),
        ("(X", -4),
        ("(Y", -5),
    ]
    assert parser.repaired == 0


def test_repairs_of_the_best_are_counted():
    answers = [("(S XX", -1.0), ("", -2.0)], [("(S XX )S )S", -1.0)], [("(S XX )S", -1.0)]
    parser = Parser(Fake(*answers), Linearisation())
    found = parser.translate(["a", "b", "c"])
    assert [best[0].text for best in found] == ["(S (XX a))", "(S (XX b))", "(S (XX c))"]
    assert parser.repaired == 2
    counted = {kind: count for kind, count in parser.counts()["repairs"].items() if count}
    assert counted == {"missing_closing": 1, "unmatched_closing": 1}


def test_a_line_without_words_has_no_tree():
    parser = Parser(Fake([("", 0.0)]), Linearisation())
    ((best,),) = parser.translate([" \t"])
    assert best.tree is None and best.text == "" and best.score == 0.0 and parser.repaired == 0
