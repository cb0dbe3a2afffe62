"""TensorFlow's engine, and its searches against the Keras model itself: one model, and several."""

import contextlib
import gc
import itertools
import weakref

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.config import BOS_ID, EOS_ID, PAD_ID
from keras_transformer.core.search.alignment import alignment
from keras_transformer.core.search.compiled_model import compile_model
from keras_transformer.core.search.config import SamplingConfig
from keras_transformer.core.search.engines.engine import Request
from keras_transformer.core.search.engines.graphs import ExportedGraphs, SearchGraphs
from keras_transformer.core.search.engines.streams import streams
from keras_transformer.core.search.engines.tensorflow_engine import TensorFlowEngine, choose_device
from keras_transformer.core.search.weights import variables_of
from tests.core.search.test_alignment import maps_of
from tests.refusals import refused
from tests.small_models import (
    compiled,
    log_probs_of,
    log_probs_of_compiled,
    padded,
    search,
    search_compiled,
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


@pytest.fixture(scope="module")
def two_coded_models(make_model):
    """Two whose decoders read codes."""
    sizes = ({"positions": "m2m100"}, {"d_model": 8, "norm": "pre"})
    return [
        make_model(
            seed=6 + i, scale=1.5, vocab_size=5, num_layers=1, decoder_reads_code=True, **size
        )
        for i, size in enumerate(sizes)
    ]


@pytest.fixture(params=["one model", "an ensemble", "an ensemble with codes"])
def models(request, two_models, two_coded_models):
    """The first model alone, and both; and two whose decoders read the 4 of SHORT."""
    if request.param == "an ensemble with codes":
        return two_coded_models
    return two_models[:1] if request.param == "one model" else two_models


def extra_length(models):
    """By which a target of LENGTH exceeds the part of SHORT that the encoder reads."""
    return int(models[0].config.decoder_reads_code)


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
    return [best.ids[0, k, : best.length[0, k]].numpy().tolist() for k in range(count)]


def test_beam_is_brute_force(models, two_models):
    wanted = every_translation(models)  # fewer than the beams of this search
    settings = settings_of(41, ALPHA, extra_length=extra_length(models))
    best = search(models, tf.constant([SHORT]), settings)
    assert int(np.sum(best.length > 0)) == len(wanted) == 21
    np.testing.assert_allclose(best.score[0, :21], [score for score, _ in wanted], atol=1e-4)
    assert listed(best, 21) == [ids for _, ids in wanted]
    if models == two_models:  # the order is that of neither model
        for model in models:
            of_one = search(model, tf.constant([SHORT]), settings)
            assert not np.array_equal(of_one.ids, best.ids)


def test_required_phrases_are_brute_force(two_coded_models):
    wanted = [(score, ids) for score, ids in every_translation(two_coded_models) if 4 in ids]
    settings = settings_of(41, ALPHA, extra_length=extra_length(two_coded_models))
    requirements = {
        "target_prefix": tf.constant([[PAD_ID]]),
        "phrases": tf.constant([[[4, PAD_ID]]]),
    }
    best = search(two_coded_models, tf.constant([SHORT]), settings, **requirements)
    assert listed(best, len(wanted)) == [ids for _, ids in wanted]
    scores = [score for score, _ in wanted]
    np.testing.assert_allclose(best.score[0, : len(wanted)], scores, atol=1e-4)


def test_scores_of_targets(models):
    target = [3, 4, 1, EOS_ID]
    found = log_probs_of(models, tf.constant([SHORT]), tf.constant([target]))
    log_probs = mean_log_probs(models, SHORT, [target])[0]
    wanted = [log_probs[place, token] for place, token in enumerate(target)]
    np.testing.assert_allclose(found[0], wanted, rtol=1e-4, atol=1e-5)


def test_learned_positions_of_one_model_bound_all(make_model):
    models = [
        make_model(num_layers=1),
        small_model(num_layers=1, positions="learned", max_positions=4),
    ]
    for variable in models[1].trainable_variables:
        variable.assign(variable * 0.01)  # so that it has no say
    best = search(models, tf.constant([[9, EOS_ID]]), settings_of(2, extra_length=50))
    assert int(tf.reduce_max(best.length)) == 4


def test_a_search_with_int8_scores_what_the_model_says(make_model):
    source = tf.constant([[50, 60, 70, EOS_ID], [9, EOS_ID, PAD_ID, PAD_ID]])
    stored = compile_model(make_model(num_layers=1), "int8")
    requirements = {
        "target_prefix": tf.constant([[0], [0]]),
        "phrases": tf.constant([[[33, 44, 0]], [[55, 0, 0]]]),
    }

    @tf.function(autograph=False)
    def searched_and_forced():
        model = stored.in_graph()
        best = search_compiled(model, source, settings_of(2, extra_length=3), **requirements)
        targets = tf.reshape(best.ids, [4, -1])
        return best, log_probs_of_compiled(model, tf.repeat(source, 2, axis=0), targets)

    best, forced = searched_and_forced()
    texts = [" ".join(map(str, ids)) for ids in best.ids[:, 0].numpy().tolist()]
    assert "33 44" in texts[0] and "55" in texts[1]
    found = tf.reshape(tf.reduce_sum(forced, axis=1), [2, 2])
    # Sums in another order may round an input to its other neighbour.
    np.testing.assert_allclose(found, best.log_prob, atol=0.2)


def test_no_sample_contains_padding_or_bos(make_model):
    """Which a model that has learned little finds probable."""
    model = make_model(num_layers=1, scale=1.0, vocab_size=6)
    settings = settings_of(200, extra_length=20, sampling=SamplingConfig())
    drawn = search(model, padded([[4, 5, EOS_ID]]), settings)
    tokens = set()
    for ids, length in zip(drawn.ids[0].numpy(), drawn.length[0].numpy(), strict=True):
        tokens.update(ids[:length].tolist())
    assert tokens == set(range(6)) - {PAD_ID, BOS_ID}


def test_a_sample_without_a_choice_ends(make_model):
    """There is no token left that may come next, and the translation is not long enough to end."""
    model = make_model(num_layers=1, vocab_size=6)
    options = {"no_repeat_ngram_size": 1, "min_length": 12, "extra_length": 9}
    drawn = search(
        model, padded([[4, 5, EOS_ID]]), settings_of(2, sampling=SamplingConfig(), **options)
    )
    assert np.all(np.isneginf(drawn.score))


def rows(*lists):
    """Rows of ids as an engine takes them, int32 arrays of any lengths."""
    return [np.array(ids, np.int32) for ids in lists]


SOURCES = rows([9, 10, EOS_ID], [70, 71, 72, 73, 74, EOS_ID], [EOS_ID], [99, 98, EOS_ID])
TARGETS = rows([30, EOS_ID], [40, 41, 42, 43, EOS_ID], [EOS_ID], [50, 51, EOS_ID])
EMPTY = 2  # the place of the source without words
SETTINGS = settings_of(3, extra_length=4)
GREEDY = settings_of(1, extra_length=4)


def engine_with(models, settings=SETTINGS, **others):
    """An engine of one Keras model, or of a list of them, an ensemble."""
    return TensorFlowEngine(SearchGraphs(compiled(models), settings, **others))


@pytest.fixture(scope="module")
def small(make_model):
    return make_model(num_layers=1)


@pytest.fixture(scope="module")
def engine(small):
    return engine_with(small)


@pytest.fixture(scope="module")
def greedy_engine(small):
    return engine_with(small, GREEDY)


def assert_found(found, wanted):
    """Compares what an engine found with Hypotheses, or with what another one found."""
    assert found.ids.dtype == found.length.dtype == np.int32
    np.testing.assert_array_equal(found.ids, wanted.ids)
    np.testing.assert_array_equal(found.length, wanted.length)
    for part, wanted_part in ((found.score, wanted.score), (found.log_prob, wanted.log_prob)):
        assert part.dtype == np.float32
        np.testing.assert_allclose(part, wanted_part, rtol=1e-4, atol=1e-5)


def written(found, place, rank=0):
    """The ids of a hypothesis."""
    return found.ids[place, rank, : found.length[place, rank]].tolist()


def contains(ids, phrase):
    return any(ids[i : i + len(phrase)] == phrase for i in range(len(ids)))


def test_an_engine_searches_rows_of_several_lengths(engine, small):
    result = engine.search(Request(SOURCES, guaranteed=3))
    assert_found(result, search(small, padded(SOURCES), SETTINGS))
    assert result.length[EMPTY].tolist() == [0, 0, 0]
    assert result.score[EMPTY].tolist() == [0.0, -np.inf, -np.inf]
    assert len({len(written(result, place)) for place in range(4)}) > 1
    for place, source in enumerate(SOURCES):
        alone = engine.search(Request([source], guaranteed=3))
        for rank in range(3):
            assert written(alone, 0, rank) == written(result, place, rank)
        np.testing.assert_allclose(alone.score[0], result.score[place], rtol=1e-4, atol=1e-5)


def test_prefixes_and_phrases_are_rows_of_several_lengths(engine, small):
    prefix = rows([80, 81], [], [], [90])
    phrases = [rows([33, 44]), [], [], rows([55], [66])]
    result = engine.search(Request(SOURCES, prefix, phrases, guaranteed=3))
    assert written(result, 0)[:2] == [80, 81] and contains(written(result, 0), [33, 44])
    assert written(result, 3)[0] == 90
    assert contains(written(result, 3), [55]) and contains(written(result, 3), [66])
    as_tensors = {
        "target_prefix": tf.constant([[80, 81], [0, 0], [0, 0], [90, 0]]),
        "phrases": tf.constant(
            [[[33, 44], [0, 0]], [[0, 0], [0, 0]], [[0, 0], [0, 0]], [[55, 0], [66, 0]]]
        ),
    }
    assert_found(result, search(small, padded(SOURCES), SETTINGS, **as_tensors))

    free = engine.search(Request(SOURCES, guaranteed=3))
    assert_found(engine.search(Request(SOURCES, rows([], [], [], []), guaranteed=3)), free)
    assert_found(engine.search(Request(SOURCES, phrases=[[], [], [], []], guaranteed=3)), free)


def test_a_request_says_how_many_must_be_exact_and_the_length_penalty(engine):
    result = engine.search(Request(SOURCES, guaranteed=3, alpha=0.0))
    np.testing.assert_array_equal(result.score, result.log_prob)
    result = engine.search(Request(SOURCES, guaranteed=3, alpha=2.0))
    exists = result.length > 0
    wanted = result.log_prob / ((5 + result.length) / 6) ** 2
    np.testing.assert_allclose(result.score[exists], wanted[exists], rtol=1e-5)
    one = engine.search(Request(SOURCES, guaranteed=1, alpha=2.0))
    for place in range(len(SOURCES)):
        assert written(one, place) == written(result, place)


def test_batches_of_any_shape_take_one_trace(engine):
    for request in (
        Request(SOURCES),
        Request(SOURCES[:1], rows([80, 81]), guaranteed=2, alpha=1.0),
    ):
        engine.search(request)
    assert engine.graphs.named["search_ids"].experimental_get_tracing_count() == 1


def test_greedy_search_leaves_out_scores(greedy_engine):
    for request in (Request(SOURCES), Request(SOURCES, rows([80, 81], [], [], [90]))):
        result = greedy_engine.search_greedily(request)
        scored = greedy_engine.search(request)
        assert_found(result._replace(score=scored.score, log_prob=scored.log_prob), scored)
        assert result.score is None and result.log_prob is None
        assert any(len(written(result, place)) > 1 for place in range(4))


def test_several_beams_are_searched_as_ever_where_scores_are_not_wanted(engine):
    assert_found(engine.search_greedily(Request(SOURCES)), engine.search(Request(SOURCES)))


def assert_aligned(found, engine, sources):
    """All hypotheses have what a pass over the whole target gives: alignment, and any scores."""
    for rank in range(found.ids.shape[1]):
        targets = [written(found, place, rank) for place in range(len(sources))]
        explained = engine.explain(sources, rows(*targets))
        wanted = explained.alignment
        for row, other, target in zip(found.alignment[:, rank], wanted, targets, strict=True):
            assert row[: len(target)].tolist() == other[: len(target)].tolist()
        if found.token_log_prob is not None:
            width = explained.log_probs.shape[1]
            scores = found.token_log_prob[:, rank, :width]
            np.testing.assert_allclose(scores, explained.log_probs, atol=1e-4)


MORE_SOURCES = [
    *SOURCES,
    *rows(*[[*row, EOS_ID] for row in np.random.default_rng(2).integers(4, 99, [8, 12])]),
]
ALIGNED = Request(
    MORE_SOURCES,
    rows([80, 81], *[[] for _ in MORE_SOURCES[1:]]),
    guaranteed=3,
    aligned=[True] * len(MORE_SOURCES),
)


def test_an_ensemble_aligns_as_its_explanations_do(make_model):
    models = [make_model(num_layers=2), make_model(num_layers=1, norm="pre")]
    ensemble = engine_with(models)
    check_aligned_search(ensemble, ensemble)


def test_draws_are_aligned_as_explanations_are(small, engine):
    sampling = SamplingConfig(temperature=1.5, seed=3)
    check_aligned_search(
        engine_with(small, settings_of(3, extra_length=4, sampling=sampling)), engine
    )


def test_a_greedy_search_aligns_as_explanations_do(greedy_engine, engine):
    assert_aligned(greedy_engine.search_greedily(ALIGNED), engine, MORE_SOURCES)


def check_aligned_search(searching, explaining):
    """Checks an aligned search by explanations, and that it finds what a plain search does."""
    result = searching.search(ALIGNED)
    assert_aligned(result, explaining, MORE_SOURCES)
    plain = searching.search(ALIGNED._replace(aligned=()))
    assert_found(result, plain)
    assert plain.alignment is None and plain.token_log_prob is None
    exists = result.length > 0
    sums = result.token_log_prob.sum(axis=2)
    np.testing.assert_allclose(sums[exists], result.log_prob[exists], atol=1e-4)


def test_targets_are_scored_and_explained(engine, small):
    wanted = log_probs_of(small, padded(SOURCES), padded(TARGETS)).numpy()
    scores = engine.score(SOURCES, TARGETS)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, wanted.sum(axis=1), rtol=1e-5)

    maps = maps_of(small, padded(SOURCES), padded(TARGETS))
    mask = padded(SOURCES) != PAD_ID
    plain = engine.explain(SOURCES, TARGETS)
    full = engine.explain(SOURCES, TARGETS, attention=True)
    for explained in (plain, full):
        np.testing.assert_allclose(explained.log_probs, wanted, rtol=1e-4, atol=1e-5)
        wanted_alignment = alignment([tf.unstack(maps.memory, axis=1)], mask)
        np.testing.assert_array_equal(explained.alignment, wanted_alignment)
    assert plain.encoder is plain.decoder is plain.memory is None
    for found, part in zip((full.encoder, full.decoder, full.memory), maps, strict=True):
        np.testing.assert_allclose(found, part, rtol=1e-4, atol=1e-5)


