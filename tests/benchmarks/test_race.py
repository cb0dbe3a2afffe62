import gzip
import json
import sys

import pytest

from pipelines.sample_text import sample_pairs
from tests.refusals import refused

SPLITS = {"train": "train", "val": "validation", "test_2016_flickr": "test"}


@pytest.fixture
def race(monkeypatch, request, tmp_path):
    """Runs the program on a small text in the form of Multi30k's."""
    monkeypatch.syspath_prepend(request.config.rootpath / "benchmarks")
    import race

    for name, split in SPLITS.items():
        for side, language in enumerate(("en", "de")):
            pairs = sample_pairs(split)[: 300 if split == "train" else 8]
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (tmp_path / f"{name}.{language}.gz").write_bytes(gzip.compress(text.encode()))
    monkeypatch.setattr(race, "PREPARATION", ["--vocab_size=400"])
    monkeypatch.setattr(race, "RECIPE", ["--preset=tiny", "--config=num_layers=1"])

    def run(*flags):
        flags = [f"--folder={tmp_path}", f"--work_dir={tmp_path / 'race'}", *flags]
        monkeypatch.setattr(sys, "argv", ["race.py", *flags])
        race.main()

    return run


@pytest.mark.slow  # six programs
def test_each_seed_runs_from_text_to_score(race, tmp_path, capsys):
    race("--seeds", "1", "2", "--train_steps=1")
    *laps, mean = map(json.loads, capsys.readouterr().out.splitlines())
    assert [lap["seed"] for lap in laps] == [1, 2] and mean["seeds"] == 2
    assert all(0 <= lap["bleu"] < 40 and lap["minutes"] > 0 for lap in laps)
    for name in ("bleu", "minutes", "processor_minutes"):
        assert mean[name] == pytest.approx((laps[0][name] + laps[1][name]) / 2)
    assert mean["reached"] is False
    for seed in (1, 2):
        assert (tmp_path / "race" / f"seed{seed}" / "model" / "evaluation-test.json").exists()


def test_a_race_that_was_run_before_is_not_overwritten(race, tmp_path):
    (tmp_path / "race").mkdir()
    with refused("--work_dir", tmp_path / "race"):
        race()
    assert list((tmp_path / "race").iterdir()) == []


def test_a_program_that_fails_ends_the_race(race, tmp_path, capfd):
    (tmp_path / "val.en.gz").unlink()
    with pytest.raises(SystemExit) as ended:
        race("--train_steps=2")
    assert ended.value.code == 1 and "val.en.gz" in capfd.readouterr().err
