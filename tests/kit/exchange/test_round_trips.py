"""A model that is written in a format and read again is the same model."""

import functools

import numpy as np
import pytest

from keras_transformer.core.config import BOS_ID
from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.kit.exchange.foreign_model import build
from keras_transformer.kit.exchange.formats import READABLE, export
from keras_transformer.kit.exchange.importing import read_model
from pipelines.prepare.vocabulary import learn_subwords
from tests.given_answers import card_of
from tests.kit.exchange.marian_files import SOURCES, TARGETS
from tests.small_models import small_model

# Each row of settings has several that some format stores in its own way.
BIASES = {"attention_bias": True, "logits_bias": True}
MODELS = {
    "hugging_face": [
        {**BIASES, "norm_epsilon": 1e-5, "activation": "swish", "decoder_layers": 1},
        {**BIASES, "norm_epsilon": 1e-5, "tie_embeddings": False, "scale_embeddings": False},
        {**BIASES, "norm_epsilon": 1e-5, "activation": "gelu", "source_vocab_size": 290},
    ],
    "marian": [
        {**BIASES, "positions": "marian", "activation": "swish", "decoder_layers": 1},
        {**BIASES, "positions": "marian", "norm": "pre", "tie_embeddings": False},
        {**BIASES, "positions": "marian", "activation": "gelu", "source_vocab_size": 290},
    ],
}
CASES = [(format, settings) for format in READABLE for settings in MODELS[format]]


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory):
    """Returns the vocabularies of a configuration."""

    @functools.cache
    def learned(side, lines, size):
        folder = tmp_path_factory.mktemp(side)
        return learn_subwords(list(lines) * 20, "bpe", size, folder, seed=1)

    def of(config):
        target = learned("target", (*SOURCES, *TARGETS), config.vocab_size)
        size = config.source_vocab_size
        source = target if size is None else learned("source", tuple(SOURCES), size)
        return VocabularyPair(source, target)

    return of


@pytest.mark.parametrize(("format", "settings"), CASES)
def test_weights_and_configuration_are_the_same(format, settings, vocabularies, tmp_path):
    model = small_model(vocab_size=300, d_model=12, num_heads=3, dropout=0.1, **settings)
    if format == "marian":  # which starts with zeros, and has no row for padding
        for layer in {model.target_embedding, model.embedding}:
            rows = np.array(layer.embeddings)
            rows[: BOS_ID + 1] = 0
            layer.embeddings.assign(rows)
    card = card_of(model.config, DecodingConfig())
    export(format, [model], vocabularies(model.config), tmp_path / "there", card)
    foreign = read_model(tmp_path / "there")
    assert foreign.config == model.config
    again = build(foreign)
    for ours, theirs in zip(model.trainable_variables, again.trainable_variables, strict=True):
        ours, theirs = np.array(ours), np.array(theirs)
        if ours.shape == (300,) or len(ours) == 300:
            ours, theirs = ours[BOS_ID + 1 :], theirs[BOS_ID + 1 :]
        np.testing.assert_array_equal(ours, theirs)