def test_the_score_of_what_was_found_is_that_of_the_search(engine):
    result = engine.search(Request(SOURCES))
    targets = rows(*[written(result, place) for place in range(4)])
    scores = engine.score(SOURCES, targets)
    np.testing.assert_allclose(scores, result.log_prob[:, 0], rtol=1e-4, atol=1e-5)


def test_what_an_engine_has(engine, greedy_engine, small):
    always = ["align_ids", "aligned_search_ids", "alpha_ids", "score_ids", "search_ids"]
    greedy = ["greedy_ids", "aligned_greedy_ids", *always, "attention_ids", "constrain_ids"]
    assert greedy_engine.functions == sorted(greedy)
    assert engine.functions == sorted([*always, "attention_ids", "constrain_ids"])
    assert engine_with(small, constraints=False).functions == sorted([*always, "attention_ids"])
    drawn = settings_of(1, sampling=SamplingConfig())
    drawn_functions = [name for name in always if name != "alpha_ids"]
    assert engine_with(small, drawn).functions == sorted([*drawn_functions, "attention_ids"])
    assert engine_with([small, small]).functions == sorted([*always, "constrain_ids"])
    assert engine.streams == streams()


def test_a_missing_signature_is_refused(small):
    graphs = SearchGraphs(compiled(small), SETTINGS)
    only_search = TensorFlowEngine(ExportedGraphs({"search_ids": graphs.search_ids}))
    with refused("score_ids", "search_ids"):
        only_search.score(SOURCES, TARGETS)
    with refused("align_ids", "search_ids"):
        only_search.explain(SOURCES, TARGETS)
    with refused("attention_ids", "search_ids"):
        only_search.explain(SOURCES, TARGETS, attention=True)
    with refused("required_phrases", about="constraints"):
        only_search.search(Request(SOURCES, phrases=[[], [], [], []]))
    only_scores = TensorFlowEngine(ExportedGraphs({"score_ids": graphs.score_ids}))
    for search_with in (only_scores.search, only_scores.search_greedily):
        with refused("search_ids", "score_ids"):
            search_with(Request(SOURCES))


