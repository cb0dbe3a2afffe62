import pytest
import tensorflow as tf

from keras_transformer.export.sentence_graph import in_parts, lines_and_sentences, surrounded


def sentences(text):
    (lines,) = lines_and_sentences(tf.constant([text])).to_list()
    return [[sentence.decode() for sentence in line] for line in lines]


@pytest.mark.parametrize(
    "parts",
    [
        ["A dog.", " It sleeps!", " Why?"],
        ["Mr. Smith paid 3.5 million.", '  "Yes." ', "“Äh…”", " « Oui », dit-il."],
        ["Am 3. Mai kam J. Doe, z. B. hier.", " 2 Hunde."],
        ["日本語です。", "次の文。”", "終"],
        [" a "],
        [""],
    ],
)
def test_sentences_of_a_line(parts):
    text = "".join(parts)
    if parts[0].startswith("Mr."):  # a space belongs to the next sentence
        parts = ["Mr. Smith paid 3.5 million.", '  "Yes."', " “Äh…”", " « Oui », dit-il."]
    assert sentences(text) == [parts]


def test_lines():
    assert sentences("A. B\r\n\nC. ") == [["A. B\r"], [""], ["C. "]], "initials"
    assert sentences("Ab. Cd\r\n\nEf. ") == [["Ab.", " Cd\r"], [""], ["Ef. "]]
    assert lines_and_sentences(tf.constant([], tf.string)).to_list() == []


@pytest.mark.parametrize(
    ("sentence", "before", "language", "after"),
    [
        (" a b\t\r", " ", "a b", "\t\r"),
        ("a", "", "a", ""),
        ("", "", "", ""),
        (" \v", " \v", "", ""),
        (" - 12:30 ***\r", " - 12:30 ***\r", "", ""),
        ("🙂", "🙂", "", ""),
        ("> - 2) A dog", "> - 2) ", "A dog", ""),
        (" • 日本", " • ", "日本", ""),
        ("■ a - b", "■ ", "a - b", ""),
        ("-5 a", "", "-5 a", ""),
    ],
)
def test_what_is_around_language(sentence, before, language, after):
    found = surrounded(tf.constant([sentence, "a"]))
    assert [part.numpy()[0].decode() for part in found] == [before, language, after]


@pytest.mark.parametrize(
    ("words", "limit", "parts"),
    [
        # Words begin within the first half of the limit in each part.
        ([1, 1, 1, 1], 4, [[0, 1, 2, 3]]),
        ([1, 1, 1, 1, 1], 4, [[0, 1], [2, 3], [4]]),
        ([1, 3, 1, 2], 4, [[0, 1, 2], [3], [4, 5, 6]]),
        ([1, 2, 1, 1], 4, [[0, 1, 2], [3], [4]]),
        ([5], 4, [[0, 1], [2, 3], [4]]),
        ([2, 1], 1, [[0], [1], [2]]),
        ([], 4, []),
    ],
)
def test_parts_of_a_long_sentence(words, limit, parts):
    begins = [place == 0 for length in words for place in range(length)]
    rows = tf.ragged.constant([[7], list(range(sum(words))), []], dtype=tf.int32, ragged_rank=1)
    flags = tf.ragged.constant([[True], begins, []], dtype=tf.bool, ragged_rank=1)
    found = in_parts(rows.with_row_splits_dtype(tf.int64), flags, limit).to_list()
    assert found == [[[7]], parts, []]
    assert max(map(len, parts), default=0) <= limit
