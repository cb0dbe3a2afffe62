"""Searches compiled by XLA: they find what the plain graphs find, for shapes from a short list."""

import dataclasses
import threading
from typing import ClassVar

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.config import EOS_ID, PAD_ID
from keras_transformer.core.search.compiled_model import compile_model
from keras_transformer.core.search.config import SamplingConfig
from keras_transformer.core.search.engines import xla_programs, xla_search
from keras_transformer.core.search.engines.engine import Request
from keras_transformer.core.search.engines.graphs import SearchGraphs
from keras_transformer.core.search.engines.tensorflow_engine import (
    NO_PROGRAMS,
    TensorFlowEngine,
    padded,
)
from keras_transformer.core.search.engines.xla_programs import (
    MOST_PROGRAMS,
    XlaPrograms,
    programs_for,
)
from keras_transformer.core.search.engines.xla_search import (
    LENGTHS,
    ROWS,
    Shape,
    StaticSearch,
    smallest_shape,
    steps_within,
)
from keras_transformer.core.search.matrices import LARGE
from keras_transformer.core.search.weights import variables_of
from tests.core.search.test_tensorflow_engine import SOURCES, rows
from tests.refusals import refused
from tests.small_models import compiled, settings_of

FORBIDDEN = ((30,), (40, 41))
SAMPLING = settings_of(sampling=SamplingConfig(), extra_length=4)


def both(models, settings):
    """Makes an engine that compiles every search, and one that compiles none."""
    return engines_of(SearchGraphs(compiled(models), settings))


@pytest.fixture(scope="module")
def two_beams(make_model):
    """Graphs that several tests trace together."""
    return SearchGraphs(compiled(make_model(num_layers=1)), settings_of(2, extra_length=4))


def engines_of(graphs):
    programs = XlaPrograms(lambda: graphs, waits=True)
    return TensorFlowEngine(graphs, programs), TensorFlowEngine(graphs)