def with_memory(engine, tokens):
    """The same engine on a device whose memory holds so many source tokens; and all batches."""
    batches = []

    def limited(graph):
        def call(**inputs):
            batches.append(tuple(inputs["source"].shape))
            if inputs["source"].shape.num_elements() > tokens:
                raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating")
            return graph(**inputs)

        return call

    named = {name: limited(graph) for name, graph in engine.graphs.named.items()}
    return TensorFlowEngine(ExportedGraphs(named)), batches


def test_a_batch_that_memory_does_not_hold_is_computed_in_parts(engine, caplog):
    length = max(map(len, SOURCES))
    small_engine, batches = with_memory(engine, 2 * length)
    request = Request(SOURCES, guaranteed=2, aligned=[True] * 4)
    found, wanted = small_engine.search(request), engine.search(request)
    assert_found(found, wanted)
    np.testing.assert_array_equal(found.alignment, wanted.alignment)
    np.testing.assert_allclose(found.token_log_prob, wanted.token_log_prob, atol=1e-5)
    explained = small_engine.explain(SOURCES, TARGETS, attention=True)
    for part, same in zip(explained, engine.explain(SOURCES, TARGETS, attention=True), strict=True):
        np.testing.assert_allclose(part, same, rtol=1e-4, atol=1e-5)
    assert batches == [(4, length), *[(2, length)] * 4]  # only one failure
    (line,) = [record.message for record in caplog.records if record.name == "absl"]
    assert line.startswith(f"no memory for 4 sentences of {length} tokens")
    tiny_engine, _ = with_memory(engine, length - 1)
    with refused("source", f"{length} tokens (OOM when allocating)"):
        tiny_engine.score(SOURCES, TARGETS)


