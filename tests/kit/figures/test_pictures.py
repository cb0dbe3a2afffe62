import re
import subprocess
import sys
from xml.etree import ElementTree

import keras
import numpy as np
import pytest

from keras_transformer.core.search.compiled_model import attention_maps, compile_model
from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.core.training.checkpoint_weights import restore_model
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.kit.figures import pictures
from keras_transformer.kit.figures.pictures import (
    all_heads,
    attention_images,
    head_colour,
    head_picture,
)
from keras_transformer.kit.figures.views import AttentionView, attention_views
from keras_transformer.support.errors import install_command
from keras_transformer.use.evaluate.sample import SampleAnswers
from tests.refusals import refused
from tests.small_models import translator_with

PAIRS = [("a dog ran", "ein hund lief"), ("the cat", "die katze"), ("cats " * 9, "katzen " * 9)]
WORDS = ["▁a", "▁<b>", "▁$c\x07$"]


@pytest.fixture
def view():
    weights = np.zeros((2, 2, 3, 3), "f4")
    weights[0] = np.eye(3)
    weights[1, 0] = [[0, 1, 0], [0, 0.75, 0.25], [0, 0.001, 0.999]]
    weights[1, 1] = 1 / 3
    return AttentionView("encoder", WORDS, WORDS, weights)


def svg(*arguments):
    return ElementTree.fromstring(head_picture(*arguments, "svg"))


def drawn(root, name):
    return list(root.iter("{http://www.w3.org/2000/svg}" + name))


def lines(root):
    """(colour, opacity, ends) of every line, whose paths are straight and not filled."""
    for path in drawn(root, "path"):
        style = dict(item.split(": ") for item in path.get("style").split("; "))
        if style.get("fill") == "none" and style.get("stroke", "none") != "none":
            numbers = re.findall(r"-?[\d.]+", path.get("d"))
            yield style["stroke"], float(style.get("stroke-opacity", 1)), np.float64(numbers)


def in_hex(colour):
    return "#" + "".join(f"{round(255 * part):02x}" for part in colour)


def test_lines_are_the_weights(view):
    drawn = list(lines(svg(view, 2, [1], None)))
    assert {colour for colour, _, _ in drawn} == {in_hex(head_colour(1))}
    assert [opacity for _, opacity, _ in drawn] == pytest.approx([1, 0.75, 0.25, 0.999])
    start = drawn[0][2][0]
    pitch = drawn[1][2][0] - start
    places = [((ends[[0, 2]] - start) / pitch).tolist() for _, _, ends in drawn]
    assert places == [pytest.approx(pair) for pair in ([0, 1], [1, 1], [1, 2], [2, 2])]
    assert all(ends[1] > ends[3] for _, _, ends in drawn), "queries are below"


def test_words_stand_on_both_sides(view):
    words = [each.text for each in drawn(svg(view, 1, [1, 2], None), "text")]
    assert words == ["a", "<b>", "$c\ufffd$"] * 2


def test_heads_have_their_colours(view):
    colours = [colour for colour, _, _ in lines(svg(view, 1, [2, 1], None))]
    assert colours == [in_hex(head_colour(2))] * 3 + [in_hex(head_colour(1))] * 3
    assert np.round(np.multiply(head_colour(1), 255)).tolist() == [46, 115, 184]  # hsl(210 60% 45%)


def test_one_word(view):
    root = svg(view, 2, [1, 2], "<b>")
    assert [opacity for _, opacity, _ in lines(root)] == pytest.approx(
        [0.75, 0.25, 1 / 3, 1 / 3, 1 / 3]
    )
    words = [each.get("style") for each in drawn(root, "text")]
    assert ["opacity: 0.5" in style for style in words] == [False] * 3 + [True, False, True]
    styles = [path.get("style") for path in drawn(root, "path")]
    boxes = [re.search(r"opacity: ([\d.]+)$", style) for style in styles if "fill: #" in style]
    assert [float(box[1]) for box in boxes if box] == pytest.approx([0.75, 0.25] + [1 / 3] * 3)


def test_a_dark_reader_has_a_dark_picture(view):
    root = svg(view, 1, [1], None)
    (style,) = [each.text for each in drawn(root, "style") if "dark" in each.text]
    assert style.startswith("@media (prefers-color-scheme: dark)")
    assert "#patch_1 path { fill: #16171a !important }" in style
    assert "text { fill: #e8e6e1 !important }" in style
    paper = root.find(".//*[@id='patch_1']/{http://www.w3.org/2000/svg}path")
    assert "fill: #fffefb" in paper.get("style")
    assert all("fill: #1b1b1b" in each.get("style") for each in drawn(root, "text"))


def test_the_same_attention_gives_the_same_file(view):
    assert head_picture(view, 1, [1], None, "svg") == head_picture(view, 1, [1], None, "svg")


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_other_formats(view, suffix, start):
    assert head_picture(view, 1, [1], None, suffix).startswith(start)


