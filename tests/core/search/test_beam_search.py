import itertools
import math

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.search import rounds
from keras_transformer.core.search.beam_search import BeamSearch
from keras_transformer.core.search.config import DecodingConfig, SearchSettings
from keras_transformer.core.search.constraints import constrained_search
from keras_transformer.core.search.hypotheses import Hypotheses
from keras_transformer.core.search.search_loop import search
from tests.small_models import Cache, settings_of, strategy_of

PAD, BOS, EOS = 0, 1, 2


def random_tables(seed, sentences, vocab, length, scale=2.0):
    """Logits after every prefix: [sentences, prefixes, vocab], a prefix being a number (`code`)."""
    prefixes = (vocab + 1) ** length
    return np.random.default_rng(seed).normal(0, scale, (sentences, prefixes, vocab)).astype("f4")


def code(prefix, vocab):
    """Numbers the prefixes: digits token + 1 in base vocab + 1, so that lengths differ too."""
    number = 0
    for token in prefix:
        number = number * (vocab + 1) + token + 1
    return number


def as_arrays(hypotheses):
    return Hypotheses.of({name: part.numpy() for name, part in hypotheses.outputs.items()})


def table_search(tables, max_lengths, settings, prefix=None, strategy=None, phrases=None):
    """Searches the tables; the cache holds each beam's tokens, so a wrong reordering shows."""
    search_tables = search_function(tables.shape[-1], settings, strategy, phrases)
    result = search_tables(tf.constant(tables), tf.constant(max_lengths, tf.int32), prefix)
    result = as_arrays(result)
    assert_alignment(result, lambda prefix: code(prefix, tables.shape[-1]))
    return result


def search_function(vocab, settings, strategy=None, phrases=None):
    """The function that `table_search` runs, for any number of tables of any size."""

    def step_fn(ids, cache, position):
        tokens = tf.concat([cache.per_beam, ids[:, :, None]], axis=2)  # [B, K, 1 + position]
        powers = (vocab + 1) ** tf.range(position - 1, -1, -1)
        prefix_code = tf.reduce_sum((tokens[:, :, 1:] + 1) * powers, axis=-1)
        (tables,) = cache.per_sentence
        logits = tf.gather(tables, prefix_code, batch_dims=1)
        logits = tf.ensure_shape(logits, [None, None, vocab])
        return logits, prefix_code, Cache(tokens, (tables,))

    def search_tables(tables, max_lengths, prefix=None):
        beams = settings.options.beam_size
        empty = tf.zeros([tf.shape(max_lengths)[0], beams, 0], tf.int32)
        cache = Cache(empty, (tables,))
        arguments = step_fn, cache, max_lengths, strategy or strategy_of(settings)
        if phrases is not None:
            return constrained_search(*arguments, phrases, prefix, aligned=True)
        return search(*arguments, prefix, aligned=True)

    return search_tables


def log_softmax(logits):
    logits = np.asarray(logits, np.float64)
    return logits - np.log(np.sum(np.exp(logits)))


def log_prob(table, sequence):
    vocab = table.shape[-1]
    return sum(
        log_softmax(table[code(sequence[:i], vocab)])[token] for i, token in enumerate(sequence)
    )


def penalty(length, alpha):
    return ((5 + length) / 6) ** alpha


def every_hypothesis(table, max_length, alpha):
    """All sequences that end in their only EOS: (score, sequence), best first."""
    others = [token for token in range(table.shape[-1]) if token != EOS]
    found = []
    for length in range(1, max_length + 1):
        for prefix in itertools.product(others, repeat=length - 1):
            sequence = (*prefix, EOS)
            found.append((log_prob(table, sequence) / penalty(length, alpha), sequence))
    return sorted(found, reverse=True)


