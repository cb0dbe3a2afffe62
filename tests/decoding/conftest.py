import keras
import pytest
import tensorflow as tf

from keras_transformer.config import EOS_ID, TransformerConfig
from keras_transformer.model import transformer
from keras_transformer.vocabulary.pair import VocabularyPair
from keras_transformer.vocabulary.subwords import Subwords

VOCAB_SIZE = 132


class Characters(Subwords):
    """ASCII characters as subwords, ids from 4; all others are unknown."""

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


def small_model(seed=1, scale=2.0, **settings):
    """A model with random weights, large enough for peaked probabilities."""
    keras.utils.set_random_seed(seed)
    settings = {"num_layers": 2, "d_model": 16, "d_ff": 16, "num_heads": 2} | settings
    config = TransformerConfig(**{"vocab_size": VOCAB_SIZE, "dropout": 0.3} | settings)
    model = transformer.Transformer(config)
    for variable in model.trainable_variables:
        variable.assign(variable * scale)
    return model


@pytest.fixture(scope="session")
def characters():
    return VocabularyPair(*[Characters()] * 2)


@pytest.fixture(scope="session")
def make_model():
    return small_model


@pytest.fixture(scope="session")
def model():
    return small_model()
