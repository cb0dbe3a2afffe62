"""Every rule of COLLINS.prm, counted by hand: G gold brackets, P predicted ones, M matched ones."""

import re

import pytest

from keras_transformer.kit.parsing.parseval import (
    SentenceScore,
    brackets_of,
    parsing_scores,
    score_sentence,
    score_trees,
    summary,
    with_gold_tags,
)
from keras_transformer.kit.parsing.trees import Tree, parse_trees
from tests.refusals import refused

# Words 0 to 5: the cat sat on it (.)    G = 4: S 0-5, NP 0-2, VP 2-5, PP 3-5, of 5 words.
GOLD = "(S (NP (DT the) (NN cat)) (VP (VBD sat) (PP (IN on) (PRP it))) (. .))"


def tree(text: str) -> Tree:
    return next(parse_trees([text], "test"))


def counts(gold: str, predicted: str) -> tuple[int, int, int]:
    """(G, P, M)"""
    score = score_sentence(tree(gold), tree(predicted))
    assert not score.error and not score.skipped
    return score.gold.total(), score.predicted.total(), score.matched.total()


def test_labels_and_spans_must_agree():
    assert counts(GOLD, GOLD) == (4, 4, 4)
    # VP is called NP: M = S, NP, PP.
    assert counts(GOLD, GOLD.replace("(VP", "(NP")) == (4, 4, 3)
    # on moves out of the PP: S, NP and VP stay, PP 3-5 is gone, NP 4-5 is new.
    moved = GOLD.replace("(PP (IN on) (PRP it))", "(IN on) (NP (PRP it))")
    assert counts(GOLD, moved) == (4, 4, 3)
    # Preterminals are no brackets: other tags change nothing.
    assert counts(GOLD, GOLD.replace("(NN cat)", "(VB cat)")) == (4, 4, 4)


@pytest.mark.parametrize("top", ["TOP", ""])
def test_top_is_no_bracket(top):
    assert counts(f"({top} {GOLD})", GOLD) == (4, 4, 4)
    assert counts(GOLD, f"({top} {GOLD})") == (4, 4, 4)


def test_other_names_for_top_are_brackets():
    # COLLINS.prm has TOP alone: ROOT 0-5 makes P = 5.
    assert counts(GOLD, f"(ROOT {GOLD})") == (4, 5, 4)


@pytest.mark.parametrize("tag", [",", ":", "``", "''", "."])
def test_punctuation_is_in_no_span(tag):
    # The mark stands outside the VP in gold, inside it in the prediction: without it VP is 1-2.
    gold = f"(S (NP (PRP it)) (VP (VBD sat)) ({tag} x))"
    predicted = f"(S (NP (PRP it)) (VP (VBD sat) ({tag} x)))"
    assert counts(gold, predicted) == (3, 3, 3)


@pytest.mark.parametrize("tag", ["-LRB-", "-RRB-", "HYPH", "SYM", "$", "#", "?"])
def test_other_marks_are_words(tag):
    # S 0-3, NP 0-1; VP is 1-2 and 1-3: M = 2.
    gold = f"(S (NP (PRP it)) (VP (VBD sat)) ({tag} x))"
    predicted = f"(S (NP (PRP it)) (VP (VBD sat) ({tag} x)))"
    assert counts(gold, predicted) == (3, 3, 2)


def test_constituents_without_words_vanish():
    # SBAR holds a trace alone, PRN a comma alone, X nothing: G = S, NP, VP.
    gold = """(S (NP (PRP it)) (PRN (, ,))
        (VP (VBD sat) (SBAR (-NONE- 0) (S (-NONE- *T*-1)))))"""
    predicted = "(S (NP (PRP it)) (, ,) (VP (VBD sat)))"
    assert counts(gold, predicted) == (3, 3, 3)
    assert counts(predicted, gold) == (3, 3, 3)
    empty = Tree("S", (*tree(GOLD).children, Tree("X")))
    assert score_sentence(tree(GOLD), empty).predicted.total() == 4


def test_function_tags_do_not_count():
    # NP-SBJ-1 and NP=2 are NP.
    gold = "(S-TPC-1 (NP-SBJ-1 (PRP it)) (VP (VBD sat) (NP=2 (NN down))))"
    predicted = "(S (NP (PRP it)) (VP (VBD sat) (NP (NN down))))"
    assert counts(gold, predicted) == (4, 4, 4)


