import itertools
import random

import pytest

from keras_transformer.kit.parsing.linearisation import Linearisation, Repairs, shares
from keras_transformer.kit.parsing.trees import UNARIES, Tree, clean, parse_trees
from tests.refusals import refused

SENTENCES = [
    "(S (NP (DT the) (NN dog)) (VP (VBZ barks) (ADVP (RB now))) (. .))",
    "(HEADING (NP (NN Abstract)))",
    "(TOP (NN x))",
    "(S (VP (VB see) (S (NP (PRP it)) (VP (VB go)))) (-RRB- -RRB-))",
    "(TOP (S (VP (VB go))) (. .))",
]
WAYS = [Linearisation(*way) for way in itertools.product(("xx", "tags", "keep"), UNARIES)]


def tree(text):
    (found,) = parse_trees([text], "test")
    return found


@pytest.mark.parametrize(
    ("way", "tokens"),
    [
        (WAYS[0], "(S (NP XX XX )NP (VP XX (ADVP XX )ADVP )VP XX )S"),
        (WAYS[2], "(S (NP DT NN )NP (VP VBZ (ADVP RB )ADVP )VP . )S"),
        (WAYS[4], "(S (NP the dog )NP (VP barks (ADVP now )ADVP )VP . )S"),
    ],
)
def test_the_tokens_of_a_tree(way, tokens):
    assert " ".join(way.tokens(tree(SENTENCES[0]))) == tokens


def test_collapsed_unaries_are_one_bracket():
    assert WAYS[1].tokens(tree("(HEADING (NP (NN a)))")) == ["(HEADING+NP", "XX", ")HEADING+NP"]


def test_symbols_are_brackets_and_what_stands_for_words_but_no_words():
    assert WAYS[0].symbols(tree("(S (A a) (B b))")) == {"(S", ")S", "XX"}
    assert WAYS[2].symbols(tree("(S (A a) (B b))")) == {"(S", ")S", "A", "B"}
    assert WAYS[4].symbols(tree("(S (A a) (B b))")) == {"(S", ")S"}


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("text", SENTENCES)
def test_round_trip(way, text):
    gold = tree(text)
    found, repairs = way.tree(way.tokens(gold), gold.words())
    assert repairs == Repairs() and repairs.total == 0
    expected = text
    if way.words != "tags":
        for tag, word in gold.leaves():
            expected = expected.replace(f"({tag} {word})", f"(XX {word})")
    assert str(found) == expected


@pytest.mark.parametrize(
    ("tokens", "expected", "repairs"),
    [
        ("(S (NP XX )NP )VP XX )S", "(S (NP (XX a)) (XX b))", {"unmatched_closing": 1}),
        ("(S (NP XX (VP XX )S", "(S (NP (XX a) (VP (XX b))))", {"missing_closing": 2}),
        ("(S (NP XX XX", "(S (NP (XX a) (XX b)))", {"missing_closing": 2}),
        ("(S (NP XX ) XX )", "(S (NP (XX a)) (XX b))", {}),
        ("(S (NP )NP XX XX )S", "(S (XX a) (XX b))", {"empty_constituents": 1}),
        ("(S (S XX XX )S )S", "(S (XX a) (XX b))", {"repeated_unaries": 1}),
        ("(S (NP XX )NP )S", "(S (NP (XX a)) (XX b))", {"missing_words": 1}),
        ("(S XX XX XX XX )S", "(S (XX a) (XX b))", {"extra_words": 2}),
        ("(S (( XX X( XX )S", "(S (XX a) (XX b))", {"strange_tokens": 2}),
        ("(NP XX )NP XX", "(TOP (NP (XX a)) (XX b))", {"missing_root": 1}),
        ("(NP XX )NP (VP XX )VP", "(TOP (NP (XX a)) (VP (XX b)))", {"missing_root": 1}),
        ("XX", "(TOP (XX a) (XX b))", {"missing_words": 1, "missing_root": 1}),
        ("", "(TOP (XX a) (XX b))", {"missing_words": 2, "missing_root": 1}),
        (
            "(S (NP )NP )S",
            "(TOP (XX a) (XX b))",
            {"empty_constituents": 2, "missing_words": 2, "missing_root": 1},
        ),
        (
            "(NP XX )NP (VP",
            "(NP (XX a) (XX b))",
            {"missing_closing": 1, "empty_constituents": 1, "missing_words": 1},
        ),
    ],
)
def test_repairs(tokens, expected, repairs):
    found, done = Linearisation().tree(tokens.split(), ["a", "b"])
    assert str(found) == expected
    assert done == Repairs(**repairs) and done.total == sum(repairs.values())


