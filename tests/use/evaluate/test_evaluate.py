import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.config import BOS_ID, EOS_ID, TransformerConfig
from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.search.config import DecodingConfig
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.use.evaluate.evaluate import perplexity
from tests.refusals import refused
from tests.small_models import translator_with


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(3)
    config = TransformerConfig(10, num_layers=1, d_model=8, d_ff=8, num_heads=2, dropout=0.5)
    return Transformer(config)


@pytest.fixture(scope="module")
def translator(model):
    return translator_with(model, VocabularyPair(None, None), DecodingConfig())


def batch(source, target):
    return tf.constant(source, tf.int32), tf.constant(target, tf.int32)


def test_perplexity_is_the_mean_over_tokens_not_batches(model, translator):
    pairs = [([4, 5, EOS_ID], [6, EOS_ID]), ([7, EOS_ID], [8, 9, 4, EOS_ID]), ([EOS_ID], [EOS_ID])]
    total = 0.0
    for source, target in pairs:
        inputs = {"source": np.array([source]), "target": np.array([[BOS_ID, *target[:-1]]])}
        logits = np.asarray(model(inputs, training=False), np.float64)[0]
        log_probs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        total += log_probs[np.arange(len(target)), target].sum()
    batches = [
        batch([[4, 5, EOS_ID], [7, EOS_ID, 0]], [[6, EOS_ID, 0, 0], [8, 9, 4, EOS_ID]]),
        batch([[EOS_ID]], [[EOS_ID]]),
    ]
    result = perplexity(translator, batches)
    assert result["tokens"] == 7
    assert result["cross_entropy"] == pytest.approx(-total / 7, rel=1e-5)
    assert result["perplexity"] == pytest.approx(np.exp(-total / 7), rel=1e-5)


def test_batches_without_rows_count_nothing(translator):
    some = batch([[4, EOS_ID]], [[5, EOS_ID]])
    none = tf.zeros([0, 3], tf.int32), tf.zeros([0, 2], tf.int32)
    assert perplexity(translator, [some, none]) == perplexity(translator, [some])


def test_a_text_longer_than_the_learned_positions(model):
    config = dataclasses.replace(model.config, positions="learned", max_positions=3)
    learned = translator_with(Transformer(config), VocabularyPair(None, None), DecodingConfig())
    short, long = [[4, 5, EOS_ID]], [[4, 5, 6, EOS_ID]]
    assert perplexity(learned, [batch(short, short)])["tokens"] == 3
    with refused("source", "4", about="at most 3"):
        perplexity(learned, [batch(long, short)])
    with refused("target", "4", about="at most 3"):
        learned.score_ids(short, long)
