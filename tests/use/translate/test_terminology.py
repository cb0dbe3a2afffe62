import math

import pytest

from keras_transformer.core.vocabulary.terms import Term
from keras_transformer.use.translate.answers import Translation
from keras_transformer.use.translate.terminology import (
    check_terminology,
    phrases_of,
    spoils,
    terms_in,
    with_lacking_terms,
)
from tests.refusals import refused

TERMINOLOGY = {"red": "r", "red car": "rc", "car": "k", "C++": "c", "a.b": "x", "de": "d"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a red car, a red car and a car", [("red car", "rc"), ("red car", "rc"), ("car", "k")]),
        ("Red cars are reddish, not a_car", []),
        ("(red)C++.", [("red", "r"), ("C++", "c")]),
        ("a.b axb", [("a.b", "x")]),
        (">>de<< de", [("de", "d")]),  # a language code is no text
        ("", []),
    ],
)
def test_terms_are_whole_words_the_longest_first(text, wanted):
    (terms,) = terms_in([text], TERMINOLOGY)
    assert [(text[term.start : term.end], term.target) for term in terms] == wanted
    assert phrases_of(terms) == list(dict.fromkeys(target for _, target in wanted))


@pytest.mark.parametrize("terminology", [None, {}])
def test_no_terminology(terminology):
    check_terminology(terminology)
    assert terms_in(["red", ""], terminology) == [[], []]


@pytest.mark.parametrize("entry", [{"a": " "}, {" ": "a"}])
def test_empty_phrases_are_refused(entry):
    with refused("terminology", repr(entry)):
        check_terminology({"b": "c", **entry})


def test_a_translation_is_spoiled_if_it_is_much_less_probable_per_subword():
    free = Translation("a b", -0.5, -2.0, tokens=4)
    assert not spoils(Translation("a b c", -1.0, -6.0, tokens=5), free)  # -1.2 for -0.5
    assert spoils(Translation("a b c", -1.0, -6.5, tokens=5), free)  # -1.3
    assert spoils(Translation("", -math.inf, -math.inf, tokens=1), free)


def test_the_terms_that_a_translation_lacks_are_named():
    terms = [Term(0, 1, "Hund"), Term(2, 3, "Haus"), Term(4, 5, "Haus"), Term(6, 7, "rot")]
    rows = [Translation(text, -0.5, -2.0, tokens=4) for text in ("zwei Hunde", "rotes Haus, Hund")]
    first, second = with_lacking_terms(rows, terms)
    assert (first.text, first.without_terms) == ("zwei Hunde", ("Haus", "rot"))
    assert second.without_terms == ()
