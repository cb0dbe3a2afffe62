import numpy as np
import pytest

from keras_transformer.analysis.attention_views import attention_views, word_labels
from keras_transformer.errors import InputError

SOURCE, TARGET = ["▁a", "▁b", "</s>"], ["▁x", "</s>"]


def uniform_maps(layers=2, heads=2):
    shapes = [(1, layers, heads, q, k) for q, k in ((3, 3), (2, 2), (2, 3))]
    return [np.full(shape, 1 / shape[-1], "f4") for shape in shapes]


def test_words_at_both_sides():
    maps = uniform_maps()
    encoder, decoder, cross = attention_views(SOURCE, TARGET, maps)
    assert (encoder.kind, encoder.queries, encoder.keys) == ("encoder", SOURCE, SOURCE)
    # "x" is predicted from "<s>" alone, "</s>" from "<s>" and "x".
    assert (decoder.kind, decoder.queries, decoder.keys) == ("decoder", TARGET, ["<s>", "▁x"])
    assert (cross.kind, cross.queries, cross.keys) == ("cross", TARGET, SOURCE)
    for view, weights in zip((encoder, decoder, cross), maps, strict=True):
        np.testing.assert_array_equal(view.weights, weights[0])


def test_maps_of_other_pieces():
    with pytest.raises(
        InputError, match=r"decoder attention map must be \[1, N, H, 3, 3\]. Received: \[1, "
    ):
        attention_views(SOURCE, ["▁x", "▁y", "</s>"], uniform_maps())
    doubled = [np.repeat(weights, 2, axis=0) for weights in uniform_maps()]
    with pytest.raises(
        InputError, match=r"encoder attention map must be .* Received: \[2, 2, 2, 3, 3\]"
    ):
        attention_views(SOURCE, TARGET, doubled)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.5])
def test_what_is_no_weight(bad):
    maps = uniform_maps()
    maps[2][0, 1, 1, 0, 2] = bad
    with pytest.raises(InputError, match=f"cross attention map must be finite .* Received: {bad}"):
        attention_views(SOURCE, TARGET, maps)


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
        (["<s>", "▁", "▁我", "们", "</s>"], ["<s>", "▁", "我", "们", "</s>"]),
        (["▁a", "▁·", "▁b", "</s>"], ["a", "·", "b", "</s>"]),
        (["plain", "words", "</s>"], ["plain", "words", "</s>"]),
        (["</s>"], ["</s>"]),
    ],
)
def test_labels(pieces, labels):
    assert word_labels(pieces) == labels
