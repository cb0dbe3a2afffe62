"""What a Translator answers."""

from keras_transformer.decoding.answers import AlignedPair


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
