"""The search bound to models, against the Keras model itself: one model, and several."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.config import BOS_ID, EOS_ID, PAD_ID
from keras_transformer.decoding.compiled_model import compile_model, in_graph
from keras_transformer.decoding.config import SamplingConfig
from keras_transformer.decoding.search import (
    encode_text,
    search_ids,
    target_log_probs,
    with_eos,
)
from keras_transformer.decoding.shortlist import Shortlist
from tests.decoding.conftest import (
    VOCAB_SIZE,
    log_probs_of,
    padded,
    search,
    settings_of,
    small_model,
)

LENGTH, ALPHA = 3, 0.9
OTHERS = (0, 1, 3, 4)  # tokens of the models with 5 of them that are not EOS
SHORT = [4, 3, EOS_ID]


@pytest.fixture(scope="module")
def two_models(make_model):
    """Two of other sizes, with 5 tokens."""
    sizes = ({"num_layers": 1}, {"num_layers": 2, "d_model": 8, "num_heads": 4, "norm": "pre"})
    return [make_model(seed=4 + i, scale=1.5, vocab_size=5, **size) for i, size in enumerate(sizes)]


@pytest.fixture(params=["one model", "an ensemble"])
def models(request, two_models):
    """The first model alone, and both."""
    return two_models[:1] if request.param == "one model" else two_models


def mean_log_probs(models, source, targets):
    """The logarithms of the models' mean probabilities of the next token, by NumPy.

    Args:
        targets: lists of ids, all of the same length T.

    Returns:
        float64 [number of targets, T + 1, V], after the first t tokens of each target.
    """
    inputs = {
        "source": np.array([source] * len(targets), "i4"),
        "target": np.array([[BOS_ID, *target] for target in targets], "i4"),
    }
    probabilities = []
    for model in models:
        logits = np.asarray(model(inputs, training=False), np.float64)
        powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
        probabilities.append(powers / powers.sum(axis=-1, keepdims=True))
    return np.log(np.mean(probabilities, axis=0))


def every_translation(models):
    """All of at most 3 tokens, 1 + 4 + 16: (score, ids), best first."""
    beginnings = list(itertools.product(OTHERS, repeat=LENGTH - 1))
    found = {}
    for beginning, log_probs in zip(
        beginnings, mean_log_probs(models, SHORT, beginnings), strict=True
    ):
        for length in range(1, LENGTH + 1):
            ids = (*beginning[: length - 1], EOS_ID)
            total = sum(log_probs[place, token] for place, token in enumerate(ids))
            found[ids] = total / ((5 + length) / 6) ** ALPHA
    return sorted(((score, list(ids)) for ids, score in found.items()), reverse=True)


def listed(best, count):
    """The first hypotheses of the first sentence."""
    return [best.ids[0, k, : best.lengths[0, k]].numpy().tolist() for k in range(count)]


def test_beam_is_brute_force(models, two_models):
    wanted = every_translation(models)  # fewer than the beams of this search
    settings = settings_of(41, ALPHA, extra_length=0)
    best = search(models, tf.constant([SHORT]), settings)
    assert int(np.sum(best.lengths > 0)) == len(wanted) == 21
    np.testing.assert_allclose(best.scores[0, :21], [score for score, _ in wanted], atol=1e-4)
    assert listed(best, 21) == [ids for _, ids in wanted]
    if models == two_models:  # the order is that of neither model
        for model in models:
            of_one = search(model, tf.constant([SHORT]), settings)
            assert not np.array_equal(of_one.ids, best.ids)


def test_required_phrases_are_brute_force(models):
    wanted = [(score, ids) for score, ids in every_translation(models) if 4 in ids]
    nothing, phrases = tf.constant([[PAD_ID]]), tf.constant([[[4, PAD_ID]]])
    settings = settings_of(41, ALPHA, extra_length=0)
    best = search(models, tf.constant([SHORT]), settings, target_prefix=nothing, phrases=phrases)
    assert listed(best, len(wanted)) == [ids for _, ids in wanted]
    scores = [score for score, _ in wanted]
    np.testing.assert_allclose(best.scores[0, : len(wanted)], scores, atol=1e-4)


def test_scores_of_targets(models):
    target = [3, 4, 1, EOS_ID]
    found = log_probs_of(models, tf.constant([SHORT]), tf.constant([target]))
    log_probs = mean_log_probs(models, SHORT, [target])[0]
    wanted = [log_probs[place, token] for place, token in enumerate(target)]
    np.testing.assert_allclose(found[0], wanted, rtol=1e-4, atol=1e-5)


def test_one_beam_is_greedy(model):
    source = [50, 60, 70, EOS_ID]
    best = search(model, tf.constant([source]), settings_of(1, extra_length=5))
    wanted, log_prob = [], 0.0
    while len(wanted) < 9 and EOS_ID not in wanted:
        log_probs = mean_log_probs([model], source, [wanted])[0, -1]
        wanted.append(int(np.argmax(log_probs)))
        log_prob += log_probs[wanted[-1]]
    assert best.ids[0, 0].numpy().tolist() == wanted
    assert float(best.log_probs[0, 0]) == pytest.approx(log_prob, abs=1e-3)


def test_padding_and_company_change_nothing(model):
    settings = settings_of(3, extra_length=4)
    sources = [[9, 10, EOS_ID], [70, 71, 72, 73, 74, 75, EOS_ID], [EOS_ID], [99, 98, 97, EOS_ID]]
    together = search(model, padded(sources), settings)
    for i, source in enumerate(sources):
        alone = search(model, tf.constant([source]), settings)
        length = alone.ids.shape[2]
        assert np.array_equal(alone.ids[0], together.ids[i, :, :length])
        np.testing.assert_allclose(alone.scores[0], together.scores[i], rtol=1e-4, atol=1e-5)


def test_score_of_a_translation_is_the_search_score(model):
    source = tf.constant([[60, 61, 62, 63, EOS_ID]])
    best = search(model, source, settings_of(4, extra_length=3))
    forced = log_probs_of(model, tf.repeat(source, 4, axis=0), best.ids[0]).numpy()
    assert np.all(forced[best.ids[0].numpy() == PAD_ID] == 0)
    np.testing.assert_allclose(forced.sum(axis=1), best.log_probs[0], rtol=1e-4, atol=1e-5)


def test_prefix_is_kept_and_counts_in_the_score(model):
    source = tf.constant([[60, 61, 62, EOS_ID], [70, 71, EOS_ID, PAD_ID]])
    prefix = tf.constant([[80, 81], [90, PAD_ID]])
    best = search(model, source, settings_of(3, extra_length=3), target_prefix=prefix)
    assert best.ids[0, :, :2].numpy().tolist() == [[80, 81]] * 3
    assert best.ids[1, :, 0].numpy().tolist() == [90] * 3
    forced = log_probs_of(model, tf.repeat(source, 3, axis=0), tf.reshape(best.ids, [6, -1]))
    found = tf.reshape(tf.reduce_sum(forced, axis=1), [2, 3])
    np.testing.assert_allclose(found, best.log_probs, rtol=1e-4, atol=1e-5)


def test_n_best_of_a_call_comes_before_that_of_the_options(model):
    source = padded([[9, 10, EOS_ID], [70, 71, 72, 73, EOS_ID]])
    options = {"extra_length": 6}
    one = search(model, source, settings_of(4, n_best=1, **options))
    called = search(model, source, settings_of(4, **options), n_best=tf.constant(1))
    for found, wanted in zip(called, one, strict=True):
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize("limit", [4, 6])
def test_learned_positions_of_one_model_bound_all(make_model, limit):
    models = [
        make_model(num_layers=1),
        small_model(num_layers=1, positions="learned", max_positions=limit),
    ]
    for variable in models[1].trainable_variables:
        variable.assign(variable * 0.01)  # so that it has no say
    best = search(models, tf.constant([[9, EOS_ID]]), settings_of(2, extra_length=50))
    assert int(tf.reduce_max(best.lengths)) == limit


@pytest.mark.parametrize(
    "required", [pytest.param(None, marks=pytest.mark.slow), [[[33, 44, 0]], [[55, 0, 0]]]]
)
def test_a_search_with_int8_scores_what_the_model_says(make_model, required):
    source = tf.constant([[50, 60, 70, EOS_ID], [9, EOS_ID, PAD_ID, PAD_ID]])
    stored = compile_model(make_model(num_layers=1), "int8")
    phrases = {}
    if required is not None:
        phrases = {"target_prefix": tf.constant([[0], [0]]), "phrases": tf.constant(required)}

    @tf.function(autograph=False)
    def searched_and_forced():
        model = in_graph(stored)
        best = search_ids([model], source, settings_of(2, extra_length=3), **phrases)
        targets = tf.reshape(best.ids, [4, -1])
        return best, target_log_probs([model], tf.repeat(source, 2, axis=0), targets)

    best, forced = searched_and_forced()
    if required is not None:
        texts = [" ".join(map(str, ids)) for ids in best.ids[:, 0].numpy().tolist()]
        assert "33 44" in texts[0] and "55" in texts[1]
    found = tf.reshape(tf.reduce_sum(forced, axis=1), [2, 2])
    # Sums in another order may round an input to its other neighbour.
    np.testing.assert_allclose(found, best.log_probs, atol=0.2)


@pytest.mark.slow  # another type of weights
def test_a_shortlist_of_all_tokens_is_the_plain_search_with_int8(make_model):
    source = tf.constant([[50, 60, 70, EOS_ID], [9, EOS_ID, PAD_ID, PAD_ID]])
    stored = compile_model(make_model(num_layers=1), "int8")
    every = Shortlist([[]] * VOCAB_SIZE, range(VOCAB_SIZE), VOCAB_SIZE)

    @tf.function(autograph=False)
    def searches():
        model, settings = in_graph(stored), settings_of(2, extra_length=3)
        return [search_ids([model], source, settings, shortlist=s) for s in (every, None)]

    found, wanted = searches()
    assert np.array_equal(found.ids, wanted.ids)
    np.testing.assert_allclose(found.log_probs, wanted.log_probs, rtol=1e-4, atol=1e-5)


def test_texts_are_cut_into_subwords_and_end_in_eos(characters):
    texts = ["ab", "", "abcdef", " \t\u3000\u2029\x00", "abcd"]
    ids = with_eos(encode_text(characters.source, tf.constant(texts)), limit=4)
    a = ord("a") + 4
    assert ids.to_list() == [
        [a, a + 1, EOS_ID],
        [EOS_ID],
        [a, a + 1, a + 2, EOS_ID],
        [EOS_ID],
        [a, a + 1, a + 2, EOS_ID],
    ]


def test_invalid_bytes_are_unknown_characters(characters):
    ids = encode_text(characters.source, tf.constant([b"a\xffb", b"\xc3"]))
    assert ids.to_list() == [[ord("a") + 4, 3, ord("b") + 4], [3]]


def test_no_sample_contains_padding_or_bos(make_model):
    """Which a model that has learned little finds probable."""
    model = make_model(num_layers=1, scale=1.0, vocab_size=6)
    settings = settings_of(200, extra_length=20, sampling=SamplingConfig())
    drawn = search(model, padded([[4, 5, EOS_ID]]), settings)
    tokens = set()
    for ids, length in zip(drawn.ids[0].numpy(), drawn.lengths[0].numpy(), strict=True):
        tokens.update(ids[:length].tolist())
    assert tokens == set(range(6)) - {PAD_ID, BOS_ID}


def test_a_sample_without_a_choice_ends(make_model):
    """There is no token left that may come next, and the translation is not long enough to end."""
    model = make_model(num_layers=1, vocab_size=6)
    options = {"no_repeat_ngram_size": 1, "min_length": 12, "extra_length": 9}
    drawn = search(
        model, padded([[4, 5, EOS_ID]]), settings_of(2, sampling=SamplingConfig(), **options)
    )
    assert np.all(np.isneginf(drawn.scores))


def test_a_shortlist_of_fewer_tokens_than_beams_without_repetitions(make_model):
    """The padding of the shortlist is one token several times."""
    model = make_model(num_layers=1)
    shortlist = Shortlist([[5, 6]] * VOCAB_SIZE, [2, 3], VOCAB_SIZE)
    source = padded([[10, 11, 12, EOS_ID], [20, 21, EOS_ID]])
    settings = settings_of(4, no_repeat_ngram_size=1, extra_length=6)
    found = search(model, source, settings, shortlist=shortlist)
    for ids, length in zip(found.ids[:, 0].numpy(), found.lengths[:, 0].numpy(), strict=True):
        tokens = ids[:length].tolist()
        assert len(set(tokens)) == len(tokens) and set(tokens) <= {2, 3, 5, 6}
