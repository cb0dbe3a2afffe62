import random

import pytest

from keras_transformer.support.text_changes import (
    _misspelt,
    in_capitals,
    in_title_case,
    with_typos,
    without_final_stop,
)


def test_capitals():
    assert in_capitals("Große Hunde, l'été!") == "GROSSE HUNDE, L'ÉTÉ!"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("a dog's ball don’t roll", "A Dog's Ball Don’t Roll"),
        ("the NASA T-shirt is well-known", "The NASA T-Shirt Is Well-Known"),
        ("(the 3rd 'big' one)", "(The 3rd 'Big' One)"),
        ("un e\u0301te\u0301 a\u0300 part", "Un E\u0301te\u0301 A\u0300 Part"),
        ("ǆep straße ß", "ǅep Straße Ss"),
        ("собака 犬", "Собака 犬"),
    ],
)
def test_title_case(text, title):
    assert in_title_case(text) == title


@pytest.mark.parametrize(
    ("text", "stopped"),
    [
        ("A dog runs.", "A dog runs"),
        ("a dog runs . ", "a dog runs"),
        ("狗在跑。", "狗在跑"),
        ("Well...", "Well..."),
        ("A dog?", "A dog?"),
        (".", "."),
        ("", ""),
    ],
)
def test_the_final_stop(text, stopped):
    assert without_final_stop(text) == stopped


def changed_words(text, seed):
    """Places of the words that have a typo; it must change no space."""
    words, misspelt = text.split(" "), with_typos(text, seed).split(" ")
    assert len(words) == len(misspelt)
    return [place for place, word in enumerate(words) if word != misspelt[place]]


def test_one_of_seven_words_has_a_typo():
    text = "two men in red shirts ride on old bikes up a hill , near it"  # 15 words: two typos
    for seed in range(50):
        changed = changed_words(text, seed)
        assert len(changed) == 2
        assert all(len(text.split(" ")[place]) >= 3 for place in changed)
    assert len({with_typos(text, seed) for seed in range(50)}) > 40


def test_a_short_sentence_has_one_typo():
    assert all(changed_words("the dogs run", seed) for seed in range(20))


@pytest.mark.parametrize("text", ["", " ", "it is a b c .", "12 1,000"])
def test_text_without_a_long_word_has_no_typo(text):
    assert with_typos(text) == text


def test_typos_are_those_of_a_hand():
    # Of "ab": a letter left out, doubled, swapped, replaced by a neighbour, or one beside it.
    wanted = {"b", "a", "aab", "abb", "ba"}
    wanted |= {f"{letter}b" for letter in "qwsz"} | {f"a{letter}b" for letter in "qwsz"}
    wanted |= {f"a{letter}" for letter in "ghvn"} | {f"ab{letter}" for letter in "ghvn"}
    generator = random.Random(1)
    assert {_misspelt("ab", generator) for _ in range(2000)} == wanted


def test_typos_of_other_letters():
    generator = random.Random(1)
    assert {_misspelt("дд", generator) for _ in range(100)} == {"д", "ддд"}
    found = {_misspelt("A", generator) for _ in range(500)}
    assert found == {"", "AA", *"QWSZ", "AQ", "AW", "AS", "AZ"}


def test_typos_are_the_same_on_any_machine():
    # By Python's promise for random(); data sets are repaired byte for byte.
    text = "A man in a blue shirt is standing on a ladder."
    assert with_typos(text, 3) == "A man in a blye sirt is standing on a ladder."
    assert with_typos(text, 4) == "A man in a blue shirrt is stanmding on a ladder."
