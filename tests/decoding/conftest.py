"""Small models with random weights, and short ways to search and to translate with them."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.config import EOS_ID, PAD_ID, TransformerConfig
from keras_transformer.decoding.compiled_model import compile_model
from keras_transformer.decoding.config import DecodingConfig, SearchSettings
from keras_transformer.decoding.graphs import Graphs
from keras_transformer.decoding.search import search_ids, target_log_probs
from keras_transformer.decoding.translator import Translator
from keras_transformer.model.transformer import Transformer
from keras_transformer.model_card import ModelCard
from keras_transformer.training.checkpoint_files import CheckpointInfo
from keras_transformer.vocabulary.pair import VocabularyPair
from keras_transformer.vocabulary.subwords import Subwords

VOCAB_SIZE = 132


class Characters(Subwords):
    """ASCII characters as subwords, ids from 4; all others are unknown."""

    languages = ()

    def __init__(self):
        tf.Module.__init__(self, name="characters")

    def encode_tensor(self, sentences):
        codes = tf.strings.unicode_decode(sentences, "UTF-8")
        return codes.with_values(tf.where(codes.values < 128, codes.values + 4, 3))

    def decode_tensor(self, ids):
        before_eos = tf.cumsum(tf.cast(ids == EOS_ID, tf.int32), axis=1) == 0
        kept = tf.ragged.boolean_mask(ids, before_eos & (ids >= 4))
        return tf.strings.unicode_encode(kept - 4, "UTF-8")

    def pieces_tensor(self, ids):
        codes = tf.reshape(tf.maximum(ids - 4, 0), [-1, 1])
        letters = tf.reshape(tf.strings.unicode_encode(codes, "UTF-8"), tf.shape(ids))
        return tf.where(ids == 3, "?", letters)

    @property
    def fingerprint(self):
        return "characters"


class GivenAnswers:
    """Graphs whose answers are given. A text is one subword, a number of its own.

    Args:
        answer: text -> [(translation, score), ...]; each text has the same number of them.

    Attributes:
        texts: all that were cut into subwords, in this order.
        graphs: those that a Translator calls, by name.
    """

    def __init__(self, answer):
        self._answer = answer
        self.texts = []
        self.graphs = {
            "encode_source": self._encode,
            "encode_target": self._encode,
            "search_ids": self._search,
            "score_ids": self._score,
        }

    def _encode(self, text):
        first = len(self.texts) + 4
        self.texts += [line.decode() for line in text.numpy().tolist()]
        return {
            "ids": tf.range(first, len(self.texts) + 4),
            "length": tf.ones_like(text, tf.int32),
            "unknown": tf.zeros_like(text, tf.bool),
        }

    def _search(self, source, target_prefix, n_best):
        rows = [self._answer(self.texts[number - 4]) for number in source[:, 0].numpy()]
        return {
            "translation": tf.constant([[text for text, _ in row] for row in rows]),
            "score": tf.constant([[float(score) for _, score in row] for row in rows]),
            "log_prob": tf.constant([[2.0 * score for _, score in row] for row in rows]),
            "length": tf.constant([[3 for _ in row] for row in rows]),
            "unfinished": tf.constant([[False for _ in row] for row in rows]),
        }

    def _score(self, source, target):
        return {"log_prob": tf.fill(tf.shape(source)[:1], -1.0)}


def small_model(seed=1, scale=2.0, **settings):
    """A model with random weights, large enough for peaked probabilities."""
    keras.utils.set_random_seed(seed)
    sizes = {"vocab_size": VOCAB_SIZE, "num_layers": 2, "d_model": 16, "d_ff": 16, "num_heads": 2}
    model = Transformer(TransformerConfig(**{**sizes, "dropout": 0.3, **settings}))
    for variable in model.trainable_variables:
        variable.assign(variable * scale)
    return model


def padded(rows):
    """int32 [B, longest] of lists of ids."""
    ids = np.full([len(rows), max(map(len, rows))], PAD_ID, "int32")
    for row, values in zip(ids, rows, strict=True):
        row[: len(values)] = values
    return tf.constant(ids)


def settings_of(beam_size=4, alpha=0.6, forbidden=(), **options):
    """SearchSettings of some fields of DecodingConfig."""
    return SearchSettings(DecodingConfig(beam_size, alpha, **options), forbidden)


def search(models, source, settings, **others):
    """`search_ids` with one Keras model, or with a list of them, an ensemble."""
    models = models if isinstance(models, list) else [models]
    return search_ids(list(map(compile_model, models)), source, settings, **others)


def log_probs_of(models, source, target):
    """`target_log_probs` of one Keras model, or of a list of them, an ensemble."""
    models = models if isinstance(models, list) else [models]
    return target_log_probs(list(map(compile_model, models)), source, target)


def card_of(config, options, **facts):
    """The card of a model of which nothing else is known."""
    return ModelCard(config, options, vocabulary_fingerprint="0123", parameters=7, **facts)


def translator_with(models, vocabularies, options, **facts):
    """A Translator with one Keras model, or with a list of them, an ensemble."""
    models = models if isinstance(models, list) else [models]
    graphs = Graphs(list(map(compile_model, models)), vocabularies, options)
    ensemble = (CheckpointInfo("step-7", 7),) * len(models) if len(models) > 1 else ()
    return Translator(graphs, card_of(models[0].config, options, ensemble=ensemble, **facts))


@pytest.fixture(scope="session")
def characters():
    return VocabularyPair(*[Characters()] * 2)


@pytest.fixture(scope="session")
def make_model():
    """`small_model`, made once of the same arguments: building one takes most of a second.

    A test that changes its model calls `small_model` itself.
    """
    return functools.cache(small_model)


@pytest.fixture(scope="session")
def model(make_model):
    return make_model()