def test_labels_that_begin_with_a_mark_of_function_tags():
    # Nothing is left of -LRB- and of =X, and EVALB counts them: S, NP, NP and one without a label.
    gold = "(S (NP (NN a)) (-LRB- (NP (NN b))))"
    assert counts(gold, gold) == (4, 4, 4)
    assert counts(gold, gold.replace("-LRB-", "=X")) == (4, 4, 4)
    assert counts(gold, "(S (NP (NN a)) (NP (NN b)))") == (4, 3, 3)
    # A bracket that never had a label is around a tree of a file, and counts like TOP.
    assert counts(gold, f"( {gold})") == (4, 4, 4)
    assert counts(gold, f"(TOP {gold})") == (4, 4, 4)


def test_adverbs_and_particles_are_equal():
    # EQ_LABEL ADVP PRT, both ways round; ADJP is another label.
    gold = "(S (NP (PRP it)) (VP (VBD sat) (PRT (RP down))))"
    assert counts(gold, gold.replace("PRT", "ADVP")) == (4, 4, 4)
    assert counts(gold.replace("PRT", "ADVP"), gold) == (4, 4, 4)
    assert counts(gold, gold.replace("PRT", "ADJP")) == (4, 4, 3)
    assert score_sentence(tree(gold), tree(gold)).gold["ADVP"] == 1  # they share a row


def test_equal_brackets_need_a_partner_each():
    one, two, three = "(S (NN x))", "(S (S (NN x)))", "(S (S (S (NN x))))"
    assert counts(two, one) == (2, 1, 1)
    assert counts(two, three) == (2, 3, 2)
    # The order in a chain of unaries does not matter.
    assert counts("(S (VP (NN x)))", "(VP (S (NN x)))") == (2, 2, 2)


def test_brackets_by_label():
    # Predicted: VP as NP, with PP right: NP 1 of 2 is right.
    score = score_sentence(tree(GOLD), tree(GOLD.replace("(VP", "(NP")))
    assert score.gold == {"S": 1, "NP": 1, "VP": 1, "PP": 1}
    assert score.predicted == {"S": 1, "NP": 2, "PP": 1}
    assert score.matched == {"S": 1, "NP": 1, "PP": 1}


def test_crossing_brackets():
    # a b c d; gold NP 0-2 and NP 2-4. X 1-3 crosses both and counts once; Y 1-4 crosses the first.
    gold = "(S (NP (A a) (B b)) (NP (C c) (D d)))"
    predicted = "(S (A a) (Y (X (B b) (C c)) (D d)))"
    assert score_sentence(tree(gold), tree(predicted)).crossing == 2
    # The other way round: NP 0-2 crosses X and Y, NP 2-4 crosses X.
    assert score_sentence(tree(predicted), tree(gold)).crossing == 2
    # Inside or beside is not across; nor is a comma's place.
    nested = "(S (NP (A a) (X (B b))) (NP (C c) (D d)))"
    assert score_sentence(tree(gold), tree(nested)).crossing == 0
    assert (
        score_sentence(
            tree("(S (X (A a) (, ,)) (B b))"), tree("(S (A a) (X (, ,) (B b)))")
        ).crossing
        == 0
    )


def test_tags_are_counted_without_punctuation():
    # 5 words; cat is wrong: 4. The full stop is none of them.
    score = score_sentence(tree(GOLD), tree(GOLD.replace("NN", "VB")))
    assert (score.words, score.correct_tags) == (5, 4)


def test_length_counts_punctuation_and_no_traces():
    # the cat sat on it . = 6; a trace adds nothing.
    assert brackets_of(tree(GOLD)).length == 6
    assert brackets_of(tree(GOLD.replace("(. .)", "(. .) (NP (-NONE- *))"))).length == 6
    assert len(brackets_of(tree(GOLD)).words) == 5


def test_empty_prediction_is_skipped():
    for predicted in (Tree("TOP"), tree("(S (. .))")):
        assert score_sentence(tree(GOLD), predicted) == SentenceScore(6, skipped=True)
    # As EVALB does it, gold trees of punctuation alone are skipped with their predictions ...
    assert score_sentence(tree("(S (. .))"), tree("(S (. .))")).skipped
    # ... and errors where the prediction has words.
    assert score_sentence(tree("(S (. .))"), tree("(S (NN .))")).error


def test_other_words_are_errors():
    fewer = score_sentence(tree(GOLD), tree(GOLD.replace("(PRP it)", "")))
    assert fewer == SentenceScore(6, error="4 words without punctuation, but 5 in the gold tree")
    other = score_sentence(tree(GOLD), tree(GOLD.replace("sat", "sits")))
    assert other.error == "word 3 without punctuation is 'sits', but 'sat' in the gold tree"
    # A word tagged as punctuation leaves the prediction alone: 4 words of 5.
    assert score_sentence(tree(GOLD), tree(GOLD.replace("PRP", ","))).error == fewer.error
    # Words of punctuation are not compared.
    assert not score_sentence(tree(GOLD), tree(GOLD.replace("(. .)", "(. !)"))).error