@contextlib.contextmanager
def not_finite(engine):
    """Replaces weights of an engine by NaN, without another trace."""
    variable = variables_of(engine.graphs.model.weights)[-1]
    values = variable.numpy()
    variable.assign(np.full_like(values, np.nan))
    yield
    variable.assign(values)


def test_weights_that_are_not_finite_are_refused(engine, greedy_engine):
    with not_finite(engine):
        with refused("model", "scores that are NaN", about="finite"):
            engine.search(Request(SOURCES, guaranteed=3))
        with refused("model", "log-probabilities that are NaN", about="finite"):
            engine.score(SOURCES, TARGETS)
        with refused("model", "log-probabilities that are NaN", about="finite"):
            engine.explain(SOURCES, TARGETS)
    with (
        not_finite(greedy_engine),
        refused("model", "logits that are NaN", about="finite"),
    ):
        greedy_engine.search_greedily(Request(SOURCES))


def test_an_engine_keeps_its_graphs(small):
    """The functions that TensorFlow makes of methods do not keep the object they belong to."""
    graphs = SearchGraphs(compiled(small), SETTINGS)
    kept = weakref.ref(graphs)
    engine = TensorFlowEngine(graphs)
    del graphs
    gc.collect()
    assert engine.score(SOURCES, TARGETS).shape == (4,)
    del engine
    gc.collect()
    assert kept() is None, "and nothing else keeps them"


