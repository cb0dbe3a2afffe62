import random

from pipelines.prepare import word_pairs
from pipelines.prepare.word_pairs import frequent_word_pairs, sample_step

DICTIONARY = {"dog": "Hund", "cat": "Katze", "house": "Haus", "don't": "nicht", "big": "groß"}
NAMES = [*DICTIONARY]


def sentences(count):
    """Sentences of words of the dictionary in any order, with an article on one side."""
    generator = random.Random(1)
    for _ in range(count):
        words = generator.sample(NAMES, generator.randint(1, 4))
        translated = [DICTIONARY[word] for word in generator.sample(words, len(words))]
        yield f"{' '.join(words)}.", f"„das {', '.join(translated)}“ 12!"


def test_words_that_translate_each_other():
    pairs = list(sentences(200))
    word_pairs = frequent_word_pairs(pairs, most=100)
    assert dict(word_pairs) == DICTIONARY
    counts = [sum(source.split().count(word) for source in clean(pairs)) for word, _ in word_pairs]
    assert counts == sorted(counts, reverse=True)
    assert frequent_word_pairs(pairs, most=2) == word_pairs[:2]
    assert frequent_word_pairs(pairs, most=0) == []


def clean(pairs):
    return [source.removesuffix(".") for source, _ in pairs]


def test_rare_words_are_left_out():
    pairs = [*sentences(200), *[("horse", "Pferd")] * 4]
    assert "horse" not in dict(frequent_word_pairs(pairs, most=100))
    pairs.append(("horse", "Pferd"))
    assert dict(frequent_word_pairs(pairs, most=100))["horse"] == "Pferd"


def test_every_nth_pair_of_a_large_corpus_is_enough(monkeypatch):
    monkeypatch.setattr(word_pairs, "_MAX_PAIRS", 100)
    assert [sample_step(count) for count in (1, 100, 101, 200, 600)] == [1, 1, 2, 2, 6]


def test_pairs_with_a_side_without_words_are_passed_over():
    pairs = [*sentences(200), *[("horse", "")] * 9, *[("12", "Pferd")] * 9]
    assert dict(frequent_word_pairs(pairs, most=100)) == DICTIONARY


def test_text_without_words_has_none():
    assert frequent_word_pairs([("1 2", "!")] * 9, most=5) == []
    assert frequent_word_pairs([("", "")] * 9, most=5) == []
