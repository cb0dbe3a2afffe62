import types

import numpy as np
import pytest

from keras_transformer.analysis.attention_views import attention_views, word_labels
from keras_transformer.errors import InputError

SOURCE, TARGET = ["▁a", "▁b", "</s>"], ["▁x", "</s>"]


@pytest.fixture
def found():
    shapes = {"encoder": (2, 2, 3, 3), "decoder": (2, 2, 2, 2), "memory": (2, 2, 2, 3)}
    maps = {name: np.full(shape, 1 / shape[-1], "f4") for name, shape in shapes.items()}
    return types.SimpleNamespace(source_pieces=SOURCE, target_pieces=TARGET, **maps)


def test_words_at_both_sides(found):
    encoder, decoder, cross = attention_views(found)
    assert (encoder.kind, encoder.queries, encoder.keys) == ("encoder", SOURCE, SOURCE)
    # "x" is predicted from "<s>" alone, "</s>" from "<s>" and "x".
    assert (decoder.kind, decoder.queries, decoder.keys) == ("decoder", TARGET, ["<s>", "▁x"])
    assert (cross.kind, cross.queries, cross.keys) == ("cross", TARGET, SOURCE)
    for view, name in [(encoder, "encoder"), (decoder, "decoder"), (cross, "memory")]:
        np.testing.assert_array_equal(view.weights, getattr(found, name))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_weight(found, bad):
    found.memory[1, 1, 0, 2] = bad
    rule = f"weights of the cross attention must be finite. Received: {bad}"
    with pytest.raises(InputError, match=rule):
        attention_views(found)


@pytest.mark.parametrize(
    ("pieces", "labels"),
    [
        (
            ["▁reg", "ister", "ed", ",", "▁(", "so", ")", ".", "</s>"],
            ["reg", "·ister", "·ed", ",", "(", "·so", ")", ".", "</s>"],
        ),
        (
            ["reg", "##ister", ",", "too", ".", "</s>"],
            ["reg", "·ister", ",", "too", ".", "</s>"],
        ),
        (
            ["▁do", "n", "'", "t", "▁1", "-", "2", "ß"],
            ["do", "·n", "'", "·t", "1", "-", "·2", "·ß"],
        ),
        (["▁", "<0xF0>", "<unk>", "▁הַ", "חָתוּל"], ["▁", "<0xF0>", "<unk>", "הַ", "·חָתוּל"]),
        (["the", "##,", "##们", "</s>"], ["the", ",", "们", "</s>"]),
        (["<s>", "▁", "▁我", "们", "</s>"], ["<s>", "▁", "我", "们", "</s>"]),
        (["▁a", "▁·", "▁b", "</s>"], ["a", "·", "b", "</s>"]),
        (["plain", "words", "</s>"], ["plain", "words", "</s>"]),
        (["</s>"], ["</s>"]),
    ],
)
def test_labels(pieces, labels):
    assert word_labels(pieces) == labels
