from xml.etree import ElementTree

import numpy as np
import pytest

from keras_transformer.analysis.attention_svg import HEAD_COLOURS, attention_svg
from keras_transformer.analysis.attention_views import AttentionView
from keras_transformer.errors import InputError

WORDS = ["a", "<b>", "c\x07"]


@pytest.fixture
def view():
    weights = np.zeros((2, 2, 3, 3), "f4")
    weights[0] = np.eye(3)
    weights[1, 0] = [[0, 1, 0], [0, 0.75, 0.25], [0, 0.001, 0.999]]
    weights[1, 1] = 1 / 3
    return AttentionView("encoder", WORDS, WORDS, weights)


def drawn(text, name):
    root = ElementTree.fromstring(text)
    return [each for each in root.iter("{http://www.w3.org/2000/svg}" + name)]


def test_lines_are_the_weights(view):
    text = attention_svg(view, layer=2, heads=[1])
    assert [line.get("opacity") for line in drawn(text, "path")] == ["1.00", "0.75", "0.25", "1.00"]
    assert [group.get("stroke") for group in drawn(text, "g")] == [HEAD_COLOURS[0]]
    ends = [line.get("d")[1:].replace("L", " ").split() for line in drawn(text, "path")]
    pitch = float(ends[1][0]) - float(ends[0][0])
    places = [[(float(x) - float(ends[0][0])) / pitch for x in end[::2]] for end in ends]
    assert places == [[0, 1], [1, 1], [1, 2], [2, 2]]
    assert all(float(end[1]) > float(end[3]) for end in ends), "queries below"


def test_words_stand_on_both_sides(view):
    words = [each.text for each in drawn(attention_svg(view, 1, [1, 2]), "text")]
    assert words == ["a", "<b>", "c\ufffd"] * 2


def test_heads_have_their_colours(view):
    groups = drawn(attention_svg(view, 1, [2, 1]), "g")
    assert [group.get("stroke") for group in groups] == [HEAD_COLOURS[1], HEAD_COLOURS[0]]
    assert [len(group) for group in groups] == [3, 3]


def test_one_word(view):
    text = attention_svg(view, 2, [1, 2], word="<b>")
    assert len(drawn(text, "path")) == 2 + 3
    boxes = drawn(text, "rect")[1:]  # after the background
    assert [box.get("opacity") for box in boxes] == ["0.49", "0.16", "0.22", "0.22", "0.22"]
    fills = [each.get("fill") for each in drawn(text, "text")]
    assert fills[3:] == ["#aaa", "#111", "#aaa"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layer": 3, "heads": [1]}, "--layer must be from 1 to 2. Received: 3"),
        ({"layer": 0, "heads": [1]}, "--layer must be from 1 to 2. Received: 0"),
        ({"layer": 1, "heads": [1, 3]}, "--heads must be from 1 to 2. Received: 3"),
        ({"layer": 1, "heads": [1], "word": "d"}, "--word must be one of a <b> .* Received: 'd'"),
    ],
)
def test_what_is_not_there(view, arguments, message):
    with pytest.raises(InputError, match=message):
        attention_svg(view, **arguments)