def test_totals_by_hand():
    """Four sentences: one right, one with a wrong label, one skipped, one error."""
    wrong = GOLD.replace("(VP", "(NP").replace("NN", "VB")
    predicted = [tree(GOLD), tree(wrong), Tree("TOP"), tree(GOLD.replace("sat", "sits"))]
    scores = score_trees([tree(GOLD)] * 4, predicted)
    of_all = {key: value for key, value in scores.items() if not isinstance(value, dict)}
    assert of_all == {
        # G = 8, P = 8, M = 4 + 3.
        "f1": 87.5,
        "precision": 87.5,
        "recall": 87.5,
        "complete_match": 50.0,
        "average_crossing": 0.0,
        "no_crossing": 100.0,
        "two_or_less_crossing": 100.0,
        "tagging_accuracy": 90.0,  # 5 + 4 of 10
        "sentences": 4,
        "skipped": 1,
        "errors": 1,
    }
    assert scores["up_to_40_words"] == of_all
    expected = {"f1": 87.5, "precision": 87.5, "recall": 87.5, "sentences": 4}
    assert scores["by_length"] == {"1-10": expected}
    # NP: G = 2, P = 1 + 2, M = 2.
    expected = {"f1": 80.0, "precision": 66.67, "recall": 100.0, "gold": 2, "predicted": 3}
    assert scores["by_label"]["NP"] == expected
    # VP: G = 2, P = 1, M = 1.
    expected = {"f1": 66.67, "precision": 100.0, "recall": 50.0, "gold": 2, "predicted": 1}
    assert scores["by_label"]["VP"] == expected


def test_recall_and_precision_differ():
    # G = 4, P = 2 (S, VP), M = 2: R = 50, P = 100, F1 = 2 * 50 * 100 / 150.
    flat = "(S (DT the) (NN cat) (VP (VBD sat) (IN on) (PRP it)) (. .))"
    scores = score_trees([tree(GOLD)], [tree(flat)])
    assert (scores["recall"], scores["precision"], scores["f1"]) == (50.0, 100.0, 66.67)


def test_crossing_statistics():
    # 0, 2 and 3 crossing brackets: 5 / 3 on average, 1 of 3 without, 2 of 3 with two or less.
    summed = summary([SentenceScore(5, words=5, crossing=crossing) for crossing in (0, 2, 3)])
    assert summed["average_crossing"] == 1.67
    assert summed["no_crossing"] == 33.33
    assert summed["two_or_less_crossing"] == 66.67


def test_only_short_sentences_count_as_short():
    def flat(words, label="S"):
        return tree(f"({label} " + "(NN x) " * words + ")")

    scores = score_trees([flat(40), flat(41)], [flat(40), flat(41, "X")])
    assert scores["f1"] == 50.0  # G = 2, P = 2, M = 1
    assert scores["up_to_40_words"]["f1"] == 100.0
    assert scores["up_to_40_words"]["sentences"] == 1
    assert {name: part["f1"] for name, part in scores["by_length"].items()} == {
        "31-40": 100.0,
        "41-60": 0.0,
    }


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (1, "1-10"),
        (10, "1-10"),
        (11, "11-20"),
        (40, "31-40"),
        (41, "41-60"),
        (60, "41-60"),
        (61, "61-"),
    ],
)
def test_length_ranges(length, expected):
    gold = Tree("S", (Tree("NN", (), "x"),) * length)
    assert list(score_trees([gold], [gold])["by_length"]) == [expected]


def test_nothing_right_is_zero():
    scores = score_trees([tree("(S (NN x))")], [tree("(X (NN x))")])
    assert (scores["f1"], scores["precision"], scores["recall"]) == (0.0, 0.0, 0.0)
    assert score_trees([tree("(S (NN x))")], [Tree("TOP")])["complete_match"] == 0.0


def test_labels_come_in_the_order_of_their_number():
    predicted = tree(GOLD.replace("(VP", "(NP"))
    score = score_trees([tree(GOLD)], [predicted])
    assert score["by_length"] == {
        "1-10": {"f1": 75.0, "precision": 75.0, "recall": 75.0, "sentences": 1}
    }
    assert [(label, *counts.values()) for label, counts in score["by_label"].items()] == [
        ("NP", 66.67, 50.0, 100.0, 1, 2),
        ("PP", 100.0, 100.0, 100.0, 1, 1),
        ("S", 100.0, 100.0, 100.0, 1, 1),
        ("VP", 0.0, 0.0, 0.0, 1, 0),
    ]