def assert_alignment(result, wanted):
    """Each token keeps the source position that came with the logits after its prefix."""
    for place, length in np.ndenumerate(result.length):
        ids, alignment = result.ids[place], result.alignment[place]
        prefixes = [tuple(ids[:end].tolist()) for end in range(length)]
        assert alignment[:length].tolist() == list(map(wanted, prefixes))


def listed(result, sentence):
    """The hypotheses of one sentence that exist: [(score, sequence)]."""
    ids, lengths, scores = result.ids, result.length, result.score
    kept = [k for k in range(len(scores[sentence])) if scores[sentence, k] > -math.inf]
    for k in range(len(scores[sentence])):
        assert np.all(ids[sentence, k, lengths[sentence, k] :] == PAD)
    return [
        (scores[sentence, k], tuple(ids[sentence, k, : lengths[sentence, k]].tolist()))
        for k in kept
    ]


def assert_apart(ranked):
    """Makes sure that the order is no matter of rounding."""
    scores = np.array([score for score, _ in ranked], np.float64)
    assert np.all(scores[:-1] - scores[1:] > 1e-4)


def assert_same_list(got, wanted):
    assert_apart(wanted)
    assert [sequence for _, sequence in got] == [sequence for _, sequence in wanted]
    np.testing.assert_allclose([s for s, _ in got], [s for s, _ in wanted], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("seed", "vocab", "length", "alpha"),
    [
        (0, 3, 6, 0.6),
        (1, 4, 4, 0.0),
        (4, 3, 1, 0.6),
        (5, 5, 3, 6.0),
    ],
)
def test_exhaustive_beam_is_brute_force(seed, vocab, length, alpha):
    tables = random_tables(seed, 2, vocab, length)
    beams = max(2, (vocab - 1) ** (length - 1) * vocab // 2 + 1)
    result = table_search(tables, [length, length], settings_of(beams, alpha))
    for sentence in range(2):
        wanted = every_hypothesis(tables[sentence], length, alpha)[:beams]
        assert_same_list(listed(result, sentence), wanted)


def reference_search(table, max_length, options):
    """The same search as nested lists: [(score, sequence)], best first.

    Only `early_stopping` ends it before the maximum length: when K hypotheses have ended, and the
    best that has not would be no better than the worst of these if it ended without another token.
    """
    alive, finished = [(0.0, ())], []
    for length in range(1, max_length + 1):
        candidates = []
        for total, prefix in alive:
            log_probs = log_softmax(table[code(prefix, table.shape[-1])])
            candidates += [(total + p, (*prefix, token)) for token, p in enumerate(log_probs)]
        candidates = sorted(candidates, reverse=True)[: 2 * options.beam_size]
        candidates = [(p, s) for p, s in candidates if p > -math.inf]
        ended = [(p, s) for p, s in candidates if s[-1] == EOS]
        finished += [(p / penalty(length, options.alpha), s) for p, s in ended]
        alive = [(p, s) for p, s in candidates if s[-1] != EOS][: options.beam_size]
        if options.early_stopping and len(finished) >= options.beam_size and alive:
            worst = sorted(finished, reverse=True)[options.beam_size - 1][0]
            if alive[0][0] / penalty(length, options.alpha) <= worst:
                break
    if not finished:
        finished = [(p / penalty(max_length, options.alpha), s) for p, s in alive]
    finished = sorted(finished, reverse=True)
    assert_apart(finished[: options.beam_size + 1])
    return finished[: options.beam_size]


@pytest.mark.parametrize(("beam_size", "alpha"), [(2, 0.0), (3, 2.0), (5, 0.6)])
def test_narrow_beam_is_the_plain_search_without_early_stop(beam_size, alpha):
    settings = settings_of(beam_size, alpha)
    tables = random_tables(beam_size, 8, 4, 6, scale=3.0)
    max_lengths = [6, 1, 2, 6, 5, 6, 4, 3]
    result = table_search(tables, max_lengths, settings)
    for sentence, max_length in enumerate(max_lengths):
        wanted = reference_search(tables[sentence], max_length, settings.options)
        assert_same_list(listed(result, sentence), wanted)


@pytest.mark.parametrize("beam_size", [2, 3])
def test_early_stopping_is_by_the_penalty_of_the_present_length(beam_size):
    # EOS is likely, so that a search has reasons to end; a large alpha has it go on.
    tables = random_tables(beam_size, 12, 4, 6, scale=1.0)
    tables[..., EOS] += 1.5
    max_lengths = [6, 3, 5, 6, 4, 6] * 2
    wanted = {}
    for early_stopping in (False, True):
        settings = settings_of(beam_size, 3.0, early_stopping=early_stopping)
        result = table_search(tables, max_lengths, settings)
        if early_stopping:
            sure = settings_of(beam_size, 3.0, early_stopping=True, n_best=1)
            for one, other in zip(table_search(tables, max_lengths, sure), result, strict=True):
                np.testing.assert_array_equal(one, other)
        wanted[early_stopping] = [
            reference_search(table, max_length, settings.options)
            for table, max_length in zip(tables, max_lengths, strict=True)
        ]
        for sentence, ranked in enumerate(wanted[early_stopping]):
            assert_same_list(listed(result, sentence), ranked)
    assert sum(one != other for one, other in zip(*wanted.values(), strict=True)) > 5


def test_log_probs_are_those_of_the_sequences():
    tables = random_tables(7, 3, 4, 4)
    result = table_search(tables, [4, 4, 4], settings_of(3, 0.6))
    ids, lengths, scores, log_probs = result[:4]
    totals = result.token_log_prob.cumsum(axis=2)
    for sentence in range(3):
        for k in range(3):
            if scores[sentence, k] == -math.inf:
                continue
            length = lengths[sentence, k]
            wanted = log_prob(tables[sentence], ids[sentence, k, :length])
            for end in range(1, length + 1):
                until = log_prob(tables[sentence], ids[sentence, k, :end])
                assert totals[sentence, k, end - 1] == pytest.approx(until, abs=1e-4)
            assert log_probs[sentence, k] == pytest.approx(wanted, abs=1e-4)
            assert scores[sentence, k] == pytest.approx(wanted / penalty(length, 0.6), abs=1e-4)


# A lattice of two words, a (3) and b (4). Probabilities on the edges:
#
#            0.4         0.9
#     BOS ---------> a ---------> EOS        a EOS     0.36
#      |                                     b b EOS   0.6 * 0.7 * 0.8 = 0.336
#      | 0.6         0.7          0.8        b EOS     0.6 * 0.3       = 0.18
#      +-----> b ---------> b' ------> EOS
#              | 0.3                         greedy takes b, then b': 0.336
#              +-----> EOS
#
# Log-probabilities: a EOS -1.0217, b b EOS -1.0906. Penalised with alpha = 1, lp(2) = 7/6 and
# lp(3) = 8/6: a EOS -0.8757, b b EOS -0.8180: the longer one wins.
A, B = 3, 4


def drawn_lattice():
    probabilities = np.full([6**3, 5], 1e-9, "f4")
    probabilities[code((), 5), [A, B]] = [0.4, 0.6]
    probabilities[code((A,), 5), [EOS, A]] = [0.9, 0.1]
    probabilities[code((B,), 5), [EOS, B]] = [0.3, 0.7]
    probabilities[code((B, B), 5), [EOS, A]] = [0.8, 0.2]
    return np.log(probabilities)[None]


@pytest.mark.parametrize(
    ("beam_size", "alpha", "wanted"),
    [
        (2, 0.0, [(math.log(0.36), (A, EOS)), (math.log(0.336), (B, B, EOS))]),
        (2, 1.0, [(-0.81798, (B, B, EOS)), (-0.87571, (A, EOS))]),
        (1, 1.0, [(-0.81798, (B, B, EOS))]),
    ],
)
def test_drawn_lattice(beam_size, alpha, wanted):
    result = table_search(drawn_lattice(), [3], settings_of(beam_size, alpha))
    assert_same_list(listed(result, 0), wanted)


def test_one_beam_is_greedy():
    tables = random_tables(11, 16, 5, 6, scale=1.0)
    ids, lengths, scores, *_ = table_search(tables, [6] * 16, settings_of(1, 0.6))
    for sentence, table in enumerate(tables):
        wanted = []
        while len(wanted) < 6 and EOS not in wanted:
            wanted.append(int(np.argmax(table[code(wanted, 5)])))
        assert ids[sentence, 0, : lengths[sentence, 0]].tolist() == wanted
        score = log_prob(table, wanted) / penalty(len(wanted), 0.6)
        assert scores[sentence, 0] == pytest.approx(score, abs=1e-4)
    assert len(set(lengths[:, 0])) > 1, "sentences end at different steps"


@pytest.mark.parametrize(
    ("alpha", "early_stopping", "wanted"),
    [(0.0, False, [0, 1]), (0.6, False, [0, 1, 2, 3]), (0.6, True, [0, 1])],
)
def test_early_stop_leaves_steps_out(alpha, early_stopping, wanted):
    # EOS has probability 0.98 after every prefix, so that EOS and A EOS finish at once. The worse
    # scores log(0.009 * 0.98) / lp(2): -4.73 with alpha 0, -4.31 with 0.6. After t steps the best
    # alive scores at most t log(0.009) / lp(50): -4.71 t, or -1.25 t. If it ended now, it would
    # score -4.71 t / lp(t): -8.59 after two steps.
    steps = []
    logits = tf.math.log([0.001, 0.001, 0.98, 0.009, 0.009])

    def step_fn(ids, cache, position):
        steps.append(int(position))
        return tf.broadcast_to(logits, [1, 2, 5]), ids, cache

    settings = settings_of(2, alpha, early_stopping=early_stopping)
    result = search(step_fn, Cache(), [50], strategy_of(settings))
    assert steps == wanted
    assert result.ids.numpy()[0].tolist() == [[EOS, PAD], [A, EOS]]


def test_bound_is_of_the_best_alive_at_the_maximum_length():
    # lp(7) = 2^alpha: the alive hypothesis may reach -3 / 2 = -1.5 with alpha 1, and stay at -3
    # with alpha 0. The worst of the finished that are guaranteed decides.
    ids = tf.zeros([4, 2, 7], tf.int32)
    alive = Hypotheses(ids, log_prob=tf.constant([[-3.0, -9.0]] * 4))
    scores = tf.constant([[-1.0, -1.4], [-1.0, -1.6], [-1.0, -1.5], [-1.0, -math.inf]])
    finished = Hypotheses(ids, tf.ones([4, 2], tf.int32), scores, scores)
    for guaranteed, alpha, wanted in (
        (2, 1.0, [False, True, False, True]),
        (2, 0.0, [False, False, False, True]),
        (1, 1.0, [False] * 4),
    ):
        strategy = BeamSearch(settings_of(2), guaranteed, alpha)
        goes_on = strategy.can_improve(alive, finished, tf.fill([4], 7))
        assert goes_on.numpy().tolist() == wanted


@pytest.mark.parametrize("beam_size", [1, 3])
def test_nothing_finishes(beam_size):
    # EOS is impossible: the best sequences of 3 tokens come back, normalised, without EOS.
    tables = random_tables(13, 1, 5, 4)
    tables[:, :, EOS] = -np.inf
    settings = settings_of(beam_size, 0.6)
    got = listed(table_search(tables, [3], settings), 0)
    table = tables[0]
    sequences = [s for s in itertools.product(range(5), repeat=3) if EOS not in s]
    with np.errstate(divide="ignore"):
        best = sorted(((log_prob(table, s) / penalty(3, 0.6), s) for s in sequences), reverse=True)
    assert len(got) == beam_size
    if beam_size == 3:
        assert_same_list(got, reference_search(table, 3, settings.options))
    assert got[0][0] <= best[0][0] + 1e-5
    assert all(len(sequence) == 3 for _, sequence in got)


def test_fewer_hypotheses_than_beams():
    # One token and EOS: two hypotheses within two tokens, however many beams.
    tables = random_tables(17, 1, 4, 3)
    tables[:, :, [PAD, BOS]] = -np.inf
    ids, lengths, scores, *_ = table_search(tables, [2], settings_of(4, 0.6))
    assert sorted(map(tuple, ids[0, :2].tolist())) == [(EOS, PAD), (A, EOS)]
    assert scores[0, 2:].tolist() == [-math.inf, -math.inf]
    assert lengths[0, 2:].tolist() == [0, 0]
    assert ids[0, 2:].tolist() == [[PAD, PAD], [PAD, PAD]]


def test_result_does_not_depend_on_the_batch():
    settings = settings_of(4, 0.6)
    tables = random_tables(19, 12, 5, 5)
    max_lengths = [5, 2, 4, 0, 5, 1, 3, 5, 5, 2, 4, 5]
    together = table_search(tables, max_lengths, settings)
    # In a graph: a step traced once serves all, and no number of them is fixed in it.
    signature = [tf.TensorSpec([None, None, 5]), tf.TensorSpec([None], tf.int32)]
    search_tables = tf.function(search_function(5, settings), input_signature=signature)
    for sentence, max_length in enumerate(max_lengths):
        alone = search_tables(tables[sentence : sentence + 1], tf.constant([max_length]))
        alone = as_arrays(alone)
        assert_same_list(listed(alone, 0), listed(together, sentence))


def test_maximum_length_of_zero_gives_the_empty_hypothesis():
    ids, lengths, scores, *_ = table_search(random_tables(0, 2, 4, 1), [0, 0], settings_of(2))
    assert ids.shape == (2, 2, 0)
    assert lengths.tolist() == [[0, 0], [0, 0]]
    assert scores.tolist() == [[0.0, -math.inf]] * 2


def test_empty_batch():
    ids, lengths, scores, *_ = table_search(random_tables(0, 0, 4, 2), [], settings_of(3))
    assert ids.shape == (0, 3, 0)
    assert lengths.shape == scores.shape == (0, 3)


def test_special_ids_are_parameters():
    # The drawn lattice with EOS and A exchanged.
    exchanged = drawn_lattice()
    exchanged[..., [EOS, A]] = exchanged[..., [A, EOS]]
    permuted = exchanged.copy()
    permuted[:, code((EOS,), 5)] = exchanged[:, code((A,), 5)]
    settings = SearchSettings(DecodingConfig(2, alpha=0.0), bos_id=0, eos_id=A, pad_id=1)
    ids = table_search(permuted, [3], settings)[0]
    assert ids[0].tolist() == [[EOS, A, 1], [B, B, A]]


def test_n_best_asks_less_and_keeps_the_best():
    # With n_best=1 the search may stop sooner, never with another best hypothesis.
    tables = random_tables(23, 16, 5, 6, scale=3.0)
    one, every = (table_search(tables, [6] * 16, settings_of(4, n_best=n)) for n in (1, None))
    for table in tables:
        assert_apart(reference_search(table, 6, settings_of(4).options))
    np.testing.assert_array_equal(one.ids[:, 0, :6], every.ids[:, 0, :6])
    np.testing.assert_allclose(one.score[:, 0], every.score[:, 0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("beam_size", [1, 21])
def test_prefix_is_forced_and_scored(beam_size):
    tables = random_tables(29, 3, 4, 4)
    prefix = np.array([[A, A], [A, PAD], [PAD, PAD]], "i4")
    settings = settings_of(beam_size, 0.6)
    result = table_search(tables, [4, 4, 4], settings, prefix=tf.constant(prefix))
    for sentence, start in enumerate([(A, A), (A,), ()]):
        wanted = [
            found
            for found in every_hypothesis(tables[sentence], 4, 0.6)
            if found[1][: len(start)] == start
        ]
        assert_apart(wanted[: beam_size + 1])
        if beam_size > 1:
            assert_same_list(listed(result, sentence), wanted[:beam_size])
        else:
            assert result.ids[sentence, 0, : len(start)].tolist() == list(start)


def test_prefix_as_long_as_the_limit_comes_back_unfinished():
    tables = random_tables(31, 1, 4, 2)
    result = table_search(tables, [2], settings_of(2), prefix=tf.constant([[A, A, A]]))
    assert result.ids[0].tolist() == [[A, A], [PAD, PAD]]
    assert result.log_prob[0, 0] == pytest.approx(log_prob(tables[0], (A, A)), abs=1e-4)


def test_stopped_sentences_leave_between_rounds(monkeypatch):
    # Eight sentences stop at once, one goes on: the step function soon sees that one alone.
    monkeypatch.setattr(rounds, "ROUND_STEPS", 2)
    rows = []

    def step_fn(ids, cache, position):
        (never,) = cache.per_sentence
        rows.append(int(tf.shape(ids)[0]))
        ends = tf.math.log([0.0, 0.0, 0.99, 0.01])
        goes_on = tf.math.log([0.0, 0.0, 0.0, 1.0])
        logits = tf.where(never[:, None, None], goes_on, ends)
        return tf.broadcast_to(logits, [tf.shape(ids)[0], 1, 4]), ids, cache

    never = tf.constant([False] * 4 + [True] + [False] * 4)
    cache = Cache((), (never,))
    result = search(step_fn, cache, [9] * 9, strategy_of(settings_of(1)))
    assert rows == [9] + [1] * 8
    assert result.length[:, 0].numpy().tolist() == [1] * 4 + [9] + [1] * 4


def has_repeated(sequence, size):
    ngrams = [sequence[i : i + size] for i in range(len(sequence) - size + 1)]
    return len(set(ngrams)) < len(ngrams)


def contains(sequence, phrase):
    return any(sequence[i : i + len(phrase)] == phrase for i in range(len(sequence)))


RESTRICTIONS = [
    ({"no_repeat_ngram_size": 2}, lambda s: not has_repeated(s, 2)),
    ({"forbidden": ((A,), (PAD, BOS, PAD))}, lambda s: A not in s and not contains(s, (0, 1, 0))),
    (
        {"forbidden": ((A, A), (PAD, A, BOS))},
        lambda s: not (contains(s, (A, A)) or contains(s, (0, A, 1))),
    ),
    (
        {"min_length": 3, "no_repeat_ngram_size": 2, "forbidden": ((A, PAD),)},
        lambda s: len(s) >= 3 and not has_repeated(s, 2) and not contains(s, (A, PAD)),
    ),
]


@pytest.mark.parametrize(("restrictions", "allows"), RESTRICTIONS)
def test_restricted_search_is_brute_force_over_what_is_allowed(restrictions, allows):
    tables = random_tables(41, 2, 4, 5)
    beams = 3**4 * 2 + 1
    result = table_search(tables, [5, 5], settings_of(beams, 0.6, **restrictions))
    for sentence in range(2):
        every = every_hypothesis(tables[sentence], 5, 0.6)
        wanted = [found for found in every if allows(found[1])]
        assert 5 < len(wanted) < len(every)
        assert_same_list(listed(result, sentence), wanted[:beams])


def test_nothing_that_is_allowed_is_left():
    settings = settings_of(2, min_length=9, no_repeat_ngram_size=1, forbidden=((0,), (1,)))
    result = table_search(random_tables(53, 1, 4, 5), [5], settings)
    assert listed(result, 0) == []
