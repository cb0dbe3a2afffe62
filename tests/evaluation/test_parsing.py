import pytest

from keras_transformer.errors import InputError
from keras_transformer.evaluation.parsing import parsing_scores
from keras_transformer.parsing.trees import parse_trees


def trees(*texts):
    return list(parse_trees(texts, "test"))


GOLD = trees("(S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .))", "(NP (NN cat))")


def test_scores_of_trees_without_tags():
    found = trees("(S (NP (XX the) (XX dog)) (XX barks) (XX .))", "(NP (XX cat))")
    scores = parsing_scores(found, GOLD)
    # S, NP and NP of S, NP, VP and NP: the period is no word to score, whatever its tag.
    assert (scores["precision"], scores["recall"], scores["f1"]) == (100.0, 75.0, 85.71)
    assert scores["complete_match"] == 50.0 and scores["errors"] == 0
    assert scores["well_formed"] == 100.0 and scores["tagging_accuracy"] is None


def test_wrong_tags_cost_tagging_accuracy_only():
    found = trees("(S (NP (DT the) (JJ dog)) (VP (VBZ barks)) (NN .))", "(NP (. cat))")
    scores = parsing_scores(found, GOLD)
    assert scores["f1"] == 100.0 and scores["errors"] == 0 and scores["skipped"] == 0
    assert scores["tagging_accuracy"] == 40.0  # of the, dog, barks, ., cat: the and barks


def test_other_words_are_no_well_formed_parse():
    found = trees("(S (NP (DT the) (NN cat)) (VP (VBZ barks)) (. .))", "(NP (NN cat))")
    scores = parsing_scores(found, GOLD)
    assert scores["well_formed"] == 50.0 and scores["errors"] == 1


def test_a_tree_for_each_sentence():
    with pytest.raises(InputError, match=r"a tree for each sentence\. Received: 1 trees of 2"):
        parsing_scores(GOLD[:1], GOLD)
