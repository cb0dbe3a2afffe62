"""Models for CTranslate2 in a Translator: what it gives is what TensorFlow's engine gives."""

import json
import shutil

import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.core.search.config import SamplingConfig
from keras_transformer.use.store.card import CARD
from tests.program_fixtures import PAIRS
from tests.refusals import check_line, refused

SOURCES = [source for source, _ in PAIRS] + ["", "a house", "the big red dog sat"]
OPTIONS = {"beam_size": 2, "extra_length": 8}  # of the export


@pytest.fixture(scope="module")
def pair(for_ctranslate2, untrained):
    """Translators of the same weights and options: CTranslate2's and TensorFlow's."""
    return kt.load(for_ctranslate2), kt.load(untrained, "average:2", engine="tensorflow", **OPTIONS)


def texts(answers):
    return [[each.text for each in row] for row in answers]


def test_card_says_what_it_is(pair):
    theirs, ours = pair
    assert theirs.config == ours.config
    assert theirs.checkpoint == ours.checkpoint
    assert theirs.card.format == "ctranslate2"
    assert theirs.card.description == ours.card.description
    assert repr(theirs) == "TextTranslator(average:2, ctranslate2)"
    assert repr(ours) == "TextTranslator(average:2, tensorflow)"


def test_translations(pair):
    theirs, ours = pair
    found, wanted = theirs.translate(SOURCES), ours.translate(SOURCES)
    best = [(a[0], b[0]) for a, b in zip(found, wanted, strict=True)]
    assert np.mean([a.text == b.text for a, b in best]) >= 0.8, "random weights"
    assert all(b.score > a.score - 1e-4 for a, b in best)
    assert texts(found)[3] == [""]
    prefixes = ["die katze", "", "ein", "x", "", "grosse"]
    begun = theirs.translate(SOURCES, target_prefixes=prefixes)
    for row, prefix in zip(begun, prefixes, strict=True):
        assert row[0].text.startswith(prefix) or row[0].text == ""


def test_scores_and_alignments(pair):
    theirs, _ = pair
    sources, targets = zip(*PAIRS, strict=True)
    scores = [[each.log_prob for each in one.score(sources, targets)] for one in pair]
    np.testing.assert_allclose(*scores, atol=1e-3)
    aligned = [one.align(sources, targets) for one in pair]
    for found, wanted in zip(*aligned, strict=True):
        assert found.alignment == wanted.alignment  # of a model with one decoder layer
        np.testing.assert_allclose(found.log_probs, wanted.log_probs, atol=1e-3)
    document = "# The cat\n\nA **dog** ran to [the house](x)."
    found = theirs.translate_document(document, "markdown")
    assert found.startswith("# ") and "](x)" in found  # bold is dropped with its words


def test_options_are_free(for_ctranslate2, untrained):
    options = {"beam_size": 1, "extra_length": 3, "min_length": 4, "no_repeat_ngram_size": 2}
    answers = kt.load(for_ctranslate2, **options).translate(SOURCES, scores=False)
    ours = kt.load(untrained, "average:2", engine="tensorflow", **options)
    wanted = ours.translate(SOURCES, scores=False)
    assert texts(answers) == texts(wanted)
    word = answers[0][0].text.split()[0]
    free_of_it = kt.load(for_ctranslate2, forbidden_phrases=[word]).translate(SOURCES)
    assert not any(each.text.split()[:1] == [word] for row in free_of_it for each in row)
    drawn = kt.load(for_ctranslate2, beam_size=6, sampling=SamplingConfig(), mbr="chrf")
    assert len(drawn.translate(["the cat"])[0]) > 1
    assert kt.load(for_ctranslate2, n_best=1).config.n_best == 1


@pytest.mark.parametrize(
    ("options", "argument", "received"),
    [
        ({"checkpoint": "best"}, "checkpoint", "best"),
        ({"adapter_scale": 0.5}, "adapter_scale", "0.5"),
        ({"beam_size": 0}, "beam_size", "0"),
        ({"max_source_length": 5000}, "max_source_length", "5008"),
        ({"forbidden_phrases": "a b"}, "forbidden_phrases", '"a b"'),
    ],
)
def test_options_that_cannot_be(for_ctranslate2, options, argument, received):
    with refused(argument, received):
        kt.load(for_ctranslate2, **options)


def test_what_only_tensorflow_has(pair, for_ctranslate2):
    theirs, _ = pair
    with refused("attention", "CTranslate2"):
        theirs.attention("the cat", "die katze")
    with refused("required_phrases", "CTranslate2"):
        theirs.translate(["the cat"], required_phrases=[["hund"]])
    with refused("path", "of format ctranslate2"):
        kt.load([for_ctranslate2] * 2)
    with refused("path", "of format ctranslate2"):
        _ = theirs.model


def of_another_version(card):
    card["format_version"] = 3


def of_another_vocabulary(card):
    card["description"]["vocabulary_fingerprint"] = "0123"


@pytest.mark.parametrize(
    ("change", "argument", "place"),
    [(of_another_version, "path", None), (of_another_vocabulary, None, CARD)],
)
def test_directories_that_do_not_fit(for_ctranslate2, tmp_path, change, argument, place):
    folder = shutil.copytree(for_ctranslate2, tmp_path / "model")
    card = json.loads((folder / CARD).read_text())
    change(card)
    (folder / CARD).write_text(json.dumps(card))
    with refused(argument, place=place):
        kt.load(folder)


def test_damaged_weights(for_ctranslate2, tmp_path):
    folder = shutil.copytree(for_ctranslate2, tmp_path / "model")
    content = (folder / "model.bin").read_bytes()
    (folder / "model.bin").write_bytes(bytes(100) + content[100:])
    with refused("path", folder):
        kt.load(folder)
    (folder / "model.bin").write_bytes(content[:1000])
    with refused("path", "model.bin has 1000"):
        kt.load(folder)


def test_programs_pass_options_on(call_program, for_ctranslate2):
    place = f"--saved_model={for_ctranslate2}"
    options = ["--sample", "--seed=2", "--beam_size=3", "--n_best=3"]
    sampled = call_program("translate", place, *options, stdin=b"the cat\n")
    assert sampled.code == 0, sampled.errors
    assert sampled.output.count("\n") == 3
    wrong = call_program("translate", place, "--beam_size=0")
    assert wrong.code == 1
    check_line(wrong.errors, "--beam_size", "0")
    wrong = call_program("translate", place, "--checkpoint=best")
    assert wrong.code == 1
    check_line(wrong.errors, "--checkpoint", "best")
