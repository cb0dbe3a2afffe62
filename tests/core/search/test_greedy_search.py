"""Greedy search finds what the search of beams finds with one beam, without its scores."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.config import EOS_ID, PAD_ID
from keras_transformer.core.search.candidates import largest_logits
from keras_transformer.core.search.compiled_model import compile_model
from keras_transformer.core.search.engines.graphs import SearchGraphs
from keras_transformer.core.search.ensemble import decode_target, ensemble_of
from keras_transformer.core.search.greedy_search import GreedySearch
from keras_transformer.core.search.matrices import ScaledRows
from keras_transformer.core.search.search_loop import search
from tests.core.search.test_compiled_model import config_of, random_model
from tests.small_models import (
    VOCAB_SIZE,
    Cache,
    padded,
    search_compiled,
    search_compiled_greedily,
    settings_of,
    small_model,
    strategy_of,
)


def sources(vocab_size):
    """Sentences of several lengths, an empty one among them."""
    generator = np.random.default_rng(3)
    rows = [generator.integers(4, vocab_size, length).tolist() for length in (4, 1, 0, 3, 4, 2)]
    return padded([[*row, EOS_ID] for row in rows])


def assert_same(found, wanted):
    """Compares what both searches found."""
    np.testing.assert_array_equal(found.ids, wanted.ids)
    np.testing.assert_array_equal(found.length, wanted.length)
    assert np.all(found.is_finite)
    assert found.ids.shape[2] > 1


def both(stored, settings, vocab_size, target_prefix=None):
    """Returns the results of greedy search and of beam search with one beam."""
    model, source = stored.in_graph(), sources(vocab_size)
    greedy = search_compiled_greedily(model, source, settings, target_prefix)
    return greedy, search_compiled(model, source, settings, target_prefix)


# The logits of each step are compared for every option in test_compiled_model.py.
@pytest.mark.parametrize("name", ["as in the paper", "modern", "many at once"])
def test_each_token_has_the_largest_logit_of_one_pass_over_the_translation(name):
    config = config_of(name)
    model = compile_model(random_model(config))
    limit = 7 if config.positions == "learned" else 5
    settings = settings_of(1, extra_length=2, max_source_length=limit)
    source = sources(config.source_vocab_size or config.vocab_size)[2:5]
    hypotheses = search_compiled_greedily(model, source, settings)
    ids = hypotheses.ids[:, 0]  # [B, T]
    logits, _ = decode_target(model, source, ids)
    largest = tf.argmax(logits, axis=2)
    is_written = np.arange(ids.shape[1]) < hypotheses.length
    np.testing.assert_array_equal(np.where(is_written, largest, PAD_ID), ids)
    has_eos = np.any(ids == EOS_ID, axis=1)
    # Two more than the source, without its code; none if it is empty.
    most = np.minimum(np.maximum([0, 6, 7] - np.int32(config.decoder_reads_code), 0), ids.shape[1])
    np.testing.assert_array_equal(np.where(has_eos, 0, hypotheses.length[:, 0]), most * ~has_eos)
    assert hypotheses.length[2, 0] > 0


# The logits of each step are compared for every option in test_compiled_model.py.


def test_finds_the_same_with_bfloat16(make_model):
    model = compile_model(make_model(num_layers=1), "bfloat16")
    assert_same(*both(model, settings_of(1, extra_length=4), VOCAB_SIZE))


def test_finds_the_same_with_an_ensemble(make_model):
    models = [compile_model(make_model(num_layers=layers)) for layers in (1, 2)]
    assert_same(*both(ensemble_of(models), settings_of(1, extra_length=4), VOCAB_SIZE))


def test_finds_the_same_with_prefixes(make_model):
    model = compile_model(make_model(num_layers=1))
    prefix = padded([[9, 10], [11], [12], [PAD_ID], [13, 14], [PAD_ID]])
    settings = settings_of(1, extra_length=4)
    found, wanted = both(model, settings, VOCAB_SIZE, prefix)
    assert_same(found, wanted)
    assert found.ids[4, 0, :2].numpy().tolist() == [13, 14]


@pytest.mark.parametrize(
    "options",
    [
        {"no_repeat_ngram_size": 1, "forbidden": ((5,), (6, 7))},
        {"min_length": 5, "no_repeat_ngram_size": 2, "forbidden": ((EOS_ID,),)},
    ],
)
def test_finds_the_same_with_restrictions(options, make_model):
    model = compile_model(make_model(num_layers=1, vocab_size=12))
    assert_same(*both(model, settings_of(1, extra_length=4, **options), 12))


LOGITS = np.random.default_rng(5).normal(size=(40, 8)).astype("f4")  # after each token, of 8
LOGITS[:, 2] += 1.0  # EOS


def logits_after(ids, position):
    """The logits after a token, of 5 tokens and others that never come."""
    return tf.gather(tf.constant(LOGITS), ids + tf.minimum(position, 4) * 8)


def plain_step(ids, cache, position):
    return logits_after(ids, position), ids, cache


def scaled_step(ids, cache, position):
    logits = logits_after(ids, position)[:, 0]
    scales = 0.5 + tf.cast(ids, tf.float32)
    return ScaledRows(logits / scales, scales), ids, cache


def test_a_row_of_logits_may_have_a_scale():
    settings = settings_of(1)
    max_lengths = tf.constant([9, 1, 0, 5])
    wanted = search(plain_step, Cache(), max_lengths, strategy_of(settings), aligned=True)
    hypotheses = search(scaled_step, Cache(), max_lengths, GreedySearch(settings), aligned=True)
    assert_same(hypotheses, wanted)
    written = np.arange(hypotheses.ids.shape[2]) < hypotheses.length[..., None]
    np.testing.assert_array_equal(hypotheses.alignment[written], wanted.alignment[written])


def test_where_nothing_may_be_said_there_is_no_translation():
    every_token = tuple((token,) for token in range(8))
    strategy = GreedySearch(settings_of(1, forbidden=every_token))
    hypotheses = search(scaled_step, Cache(), tf.constant([3, 3]), strategy)
    assert hypotheses.length.numpy().tolist() == [[0], [0]]
    assert hypotheses.ids.shape == (2, 1, 0)


def test_the_first_of_equal_logits_is_the_largest():
    logits = np.zeros((2, 1, 6), "f4")
    logits[1, 0, [3, 5]] = 2.0
    places, largest = largest_logits(tf.constant(logits))
    assert places.numpy().tolist() == [[0], [3]]
    assert largest.numpy().tolist() == [[0.0], [2.0]]


def test_weights_that_are_not_finite_are_found_with_int8():
    model = small_model(num_layers=1)
    norm = model.decoder.layers[-1].feed_forward_norm
    norm.beta.assign(np.full(norm.beta.shape, np.nan))
    graphs = SearchGraphs(compile_model(model, "int8"), settings_of(1, extra_length=2))
    source = sources(VOCAB_SIZE)
    is_finite = graphs.greedy_ids(source, tf.fill([len(source), 1], PAD_ID))["is_finite"]
    # The third sentence is empty, and none of its logits was needed.
    assert is_finite.numpy().tolist() == [[False], [False], [True], [False], [False], [False]]