def assert_same(found, wanted):
    """Compares the hypotheses of two engines."""
    for name in ("ids", "length", "alignment"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
    for name in ("score", "log_prob", "token_log_prob"):
        part, wanted_part = getattr(found, name), getattr(wanted, name)
        if wanted_part is None:
            assert part is None
        else:
            np.testing.assert_allclose(part, wanted_part, rtol=1e-4, atol=1e-5)


def test_beam_search_is_that_of_the_graphs(make_model, monkeypatch):
    """With all restrictions, prefixes and alignments; the last two sentences go on alone."""
    monkeypatch.setattr(xla_search, "MANY_ROWS", 8)
    check_beam_search(make_model(num_layers=1))


@pytest.mark.slow  # compiles with XLA
@pytest.mark.parametrize("members", [1, 2])
def test_beam_search_with_codes_is_that_of_the_graphs(make_model, members):
    models = [make_model(seed=seed, decoder_reads_code=True) for seed in range(members)]
    check_beam_search(models)


def check_beam_search(models):
    """Compares both, with all restrictions, prefixes and alignments."""
    settings = settings_of(
        3, forbidden=FORBIDDEN, extra_length=4, min_length=4, no_repeat_ngram_size=2
    )
    engine, plain = both(models, settings)
    prefix = rows([80, 81], [], [], [90])
    for guaranteed, alpha in ((1, 0.6), (3, 0.0)):
        request = Request(SOURCES, prefix, None, guaranteed, alpha, aligned=[True] * 4)
        assert_same(engine.search(request), plain.search(request))
    some = Request(SOURCES[:3], prefix[:3], aligned=[True] * 3)
    assert_same(engine.search(some), plain.search(some))
    assert engine.programs.ready == [Shape("aligned_search_ids", 8, 8, 8)]


def test_greedy_search_is_that_of_the_graphs(make_model):
    engine, plain = both(make_model(num_layers=1), settings_of(1, extra_length=20))
    lengths = set()
    for source in SOURCES:
        request = Request([source], aligned=[True])
        found = engine.search_greedily(request)
        assert_same(found, plain.search_greedily(request))
        lengths.add(found.length.item())
    assert min(lengths) == 0 and max(lengths) > 20  # more than the first capacity
    assert engine.programs.ready == [Shape("aligned_greedy_ids", 1, 8, 1)]


@pytest.mark.parametrize(("beams", "name"), [(2, "aligned_search_ids"), (1, "greedy_ids")])
def test_the_last_sentences_of_many_go_on_alone(make_model, monkeypatch, beams, name):
    """Without a compiler: the same program, run by TensorFlow."""
    graphs = SearchGraphs(compiled(make_model(num_layers=1)), settings_of(beams, extra_length=9))
    calls = []

    def steps(begun, state, capacity, rows=0):
        calls.append((state.running.shape[0], capacity, rows))
        return steps_within(begun, state, capacity, rows)

    monkeypatch.setattr(xla_search, "steps_within", steps)
    rng = np.random.default_rng(3)
    sources = [[*rng.integers(4, 99, length), EOS_ID] for length in rng.integers(0, 7, 30)]
    source = padded(rows(*sources, [EOS_ID], [EOS_ID]))
    prefix = tf.fill([32, 1], PAD_ID)
    numbers = (tf.constant(2), tf.constant(0.6)) if beams > 1 else ()
    static = StaticSearch(graphs, source.shape[1])
    search = tf.function(static.named[name].python_function, autograph=False)
    found = search(source, prefix, *numbers)
    wanted = graphs.named[name](source, prefix, *numbers)
    longest = source.shape[1] + 9
    assert calls == [(32, longest, 8), (8, longest, 0)]
    assert len(set(wanted["length"][:, 0].numpy())) > 3
    for key, value in wanted.items():
        part = found[key][:, :, : value.shape[2]] if value.shape.rank == 3 else found[key]
        np.testing.assert_allclose(part, value, rtol=1e-4, atol=1e-5, err_msg=key)


@pytest.mark.slow  # compiles with XLA
@pytest.mark.parametrize("beams", [1, 4])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"norm": "pre", "positions": "rotary", "activation": "swiglu"},
        {"attention_window": 4, "positions": "learned"},
        {"decoder_self_attention": "ssru"},
        {"tie_embeddings": False, "attention_bias": True, "logits_bias": True},
    ],
)
def test_searches_of_other_models_are_those_of_the_graphs(make_model, options, beams):
    settings = settings_of(beams, extra_length=20, early_stopping=beams > 1)
    engine, plain = both(make_model(**options), settings)
    requests = [Request(SOURCES, guaranteed=min(beams, 2)), Request([SOURCES[1]])]
    for request in requests:
        assert_same(engine.search(request), plain.search(request))
        assert_same(engine.search_greedily(request), plain.search_greedily(request))
    searches = 1 if beams > 1 else 2
    assert len(engine.programs.ready) == searches * len(requests)


def test_products_in_bfloat16_find_the_same_but_for_near_ties(make_model):
    """Scores are float32: those of the rounded weights, but for the rounding of the products."""
    model = compile_model(make_model(num_layers=1), "bfloat16")
    engine, plain = engines_of(SearchGraphs(model, settings_of(3, extra_length=4)))
    request = Request(SOURCES, guaranteed=2, alpha=0.0)
    found, wanted = engine.search(request), plain.search(request)
    assert len(engine.programs.ready) == 1 and found.score.dtype == np.float32
    best = zip(found.ids[:, 0], found.length[:, 0], strict=True)
    targets = [row[:length] for row, length in best]
    exact = np.where(found.length[:, 0] > 0, plain.score(SOURCES, targets), 0)
    errors = np.abs(found.log_prob[:, 0] - exact)
    assert 1e-5 < errors.max() < 0.1
    np.testing.assert_allclose(exact, wanted.log_prob[:, 0], atol=0.1)  # as good as the best


