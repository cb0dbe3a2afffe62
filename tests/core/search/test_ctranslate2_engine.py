"""CTranslate2's engine beside TensorFlow's, with the same weights."""

import functools
import itertools
import math
import sys
from collections import Counter
from types import SimpleNamespace

import ctranslate2
import numpy as np
import pytest

from keras_transformer.core.config import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from keras_transformer.core.search.config import DecodingConfig, SamplingConfig, SearchSettings
from keras_transformer.core.search.engines import ctranslate2_engine
from keras_transformer.core.search.engines.ctranslate2_engine import (
    CTranslate2Engine,
    load_ctranslate2,
)
from keras_transformer.core.search.engines.engine import Request
from keras_transformer.core.search.engines.graphs import SearchGraphs
from keras_transformer.core.search.engines.streams import processor_streams
from keras_transformer.core.search.engines.tensorflow_engine import TensorFlowEngine
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.core.vocabulary.subwords import Subwords
from keras_transformer.kit.exchange.ctranslate2 import export_ctranslate2
from keras_transformer.use.store.model_path import DEVICES
from tests.core.search.test_tensorflow_engine import assert_aligned
from tests.given_answers import card_of
from tests.refusals import refused
from tests.small_models import compiled, small_model

VOCAB_SIZE = 60
TOKENS = ["[PAD]", "[BOS]", "[EOS]", "[UNK]", *(f"w{i}" for i in range(4, VOCAB_SIZE))]
LIMIT = 300
# Lengths of sources with EOS; an empty sentence among them.
LENGTHS = (2, 5, 1, 9, 3, 3, 12, 7, 20, 4)


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory):
    file = tmp_path_factory.mktemp("vocabulary") / "vocabulary.txt"
    file.write_text("".join(f"{token}\n" for token in TOKENS))
    return VocabularyPair(*[Subwords(file)] * 2)


class Engines:
    """CTranslate2's engine and TensorFlow's, for the same model.

    Its weights are random. It never writes padding, BOS or unk, and sometimes EOS.
    """

    def __init__(self, vocabularies, folder, decoder_reads_code):
        self.model = small_model(
            vocab_size=VOCAB_SIZE,
            scale=3.0,
            decoder_layers=1,
            logits_bias=True,
            decoder_reads_code=decoder_reads_code,
        )
        bias = np.zeros(VOCAB_SIZE, np.float32)
        bias[[PAD_ID, BOS_ID, UNK_ID]], bias[EOS_ID] = -100, 4
        self.model.logits_embedding.bias.assign(bias)
        self.vocabularies, self.folder = vocabularies, folder
        card = card_of(self.model.config, DecodingConfig())
        export_ctranslate2(self.model, vocabularies, folder, card)
        self._weights = compiled(self.model)
        self.ours = functools.cache(self._ours)

    def theirs(self, forbidden=(), device="auto", **options):
        settings = SearchSettings(DecodingConfig(**options), forbidden)
        return CTranslate2Engine(
            self.folder, self.vocabularies, settings, LIMIT, self.model.config, device
        )

    def _ours(self, forbidden=(), **options):
        settings = SearchSettings(DecodingConfig(**options), forbidden)
        return TensorFlowEngine(SearchGraphs(self._weights, settings, constraints=False))

    def both(self, **options):
        return self.theirs(**options), self.ours(**options)

    @property
    def explaining(self):
        """TensorFlow's, for the log-probabilities of targets."""
        return self.ours(beam_size=1)


@pytest.fixture(scope="module")
def engines(vocabularies, tmp_path_factory):
    return Engines(vocabularies, tmp_path_factory.mktemp("plain") / "model", False)


@pytest.fixture(scope="module")
def engines_with_codes(vocabularies, tmp_path_factory):
    """Engines of a model whose decoder reads a code."""
    return Engines(vocabularies, tmp_path_factory.mktemp("coded") / "model", True)


@pytest.fixture(params=["engines", "engines_with_codes"])
def any_engines(request):
    return request.getfixturevalue(request.param)


def make_sources(lengths=LENGTHS, seed=1):
    rng = np.random.default_rng(seed)
    rows = [rng.integers(4, VOCAB_SIZE, length - 1) for length in lengths]
    return [np.array([*row, EOS_ID], np.int32) for row in rows]


def rows_of(found, rank=0):
    """The ids of one hypothesis for each sentence."""
    pairs = zip(found.ids[:, rank], found.length[:, rank], strict=True)
    return [ids[:length].tolist() for ids, length in pairs]


