import math
import types

import numpy as np
import pytest

from keras_transformer.kit.figures.page import attention_page
from keras_transformer.kit.figures.views import (
    AttentionView,
    attention_views,
    head_summary,
    summary_table,
    word_labels,
)
from tests.refusals import refused

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


def test_a_decoder_with_ssrus_has_no_self_attention(found):
    found.decoder = np.zeros((0, 2, 2, 2), "f4")
    views = attention_views(found)
    assert [view.kind for view in views] == ["encoder", "cross"]
    page = attention_page(views, "a b", "x")
    assert '"target_labels": ["x", ' in page
    assert '"decoder": {"shape": [0, 0, 0, 0], "levels": ""}' in page


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_no_weight(found, bad):
    found.memory[1, 1, 0, 2] = bad
    with refused("attention", f"{bad} in the cross attention"):
        attention_views(found)


@pytest.mark.parametrize(
    ("pieces", "labels"),
    [
        (
            ["▁reg", "ister", "ed", ",", "▁(", "so", ")", ".", "</s>"],
            ["reg", "·ister", "·ed", ",", "(", "·so", ")", ".", "</s>"],
        ),
        (["reg", "##ister", ",", "too", ".", "</s>"], ["reg", "·ister", ",", "too", ".", "</s>"]),
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


def numbers(kind, queries, keys, rows):
    weights = np.array([[rows]], "f4")
    (row,) = head_summary([AttentionView(kind, list(queries), list(keys), weights)])
    assert row[:3] == (kind, 1, 1)
    return row._asdict()


def test_uniform_attention():
    summary = numbers("encoder", "abcd", "abcd", np.full((4, 4), 0.25))
    assert summary["entropy"] == pytest.approx(math.log(4))
    # |i - j| sums to 0+1+2+3, 1+0+1+2, 2+1+0+1 and 3+2+1+0.
    assert summary["distance"] == pytest.approx((6 + 4 + 4 + 6) / 16)
    assert [summary[n] for n in ("diagonal", "previous", "following")] == pytest.approx([0.25] * 3)


def test_identity():
    summary = numbers("encoder", "abc", "abc", np.eye(3))
    names = ("entropy", "distance", "previous", "following", "diagonal")
    assert [summary[name] for name in names] == [0, 0, 0, 0, 1]


def test_neighbours_count_where_there_are_any():
    # Each to the word before; the first, which has none, to itself.
    summary = numbers("encoder", "abc", "abc", [[1, 0, 0], [1, 0, 0], [0, 1, 0]])
    assert summary["previous"] == 1
    assert summary["diagonal"] == pytest.approx(1 / 3)
    assert summary["distance"] == pytest.approx(2 / 3)
    summary = numbers("encoder", "abc", "abc", [[0, 1, 0], [0, 0, 1], [0, 0, 1]])
    assert (summary["following"], summary["previous"]) == (1, 0)


def test_between_languages_places_are_scaled():
    # Two queries on three keys stand at keys 0 and 2; three on two at 0, 1/2 (nearest: 1) and 1.
    summary = numbers("cross", "xy", "abc", [[1, 0, 0], [0, 0, 1]])
    assert (summary["diagonal"], summary["distance"]) == (1, 0)
    summary = numbers("cross", "xyz", "ab", [[1, 0], [0.25, 0.75], [0, 1]])
    assert summary["distance"] == pytest.approx(0.5 / 3)
    assert summary["diagonal"] == pytest.approx(2.75 / 3)


def test_boundary_and_punctuation():
    keys = ["<s>", "a", ".", "--"]
    summary = numbers("decoder", keys, keys, [[0.5, 0.25, 0.25, 0]] * 2 + [[0, 0, 0.5, 0.5]] * 2)
    assert summary["boundary"] == pytest.approx(0.25)
    assert summary["punctuation"] == pytest.approx((0.25 + 0.25 + 1 + 1) / 4)
    keys = ["a", "</s>"]
    assert numbers("encoder", keys, keys, [[0.25, 0.75]] * 2)["boundary"] == pytest.approx(0.75)


def test_a_single_word():
    summary = numbers("cross", ["</s>"], ["</s>"], [[1]])
    assert list(summary.values())[3:] == [0, 0, 1, 0, 0, 1, 0]


def test_every_head_has_a_row_and_a_line():
    weights = np.zeros((2, 3, 2, 2), "f4")
    weights[..., 0] = 1
    weights[1, 2] = 0.5  # the last head alone is uniform
    rows = head_summary([AttentionView("encoder", ["a", "b"], ["a", "b"], weights)])
    assert [(row.layer, row.head) for row in rows] == [(n, h) for n in (1, 2) for h in (1, 2, 3)]
    assert [row.entropy for row in rows] == pytest.approx([0] * 5 + [math.log(2)])
    lines = summary_table(rows).splitlines()
    assert [cell.strip() for cell in lines[0].split("|")[1:5]] == [
        *("kind", "layer", "head", "entropy")
    ]
    assert [cell.strip() for cell in lines[-1].split("|")[1:5]] == ["encoder", "2", "3", "0.693"]
    assert len(lines) == 2 + 6
