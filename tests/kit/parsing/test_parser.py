"""A parser over graphs whose answers are given."""

import dataclasses

import pytest

from keras_transformer.core.config import TransformerConfig
from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.kit.parsing.linearisation import Linearisation
from keras_transformer.kit.parsing.parser import Parser
from keras_transformer.use.translate.translator import Translator
from tests.given_answers import GivenAnswers, card_of
from tests.refusals import refused


def make(*answers, linearisation=None):
    """A parser that gives these answers in turn, and the texts that it gives to its graphs."""
    remaining = iter(answers)
    given = GivenAnswers(lambda text: next(remaining))
    options = dataclasses.asdict(linearisation or Linearisation())
    card = card_of(TransformerConfig(100), DecodingConfig(1), task="parsing", task_options=options)
    return Parser(Translator(given, given.vocabularies, card)), given.texts


def test_no_alignments():
    with refused("aligned", "a parsing model"):
        make()[0].translate(["a"], aligned=True)
    with refused("required_phrases", "a parsing model"):
        make()[0].translate(["a"], required_phrases=[["b"]])


def test_trees_over_the_words_as_given_but_for_brackets():
    parser, asked = make([("(S NN NN NN )S", -1.0)], linearisation=Linearisation("tags"))
    ((best,),) = parser.translate([" f(x)  binds\tp\u00a053 "])
    assert asked == ["f-LRB-x-RRB- binds p\u00a053"]
    assert best.text == "(S (NN f-LRB-x-RRB-) (NN binds) (NN p\u00a053))"
    assert (best.score, best.log_prob, best.tokens) == (-1.0, -2.0, 3)
    counts = parser.new_counts()
    counts.add([best])
    assert counts.of_trees()["repaired"] == 0
    assert not any(counts.of_trees()["repairs"].values())


def test_what_needs_no_repair_comes_first_and_equal_trees_come_once():
    texts = ["(S XX", "(S XX XX )S", "(S XX XX XX )S", "(X XX XX )X", "(Y XX XX"]
    answers = [(text, -rank) for rank, text in enumerate(texts, start=1)]
    parser, _ = make(answers)
    (found,) = parser.translate(["a b"])
    # The first answer, a word too short, becomes the tree of the second, which is then not new.
    assert [(parse.text[:2], parse.score) for parse in found] == [
        ("(S", -2),
        ("(X", -4),
        ("(Y", -5),
    ]
    assert found[0].repairs.total == 0


def test_repairs_are_counted():
    answers = ([("(S XX", -1.0)], [("(S XX )S )S", -1.0)], [("(S XX )S", -1.0)])
    parser, _ = make(*answers)
    found = [best for best, *_ in parser.translate(["a", "b", "c"])]
    assert [best.text for best in found] == ["(S (XX a))", "(S (XX b))", "(S (XX c))"]
    counts = parser.new_counts()
    counts.add(found[:1])
    counts.add(iter(found[1:]))
    reported = counts.of_trees()
    assert reported["repaired"] == 2
    repairs = {kind: count for kind, count in reported["repairs"].items() if count}
    assert repairs == {"missing_closing": 1, "unmatched_closing": 1}
    assert (counts.truncated, counts.unfinished) == (0, 0)
    assert parser.new_counts().of_trees()["repaired"] == 0


def test_the_best_trees_alone():
    parser, _ = make([("(S XX", -1.0)], [("(S XX )S", -1.0)])
    assert [str(tree) for tree in parser.parse(["a", "b"])] == ["(S (XX a))", "(S (XX b))"]


def test_a_line_without_words_has_no_tree():
    parser, _ = make([("", 0.0)])
    ((best,),) = parser.translate([" \t"])
    assert best.tree is None and best.text == "" and best.score == 0.0
    assert best.repairs.total == 0


@pytest.mark.parametrize(
    ("target", "tokens"),
    [
        ("(S (NP (DT the) (NN dog)) (VP (VBZ barks)))", "(S (NP DT NN )NP (VP VBZ )VP )S"),
        ("(S DT NN VBZ )S", "(S DT NN VBZ )S"),
        ("", ""),
    ],
)
def test_targets_are_trees_or_tokens(target, tokens):
    parser, asked = make(linearisation=Linearisation("tags"))
    (found,) = parser.score(["the dog(s) barks"], [target])
    assert sorted(asked) == sorted(["the dog-LRB-s-RRB- barks", tokens])
    assert found == (-1.0, 2, False)
