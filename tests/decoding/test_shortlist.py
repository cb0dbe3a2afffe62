import math

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.config import EOS_ID, PAD_ID
from keras_transformer.decoding.candidates import BLOCK
from keras_transformer.decoding.compiled_model import compile_model
from keras_transformer.decoding.search import search_ids
from keras_transformer.decoding.shortlist import Shortlist
from keras_transformer.decoding.weights import Linear
from tests.decoding.conftest import VOCAB_SIZE, padded, search, settings_of

SOURCES = [[9, 10, EOS_ID], [70, 71, 72, 73, 74, EOS_ID], [EOS_ID], [99, 98, 97, EOS_ID]]
ALWAYS = [EOS_ID, 3, 4, 5, 6]
SETTINGS = settings_of(3, extra_length=3)


@pytest.fixture(scope="module")
def likely():
    generator = np.random.default_rng(1)
    rows = [generator.choice(VOCAB_SIZE, n) for n in generator.integers(0, 12, VOCAB_SIZE)]
    rows[PAD_ID] = []
    return rows


@pytest.fixture(scope="module")
def shortlist(likely):
    return Shortlist(likely, ALWAYS, VOCAB_SIZE)


def allowed(likely, source):
    return set(ALWAYS).union(*(map(int, likely[i]) for i in source))


def test_considered_tokens(likely, shortlist):
    tokens, penalties, _ = shortlist.considered(padded(SOURCES))
    assert len(tokens) % BLOCK == 0
    assert len(tokens) >= 2 * BLOCK
    every = sorted(set().union(*(allowed(likely, source) for source in SOURCES)))
    assert tokens.numpy().tolist() == every + [PAD_ID] * (len(tokens) - len(every))
    for source, row in zip(SOURCES, penalties.numpy(), strict=True):
        assert set(np.unique(row)) <= {0.0, -math.inf}
        own = np.flatnonzero(row == 0)
        assert set(tokens.numpy()[own].tolist()) == allowed(likely, source)
        assert len(own) == len(allowed(likely, source)), "padding is nobody's"
    assert shortlist.sizes == {"likely": max(map(len, likely)), "always": len(ALWAYS)}


def forbidding(model, tokens):
    """The compiled model with logits of -inf outside of what one source may use."""
    penalty = np.full(VOCAB_SIZE, -np.inf, "f4")
    penalty[list(tokens)] = 0
    logits = Linear(model.weights.logits.matrix, tf.constant(penalty))
    return model._replace(weights=model.weights._replace(logits=logits))


@pytest.mark.parametrize(
    ("beam_size", "tie_embeddings", "has_prefix"),
    [
        (1, False, False),
        pytest.param(3, True, False, marks=pytest.mark.slow),
        pytest.param(3, True, True, marks=pytest.mark.slow),
    ],
)
def test_search_is_that_with_all_other_logits_forbidden(
    make_model, likely, shortlist, beam_size, tie_embeddings, has_prefix
):
    model = compile_model(make_model(num_layers=1, tie_embeddings=tie_embeddings))
    settings = settings_of(beam_size, extra_length=3)
    prefixes = padded([[40, EOS_ID + 1], [], [], [41]]) if has_prefix else None
    found = search_ids([model], padded(SOURCES), settings, prefixes, shortlist)
    free = search_ids([model], padded(SOURCES), settings)
    for i, source in enumerate(SOURCES):
        prefix = prefixes[i : i + 1] if has_prefix else None
        given = prefix.numpy()[prefix.numpy() != PAD_ID].tolist() if has_prefix else []
        one = forbidding(model, allowed(likely, source).union(given))
        wanted = search_ids([one], tf.constant([source]), settings, prefix)
        if source != [EOS_ID]:
            assert found.ids[i, 0, : len(given)].numpy().tolist() == given
        length = wanted.ids.shape[2]
        assert np.array_equal(found.ids[i, :, :length], wanted.ids[0])
        assert not np.any(found.ids[i, :, length:])
        np.testing.assert_allclose(found.log_probs[i], wanted.log_probs[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found.scores[i], wanted.scores[0], rtol=1e-4, atol=1e-5)
    assert not np.array_equal(found.ids[..., :3], free.ids[..., :3]), "it forbids something"


def test_company_changes_nothing(make_model, shortlist):
    model = make_model(num_layers=1)
    together = search(model, padded(SOURCES), SETTINGS, shortlist=shortlist)
    for i, source in enumerate(SOURCES):
        alone = search(model, tf.constant([source]), SETTINGS, shortlist=shortlist)
        assert np.array_equal(alone.ids[0], together.ids[i, :, : alone.ids.shape[2]])
        np.testing.assert_allclose(alone.scores[0], together.scores[i], rtol=1e-4, atol=1e-5)


def test_all_tokens_are_the_plain_search(make_model):
    model = make_model(num_layers=1)
    every = Shortlist([[]] * VOCAB_SIZE, range(VOCAB_SIZE), VOCAB_SIZE)
    found = search(model, padded(SOURCES), SETTINGS, shortlist=every)
    wanted = search(model, padded(SOURCES), SETTINGS)
    assert np.array_equal(found.ids, wanted.ids)
    np.testing.assert_allclose(found.scores, wanted.scores, rtol=1e-4, atol=1e-5)


def test_fewer_tokens_than_beams(make_model):
    model = make_model(num_layers=1)
    only = Shortlist([[]] * VOCAB_SIZE, [EOS_ID, 7], VOCAB_SIZE)
    settings = settings_of(5, extra_length=0)
    found = search(model, tf.constant([[9, EOS_ID]]), settings, shortlist=only)
    kept = [row[:n].tolist() for row, n in zip(found.ids[0].numpy(), found.lengths[0], strict=True)]
    assert sorted(kept) == [[], [], [], [EOS_ID], [7, EOS_ID]]
    assert found.scores[0].numpy()[2:].tolist() == [-math.inf] * 3
