import math

import pytest

from keras_transformer.errors import InputError
from keras_transformer.evaluation.translation import translation_scores


def test_perfect_translations():
    references = ["the cat sat on the mat .", "a dog ran ."]
    scores = translation_scores(references, references)
    assert scores["bleu"] == 100
    assert scores["chrf"] == 100
    assert scores["brevity_penalty"] == scores["length_ratio"] == 1


def test_bleu_by_hand():
    # 7 tokens against 8. Matches: 6 of 7 words, 4 of 6 pairs, 2 of 5 triples, 1 of 4 quadruples.
    scores = translation_scores(["a b c d x f g"], ["a b c d e f g h"], tokenize="none")
    precisions = math.log(6 / 7) + math.log(4 / 6) + math.log(2 / 5) + math.log(1 / 4)
    assert scores["bleu"] == pytest.approx(100 * math.exp(1 - 8 / 7 + precisions / 4), abs=1e-3)
    assert scores["brevity_penalty"] == pytest.approx(math.exp(1 - 8 / 7), abs=1e-4)
    assert scores["length_ratio"] == 0.875


def test_case_and_tokenization_are_options():
    translations, references = ["A b c d e."], ["a b c d e ."]
    assert translation_scores(translations, references, lowercase=True)["bleu"] == 100
    assert translation_scores(translations, references)["bleu"] < 100
    unsplit = translation_scores(translations, references, tokenize="none", lowercase=True)
    assert unsplit["bleu"] < 100
    assert "case:lc|eff:no|tok:none|" in unsplit["signature"]
    assert "case:mixed|eff:no|tok:13a|" in translation_scores(["a"], ["a"])["signature"]
    assert "nc:6|nw:0" in unsplit["chrf_signature"]


def test_empty_translations_score_nothing():
    assert translation_scores(["", ""], ["a b", "c d"])["bleu"] == 0


def test_wrong_input():
    with pytest.raises(InputError, match="Received: 1 translations of 2 references"):
        translation_scores(["a"], ["a", "b"])
    with pytest.raises(InputError, match="Received: 0 translations of 0 references"):
        translation_scores([], [])
