"""The comparison of adapters over a stand-in for the programs, which trains and scores nothing."""

import json
import sys

import pytest

from tests.refusals import refused

SIZES = {"all-1e-4": 5000, "rank-2-1e-3": 300, "rank-8-1e-3": 900}


@pytest.fixture
def adapters(monkeypatch, request):
    monkeypatch.syspath_prepend(request.config.rootpath / "benchmarks")
    import adapters

    return adapters


@pytest.fixture
def calls(adapters, untrained, tmp_path, monkeypatch):
    """Runs the benchmark with stand-ins; what they were called with."""
    made = []

    def run_program(name, *words):
        made.append((name, *words))
        given = dict(word.lstrip("-").partition("=")[::2] for word in words)
        if name == "evaluate":
            bleu = 10.0 if given["data_dir"] == "own" else 20.0
            bleu += 1.0 if given["split"] == "validation" else 0.0
            return {"bleu": bleu * float(given.get("adapter_scale", 1))}, 1.0
        folder = tmp_path / "work" / given["model_dir"].rpartition("/")[2] / "checkpoints"
        folder.mkdir(parents=True)
        (folder / "step-00000009.index").write_bytes(bytes(SIZES[folder.parent.name]))
        path = str(folder / "step-00000009")
        return {"checkpoint": path, "trained_parameters": 1234, "minutes": 0.5}, 777.0

    monkeypatch.setattr(adapters, "run_program", run_program)
    words = ["--own_data=own", "--general_data=general", f"--work_dir={tmp_path / 'work'}"]
    words += [f"--model_dir={untrained}", "--rates=1e-4", "--lora_rates=1e-3", "--ranks=2,8"]
    words += ["--scales=0.5,1"]
    monkeypatch.setattr("sys.argv", ["adapters", *words, "--", "--train_steps=9"])
    return made


def test_a_row_for_the_base_and_for_each_tuning(adapters, calls, untrained, capsys):
    base = str(untrained / "checkpoints" / "step-00000020")
    adapters.main()
    shown, rows = capsys.readouterr().out.rstrip().rsplit("\n", 1)
    assert [row["run"] for row in json.loads(rows)] == [
        *("base", "all weights", *["LoRA, rank 2"] * 2, *["LoRA, rank 8"] * 2)
    ]
    columns = [" ".join(line.split()) for line in shown.splitlines()]
    assert any("| LoRA, rank 8 | 1e-3 | 0.5 | 5.50 | 5.00 | 10.50 | 10.00 |" in c for c in columns)
    assert any("| LoRA, rank 8 | 1e-3 | 1 | 11.00 | 10.00 | 21.00 | 20.00 |" in c for c in columns)
    assert json.loads(rows)[2]["checkpoint_megabytes"] == 300 / 1e6
    trained = [words for name, *words in calls if name == "train"]
    assert [word for words in trained for word in words if "lora_rank" in word] == [
        *("--lora_rank=2", "--lora_rank=8")
    ]
    for words in trained:
        assert {"--data_dir=own", f"--init_from={base}", "--train_steps=9"} <= {*words}
    # Nothing is measured twice.
    calls.clear()
    adapters.main()
    assert not calls and capsys.readouterr().out.rstrip().endswith(rows)


def test_flags_that_are_not_passed_on(adapters, calls, monkeypatch):
    monkeypatch.setattr("sys.argv", [*sys.argv, "--preset=tiny"])
    with refused("train", "--preset=tiny"):
        adapters.main()