def test_brackets_in_kept_words_are_spelled():
    found = Tree("X", (Tree("NN", (), "f(x)"),))
    assert WAYS[4].tokens(found) == ["(X", "f-LRB-x-RRB-", ")X"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("a b c d", [1, 1, 1, 1]),
        ("a c d", [2, 1, 1]),  # b goes where a is
        ("b c d", [2, 1, 1]),  # a goes before b
        ("a b b c d", [1, 0, 1, 1, 1]),
        ("a x c d", [1, 1, 1, 1]),
        ("a x y z d", [1, 1, 1, 0, 1]),
        ("a x d", [1, 2, 1]),
        ("x a b c d y", [0, 1, 1, 1, 1, 0]),
        ("a b", [1, 1]),  # c and d are left
        ("x", [1]),
        ("", []),
    ],
)
def test_words_that_were_said_are_aligned_with_those_of_the_sentence(said, expected):
    assert shares(said.split(), ["a", "b", "c", "d"]) == expected


def test_a_slip_in_kept_words_stays_where_it_happened():
    said = "(S (A a a )A (B x d )B (C f )C )S"
    found, repairs = WAYS[4].tree(said.split(), list("abcdef"))
    assert str(found) == "(S (A (XX a) (XX b)) (B (XX c) (XX d) (XX e)) (C (XX f)))"
    assert repairs == Repairs(other_words=2, missing_words=1)
    said = "(S (A a b )A (B b c )B )S"
    found, repairs = WAYS[4].tree(said.split(), list("abcd"))
    assert str(found) == "(S (A (XX a) (XX b)) (B (XX c)) (XX d))"
    assert repairs == Repairs(extra_words=1, missing_words=1)


def test_only_tags_are_taken_for_tags():
    for way, tag in ((WAYS[0], "XX"), (WAYS[2], "NN"), (WAYS[4], "XX")):
        assert str(way.tree(["(S", "NN", ")S"], ["NN"])[0]) == f"(S ({tag} NN))"


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_any_sequence_becomes_a_tree_over_exactly_the_words(way):
    generator = random.Random(7)
    labelled = [bracket + label for bracket in "()" for label in ("S", "NP", "S+NP", "", "+")]
    alphabet = [*labelled, "XX", "NN", "+", "((", ")x(", "", "a b"]
    needed = 0
    for _ in range(1000):
        tokens = generator.choices(alphabet, k=generator.randrange(25))
        words = [f"w{n}" for n in range(generator.randrange(1, 7))]
        found, repairs = way.tree(tokens, words)
        needed += repairs.total > 0
        assert found.words() == words
        assert found.word is None
        for node in found.walk():
            assert node.label and not set(node.label) & set("() ")
            assert (node.word is None) == bool(node.children)
            below = [child.label for child in node.children if child.word is None]
            assert len(node.children) != 1 or below != [node.label]
        assert tree(str(found)) == found == clean(Tree("", (found,)))
        assert WAYS[2].tree(WAYS[2].tokens(found), words) == (found, Repairs())
    assert needed > 667


def test_hundreds_of_open_brackets_do_no_harm():
    found, _ = Linearisation().tree(["(S", "(NP"] * 3000, ["a"])
    assert str(found) == "(TOP (XX a))"
    found, _ = Linearisation().tree(["(S", "(NP"] * 3000 + ["XX"], ["a"])
    assert len(list(found.walk())) == 6001


@pytest.mark.parametrize(
    ("options", "argument", "received"),
    [({"words": "pos"}, "words", "pos"), ({"unaries": "drop"}, "unaries", "drop")],
)
def test_unknown_options(options, argument, received):
    with refused(argument, received):
        Linearisation(**options)