def assert_own_log_probs(found, engine, sources):
    """Log-probabilities and scores are the model's, whatever was searched."""
    for rank in range(found.ids.shape[1]):
        exist = np.isfinite(found.score[:, rank]) & (found.length[:, rank] > 0)
        places = np.flatnonzero(exist)
        targets = [rows_of(found, rank)[place] for place in places]
        wanted = [
            row[: len(ids)].sum()
            for row, ids in zip(
                engine.explain([sources[i] for i in places], targets).log_probs,
                targets,
                strict=True,
            )
        ]
        np.testing.assert_allclose(found.log_prob[places, rank], wanted, atol=1e-3)


def test_greedy_search_up_to_each_limit(any_engines):
    theirs, ours = any_engines.both(beam_size=1, extra_length=4)
    request = Request(make_sources())
    found, wanted = theirs.search_greedily(request), ours.search_greedily(request)
    assert rows_of(found) == rows_of(wanted)
    assert found.unfinished[:, 0].tolist() == wanted.unfinished[:, 0].tolist()
    assert 0 < found.unfinished.sum() < len(LENGTHS), "some reach their limits"
    assert found.score is None
    scored = theirs.search(request)
    assert rows_of(scored) == rows_of(wanted)
    assert_own_log_probs(scored, any_engines.explaining, request.ids)
    empty = LENGTHS.index(1)
    assert (scored.length[empty], scored.score[empty]) == ([0], [0])


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.4])
def test_beams_are_ranked_by_our_penalty(engines, alpha):
    theirs, ours = engines.both(beam_size=4, extra_length=6)
    request = Request(make_sources(), alpha=alpha, guaranteed=4)
    found, wanted = theirs.search(request), ours.search(request)
    assert_own_log_probs(found, engines.explaining, request.ids)
    penalty = ((5 + found.length) / 6) ** alpha
    exist = found.length > 0
    np.testing.assert_allclose(found.score[exist], (found.log_prob / penalty)[exist], rtol=1e-5)
    assert (np.diff(found.score[exist.all(axis=1)]) <= 0).all()
    fewer = theirs.search(request._replace(guaranteed=2))
    assert rows_of(fewer, 1) == rows_of(found, 1) and fewer.ids.shape[1] == 2
    # Ours goes on until nothing can be better, so that it is never worse.
    lead = wanted.score[:, 0] - found.score[:, 0]
    assert lead.min() > -1e-4
    assert np.mean(lead < 1e-4) >= 0.8
    assert [rows_of(found)[i] for i in np.flatnonzero(lead < 1e-4)] == [
        rows_of(wanted)[i] for i in np.flatnonzero(lead < 1e-4)
    ]


def test_prefixes(any_engines):
    theirs, ours = any_engines.both(beam_size=3, extra_length=8)
    sources = make_sources()
    prefix = [np.array([5, 9, 9][: place % 4], np.int32) for place in range(len(sources))]
    request = Request(sources, prefix, guaranteed=3)
    result = theirs.search(request)
    for rank in range(3):
        for row, wanted, source in zip(rows_of(result, rank), prefix, sources, strict=True):
            assert row == [] or row[: len(wanted)] == wanted.tolist()
            assert len(source) > 1 or row == []
    assert_own_log_probs(result, any_engines.explaining, sources)
    lead = ours.search(request).score[:, 0] - result.score[:, 0]
    assert lead.min() > -1e-4 and np.mean(lead < 1e-4) >= 0.7
    greedy = [
        engine.search_greedily(request) for engine in any_engines.both(beam_size=1, extra_length=4)
    ]
    assert rows_of(greedy[0]) == rows_of(greedy[1])


def test_restrictions(any_engines):
    sources = make_sources()
    empty = 1 + any_engines.model.config.decoder_reads_code  # the length of a source without text
    free = rows_of(any_engines.theirs(beam_size=1).search_greedily(Request(sources)))
    ((common, _),) = Counter(id_ for row in free for id_ in row if id_ != EOS_ID).most_common(1)
    restricted = {"min_length": 6, "no_repeat_ngram_size": 2, "forbidden": ((common,), (8, 9))}
    for beam_size in (1, 3):
        theirs = any_engines.theirs(beam_size=beam_size, extra_length=8, **restricted)
        result = theirs.search(Request(sources, guaranteed=beam_size))
        assert_own_log_probs(result, any_engines.explaining, sources)
        for row, source in zip(rows_of(result), sources, strict=True):
            pairs = list(itertools.pairwise(row))
            assert len(set(pairs)) == len(pairs)
            assert common not in row and (8, 9) not in pairs
            assert len(row) >= 6 or len(source) <= empty
    both = any_engines.both(beam_size=1, **restricted)
    greedy = [engine.search_greedily(Request(sources)) for engine in both]
    assert rows_of(greedy[0]) == rows_of(greedy[1])