def test_brackets_of_one_tree_alone_are_named_by_their_place():
    # Children come before parents: DT 0, NN 1, NP 2, VBD 3, IN 4, PRP 5, PP 6, VP 7, dot 8, S 9.
    score = score_sentence(tree(GOLD), tree(GOLD.replace("(VP", "(X")))
    assert (score.missed, score.wrong) == ({7}, {7})
    score = score_sentence(tree(GOLD), tree(GOLD))
    assert (score.missed, score.wrong) == (set(), set())
    # Of two equal brackets the outer one finds the partner.
    score = score_sentence(tree("(S (NN x))"), tree("(S (S (NN x)))"))
    assert (score.missed, score.wrong) == (set(), {1})
    flat, chain = tree("(X (S (NN x)))"), tree("(S (X (S (NN x))))")
    assert score_sentence(flat, chain).wrong == {1}


def test_gold_tags_make_words_comparable():
    # Without tags the dot is a sixth word; with them G = P = M = 4.
    untagged = tree(re.sub(r"\((\S+) (\w+|\.)\)", r"(XX \2)", GOLD))
    gold = tree(GOLD.replace("(. .)", "(. .) (NP (-NONE- *))"))
    assert score_sentence(gold, untagged).error
    assert with_gold_tags(untagged, gold) == tree(GOLD)
    assert score_sentence(gold, with_gold_tags(untagged, gold)).matched.total() == 4
    shorter = tree("(S (XX the))")
    assert with_gold_tags(shorter, gold) == shorter


def test_unequal_numbers_of_trees():
    gold = [tree(GOLD)] * 2
    with refused("predicted", "1 predicted"):
        score_trees(gold, gold[:1])
    with refused("predicted", "1 gold"):
        score_trees(gold[:1], gold)
    with refused("gold", "none"):
        score_trees([], [])


def test_twelfth_error_stops():
    # MAX_ERROR 10: EVALB counts eleven errors and gives up at the next.
    gold, wrong = [tree(GOLD)] * 13, [tree(GOLD), *[tree(GOLD.replace("sat", "sits"))] * 12]
    assert score_trees(gold[:12], wrong[:12])["errors"] == 11
    with refused("predicted", "tree 2: word 3", about="11") as error:
        score_trees(gold, wrong)
    assert "'sits'" in error.value.received and "'sat'" in error.value.received


def test_deep_trees():
    # A chain of 3,000 brackets is deeper than Python's stack: G = P = M = 3,000.
    deep = Tree("NN", (), "x")
    for _ in range(3000):
        deep = Tree("S", (deep,))
    assert score_sentence(deep, deep).matched.total() == 3000


def trees(*texts: str) -> list[Tree]:
    return list(parse_trees(texts, "test"))


TWO = trees("(S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .))", "(NP (NN cat))")


def test_scores_of_trees_without_tags():
    score = trees("(S (NP (XX the) (XX dog)) (XX barks) (XX .))", "(NP (XX cat))")
    scores = parsing_scores(score, TWO)
    # S, NP and NP of S, NP, VP and NP: the period is no word to score, whatever its tag.
    assert (scores["precision"], scores["recall"], scores["f1"]) == (100.0, 75.0, 85.71)
    assert scores["complete_match"] == 50.0 and scores["errors"] == 0
    assert scores["well_formed"] == 100.0 and scores["tagging_accuracy"] is None


def test_wrong_tags_cost_tagging_accuracy_only():
    score = trees("(S (NP (DT the) (JJ dog)) (VP (VBZ barks)) (NN .))", "(NP (. cat))")
    scores = parsing_scores(score, TWO)
    assert scores["f1"] == 100.0 and scores["errors"] == 0 and scores["skipped"] == 0
    assert scores["tagging_accuracy"] == 40.0  # of the, dog, barks, ., cat: the and barks


def test_other_words_are_no_well_formed_parse():
    score = trees("(S (NP (DT the) (NN cat)) (VP (VBZ barks)) (. .))", "(NP (NN cat))")
    scores = parsing_scores(score, TWO)
    assert scores["well_formed"] == 50.0 and scores["errors"] == 1


def test_a_tree_for_each_sentence():
    with refused("trees", "1 trees of 2"):
        parsing_scores(TWO[:1], TWO)
