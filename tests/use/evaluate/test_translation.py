import math
import sys

import pytest

from keras_transformer.use.evaluate.translation import (
    moses_tokenizer,
    paper_bleu,
    translation_scores,
)
from tests.refusals import refused


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


def test_wrong_input():
    with refused("translations", "1 translations of 2"):
        translation_scores(["a"], ["a", "b"])
    with refused("translations", "0 translations of 0"):
        translation_scores([], [])


@pytest.mark.parametrize(
    ("language", "sentence", "tokens"),
    [
        ("de", "Ein Hund, 5.300,50 Euro.", "Ein Hund , 5.300,50 Euro ."),
        ("de", "Das sah Dr. Weiss am 5. Mai.", "Das sah Dr. Weiss am 5. Mai ."),
        ("de", "Er kam... und ging..", "Er kam ... und ging .."),
        ("de", "„Ja“ 1，2 ５％ …", '„ Ja " 1,2 5 % ...'),
        ("de", "<b>&amp; Ich hab's", "< b > & amp ; Ich hab ' s"),
        ("en", "I don't. It's the dogs'", "I don 't . It 's the dogs '"),
        ("fr", "L'eau d’un ami", "L' eau d' un ami"),
        ("de", " a\t b\u00a0c\x01d ", "a b cd"),
        ("de", " ", ""),
        # The full stop of the last word is a token, even after an abbreviation or a number.
        ("de", "Mit Bus der Linie A.", "Mit Bus der Linie A ."),
        ("en", "It is near 3rd St.", "It is near 3rd St ."),
    ],
)
def test_tokens_of_moses(language, sentence, tokens):
    assert moses_tokenizer(language)(sentence) == tokens


@pytest.mark.parametrize(
    ("text", "parted"),
    [
        ("rich-text format", "rich ##AT##-##AT## text format"),
        ("a - b -c d-", "a - b -c d-"),
        # A character between two hyphens serves the first only, as in the script.
        ("a-b-c", "a ##AT##-##AT## b-c"),
        ("aa-bb-cc", "aa ##AT##-##AT## bb ##AT##-##AT## cc"),
        ("a--b", "a ##AT##-##AT## -b"),
        ("1990er-Jahre ,-x", "1990er ##AT##-##AT## Jahre , -x"),
    ],
)
def test_compounds_are_split_in_german(text, parted):
    assert moses_tokenizer("de")(text) == parted
    assert "##AT##" not in moses_tokenizer("nl")(text)


def test_paper_bleu_by_hand():
    # Tokens: "Das E ##AT##-##AT## Bike , das ich mag ." (9) and the same with "will" (9).
    # Matches: 8 of 9 words, 6 of 8 pairs, 5 of 7 triples, 4 of 6 quadruples.
    scores = paper_bleu(["Das E-Bike, das ich mag."], ["Das E-Bike, das ich will."])
    wanted = 100 * (8 / 9 * 6 / 8 * 5 / 7 * 4 / 6) ** 0.25
    assert scores["paper_bleu"] == pytest.approx(wanted, abs=1e-4)
    assert scores["paper_bleu_signature"] == "multi-bleu|case:mixed|tok:moses-de|compounds:split"


def test_brevity_and_clipping_of_paper_bleu_by_hand():
    # 7 words for 9. "the" counts twice of three times: words 5/7; pairs (the cat), (cat the),
    # (the mat) of 6; triples (the cat the), (cat the mat) of 5; quadruples 1 of 4.
    translation, reference = "the cat the mat sat on the", "the cat the mat was on a rug z"
    wanted = 100 * math.exp(1 - 9 / 7) * (5 / 7 * 3 / 6 * 2 / 5 * 1 / 4) ** 0.25
    score = paper_bleu([translation], [reference])["paper_bleu"]
    assert score == pytest.approx(wanted, abs=1e-4)


def test_paper_bleu_does_not_penalise_longer_translations():
    score = paper_bleu(["a b c d e"], ["a b c d"])["paper_bleu"]
    assert score == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25, abs=1e-4)


@pytest.mark.parametrize(
    ("translation", "reference"),
    [("a b c", "a b c"), ("", "a b"), ("a b c x d", "a b c y d"), ("a b c d", "")],
)
def test_paper_bleu_has_no_smoothing(translation, reference):
    assert paper_bleu([translation], [reference])["paper_bleu"] == 0


def test_paper_bleu_of_other_languages():
    hyphen = ["le porte-clés de l'ami"]
    assert paper_bleu(hyphen, hyphen, "fr") == {
        "paper_bleu": 100,
        "paper_bleu_signature": "multi-bleu|case:mixed|tok:moses-fr|compounds:whole",
    }
    # Split at the hyphen, four tokens match in a row; whole, no four do.
    pair = ["ein rotes E-Bike da"], ["kein rotes E-Bike da"]
    assert paper_bleu(*pair, "de")["paper_bleu"] > paper_bleu(*pair, "nl")["paper_bleu"] == 0


def test_case_counts_in_paper_bleu():
    assert paper_bleu(["Ein Hund läuft schnell"], ["ein hund läuft schnell"])["paper_bleu"] == 0


def test_without_sacremoses_the_figure_is_left_out(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    assert paper_bleu(["a"], ["a"]) == {}
    assert "paper_bleu" in caplog.text and "sacremoses" in caplog.text
