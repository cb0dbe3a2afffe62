import random
from collections import Counter

import pytest

from keras_transformer.core.vocabulary.terms import Term
from pipelines.prepare import term_annotation
from pipelines.prepare.term_annotation import TermLexicon, marked, unmarked

ADJECTIVES = {"red": "roter", "wooden": "hölzerner", "yellow": "gelber"}
NOUNS = {"dog": "Hund", "garden": "Garten", "house": "Haus"}


def sentences(count):
    """Sentences of an adjective and a noun, with further words that are in all of them."""
    generator = random.Random(1)
    for _ in range(count):
        adjective, noun = generator.choice([*ADJECTIVES]), generator.choice([*NOUNS])
        source = f"(a {adjective} {noun}), really!"
        yield source, f"ein {ADJECTIVES[adjective]} {NOUNS[noun]}, wirklich."


PAIRS = list(sentences(300))


@pytest.fixture
def lexicon(monkeypatch):
    """A lexicon that keeps the terms of a source as they are."""
    monkeypatch.setattr(term_annotation, "_COMMON_SHARE", 0.3)
    monkeypatch.setattr(term_annotation, "_REPLACED_SHARE", 0)
    return TermLexicon(PAIRS)


def annotations(lexicon, pair, count=100):
    """All terms that are drawn for a pair: source phrase -> target phrases."""
    found = {}
    for seed in range(count):
        source, target = lexicon.annotated(pair, random.Random(seed))
        text, terms = unmarked(source)
        assert (text, target) == pair and 1 <= len(terms) <= 3
        for start, end, translation in terms:
            found.setdefault(text[start:end], set()).add(translation)
    return found


def test_words_and_phrases_are_annotated_with_their_translations(lexicon):
    pair = ("(a red dog), really!", "ein roter Hund, wirklich.")
    assert annotations(lexicon, pair) == {
        "red": {"roter"},
        "dog": {"Hund"},
        "red dog": {"roter Hund"},
    }
    drawn = [lexicon.annotated(pair, random.Random(7)) for _ in range(2)]
    assert drawn[0] == drawn[1]


def test_common_words_are_no_terms(lexicon):
    assert "a" not in annotations(lexicon, PAIRS[0]) and "a red" not in annotations(
        lexicon, PAIRS[0]
    )


def test_half_of_the_terms_are_replaced_by_other_words(lexicon, monkeypatch):
    monkeypatch.setattr(term_annotation, "_REPLACED_SHARE", 0.5)
    replaced = Counter()
    for seed in range(400):
        source, target = lexicon.annotated(PAIRS[0], random.Random(seed))
        text, terms = unmarked(source)
        assert target == PAIRS[0][1]
        for start, end, translation in terms:
            phrase = text[start:end]
            assert set(phrase.split()) <= {*ADJECTIVES, *NOUNS} and translation in target
            assert len(phrase.split()) == len(translation.split())
            replaced[phrase not in PAIRS[0][0]] += 1
    # One or two sixths of the random words are in the sentence, too.
    assert 0.3 < replaced[True] / replaced.total() < 0.5


@pytest.mark.usefixtures("lexicon")
def test_targets_may_have_another_form():
    forms = [(source, target.replace("Garten", "Gartens")) for source, target in PAIRS]
    lexicon = TermLexicon([*PAIRS, *forms])
    pair = ("(a red garden), really!", "ein roter Garten, wirklich.")
    found = annotations(lexicon, pair)
    assert found["garden"] == {"Garten", "Gartens"}
    assert found["red garden"] == {"roter Garten", "roter Gartens"}
    assert found["red"] == {"roter"}


def test_a_pair_without_known_words_is_unchanged(lexicon):
    for pair in [("x y", "z"), ("", ""), ("...", "!"), ("漢字", "dog")]:
        assert lexicon.annotated(pair, random.Random(1)) == pair
    assert TermLexicon([]).annotated(PAIRS[0], random.Random(1)) == PAIRS[0]


def test_terms_in_text_are_read_again():
    text = "a red dog, a cat"
    terms = [Term(2, 9, "roter Hund"), Term(13, 16, "Katze")]
    assert unmarked(marked(text, terms)) == (text, terms)
    assert unmarked(text) == (text, [])
    assert unmarked(marked(text, [])) == (text, [])
    for damaged in ["\ufdd0a", "\ufdd0\ufdd1\ufdd2", "a\ufdd2"]:
        assert unmarked(damaged) == (damaged, [])