def test_an_ensemble_of_one_model_twice_is_that_model(engine, small):
    twice = engine_with([small, small])
    prefix = rows([80, 81], [], [], [90])
    for request in (Request(SOURCES, guaranteed=3), Request(SOURCES, prefix, guaranteed=3)):
        assert_found(twice.search(request), engine.search(request))
    scores = twice.score(SOURCES, TARGETS)
    np.testing.assert_allclose(scores, engine.score(SOURCES, TARGETS), rtol=1e-4, atol=1e-5)
    found, wanted = (each.explain(SOURCES, TARGETS) for each in (twice, engine))
    np.testing.assert_allclose(found.log_probs, wanted.log_probs, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found.alignment, wanted.alignment)
    with refused("attention_ids", "align_ids"):
        twice.explain(SOURCES, TARGETS, attention=True)


def test_the_device_is_chosen_for_the_process(monkeypatch):
    with refused("device", "no GPU", about="cuda"):
        choose_device("cuda")
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: [f"the first {kind}"])
    choose_device("cuda")
    assert streams() == 1, "of the GPU"
    hidden = []
    monkeypatch.setattr(tf.config, "set_visible_devices", lambda *devices: hidden.append(devices))
    choose_device("auto")
    assert not hidden
    choose_device("cpu")
    assert hidden == [([], "GPU")]

    def fail(devices, kind):  # as TensorFlow does where a GPU is in use
        raise RuntimeError("Visible devices cannot be modified after being initialized")

    monkeypatch.setattr(tf.config, "set_visible_devices", fail)
    with refused("device", "cpu", about="before"):
        choose_device("cpu")