def test_only_matrices_stay_bfloat16_for_xla(make_model):
    model = compile_model(make_model(positions="learned", logits_bias=True), "bfloat16")
    for for_xla, kept in ((True, {2}), (False, set())):
        parts = variables_of(model.in_graph(for_xla=for_xla).weights)
        assert {part.shape.rank for part in parts if part.dtype == tf.bfloat16} == kept
        assert {part.shape.rank for part in parts if part.dtype == tf.float32} == {1, 2} - kept


class NoProgram:
    """Stands for a program: compiling it takes no time, and it finds nothing."""

    made: ClassVar[list[Shape]] = []

    def __init__(self, graphs, shape):
        self.shape = shape
        self.made.append(shape)


@pytest.fixture
def made(monkeypatch):
    """The shapes that are compiled, where that is simulated."""
    monkeypatch.setattr(xla_programs, "Program", NoProgram)
    monkeypatch.setattr(NoProgram, "made", [])
    return NoProgram.made


def inputs(rows, length, prefix_length=1):
    return {
        "source": tf.fill([rows, length], 4),
        "prefix": tf.fill([rows, prefix_length], 4),
    }


def wait(programs):
    """Waits until the requested programs are compiled."""
    for thread in threading.enumerate():
        if thread.name == "xla":
            thread.join()


@pytest.mark.parametrize(
    ("name", "shape", "wanted"),
    [
        ("search_ids", (1, 1), (1, 8, 1)),
        ("search_ids", (2, 9, 3), (8, 16, 8)),
        ("greedy_ids", (128, 256, 256), (128, 256, 256)),
        ("search_ids", (129, 8), None),
        ("search_ids", (1, 257), None),
        ("search_ids", (1, 8, 257), None),
        ("constrain_ids", (1, 8), None),
        ("score_ids", (1, 8), None),
    ],
)
def test_a_batch_is_padded_to_the_smallest_shape(name, shape, wanted):
    found = smallest_shape(name, inputs(*shape))
    assert found == (None if wanted is None else Shape(name, *wanted))


def test_a_file_needs_few_shapes():
    """Of all lengths: batches of 4,096 padded tokens, and then their remainders."""
    shapes = set()
    for length in range(1, LENGTHS[-1] + 1):
        most = 4096 // max(length, 32)
        shapes |= {smallest_shape("search_ids", inputs(count, length)) for count in (1, most)}
    assert len(shapes - {None}) <= MOST_PROGRAMS + len(LENGTHS)
    assert {shape.rows for shape in shapes} <= set(ROWS)


def test_programs_are_compiled_after_enough_batches_of_their_shape(made):
    programs = XlaPrograms(lambda: None, most_rows=1, enough_batches=3)
    for _ in range(2):
        assert programs.find("search_ids", inputs(1, 5)) is None
        assert programs.find("search_ids", inputs(1, 9)) is None
        assert programs.find("search_ids", inputs(2, 5)) is None
    wait(programs)
    assert made == []
    programs.find("search_ids", inputs(1, 8))
    wait(programs)
    assert made == [Shape("search_ids", 1, 8, 1)]
    assert isinstance(programs.find("search_ids", inputs(1, 5)), NoProgram)
    assert programs.find("aligned_search_ids", inputs(1, 5)) is None
    for _ in range(3):
        assert programs.find("search_ids", inputs(2, 5)) is None
    wait(programs)
    assert len(made) == 1


@pytest.mark.parametrize("takes_larger", [False, True])
def test_a_larger_program_takes_the_place_of_a_missing_one(made, takes_larger):
    programs = XlaPrograms(lambda: None, most_programs=2, takes_larger=takes_larger)
    for count, length in ((128, 16), (8, 16)):
        programs.find("search_ids", inputs(count, length))
        wait(programs)
    for count, length, wanted in ((1, 5, 8), (9, 16, 128), (8, 17, None), (129, 1, None)):
        found = programs.find("search_ids", inputs(count, length))
        assert (found and found.shape.rows) == (wanted if takes_larger else None)
    assert programs.find("greedy_ids", inputs(1, 5)) is None
    assert len(made) == 2


