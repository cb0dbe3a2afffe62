import sys

import keras
import numpy as np
import pytest

from keras_transformer.analysis.attention_images import attention_images
from keras_transformer.analysis.attention_pictures import all_heads
from keras_transformer.analysis.attention_views import attention_views
from keras_transformer.decoding.answers import text_graphs
from keras_transformer.decoding.attention_maps import attention_maps
from keras_transformer.decoding.config import DecodingConfig
from keras_transformer.decoding.translator import Translator
from keras_transformer.errors import InputError
from keras_transformer.training.checkpoints import restore_model
from keras_transformer.vocabulary.pair import VocabularyPair

PAIRS = [("a dog ran", "ein hund lief"), ("the cat", "die katze"), ("cats " * 9, "katzen " * 9)]


@pytest.fixture(scope="module")
def vocabularies(untrained):
    return VocabularyPair.load(untrained)


@pytest.fixture
def model(untrained):
    return restore_model(untrained, "latest")[0]


def views_of(model, vocabularies, source, target, config):
    translator = Translator(text_graphs(model, vocabularies, config), config, model.config)
    return attention_views(translator.attention(source, target))


def test_views_of_texts(model, vocabularies):
    encoder, decoder, memory = views_of(
        model, vocabularies, "the cat", "die katze", DecodingConfig(max_source_length=8)
    )
    ids = [[*each, 2] for each in vocabularies.target.encode(["the cat", "die katze"])]
    maps = attention_maps(model, *(np.array([each], "i4") for each in ids))
    assert "".join(encoder.queries) == "▁the▁cat</s>"
    assert "".join(decoder.keys) == "<s>▁die▁katze"
    assert memory.keys == encoder.queries
    for view, weights in zip((encoder, decoder, memory), maps, strict=True):
        np.testing.assert_allclose(view.weights, weights[0], atol=1e-6)


def test_texts_are_cut(model, vocabularies):
    config = DecodingConfig(max_source_length=4, extra_length=1)
    views = views_of(model, vocabularies, "the cat sat on", "die katze sass auf", config)
    assert [len(view.queries) for view in views] == [4, 5, 5]


def test_weights_that_are_no_numbers(model, vocabularies):
    for variable in model.trainable_variables:
        variable.assign(np.full(variable.shape, np.nan))
    with pytest.raises(InputError, match="weights of the encoder attention must be finite"):
        views_of(model, vocabularies, "the cat", "die katze", DecodingConfig())


def test_the_sentence_of_middle_length_is_drawn(model, vocabularies):
    images = attention_images(vocabularies, *zip(*PAIRS, strict=True), max_source_length=32)
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
    assert attention_images(vocabularies, *zip(*PAIRS, strict=True), max_source_length=32) is None
    (line,) = [record.getMessage() for record in caplog.records if "attention" in record.message]
    assert line == (
        "no attention pictures: matplotlib is not installed "
        '(pip install "keras-transformer[figures]")'
    )
