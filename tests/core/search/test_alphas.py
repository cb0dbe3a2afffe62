import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.search.alphas import AlphaSearch
from keras_transformer.core.search.engines.engine import Request
from keras_transformer.core.search.engines.graphs import SearchGraphs
from keras_transformer.core.search.engines.tensorflow_engine import TensorFlowEngine
from tests.core.search.test_beam_search import listed, random_tables, reference_search, table_search
from tests.small_models import compiled, settings_of

ALPHAS = (0.0, 0.6, 1.2, 2.0)
SOURCES = [[5, 4, 6, 2], [4, 2], [7, 7, 5, 3, 2], [2], [6, 5, 4, 4, 7, 3, 2]]


@pytest.mark.parametrize("beam_size", [2, 3])
def test_one_search_finds_the_best_hypothesis_for_each_alpha(beam_size):
    """Also in sentences of which nothing ends, with a maximum length of 1."""
    settings = settings_of(beam_size)
    tables = random_tables(beam_size, 8, 4, 6, scale=3.0)
    max_lengths = [6, 1, 2, 6, 5, 6, 4, 3]
    strategy = AlphaSearch(settings, tf.constant(ALPHAS))
    found = table_search(tables, max_lengths, settings, strategy=strategy)
    differ = 0
    for sentence, max_length in enumerate(max_lengths):
        rows = listed(found, sentence)
        wanted = [
            reference_search(tables[sentence], max_length, settings_of(beam_size, alpha).options)[0]
            for alpha in ALPHAS
        ]
        assert [row[1] for row in rows] == [sequence for _, sequence in wanted]
        np.testing.assert_allclose([row[0] for row in rows], [score for score, _ in wanted], 1e-5)
        differ += len({sequence for _, sequence in wanted}) > 1
    assert differ > 0


@pytest.mark.parametrize(("beam_size", "early_stopping"), [(1, False), (3, True)])
def test_an_engine_finds_what_a_search_with_each_alpha_finds(make_model, beam_size, early_stopping):
    """Except that the search never stops early."""
    model = compiled(make_model(seed=3, scale=1.5, vocab_size=8))
    settings = settings_of(beam_size, early_stopping=early_stopping, no_repeat_ngram_size=2)
    engine = TensorFlowEngine(SearchGraphs(model, settings))
    exact = TensorFlowEngine(SearchGraphs(model, settings_of(beam_size, no_repeat_ngram_size=2)))
    found = engine.search_alphas(SOURCES, ALPHAS)
    assert found.length.shape == (5, 4)
    assert found.length[3].tolist() == [0] * 4  # of an empty source
    engine._most_tokens = 8  # the memory's
    in_parts = engine.search_alphas(SOURCES, ALPHAS)
    np.testing.assert_array_equal(in_parts.length, found.length)
    for number, alpha in enumerate(ALPHAS):
        wanted = exact.search(Request(SOURCES, guaranteed=1, alpha=alpha))
        np.testing.assert_array_equal(found.length[:, number], wanted.length[:, 0])
        np.testing.assert_allclose(found.score[:, number], wanted.score[:, 0], rtol=1e-5)
        for sentence, length in enumerate(wanted.length[:, 0]):
            ids = found.ids[sentence, number, :length]
            np.testing.assert_array_equal(ids, wanted.ids[sentence, 0, :length])
    assert beam_size == 1 or len({tuple(row) for row in found.length.T.tolist()}) > 1
