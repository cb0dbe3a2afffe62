import pytest

from keras_transformer.config import TransformerConfig
from keras_transformer.decoding.inference import DecodingConfig
from keras_transformer.decoding.parser import Parser
from keras_transformer.decoding.translator import Translation
from keras_transformer.errors import InputError
from keras_transformer.evaluation.parsing import SampleParses, parsing_scores
from keras_transformer.parsing.linearisation import Linearisation
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


class Tokenizer:
    fingerprint = "none"


class Answers(Parser):
    """A parser of the two sentences, whose tokens are given."""

    def __init__(self):
        super().__init__({}, DecodingConfig(1), TransformerConfig(100), Linearisation("tags"))

    def _in_batches(self, signature, inputs, *_):
        tokens = {"the dog barks .": "(S (NP DT NN )NP (VP VBZ )VP . )S", "cat": "(VP XX XX )VP"}
        return [[Translation(tokens[text], -1.0, -1.0, 3)] for text in inputs["text"]]

    def _lengths(self, *_):
        return []


def test_a_sample_is_parsed_and_scored():
    model = object()
    sample = SampleParses(Tokenizer(), GOLD, 5, 64, Linearisation("tags"))
    sample.model, sample.translator = model, Answers()
    scores, shown = sample(model)
    assert scores == {"f1": 75.0, "repaired": 50.0}  # S, NP, VP of 4 gold and 4 found brackets
    assert (
        shown.startswith("gold: `(S (NP (DT the) (NN dog))") and "parsed: `(VP (XX cat))`" in shown
    )
    assert sample.config.extra_length == 300 and sample.config.beam_size == 1