def test_pyplot_and_its_backends_are_left_alone(view, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it would fail
    assert head_picture(view, 1, [1], None, "png")


def test_all_heads_are_the_weights_with_words(view):
    words = [*WORDS, *["▁d"] * 5]  # fewer would be narrower than the titles
    weights = np.pad(view.weights, [(0, 0), (0, 0), (0, 5), (0, 5)])
    picture = all_heads(AttentionView("encoder", words, words, weights)).astype(int)
    assert picture.shape[2] == 3
    cell = 14
    # Cut to what is drawn: the heat maps, two gaps and 2 x 8 weights a side, end 0.1 inch from it.
    corner = picture[-18 * cell - 7 : -7, -18 * cell - 7 : -7]
    centres = corner[cell // 2 :: cell, cell // 2 :: cell]  # [18, 18, 3]
    gap = centres[1, 0]
    assert (centres[1:9, [0, 9]] == gap).all() and (centres[10:, [0, 9]] == gap).all()
    brightness = centres.sum(axis=2)
    dark, white = brightness[1, 1], brightness[1, 2]
    assert white > 700 and dark < 300, "head 1 of layer 1 is the identity"
    assert brightness[1:4, 1:4].tolist() == [
        [dark if i == j else white for j in range(3)] for i in range(3)
    ]
    assert brightness[10, 2] == dark, "layer 2, head 1: the first word attends to the second"
    assert dark < brightness[11, 2] < brightness[11, 3] < white, "0.75 and 0.25"
    written = picture[cell:, : -18 * cell - 7], corner[:cell], corner[9 * cell : 10 * cell]
    for part in written:  # words left of the heat maps, and titles above those of each layer
        assert (part.sum(axis=2) < 200).sum() > 50


@pytest.mark.parametrize(
    ("kind", "title"), [("encoder", "encoder\nself-attention"), ("cross", "cross-attention")]
)
def test_all_heads_have_titles(view, kind, title, monkeypatch):
    written = []
    monkeypatch.setattr(
        pictures, "_write", lambda axes, x, y, *text, **_: written.append((y, text))
    )
    all_heads(view._replace(kind=kind))
    words = [label for _, (label,) in written]
    assert words[-1] == f"{title}:\nrows attend\nto columns"
    assert written[-5:-1] == [
        (0, ("layer 1, head 1",)),
        (0, ("layer 1, head 2",)),
        (4, ("layer 2, head 1",)),
        (4, ("layer 2, head 2",)),
    ], "in the gaps above each"
    assert words[:-5] == ["", "a", "<b>", "$c\ufffd$"] * 4


def test_words_that_no_font_has(view, recwarn):
    strange = AttentionView("encoder", ["\U0010fffd"] * 3, ["\U0010fffd"] * 3, view.weights)
    assert all_heads(strange).shape[2] == 3
    assert head_picture(strange, 1, [1], None, "png")
    assert [str(w.message) for w in recwarn] == []


def test_matplotlib_is_imported_when_a_picture_is_drawn():
    program = (
        "import sys, keras_transformer.kit.figures.pictures as pictures; "
        "print(pictures.has_matplotlib(), 'matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["True", "False"], done.stderr


@pytest.fixture(scope="module")
def vocabularies(untrained):
    return VocabularyPair.load(untrained)


@pytest.fixture(scope="module")
def model(untrained):
    return restore_model(untrained, "latest")[0]


def views_of(model, vocabularies, source, target, config):
    translator = translator_with(model, vocabularies, config)
    return attention_views(translator.attention(source, target))


def test_views_of_texts(model, vocabularies):
    encoder, decoder, memory = views_of(
        model, vocabularies, "the cat", "die katze", DecodingConfig(max_source_length=8)
    )
    ids = [[*each, 2] for each in vocabularies.target.encode(["the cat", "die katze"])]
    source, target = (np.array([each], "i4") for each in ids)
    compiled = compile_model(model)
    maps = attention_maps(*compiled.decode_target(source, target))
    assert "".join(encoder.queries) == "▁the▁cat</s>"
    assert "".join(decoder.keys) == "<s>▁die▁katze"
    assert memory.keys == encoder.queries
    for view, weights in zip((encoder, decoder, memory), maps, strict=True):
        np.testing.assert_allclose(view.weights, weights[0], atol=1e-6)


def test_texts_are_cut(model, vocabularies):
    config = DecodingConfig(max_source_length=4, extra_length=1)
    views = views_of(model, vocabularies, "the cat sat on", "die katze sass auf", config)
    assert [len(view.queries) for view in views] == [4, 5, 5]


def test_weights_that_are_no_numbers(untrained, vocabularies):
    model = restore_model(untrained, "latest")[0]
    for variable in model.trainable_variables:
        variable.assign(np.full(variable.shape, np.nan))
    with refused("model", "NaN"):
        views_of(model, vocabularies, "the cat", "die katze", DecodingConfig())


def sample_of(vocabularies):
    return SampleAnswers(vocabularies, *zip(*PAIRS, strict=True), sentences=3, max_length=32)


def test_the_sentence_of_middle_length_is_drawn(model, vocabularies):
    images = attention_images(sample_of(vocabularies))
    keras.utils.set_random_seed(1)
    before = [variable.numpy() for variable in model.variables]
    pictures = images(model)
    views = views_of(model, vocabularies, *PAIRS[0], DecodingConfig(max_source_length=32))
    assert list(pictures) == ["encoder", "decoder", "cross"]
    for view in views:
        np.testing.assert_allclose(pictures[view.kind], all_heads(view), rtol=0, atol=1)
    for variable, value in zip(model.variables, before, strict=True):
        np.testing.assert_array_equal(variable, value, err_msg="drawing changes nothing")


def test_without_matplotlib(vocabularies, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert attention_images(sample_of(vocabularies)) is None
    (line,) = [record.getMessage() for record in caplog.records if "attention" in record.message]
    assert "matplotlib" in line and install_command("figures") in line
