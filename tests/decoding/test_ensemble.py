import itertools

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.config import BOS_ID, EOS_ID
from keras_transformer.decoding.answers import text_graphs
from keras_transformer.decoding.config import DecodingConfig
from keras_transformer.decoding.ensemble import Ensemble
from keras_transformer.decoding.inference import search_ids, target_log_probs
from keras_transformer.decoding.inference_model import inference_model
from keras_transformer.decoding.translator import Translator
from keras_transformer.errors import InputError

SOURCE, OTHERS, LENGTH, ALPHA = [4, 3, EOS_ID], (0, 1, 3, 4), 3, 0.9


@pytest.fixture(scope="module")
def models(make_model):
    """Two of other sizes, with 5 tokens."""
    sizes = ({"num_layers": 1}, {"num_layers": 2, "d_model": 8, "num_heads": 4, "norm": "pre"})
    return [make_model(seed=4 + i, scale=1.5, vocab_size=5, **size) for i, size in enumerate(sizes)]


def mean_log_probs(models, target):
    """Natural logarithms of the mean probabilities of the next token, by NumPy: [V]."""
    inputs = {"source": np.array([SOURCE], "i4"), "target": np.array([[BOS_ID, *target]], "i4")}
    powers = [np.exp(np.asarray(model(inputs), np.float64)[0, -1]) for model in models]
    return np.log(np.mean([power / power.sum() for power in powers], axis=0))


def every_translation(models):
    """All of at most 3 tokens, 1 + 4 + 16: (score, ids), best first."""
    found = []
    for length in range(1, LENGTH + 1):
        for prefix in itertools.product(OTHERS, repeat=length - 1):
            ids = [*prefix, EOS_ID]
            total = sum(mean_log_probs(models, ids[:i])[token] for i, token in enumerate(ids))
            found.append((total / ((5 + length) / 6) ** ALPHA, ids))
    return sorted(found, reverse=True)


def test_beam_is_brute_force(models):
    wanted = every_translation(models)  # fewer than the beams of this search
    ensemble = inference_model(Ensemble(models))
    best = search_ids(ensemble, tf.constant([SOURCE]), DecodingConfig(41, ALPHA, extra_length=0))
    lengths = best.lengths[0].numpy()
    assert int(np.sum(lengths > 0)) == len(wanted) == 21
    np.testing.assert_allclose(best.scores[0, :21], [score for score, _ in wanted], atol=1e-4)
    found = [best.ids[0, k, : lengths[k]].numpy().tolist() for k in range(21)]
    assert found == [ids for _, ids in wanted]
    # The order is that of neither model.
    for model in models:
        of_one = search_ids(model, tf.constant([SOURCE]), DecodingConfig(41, ALPHA, 0))
        assert not np.array_equal(of_one.ids, best.ids)


def test_required_phrases_are_brute_force(models):
    wanted = [(score, ids) for score, ids in every_translation(models) if 4 in ids]
    config = DecodingConfig(41, ALPHA, extra_length=0)
    nothing, phrases = tf.constant([[0]]), (tf.constant([[[4, 0]]]),)
    ensemble = inference_model(Ensemble(models))
    best = search_ids(ensemble, tf.constant([SOURCE]), config, nothing, phrases=phrases)
    lengths = best.lengths[0].numpy()
    found = [best.ids[0, k, : lengths[k]].numpy().tolist() for k in range(len(wanted))]
    assert found == [ids for _, ids in wanted]
    scores = [score for score, _ in wanted]
    np.testing.assert_allclose(best.scores[0, : len(wanted)], scores, atol=1e-4)


def test_scores_of_targets(models):
    target = [3, 4, 1, EOS_ID]
    found = target_log_probs(Ensemble(models), tf.constant([SOURCE]), tf.constant([target]))
    wanted = [mean_log_probs(models, target[:i])[token] for i, token in enumerate(target)]
    np.testing.assert_allclose(found[0], wanted, rtol=1e-4, atol=1e-5)


def test_learned_positions_of_one_bound_all(make_model):
    models = [make_model(), make_model(positions="learned", max_positions=6), make_model()]
    assert DecodingConfig().limits(Ensemble(models).config) == (6, 6)


def test_texts(characters, model):
    """Twice the same model is that model; only attention is of single models."""
    config = DecodingConfig(2, extra_length=3, max_source_length=20)
    one, two = [
        Translator(text_graphs(any_model, characters, config), config, model.config)
        for any_model in (model, Ensemble([model, model]))
    ]
    lines, prefixes = ["ab c", "", "def"], ["x", "", ""]
    for answers in zip(
        *(t.translate(lines, target_prefixes=prefixes, aligned=True) for t in (one, two)),
        strict=True,
    ):
        for first, second in zip(*answers, strict=True):
            assert first.text == second.text
            assert first.score == pytest.approx(second.score, rel=1e-3, abs=1e-5)
            assert first.pair.alignment == second.pair.alignment
    with pytest.raises(InputError, match="attention needs a single model, not an ensemble"):
        two.attention("a", "b")
