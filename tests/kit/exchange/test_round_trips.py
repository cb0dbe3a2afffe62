"""A model that is written in a format and read again is the same model."""

import functools

import numpy as np
import pytest

from keras_transformer.core.config import BOS_ID, EOS_ID
from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.kit.exchange.ctranslate2_reader import read_own
from keras_transformer.kit.exchange.foreign_model import build
from keras_transformer.kit.exchange.formats import READABLE, export
from keras_transformer.kit.exchange.importing import read_model
from keras_transformer.use.store.card import read_card
from pipelines.prepare.vocabulary import learn_subwords
from tests.given_answers import card_of
from tests.kit.exchange.marian_files import SOURCES, TARGETS
from tests.refusals import refused
from tests.small_models import small_model

# Each row of settings has several that some format stores in its own way.
BIASES = {"attention_bias": True, "logits_bias": True}
MODELS = {
    "ctranslate2": [
        {"d_k": 3, "d_v": 5, "norm": "pre", "positions": "learned", "max_positions": 64},
        {**BIASES, "activation": "swiglu", "positions": "rotary", "encoder_reads_eos": False},
    ],
    "argos": [
        {"norm": "pre", "positions": "m2m100", "activation": "gelu", "encoder_reads_eos": False},
        {**BIASES, "source_vocab_size": 290, "scale_embeddings": False, "decoder_layers": 1},
        {"tie_embeddings": False, "positions": "learned", "max_positions": 64},
        {"activation": "swiglu", "positions": "marian", "norm_epsilon": 1e-3},
    ],
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
CASES = [(format, settings, "float32") for format in MODELS for settings in MODELS[format]]
CASES += [("ctranslate2", MODELS["ctranslate2"][0], "int8"), ("argos", MODELS["argos"][1], "int8")]


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


def test_every_format_that_can_be_read_is_here():
    assert {*MODELS, "firefox"} == set(READABLE)  # see test_firefox.py


@pytest.mark.parametrize(("format", "settings", "weights"), CASES)
def test_weights_and_configuration_are_the_same(format, settings, weights, vocabularies, tmp_path):
    model = small_model(vocab_size=300, d_model=12, num_heads=3, dropout=0.1, **settings)
    first = 0  # the first id that the format has
    if format == "marian":  # which starts with zeros
        first = EOS_ID
        for layer in {model.target_embedding, model.embedding}:
            rows = np.array(layer.embeddings)
            rows[:first] = 0
            layer.embeddings.assign(rows)
    card = card_of(model.config, DecodingConfig(), languages=["en", "de"], weights=weights)
    pair, there = vocabularies(model.config), tmp_path / "there"
    export(format, [model], pair, there, card)
    if format == "ctranslate2":  # the card has its vocabularies, and widths of heads
        foreign = read_own(there, read_card(there).config)
    else:
        foreign = read_model(there)
        assert foreign.source.names[EOS_ID:] == pair.source.pieces[EOS_ID:]
        assert foreign.target.names[EOS_ID:] == pair.target.pieces[EOS_ID:]
    assert foreign.config == model.config
    again = build(foreign)
    for ours, theirs in zip(model.trainable_variables, again.trainable_variables, strict=True):
        ours, theirs = np.array(ours), np.array(theirs)
        if len(ours) == 300:
            ours, theirs = ours[first:], theirs[first:]
        step = np.abs(ours).max() / 64 if weights == "int8" and ours.ndim == 2 else 0
        np.testing.assert_allclose(theirs, ours, rtol=1e-6, atol=step / 2)


def test_a_model_trained_to_start_with_zeros_can_be_marians(vocabularies, tmp_path):
    """Read again, it has a row of zeros for BOS."""
    settings = {**BIASES, "positions": "marian", "vocab_size": 300, "d_model": 12, "num_heads": 3}
    logits = []
    source, target = np.array([[7, 8, 9, EOS_ID]]), np.array([[BOS_ID, 20, 30]])
    for starts_with_zeros in (False, True):
        model = small_model(**settings, starts_with_zeros=starts_with_zeros)
        card = card_of(model.config, DecodingConfig())
        write = functools.partial(export, "marian", [model], vocabularies(model.config))
        if not starts_with_zeros:
            with refused("model", "a row of BOS", about="starts_with_zeros"):
                write(tmp_path / "there", card)
        else:
            write(tmp_path / "there", card)
        logits.append(np.array(model({"source": source, "target": target})))
    again = build(read_model(tmp_path / "there"))({"source": source, "target": target})
    np.testing.assert_allclose(again[..., EOS_ID:], logits[1][..., EOS_ID:], atol=1e-5)
    assert np.abs(logits[0] - logits[1]).max() > 0.1