def test_random_draws(engines):
    sources = make_sources((9,) * 20)
    options = {"beam_size": 5, "sampling": SamplingConfig(temperature=1.5, top_k=10, seed=3)}
    request = Request(sources, guaranteed=5)
    found = [engines.theirs(**options).search(request) for _ in range(2)]
    assert rows_of(found[0]) == rows_of(found[1]), "of the same seed"
    rows = {tuple(rows_of(found[0], rank)[0]) for rank in range(5)}
    assert len(rows) > 1
    assert_own_log_probs(found[0], engines.explaining, sources)
    others = options | {"sampling": SamplingConfig(seed=4)}
    other = engines.theirs(**others).search(request)
    assert rows_of(other) != rows_of(found[0])
    drawing = engines.theirs(beam_size=2, sampling=SamplingConfig(top_k=1))
    likeliest = drawing.search(Request(sources, guaranteed=2))
    greedy = engines.theirs(beam_size=1).search_greedily(Request(sources))
    assert rows_of(likeliest) == rows_of(greedy)
    assert not likeliest.length[:, 1].any(), "there is one"


def test_scores_of_padded_rows(any_engines):
    theirs, ours = any_engines.both(beam_size=1)
    source = np.array([[7, 8, EOS_ID, PAD_ID], [9, EOS_ID, PAD_ID, PAD_ID]] * 2, np.int32)
    target = np.array([[5, EOS_ID, PAD_ID], [6, 7, EOS_ID], [EOS_ID, 0, 0], [0, 0, 0]], np.int32)
    scores = theirs.score(source, target)
    np.testing.assert_allclose(scores, ours.score(source, target), atol=1e-4)
    assert scores.dtype == np.float32 and scores[3] == 0 > scores[2]


def test_targets_are_explained(any_engines):
    theirs, ours = any_engines.both(beam_size=1)
    sources, targets = make_sources(), make_sources((3, 8, 4, 1, 6, 6, 2, 9, 15, 4), seed=2)
    found, wanted = theirs.explain(sources, targets), ours.explain(sources, targets)
    np.testing.assert_allclose(found.log_probs, wanted.log_probs, rtol=1e-5, atol=1e-4)
    for place, target in enumerate(targets):
        length = len(target)
        assert (found.alignment[place, :length] == wanted.alignment[place, :length]).all()
    assert len({tuple(row) for row in found.alignment.tolist()}) > 5
    nothing = theirs.explain(sources[:1], [np.zeros(0, np.int32)])
    assert nothing.alignment.shape == nothing.log_probs.shape == (1, 1)


@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 1},
        {"beam_size": 4, "extra_length": 4},
        {"beam_size": 3, "min_length": 6, "no_repeat_ngram_size": 2},
        {"beam_size": 4, "sampling": SamplingConfig(temperature=1.5, seed=3)},
    ],
)
def test_a_search_aligns_as_explanations_do(any_engines, options):
    theirs = any_engines.theirs(**options)
    sources = make_sources()
    prefix = [np.array([5, 9, 9][: place % 4], np.int32) for place in range(len(sources))]
    for request in (Request(sources), Request(sources, prefix)):
        aligned = [True] * len(sources)
        request = request._replace(guaranteed=options["beam_size"], aligned=aligned)
        searches = [theirs.search]
        if options["beam_size"] == 1:
            searches.append(theirs.search_greedily)
        for search in searches:
            assert_aligned(search(request), theirs, sources)
        with_scores = theirs.search(request._replace(token_scores=True))
        assert_aligned(with_scores, theirs, sources)
    assert theirs.search(Request(sources)).alignment is None


@pytest.mark.parametrize("beam_size", [1, 4])
def test_each_source_is_aligned_if_it_needs_it(engines, beam_size):
    theirs = engines.theirs(beam_size=beam_size)
    sources = make_sources()
    every = theirs.search(Request(sources, aligned=[True] * len(sources)))
    some = theirs.search(
        Request(sources, aligned=[place % 2 == 1 for place in range(len(sources))])
    )
    np.testing.assert_array_equal(some.ids, every.ids)
    np.testing.assert_array_equal(some.alignment[1::2], every.alignment[1::2])
    assert some.alignment[1::2].any()


