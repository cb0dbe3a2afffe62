import json
import sys

import pytest

from keras_transformer.core import presets
from tests.refusals import refused


@pytest.fixture
def gpu_step(monkeypatch, request):
    monkeypatch.syspath_prepend(request.config.rootpath / "benchmarks")
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")
    import gpu_step

    def run(*flags):
        monkeypatch.setattr(sys, "argv", ["gpu_step.py", *flags])
        gpu_step.main()

    run.module = gpu_step
    return run


@pytest.mark.slow  # XLA compiles it
def test_a_step_is_timed_and_its_share_of_the_peak_taken(gpu_step, monkeypatch, capsys):
    small = {"num_layers": 1, "d_model": 16, "d_ff": 32, "num_heads": 2}
    monkeypatch.setitem(presets.PRESETS, "tiny", small)  # XLA compiles 4 layers slowly
    gpu_step("--quick", "--precision=float32")
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    row = result["tiny"]
    seconds = row["milliseconds"] / 1000
    assert row["target_tokens_per_second"] * seconds == pytest.approx(128, rel=2e-3)
    shares = row["model_flops_per_second"] / result["matmul_peak_flops_per_second"]
    assert row["share_of_peak"] == pytest.approx(shares, rel=1e-3)
    assert row["milliseconds_range"][0] <= row["milliseconds"] <= row["milliseconds_range"][1]


@pytest.mark.parametrize(
    ("backend", "flags", "argument", "received"),
    [
        ("tensorflow", ["--presets", "base", "huge"], "preset", "'huge'"),
        ("torch", ["--quick"], "KERAS_BACKEND", "torch"),
        ("tensorflow", ["--steps=0"], "--steps", "0"),
        ("tensorflow", ["--length=7"], "--row", "64"),
        ("tensorflow", ["--tokens=63"], "--tokens", "63"),
    ],
)
def test_impossible_flags_before_anything_is_measured(
    gpu_step, monkeypatch, backend, flags, argument, received
):
    monkeypatch.setenv("KERAS_BACKEND", backend)
    monkeypatch.setattr(gpu_step.module, "matmul_peak", None)
    with refused(argument, received):
        gpu_step(*flags)
