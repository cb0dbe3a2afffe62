import json
import sys
import types

import pytest

from keras_transformer.support.errors import InputError


@pytest.fixture
def benchmarks(monkeypatch, request):
    monkeypatch.syspath_prepend(request.config.rootpath / "benchmarks")
    import our_step
    import step_clock
    import training

    modules = (our_step, step_clock, training)
    return types.SimpleNamespace(**{module.__name__: module for module in modules})


@pytest.fixture
def clock(monkeypatch, benchmarks):
    """A clock that only `clock.seconds = ...` moves."""
    clock = types.SimpleNamespace(seconds=0.0)
    time = types.SimpleNamespace(perf_counter=lambda: clock.seconds)
    monkeypatch.setattr(benchmarks.step_clock, "time", time)
    monkeypatch.setattr(benchmarks.step_clock, "since_start", lambda: clock.seconds)
    return clock


def measure_steps(benchmarks, clock, durations, **work):
    """Returns the measurement of steps with these durations, and how many were taken."""
    taken = []

    def step():
        clock.seconds += durations[len(taken)]
        taken.append(step)

    def product():
        clock.seconds += 2.0

    def multiply(size):
        assert size == work.matrix
        return product

    work = benchmarks.training.QUICK._replace(sentences=6, length=10, **work)
    times = benchmarks.step_clock.measure(lambda work: step, multiply, work)
    return times, len(taken)


def test_the_median_step_after_the_warm_up_counts(benchmarks, clock):
    durations = [9.0, 5.0, 5.0, 1.0, 2.0, 4.0, 3.0, 2.0]
    found, taken = measure_steps(benchmarks, clock, durations, steps=5, seconds=100.0, matrix=2048)
    assert taken == 8
    assert (found["seconds"], found["tokens_per_second"]) == (2.0, 30.0)
    assert found["first_step_seconds"] == 9.0
    assert found["matmul_gigaflops"] == round(2048**3 / 1e9, 1)
    # Within a megabyte, as the kernel does not count to the page.
    assert 50 < found["imported_megabytes"] <= found["peak_megabytes"] + 1


def test_slow_steps_are_fewer(benchmarks, clock):
    _, taken = measure_steps(benchmarks, clock, [1.0] * 3 + [4.0] * 9, steps=9, seconds=15.0)
    assert taken == 3 + 4  # 16 s
    _, taken = measure_steps(benchmarks, clock, [1.0] * 3 + [40.0] * 9, steps=9, seconds=15.0)
    assert taken == 3 + 3


def test_medians_shares_and_ratios(benchmarks):
    def run(seconds, peak):
        return {"seconds": seconds, "matmul_gigaflops": peak, "peak_megabytes": 100 * seconds}

    ours, theirs = [run(1.0, 300), run(2.0, 100), run(4.0, 200)], [run(n, 250) for n in (4, 6, 8)]
    work = benchmarks.training.SHAPES["tiny"]
    report = benchmarks.training.summed_up(work, {"keras_transformer": ours, "pytorch": theirs})
    assert report["times_as_fast_as"] == {"pytorch": 3}
    assert report["rounds_times_as_fast_as"] == {"pytorch": [4, 3, 2]}
    first, second = report["engines"]["keras_transformer"], report["engines"]["pytorch"]
    assert (first["seconds"], first["peak_megabytes"]) == (2.0, 200)
    assert first["gigaflops"] == pytest.approx(3 * second["gigaflops"], rel=0.01)
    # Forward: the softmax alone has 2 x 160 x 24 x 128 x 8000, and a step three times as many.
    assert 3 * 2 * 160 * 24 * 128 * 8000 / 1e9 / 2 < first["gigaflops"] < 50
    # Of the faster library's products: the median of 250, not 200.
    assert first["share_of_peak"] == pytest.approx(first["gigaflops"] / 250, abs=1e-3)


def test_engines_that_are_not_there_are_left_out_with_a_word(benchmarks, capsys):
    arguments = types.SimpleNamespace(torch_python=sys.executable, opennmt_python=None)
    assert not benchmarks.training.has_module(sys.executable, "no_such_module_at_all")
    assert benchmarks.training.has_module(sys.executable, "json")
    assert "opennmt_tf" not in benchmarks.training.engines(arguments)
    assert "opennmt_tf: left out" in capsys.readouterr().err
    arguments.opennmt_python = "/no/such/python"
    with pytest.raises(InputError, match="/no/such/python"):
        benchmarks.training.engines(arguments)
    arguments.opennmt_python = sys.executable
    assert "opennmt_tf" not in benchmarks.training.engines(arguments)
    assert f"{sys.executable} has no opennmt" in capsys.readouterr().err


@pytest.mark.slow  # new interpreters, each with TensorFlow
def test_the_program_measures_and_prints(benchmarks, monkeypatch, capsys):
    flags = ["--quick", "--rounds=1", "--torch_python=" + sys.executable]
    monkeypatch.setattr(sys, "argv", ["training.py", *flags])
    monkeypatch.setattr(benchmarks.training, "has_module", lambda *_: False)
    benchmarks.training.main()
    result = json.loads(capsys.readouterr().out.splitlines()[-1])["quick"]
    assert list(result["engines"]) == ["keras_transformer"]
    ours = result["engines"]["keras_transformer"]
    assert ours["tokens_per_second"] * ours["seconds"] == pytest.approx(64, rel=2e-3)
    assert ours["peak_megabytes"] > ours["imported_megabytes"] > 100
    assert ours["first_step_seconds"] > ours["seconds"]
