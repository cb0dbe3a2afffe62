"""Lexical constraints against all hypotheses of small lattices, and counts worked out by hand."""

import math

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.search.candidates import Extensions
from keras_transformer.core.search.constraints import (
    PhraseProgress,
    add_required,
    allocate_beam,
)
from tests.core.search.test_beam_search import (
    EOS,
    PAD,
    A,
    B,
    assert_same_list,
    contains,
    every_hypothesis,
    listed,
    random_tables,
    table_search,
)
from tests.small_models import settings_of

# Overlapping, sharing a beginning, given twice, none, longer than the others, of one token each.
PHRASES = [
    [(A, B)],
    [(A, B), (B, 1)],
    [(A, A), (A, B)],
    [(B,), (B,)],
    [],
    [(1, B, 1)],
    [(A,), (B,)],
]
LENGTH = 4


def as_tensor(phrases):
    """int32 [B, 2, 4], padding after each phrase."""
    found = np.full([len(phrases), 2, 4], PAD, "i4")
    for sentence, of_sentence in enumerate(phrases):
        for number, phrase in enumerate(of_sentence):
            found[sentence, number, : len(phrase)] = phrase
    return tf.constant(found)


def search(tables, settings, phrases, prefix=None):
    """Searches tables of logits."""
    phrases = None if phrases is None else as_tensor(phrases)
    return table_search(tables, [LENGTH] * len(tables), settings, prefix, phrases=phrases)


def contains_all(sequence, phrases):
    return all(contains(sequence, phrase) for phrase in phrases)


def test_a_wide_search_is_brute_force_over_what_contains_the_phrases():
    restrictions = {"min_length": 3, "forbidden": ((1, 1),)}
    tables = random_tables(61, len(PHRASES), 5, LENGTH)
    beams = 4 ** (LENGTH - 1) * 5 // 2 + 1
    result = search(tables, settings_of(beams, 0.6, **restrictions), PHRASES)
    for sentence, phrases in enumerate(PHRASES):
        every = every_hypothesis(tables[sentence], LENGTH, 0.6)
        every = [f for f in every if len(f[1]) >= 3 and not contains(f[1], (1, 1))]
        wanted = [found for found in every if contains_all(found[1], phrases)]
        assert 0 < len(wanted) < len(every) or not phrases
        assert_same_list(listed(result, sentence), wanted[:beams])


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_narrow_search_contains_what_fits(beam_size):
    tables = random_tables(67, 3 * len(PHRASES), 5, LENGTH, scale=4.0)
    result = search(tables, settings_of(beam_size, 0.6), 3 * PHRASES)
    missed = 0
    for sentence, phrases in enumerate(3 * PHRASES):
        (_, best), *_ = listed(result, sentence)
        assert contains_all(best, phrases) or sum(map(len, set(phrases))) >= LENGTH
        for _, sequence in listed(result, sentence):
            assert contains_all(sequence, phrases) or EOS not in sequence
        missed += not contains_all(every_hypothesis(tables[sentence], LENGTH, 0.6)[0][1], phrases)
    assert missed > 10, "phrases that are not in the best hypothesis anyway"


def test_never_worse_than_the_free_best_that_contains_the_phrases():
    """Phrases of the free best, whose tokens a beam that is divided among banks can lose.

    Where both of the best two have them, nothing else is searched; both cases occur.
    """
    settings = settings_of(3, 0.6, min_length=3, n_best=2)
    tables = random_tables(83, 60, 5, LENGTH)
    free = search(tables, settings, None)
    best = [listed(free, sentence)[0] for sentence in range(60)]
    written = [dict.fromkeys(sequence) for _, sequence in best]
    phrases = [[(i,) for i in tokens if i not in (PAD, EOS)][-2:] for tokens in written]
    result = search(tables, settings, phrases)
    assert sum(len(of_sentence) == 2 for of_sentence in phrases) > 20
    finished = [number for number, (_, sequence) in enumerate(best) if EOS in sequence]
    assert len(finished) > 20
    satisfied = [
        number
        for number in finished
        if all(contains_all(other, phrases[number]) for _, other in listed(free, number)[:2])
    ]
    assert 3 < len(satisfied) < len(finished) - 3
    for sentence in finished:
        found = listed(result, sentence)
        assert all(contains_all(sequence, phrases[sentence]) for _, sequence in found)
        assert len({sequence for _, sequence in found}) == len(found)
        assert found == sorted(found, key=lambda each: -each[0]) and best[sentence] in found


def test_sentences_without_phrases_get_the_same_bits():
    settings = settings_of(3, 0.6)
    tables = random_tables(71, 2 * len(PHRASES), 5, LENGTH)
    mixed = [row for phrases in PHRASES for row in (phrases, [])]
    found, free = search(tables, settings, mixed), search(tables, settings, None)
    for name in ("ids", "length", "score", "log_prob"):
        constrained, plain = getattr(found, name), getattr(free, name)
        assert np.array_equal(constrained[1::2], plain[1::2])
    assert not np.array_equal(found.ids, free.ids)


def test_a_begun_phrase_may_continue_after_a_prefix():
    # The prefix ends with the beginning of the phrase, and contains the other one.
    tables = random_tables(73, 1, 5, LENGTH)
    prefix, phrases = tf.constant([[B, A, PAD]]), [(A, B), (B,)]
    result = search(tables, settings_of(161, 0.6), [phrases], prefix)
    every = every_hypothesis(tables[0], LENGTH, 0.6)
    wanted = [f for f in every if f[1][:2] == (B, A) and contains_all(f[1], phrases)]
    assert_same_list(listed(result, 0), wanted)


def test_the_beam_is_divided_among_banks():
    # Banks: 2 (a phrase that occurs, of two), 0, 1 (begun), 1, 0, and one that does not exist.
    counts = tf.constant([[[2, 0], [0, 0], [0, 1], [0, 1], [0, 0], [2, 1]]])
    occurs = tf.constant([[[True, False]] + [[False, False]] * 5])
    progress = PhraseProgress(counts, occurs)
    log_probs = tf.constant([[-9.0, -1.0, -4.0, -3.0, -2.0, -np.inf]])
    for beams, wanted in ((1, [0]), (2, [0, 3]), (4, [0, 3, 1, 2]), (5, [0, 3, 1, 2, 4])):
        chosen_log_probs, chosen = allocate_beam(progress, log_probs, beams)
        assert chosen.numpy().tolist() == [wanted]
        assert chosen_log_probs.numpy().tolist() == [log_probs.numpy()[0, wanted].tolist()]


def test_no_extension_is_considered_twice():
    """Token 5 is required and among the best, which the search considers anyway."""
    logits = tf.constant([[[0.0, 0.0, 0.0, 0.0, 0.0, 3.0, 2.0, 1.0]]])
    free = Extensions(tf.constant([[5, 6]]), tf.constant([[0, 0]]), tf.constant([[-1.0, -2.0]]))
    required = tf.constant([[[5], [7], [-1]]])
    extensions = add_required(free, tf.zeros([1, 1]), logits, logits, required)
    exists = extensions.log_probs.numpy()[0] > -math.inf
    assert extensions.tokens.numpy()[0][exists].tolist() == [5, 6, 7]
