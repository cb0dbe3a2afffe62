"""The answers of a Translator."""

from keras_transformer.use.translate.answers import AlignedPair


def test_pharaoh():
    # "in spite of" is "trotz", "the" is "des"; a space before the first word is of no word.
    pair = AlignedPair(
        ["▁in", "▁sp", "ite", "▁of", "▁the", "</s>"],
        ["▁", "▁tro", "tz", "▁des", "</s>"],
        [0, 1, 1, 2, 3, 3],
        [-1, 0, 0, 1, 1],
        [-0.5] * 5,
        [0, 2, 1, 4, 0],
    )
    assert pair.pharaoh == "1-0 3-1"
    assert pair._replace(target_pieces=["▁"] * 5).pharaoh == "0-1 1-0 3-1", "without EOS"


def links_of(pair, source, target):
    links = pair.links(source, target)
    return [(source[slice(*link.source)], target[slice(*link.target)]) for link in links]


def test_links_are_of_subwords():
    pair = AlignedPair(
        ["▁in", "▁sp", "ite", "<0xC3>", "<0xA9>", "▁the", "▁", "</s>"],
        ["▁tro", "##tz", "▁", "d", "es", "</s>"],
        [0, 1, 1, 1, 1, 2, 2, 2],
        [0, 0, 0, 1, 1, 1],
        [-0.5] * 6,
        [1, 2, 3, 4, 5, 0],
    )
    found = links_of(pair, " in  spiteé the", "trotz des")
    assert found == [("sp", "tro"), ("ite", "tz"), ("é", "d"), ("the", "es")]


def test_links_are_of_words_where_the_vocabulary_has_changed_characters():
    pair = AlignedPair(
        ["▁a", "▁fi", "ne", "</s>"], ["▁ein", "</s>"], [0, 1, 1, 1], [0, 0], [-0.5] * 2, [2, 3]
    )
    assert links_of(pair, "a ﬁne", "ein") == [("ﬁne", "ein")]
    assert links_of(pair, "a", "ein") == [], "no second word, as spaces were changed"
    assert links_of(pair, "a \ud800ne", "ein") == [("\ud800ne", "ein")]
