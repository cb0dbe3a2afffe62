"""The comparison of variants over a stand-in for the programs, which trains and scores nothing."""

import json
import sys

import pytest


@pytest.fixture
def variants(monkeypatch, request):
    monkeypatch.syspath_prepend(request.config.rootpath / "benchmarks")
    import variants

    return variants


@pytest.fixture
def calls(variants, tmp_path, monkeypatch):
    """Runs the benchmark with stand-ins; what they were called with."""
    made = []

    def program(name, flags, settings):
        made.append((name, flags, settings))
        seed = int(str(flags["model_dir"])[-1])
        return {"validation_loss": 2.0 + seed} if name == "train" else {"bleu": 30.0 + seed}

    monkeypatch.setattr(variants, "program", program)
    words = ["--data_dir=data", f"--model_dir={tmp_path}", "--precision=bfloat16"]
    monkeypatch.setattr("sys.argv", ["variants", *words, "--variants=pre,swiglu", "--seeds=1,2"])
    return made


def test_a_row_for_each_variant(variants, calls, capsys):
    variants.main()
    assert capsys.readouterr().out.splitlines()[2:] == [
        f"| {name} | 31.5 (31.0 to 32.0) | 31.5 (31.0 to 32.0) | 3.500 (3.000 to 4.000) |"
        for name in ("pre", "swiglu")
    ]
    trained = [(flags, settings) for name, flags, settings in calls if name == "train"]
    assert [flags["seed"] for flags, _ in trained] == [1, 1, 2, 2]
    assert {flags["precision"] for flags, _ in trained} == {"bfloat16"}
    pre, swiglu = ({*settings} for _, settings in trained[:2])
    assert {"--config=norm=pre", "--config=activation=relu"} <= pre
    assert swiglu - pre == {"--config=activation=swiglu", "--config=d_ff=176"}
    # Nothing is measured twice.
    calls.clear()
    variants.main()
    assert not calls


def test_an_unknown_variant(variants, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["variants", "--data_dir=d", "--model_dir=m", "--variants=x"])
    with pytest.raises(ValueError, match=r"^--variants must be of post, .*: x$"):
        variants.main()


def test_speeds_are_measured_in_turn(variants, monkeypatch, capsys):
    seconds = iter([0.2, 0.3, 0.5, 0.4, 0.1, 0.2])
    works = []

    def run_worker(program, work):
        works.append(json.loads(work))
        return {"seconds": next(seconds)}

    monkeypatch.setattr(variants, "run_worker", run_worker)
    monkeypatch.setattr(sys, "argv", ["variants", "--variants=pre,geglu", "--speed_rounds=3"])
    variants.main()
    assert [work["settings"]["activation"] for work in works] == ["relu", "geglu"] * 3
    assert works[1]["d_ff"] == 176
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| pre | 19,200 | 1.00 | 1.00 to 1.00 |",
        "| geglu | 12,800 | 1.50 | 0.80 to 2.00 |",
    ]