@pytest.mark.parametrize("beam_size", [1, 4])
def test_evidence_is_exact_where_confidence_needs_it(engines, monkeypatch, beam_size):
    theirs = engines.theirs(beam_size=beam_size)
    sources = make_sources()
    aligned = [place % 2 == 1 for place in range(len(sources))]
    exact = theirs.search(Request(sources, aligned=[True] * len(sources), token_scores=True))
    limit = float(np.median(exact.log_prob[exact.length > 0]))

    def is_below(log_prob, ids):
        assert len(ids) > 0 and PAD_ID not in ids
        return log_prob < limit

    monkeypatch.setattr(ctranslate2_engine, "is_suspicious", is_below)
    found = theirs.search(Request(sources, aligned=aligned, token_scores=True, evidence=True))
    np.testing.assert_array_equal(found.ids, exact.ids)
    np.testing.assert_array_equal(found.alignment[..., 1:], exact.alignment[..., 1:])
    np.testing.assert_array_equal(found.alignment[aligned], exact.alignment[aligned])
    np.testing.assert_allclose(found.token_log_prob.sum(axis=2), exact.log_prob, atol=1e-2)
    is_exact = np.array(aligned) | (exact.log_prob[:, 0] < limit)
    assert 0 < is_exact.sum() < len(sources)
    np.testing.assert_allclose(
        found.token_log_prob[is_exact], exact.token_log_prob[is_exact], atol=1e-2
    )
    for row, length in zip(found.token_log_prob[~is_exact], exact.length[~is_exact], strict=True):
        assert len(set(row[0, : length[0]])) <= 1, "the mean stands for each token"


def test_what_it_lacks_is_refused_by_its_name(engines):
    theirs = engines.theirs(beam_size=2)
    (source,) = make_sources((4,))
    with refused("required_phrases", "CTranslate2"):
        theirs.search(Request([source], phrases=[[np.array([5])]]))
    with refused("attention", "CTranslate2"):
        theirs.explain([source], [source], attention=True)


def test_files_that_it_cannot_read(tmp_path, vocabularies, engines):
    (tmp_path / "model.bin").write_bytes(b"no model")
    settings = SearchSettings(DecodingConfig())
    with refused("path", tmp_path):
        CTranslate2Engine(tmp_path, vocabularies, settings, LIMIT, engines.model.config)


def test_a_gpu_that_is_not_there(engines, monkeypatch, caplog):
    with refused("device", "CUDA", about="GPU"):
        engines.theirs(device="cuda")
    # A driver without CUDA's libraries: CTranslate2 counts a GPU, and then cannot use it.
    monkeypatch.setattr(ctranslate2, "get_cuda_device_count", lambda: 1)
    on_cpu = engines.theirs(device="cpu")
    assert on_cpu.streams == processor_streams()
    assert not caplog.records
    automatic = engines.theirs(device="auto")
    assert "cannot use the GPU: CUDA" in caplog.text
    request = Request(make_sources(), guaranteed=1)
    assert rows_of(automatic.search(request)) == rows_of(on_cpu.search(request))


@pytest.mark.parametrize(("types", "wanted"), [({"float16"}, "float16"), ({"float32"}, "default")])
def test_how_a_gpu_is_used(engines, monkeypatch, types, wanted):
    """A stand-in says that there is a GPU; CTranslate2 itself searches on the processor."""
    opened = []

    def on_the_processor(folder, **layout):
        opened.append(layout)
        return real(folder)

    real = ctranslate2.Translator
    monkeypatch.setattr(ctranslate2, "get_cuda_device_count", lambda: 1)
    monkeypatch.setattr(ctranslate2, "get_supported_compute_types", lambda device: types)
    monkeypatch.setattr(ctranslate2, "Translator", on_the_processor)
    options = {"no_repeat_ngram_size": 2, "min_length": 3}
    on_devices = [engines.theirs(device=device, **options) for device in DEVICES]
    on_gpu = {"device": "cuda", "compute_type": wanted}
    assert [layout.get("device") for layout in opened] == ["cuda", None, "cuda"]
    assert opened[0] == opened[2] == on_gpu
    assert [engine.streams for engine in on_devices] == [1, processor_streams(), 1]
    request = Request(make_sources((9,) * 40), guaranteed=1)
    assert len({str(rows_of(engine.search(request))) for engine in on_devices}) == 1


def test_missing_hypotheses_in_float16(engines, monkeypatch):
    """float16 cannot hold the score of a missing hypothesis in float32."""
    engine = engines.theirs(device="cpu", beam_size=2)
    lowest = float(np.finfo(np.float16).min)
    found = SimpleNamespace(
        hypotheses=[["w5", "[EOS]"], ["w6", "[EOS]"]], scores=[-1.5, lowest], attention=None
    )
    translator = SimpleNamespace(translate_batch=lambda *sources, **options: [found])
    monkeypatch.setattr(engine, "_translator", translator)
    result = engine.search(Request(make_sources((3,)), guaranteed=2))
    assert rows_of(result) == [[5, EOS_ID]] and result.length.tolist() == [[2, 0]]
    assert result.log_prob[0, 1] == -math.inf


def test_package_is_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with refused("ctranslate2", "none"):
        load_ctranslate2()


def test_nothing_to_search(engines):
    result = engines.theirs(beam_size=2).search(Request(make_sources((1, 1)), guaranteed=2))
    assert result.length.tolist() == [[0, 0]] * 2
    assert result.score.tolist() == [[0, -math.inf]] * 2
