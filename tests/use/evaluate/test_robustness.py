import pytest

from keras_transformer.core.config import TransformerConfig
from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.support.text_changes import with_typos
from keras_transformer.use.evaluate.robustness import (
    is_bad_for_a_word,
    robustness,
    robustness_table,
    single_words,
)
from keras_transformer.use.translate.translator import Translator
from tests.given_answers import GivenAnswers, card_of

SOURCE, REFERENCE = "the dog runs here.", "ein Hund rennt hier."
ANSWERS = {
    "THE DOG RUNS HERE.": "ein hund rennt hier.",
    "The Dog Runs Here.": "Ein Hund Rennt Hier.",
    with_typos(SOURCE): REFERENCE,
    "the dog runs here": REFERENCE,
    "the": "der",
    "dog": "Ein Hund Hund Hund",
    "runs": "",
}


@pytest.fixture(scope="module")
def results():
    given = GivenAnswers(lambda text: [(ANSWERS[text], -1.0)])
    translator = Translator(
        given, given.vocabularies, card_of(TransformerConfig(100), DecodingConfig(1))
    )
    return robustness(translator, [SOURCE], [REFERENCE], {"bleu": 80.0, "chrf": 90.0, "x": 1})


def test_changed_sources_are_scored_against_changed_references(results):
    assert results["plain"] == {"bleu": 80.0, "chrf": 90.0}
    assert results["title"] == {"bleu": 100.0, "chrf": 100.0}
    assert results["typos"] == {"bleu": 100.0, "chrf": 100.0}
    # In capitals, the full stop alone is right: precisions 1/5, 1/(2*4), 1/(4*3), 1/(8*2).
    assert results["upper"]["bleu"] == pytest.approx(100 * (1 / 5 / 8 / 12 / 16) ** 0.25, abs=1e-3)
    # The full stop is too much: precisions 4/5, 3/4, 2/3, 1/2.
    assert results["no_stop"]["bleu"] == pytest.approx(100 * 0.2**0.25, abs=1e-3)


def test_words_are_translated_alone(results):
    assert results["one_word"] == {"words": 3, "bad": 66.67}


def cells(line):
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_table(results):
    lines = robustness_table(results).splitlines()
    assert cells(lines[0]) == ["text", "BLEU", "% of plain", "chrF"]
    assert cells(lines[2]) == ["as it is", "80.00", "100.0", "90.00"]
    assert cells(lines[6])[:3] == ["without the last full stop", "66.87", "83.6"]
    assert lines[7].startswith("66.67% of 3 words translated alone give more than 3 words,")
    # A model that translates nothing right has no share of its plain score.
    nothing = {
        **results,
        "plain": {"bleu": 0.0, "chrf": 0.0},
        "one_word": {"words": 0, "bad": None},
    }
    lines = robustness_table(nothing).splitlines()
    assert cells(lines[2]) == ["as it is", "0.00", "", "0.00"]
    assert len(lines) == 7


def test_the_most_frequent_words_of_three_letters():
    assert single_words(["an old cat sat , sat.", "the cat's cat 123 is old"]) == [
        "old",
        "cat",
        "sat",
        "the",
    ]


@pytest.mark.parametrize(
    ("text", "is_bad"),
    [
        ("Hund", False),
        ("ein Hund.", False),
        ("ein alter Hund", False),
        ("ein sehr alter Hund", True),
        ("Hund, Hund", True),
        ("Hund hund .", True),
        (" ", True),
        ("!", True),
    ],
)
def test_what_cannot_translate_one_word(text, is_bad):
    assert is_bad_for_a_word(text) == is_bad
