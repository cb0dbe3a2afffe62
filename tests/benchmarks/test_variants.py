"""The comparison of variants over a stand-in for the programs, which trains and scores nothing."""

import json
import sys
import types

import pytest

from tests.refusals import refused


@pytest.fixture
def variants(monkeypatch, request):
    monkeypatch.syspath_prepend(request.config.rootpath / "benchmarks")
    import variants

    return variants


@pytest.fixture
def calls(variants, tmp_path, monkeypatch):
    """Runs the benchmark with stand-ins; what they were called with."""
    made = []

    def run_program(name, *words):
        made.append((name, words))
        seed = int(next(word for word in words if word.startswith("--model_dir="))[-1])
        result = {"validation_loss": 2.0 + seed} if name == "train" else {"bleu": 30.0 + seed}
        return result, 777.0

    monkeypatch.setattr(variants, "run_program", run_program)
    words = ["--data_dir=data", f"--model_dir={tmp_path}", "--precision=bfloat16"]
    monkeypatch.setattr("sys.argv", ["variants", *words, "--variants=pre,swiglu", "--seeds=1,2"])
    return made


def test_a_row_for_each_variant(variants, calls, capsys):
    variants.main()
    assert capsys.readouterr().out.splitlines()[2:] == [
        f"| {name} | 31.5 (31.0 to 32.0) | 31.5 (31.0 to 32.0) | 3.500 (3.000 to 4.000) |"
        for name in ("pre", "swiglu")
    ]
    trained = [{*words} for name, words in calls if name == "train"]
    seeds = [word for words in trained for word in words if word.startswith("--seed=")]
    assert seeds == ["--seed=1", "--seed=1", "--seed=2", "--seed=2"]
    assert all("--precision=bfloat16" in words for words in trained)
    pre, swiglu = trained[:2]
    assert {"--config=norm=pre", "--config=activation=relu"} <= pre
    of_swiglu = {word for word in swiglu - pre if not word.startswith("--model_dir=")}
    assert of_swiglu == {"--config=activation=swiglu", "--config=d_ff=176"}
    # Nothing is measured twice.
    calls.clear()
    variants.main()
    assert not calls


def test_an_unknown_variant(variants, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["variants", "--data_dir=d", "--model_dir=m", "--variants=x"])
    with refused("--variants", "x"):
        variants.main()


def test_speeds_are_measured_in_turn(variants, monkeypatch, capsys):
    seconds = iter([0.2, 0.3, 0.5, 0.4, 0.1, 0.2])
    works = []

    def run_worker(program, work):
        works.append(json.loads(work))
        return {"seconds": next(seconds)}

    monkeypatch.setattr(variants, "run_worker", run_worker)
    monkeypatch.setattr(sys, "argv", ["variants", "--variants=pre,swiglu", "--speed_rounds=3"])
    variants.main()
    assert [work["settings"]["activation"] for work in works] == ["relu", "swiglu"] * 3
    assert works[1]["d_ff"] == 176
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| pre | 19,200 | 1.00 | 1.00 to 1.00 |",
        "| swiglu | 12,800 | 1.50 | 0.80 to 2.00 |",
    ]


def test_trained_models_translate_in_turn(variants, monkeypatch, tmp_path, capsys):
    clock = iter([0, 9, 9, 18, 18, 20, 20, 23, 30, 32, 32, 37])  # before and after each turn
    loaded = []

    class Model:
        def translate(self, sources):
            return [[types.SimpleNamespace(tokens=50)] for _ in sources]

    def load(path, **options):
        loaded.append((path.name, options["beam_size"]))
        return Model()

    monkeypatch.setattr("keras_transformer.loading.load", load)
    monkeypatch.setattr("pipelines.datasets.split_text", lambda *_: (["a", "b"], ["c", "d"]))
    monkeypatch.setattr(variants, "training_seconds", lambda *_: {"pre": [1.0]})
    monkeypatch.setattr(variants.time, "perf_counter", lambda: next(clock))
    words = ["--data_dir=data", f"--model_dir={tmp_path}", "--speed_rounds=2", "--seeds=7"]
    monkeypatch.setattr("sys.argv", ["variants", *words, "--variants=pre,rotary"])
    variants.main()
    assert loaded == [("pre-7", 4), ("rotary-7", 4)]
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "| pre | 50 | 1.00 | 1.00 to 1.00 |",
        "| rotary | 25 | 2.00 | 1.50 to 2.50 |",
    ]
