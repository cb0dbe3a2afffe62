import random

import pytest

from keras_transformer.kit.documents.tree.sentences import cut, split


def sentences(text, language="en"):
    return [text[start:end] for start, end in split(text, language)]


@pytest.mark.parametrize(
    "language, parts",
    [
        ("en", ["Mr. Smith paid 3.5 million.", "Why?", "He did not say."]),
        ("en", ["He runs U.S. Travel.", '"Come in."', "Then he left."]),
        ("en", ["It is cheap.", '"You must go on."', "So it is."]),
        ("en", ["A man walks", "The dog in red runs", "An Asian girl sits down", "It is late"]),
        ("en", ["He likes vitamin A and The Times of A Coruña, by A man of Phase Two"]),
        ("de", ["Das ist z. B. am 3. Mai, spät.", "Am 10. Juni, abends, nicht.", "Gut."]),
        ("de-AT", ["Das 31. Fest ist im 21. Jahrhundert.", "Ja."]),
        ("fr", ["Plus tard, M. Blair a ri.", "« Bien. »", "Fin."]),
        ("ja", ["日本語です。", "次の文。"]),
        ("xx", ["Unknown languages have full stops.", "They do!"]),
        ("", ["No language is given.", "It is found."]),
    ],
)
def test_sentences_are_found(language, parts):
    space = "" if language == "ja" else " "
    assert sentences(space.join(parts), language) == parts


def test_quotation_marks_belong_to_their_sentences():
    # The straight quotation mark after "transport." opens; the one after "prices." closes.
    text = 'Public transport. "You must go on," he said. It sold at small prices." The news came.'
    found = sentences(text)
    assert found[:2] == ["Public transport.", '"You must go on," he said.']
    assert sentences("En Bretagne. « Nous sommes là. » Fin.", "fr")[1].startswith("«")


def test_only_spaces_are_outside_of_sentences():
    generator = random.Random(1)
    pieces = ["A dog", "Mr. X", ".", "!", "?", " ", "  ", "\n", "\t", '"', "“", "”", "。", "3."]
    for _ in range(300):
        text = "".join(generator.choices(pieces, k=generator.randint(0, 30)))
        spans = split(text, generator.choice(["en", "de", "zh", "fr"]))
        outside, place = "", 0
        for start, end in spans:
            assert place <= start < end and text[start:end] == text[start:end].strip()
            outside += text[place:start]
            place = end
        assert not (outside + text[place:]).strip(), text


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\t \u3000"])
def test_spaces_are_no_sentences(text):
    assert split(text, "en") == []


def test_long_texts_and_strange_characters_are_split():
    assert len(split("Hello world. " * 20_000, "en")) == 20_000
    assert split("x" * 1_000_000, "en") == [(0, 1_000_000)]
    assert split("\0", "en") == [(0, 1)]
    assert split("a\ud800. Bc.", "en") == [(0, 3), (4, 7)]


def words(text):
    """Counts words as subwords, or characters in scripts without spaces."""
    return lambda spans: [
        sum(1 if word.isascii() else len(word) for word in text[start:end].split())
        for start, end in spans
    ]


def parts_of(text, limit, kept_whole=()):
    spans = cut(text, (0, len(text)), limit, words(text), kept_whole)
    return [text[start:end] for start, end in spans]


def test_a_sentence_that_fits_is_not_cut():
    assert parts_of("one two, three; four.", 4) == ["one two, three; four."]


def test_a_long_sentence_is_cut_at_the_end_of_a_clause_near_its_middle():
    text = "one two three, four; five, six seven eight."
    assert parts_of(text, 7) == ["one two three, four;", "five, six seven eight."]
    assert parts_of(text, 3) == ["one two three,", "four;", "five,", "six seven eight."]


def test_without_clauses_it_is_cut_at_a_space_and_else_anywhere():
    assert parts_of("aaaa bb cc ddd", 2) == ["aaaa bb", "cc ddd"]
    assert parts_of("我们今天，去公园玩。", 6) == ["我们今天，", "去公园玩。"]
    assert parts_of("字" * 8, 4) == ["字" * 4] * 2


def test_what_cannot_be_cut_stays():
    assert parts_of("字", 0) == ["字"]
    assert parts_of("字字字", 1, kept_whole=(1, 2)) == ["字字字"]
    assert parts_of("one two three", 1, kept_whole=range(1, 8)) == ["one two", "three"]


def test_nothing_is_lost_and_each_part_fits():
    generator = random.Random(1)
    for _ in range(100):
        count = generator.randint(1, 60)
        text = " ".join(generator.choices(["dog", "cat,", "we;", "字字", "x:"], k=count))
        limit = generator.randint(1, 10)
        parts = parts_of(text, limit)
        assert "".join(parts).replace(" ", "") == text.replace(" ", "")
        spans = [(0, len(part)) for part in parts]
        counts = [words(part)([span])[0] for part, span in zip(parts, spans, strict=True)]
        assert max(counts) <= limit


def test_subwords_of_a_very_long_text_are_counted_in_parts():
    text = "word " * 20_000
    counted = []

    def count(spans):
        counted.extend(spans)
        return [len(text[start:end].split()) for start, end in spans]

    spans = cut(text, (0, len(text) - 1), 10, count)
    assert max(end - start for start, end in counted) <= 640
    assert sum(end - start + 1 for start, end in spans) == len(text)
