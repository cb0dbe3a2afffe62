import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from keras_transformer.parsing.trees import Tree, parse_trees

PROGRAM = Path(__file__).resolve().parents[2] / "benchmarks" / "parsing_baselines.py"

# "saw it with x": the PP hangs on the VP in two of three trees.
HIGH = "(S (NP (PRP we)) (VP (VBD saw) (NP (PRP it)) (PP (IN with) (NP (NN x)))) (. .))"
LOW = "(S (NP (PRP we)) (VP (VBD saw) (NP (NP (PRP it)) (PP (IN with) (NP (NN x))))) (. .))"


@pytest.fixture(scope="module")
def baselines():
    spec = importlib.util.spec_from_file_location("parsing_baselines", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # for pickling
    spec.loader.exec_module(module)
    return module


def tree(text: str) -> Tree:
    return next(parse_trees([text], "test"))


def test_right_branching(baselines):
    # Roots: S twice, X once. At the end, of two words or more, punctuation left out: NP 2, VP 1.
    ends = ["(NP (A a) (A a))", "(NP (VP (A a) (A a)) (. .))", "(PP (A a)) (PP (A a))"]
    train = [tree(f"({root} (A a) {end} (. .))") for root, end in zip("SSX", ends, strict=True)]
    parser = baselines.RightBranching(train)
    leaves = [("A", "a"), ("B", "b"), ("C", "c"), (".", ".")]
    assert str(parser.parse(leaves)) == "(S (A a) (NP (B b) (C c)) (. .))"
    assert str(parser.parse(leaves[:3])) == "(S (A a) (NP (B b) (C c)))"
    assert str(parser.parse(leaves[:2])) == "(S (A a) (B b))"
    assert str(parser.parse(leaves[:1])) == "(S (A a))"
    assert str(parser.parse(leaves[3:])) == "(S (. .))"


def test_rules_of_a_tree(baselines):
    rules = list(baselines.binary_rules(tree("(S+X (A a) (NP (B b)) (A a) (C c) (. .))")))
    assert rules == [
        (("S+X", ""), ("A",), ("S+X", "", "A")),
        (("S+X", "", "A"), ("NP", "X"), ("S+X", "", "A", "NP")),
        (("S+X", "", "A", "NP"), ("A",), ("S+X", "", "NP", "A")),
        (("S+X", "", "NP", "A"), ("C",), (".",)),
        (("NP", "X"), ("B",)),
    ]


@pytest.mark.parametrize("gold_tags", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        HIGH,
        LOW,
        "(TOP (FRAG (NP (NN x))))",
        "(S (A a) (B b) (C c) (D d) (E e) (VP (X (F f) (G g))))",
    ],
)
def test_grammar_of_one_tree_gives_this_tree(baselines, text, gold_tags):
    parser = baselines.Pcfg([tree(text)], gold_tags)
    assert parser.parse(tree(text).leaves()) == tree(text)


def test_the_more_probable_tree_wins(baselines):
    """Where they differ: HIGH has VP -> VBD NP PP, NP^VP -> PRP; LOW has VP -> VBD NP,
    NP^VP -> NP PP, NP^NP -> PRP. Of two HIGH and one LOW: 2/3 * 2/3 against 1/3 * 1/3 * 1.
    """
    high, low = tree(HIGH), tree(LOW)
    parser = baselines.Pcfg([high, high, low], True)
    assert parser.parse(high.leaves()) == high
    ratio = probability(baselines, parser, high) / probability(baselines, parser, low)
    assert ratio == pytest.approx(4)
    parser = baselines.Pcfg([high, *[low] * 3], True)
    assert parser.parse(high.leaves()) == low


def probability(baselines, parser, tree):
    """The product of the probabilities of a tree's rules, looked up one by one."""
    lexical = zip(parser.over, parser.tag, parser.lexical_scores, strict=True)
    binary = zip(parser.parent, parser.left, parser.right, parser.scores, strict=True)
    scores = {tuple(rule): score for *rule, score in (*lexical, *binary)}
    rules = baselines.binary_rules(tree)
    return math.exp(sum(scores[tuple(parser.numbers[part] for part in rule)] for rule in rules))


def test_unknown_words_have_the_tags_of_rare_words_of_their_form(baselines):
    train = [tree("(S (NN dog) (VBG running) (NN house) (NN dog) (CD 12) (DT the) (DT the))")]
    lexicon = baselines.Lexicon(train)
    assert set(lexicon.log_scores("swimming")) == {"VBG"}
    assert set(lexicon.log_scores("99")) == {"CD"}
    # Of no form that a rare word had: what any rare word may be. "the" and "dog" are not rare.
    assert set(lexicon.log_scores("%")) == {"VBG", "NN", "CD"}
    # P(VBG | swimming) = 1, P(VBG) = 1/7.
    assert lexicon.log_scores("swimming")["VBG"] == pytest.approx(math.log(7))
    # dog: seen twice as NN, and its form is unknown, so (2 + 1/3) / 3 of P(NN) = 3/7.
    expected = math.log((2 + 1 / 3) / 3) - math.log(3 / 7)
    assert lexicon.log_scores("dog")["NN"] == pytest.approx(expected)


def test_no_tree_where_the_grammar_has_none(baselines):
    parser = baselines.Pcfg([tree(HIGH)], True)
    assert parser.parse([("NN", "x"), ("NN", "x")]) is None
    assert parser.parse([("UNSEEN", "x")]) is None


def test_program(tmp_path):
    train, test = tmp_path / "train.ptb", tmp_path / "test.ptb"
    train.write_text(f"( {HIGH} )\n" * 3)
    # The second is too long for --max_length and branches right, the third has no tree.
    test.write_text(f"( {HIGH} )\n( {HIGH.replace('(. .)', '(, ,) (. .)')} )\n(S (NN x) (NN x))\n")
    command = [sys.executable, str(PROGRAM), f"--train_trees={train}", f"--test_trees={test}"]
    command += ["--max_length=6", "--processes=1", "--tags=gold"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    # Gold: S 0-5, NP 0-1, VP 1-5, NP 2-3, PP 3-5, NP 4-5; the same; S 0-2. Right-branching has
    # S 0-5 and VP 1-5, 2-5, 3-5 (2 right); these, and VP 4-5 over x and the comma (2); S 0-2 (1).
    assert result["right_branching"]["all"]["recall"] == round(100 * (2 + 2 + 1) / 13, 2)
    assert result["pcfg"]["all"]["recall"] == round(100 * (6 + 2 + 1) / 13, 2)
    assert (result["pcfg"]["too_long"], result["pcfg"]["without_tree"]) == (1, 1)
