"""Random draws against the probabilities of small lattices."""

import math

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.search.config import SamplingConfig
from keras_transformer.core.search.sampling import sampled_extensions
from tests.core.search.test_beam_search import (
    BOS,
    EOS,
    PAD,
    A,
    B,
    contains,
    drawn_lattice,
    has_repeated,
    listed,
    log_prob,
    random_tables,
    table_search,
)
from tests.small_models import settings_of


def test_sampling_draws_by_probability():
    # Of 2000 draws of the drawn lattice, A EOS has probability 0.36.
    sampling = SamplingConfig(seed=5)
    settings = settings_of(2000, 0.0, sampling=sampling)
    result = table_search(drawn_lattice(), [3], settings)
    drawn = [sequence for _, sequence in listed(result, 0)]
    for sequence, probability in {(A, EOS): 0.36, (B, EOS): 0.18, (B, B, EOS): 0.336}.items():
        share = drawn.count(sequence) / 2000
        # Four standard deviations of a share of 2000 draws.
        assert abs(share - probability) < 4 * math.sqrt(probability * (1 - probability) / 2000)
    again = table_search(drawn_lattice(), [3], settings)
    np.testing.assert_array_equal(again.ids, result.ids)
    other = table_search(
        drawn_lattice(), [3], settings_of(2000, 0.0, sampling=SamplingConfig(seed=6))
    )
    assert not np.array_equal(other.ids, result.ids)
    best = [s for s, sequence in listed(result, 0) if sequence == (A, EOS)]
    np.testing.assert_allclose(best, math.log(0.36), rtol=1e-5)


def test_a_cold_or_narrow_sample_is_greedy():
    tables = random_tables(37, 4, 5, 5)
    greedy = table_search(tables, [5] * 4, settings_of(1, forbidden=((PAD,), (BOS,))))
    for sampling in (
        SamplingConfig(temperature=1e-4),
        SamplingConfig(top_k=1),
        SamplingConfig(top_p=1e-6),
    ):
        drawn = table_search(tables, [5] * 4, settings_of(3, sampling=sampling))
        for sentence in range(4):
            found = {sequence for _, sequence in listed(drawn, sentence)}
            assert found == {listed(greedy, sentence)[0][1]}


def test_samples_are_restricted_too():
    restrictions = {"min_length": 3, "no_repeat_ngram_size": 1, "forbidden": ((A, B),)}
    settings = settings_of(50, 0.0, sampling=SamplingConfig(seed=3), **restrictions)
    # Four tokens are left beside EOS, none of which occurs twice: the fifth is EOS.
    tables = random_tables(47, 1, 7, 5, scale=1.0)
    drawn = listed(table_search(tables, [5], settings), 0)
    assert len(drawn) == 50 and len({sequence for _, sequence in drawn}) > 3
    for score, sequence in drawn:
        assert len(sequence) >= 3
        assert not has_repeated(sequence, 1) and not contains(sequence, (A, B))
        assert score == pytest.approx(log_prob(tables[0], sequence), abs=1e-4)


def test_top_p_keeps_the_token_that_passes_it():
    # 0.5, 0.3, 0.2 with top_p 0.6: the first two may be drawn, as 5 to 3.
    logits = tf.repeat(tf.math.log([[[0.3, 0.5, 0.2]]]), 4, axis=1)
    uniform = tf.constant([[0.0, 0.62, 0.63, 0.999]])
    config = SamplingConfig(top_p=0.6)
    extensions = sampled_extensions(tf.zeros([1, 4]), logits, logits, uniform, config)
    assert extensions.tokens.numpy().tolist() == [[1, 1, 0, 0]]
    np.testing.assert_allclose(np.exp(extensions.log_probs), [[0.5, 0.5, 0.3, 0.3]], rtol=1e-5)


def test_temperature_flattens():
    # Temperature 2 takes square roots: 0.9 and 0.1 become 3 to 1.
    logits = tf.repeat(tf.math.log([[[0.9, 0.1]]]), 2, axis=1)
    uniform = tf.constant([[0.74, 0.76]])
    config = SamplingConfig(temperature=2.0)
    extensions = sampled_extensions(tf.zeros([1, 2]), logits, logits, uniform, config)
    assert extensions.tokens.numpy().tolist() == [[0, 1]]
    np.testing.assert_allclose(np.exp(extensions.log_probs), [[0.9, 0.1]], rtol=1e-5)