@pytest.mark.parametrize("most", [MOST_PROGRAMS, 2])
def test_there_are_few_programs(made, most):
    programs = XlaPrograms(lambda: None, most_programs=most, waits=True)
    for count in ROWS:
        for length in LENGTHS:
            programs.find("search_ids", inputs(count, length))
    assert len(made) == len(set(made)) == most < len(ROWS) * len(LENGTHS)


def test_nobody_waits_for_a_compilation(made):
    """The graphs answer while a program is compiled, also further ones of the same shape."""
    compiling, proceed = threading.Event(), threading.Event()

    def make_graphs():
        compiling.set()
        proceed.wait()

    programs = XlaPrograms(make_graphs)
    assert programs.find("search_ids", inputs(1, 5)) is None
    compiling.wait()
    assert programs.find("search_ids", inputs(1, 5)) is None
    assert programs.find("search_ids", inputs(1, 15)) is None
    assert made == []
    proceed.set()
    wait(programs)
    assert made == [Shape("search_ids", 1, 8, 1), Shape("search_ids", 1, 16, 1)]


def own_messages(caplog):
    """Without TensorFlow's about graphs, which depend on other tests."""
    return [record.message for record in caplog.records if record.name == "absl"]


def test_the_graphs_answer_where_a_program_cannot_be_compiled(two_beams, monkeypatch, caplog):
    def fail(*arguments):
        raise tf.errors.ResourceExhaustedError(None, None, "FILE; No space left on device")

    monkeypatch.setattr(xla_programs, "Program", fail)
    engine, plain = engines_of(two_beams)
    for request in (Request(SOURCES), Request(SOURCES), Request(SOURCES[:1])):
        assert_same(engine.search(request), plain.search(request))
    assert own_messages(caplog) == [
        "XLA compiles no further searches: FILE; No space left on device"
    ]


class SmallMemory(xla_search.Program):
    """A program on a device with memory for one sentence of 8 tokens."""

    compiled: ClassVar[list[Shape]] = []

    def __init__(self, graphs, shape):
        self.compiled.append(shape)
        require_memory(shape.rows == 1 and shape.length == 8)
        super().__init__(graphs, shape)


def require_memory(is_enough):
    if not is_enough:
        raise tf.errors.ResourceExhaustedError(None, None, "out of memory")


def test_a_batch_is_divided_where_its_program_needs_too_much_memory(two_beams, monkeypatch, caplog):
    """In the end, each sentence has a program; one that is too long for that has a graph."""
    monkeypatch.setattr(xla_programs, "Program", SmallMemory)
    monkeypatch.setattr(SmallMemory, "compiled", [])
    engine, plain = engines_of(two_beams)
    long = rows(np.full(9, 50), [60, EOS_ID])
    for request in (Request(SOURCES), Request(SOURCES, guaranteed=2), Request(long[:1])):
        assert_same(engine.search(request), plain.search(request))
    assert engine.programs.ready == [Shape("search_ids", 1, 8, 1)]
    assert [shape[1:3] for shape in SmallMemory.compiled] == [(8, 8), (1, 8), (1, 16)]
    assert own_messages(caplog) == [
        "no memory for 4 sentences of 6 tokens: from now on, 12 tokens at a time",
        "no memory for 2 sentences of 6 tokens: from now on, 6 tokens at a time",
    ]


def test_what_is_compiled(make_model):
    small, options = make_model().config, settings_of().options
    large = dataclasses.replace(small, vocab_size=LARGE // small.d_model)
    trees = settings_of(extra_length=300).options
    assert isinstance(programs_for("auto", [small, small], options, None), XlaPrograms)
    assert programs_for("auto", [small, large], options, None) is NO_PROGRAMS
    assert programs_for("auto", [small], trees, None) is NO_PROGRAMS
    assert isinstance(programs_for("on", [large], trees, None), XlaPrograms)
    assert programs_for("off", [small], options, None) is NO_PROGRAMS
    assert programs_for("auto", [small], SAMPLING.options, None) is NO_PROGRAMS
    with refused("xla", "on"):
        programs_for("on", [small], SAMPLING.options, None)
