import math
import random

import pytest
from sacrebleu.metrics import BLEU

from keras_transformer.errors import InputError
from keras_transformer.evaluation.paper_bleu import multi_bleu, paper_bleu, split_compounds


@pytest.mark.parametrize(
    ("text", "parted"),
    [
        ("rich-text format", "rich ##AT##-##AT## text format"),
        ("a - b -c d-", "a - b -c d-"),
        # A character between two hyphens serves the first only, as in the script.
        ("a-b-c", "a ##AT##-##AT## b-c"),
        ("aa-bb-cc", "aa ##AT##-##AT## bb ##AT##-##AT## cc"),
        ("a--b", "a ##AT##-##AT## -b"),
        ("1990er-Jahre ,-x", "1990er ##AT##-##AT## Jahre , ##AT##-##AT## x"),
    ],
)
def test_compounds(text, parted):
    assert split_compounds(text) == parted


def test_by_hand():
    # Tokens: "Das E ##AT##-##AT## Bike , das ich mag ." (9) and the same with "will" (9).
    # Matches: 8 of 9 words, 6 of 8 pairs, 5 of 7 triples, 4 of 6 quadruples.
    found = paper_bleu(["Das E-Bike, das ich mag."], ["Das E-Bike, das ich will."])
    wanted = 100 * (8 / 9 * 6 / 8 * 5 / 7 * 4 / 6) ** 0.25
    assert found["paper_bleu"] == pytest.approx(wanted, abs=1e-4)
    assert found["paper_bleu_signature"] == "multi-bleu|case:mixed|tok:moses-de|compounds:split"


def test_brevity_and_clipping_by_hand():
    # 7 words for 9. "the" counts twice of three times: words 5/7; pairs (the cat), (cat the),
    # (the mat) of 6; triples (the cat the), (cat the mat) of 5; quadruples 1 of 4.
    translation, reference = "the cat the mat sat on the", "the cat the mat was on a rug z"
    wanted = 100 * math.exp(1 - 9 / 7) * (5 / 7 * 3 / 6 * 2 / 5 * 1 / 4) ** 0.25
    assert multi_bleu([translation.split()], [reference.split()]) == pytest.approx(wanted)


def test_longer_translations_are_not_penalised():
    assert multi_bleu([list("abcde")], [list("abcd")]) == pytest.approx(
        100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25
    )


@pytest.mark.parametrize(
    ("translation", "reference"),
    [("a b c", "a b c"), ("", "a b"), ("a b c x d", "a b c y d"), ("a b c d", "")],
)
def test_no_smoothing(translation, reference):
    assert multi_bleu([translation.split()], [reference.split()]) == 0


def test_arithmetic_equals_sacrebleu():
    source = random.Random(3)
    vocabulary = "abcdefg"
    texts = [
        [" ".join(source.choices(vocabulary, k=source.randint(0, 12))) for _ in range(300)]
        for _ in range(2)
    ]
    peer = BLEU(tokenize="none", smooth_method="none", force=True)
    wanted = peer.corpus_score(texts[0], [texts[1]]).score
    found = multi_bleu(*([text.split() for text in side] for side in texts))
    assert 1 < found < 99
    assert found == pytest.approx(wanted, rel=1e-9)


def test_languages():
    hyphen = ["le porte-clés de l'ami"]
    assert paper_bleu(hyphen, hyphen, "fr") == {
        "paper_bleu": 100,
        "paper_bleu_signature": "multi-bleu|case:mixed|tok:moses-fr|compounds:whole",
    }
    # Split at the hyphen, four tokens match in a row; whole, no four do.
    pair = ["ein rotes E-Bike da"], ["kein rotes E-Bike da"]
    assert paper_bleu(*pair, "de")["paper_bleu"] > paper_bleu(*pair, "nl")["paper_bleu"] == 0


def test_case_counts():
    assert paper_bleu(["Ein Hund läuft schnell"], ["ein hund läuft schnell"])["paper_bleu"] == 0


def test_wrong_input():
    with pytest.raises(InputError, match="Received: 1 translations of 2 references"):
        paper_bleu(["a"], ["a", "b"])
    with pytest.raises(InputError, match="Received: 0 translations of 0 references"):
        paper_bleu([], [])
