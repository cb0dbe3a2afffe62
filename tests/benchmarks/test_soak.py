"""The soak over a stand-in for bin/train.py, which counts steps in a file and has no model."""

import json
import signal
import sys
import time
from types import SimpleNamespace

import pytest

from tests.refusals import refused

BAR = SimpleNamespace(set_postfix_str=lambda text: None)

# Steps of a thousandth of a second; saves where it is, and makes its log anew at each start. In
# the run that is killed it waits for that at the steps of `hold_at`, each the first time it comes.
TRAINER = """
import json, os, signal, sys, time
from pathlib import Path

flags = dict(word.lstrip("-").partition("=")[::2] for word in sys.argv[1:])
folder, steps = Path(flags["model_dir"]), int(flags["steps"])
log, saved = folder / "training_log.jsonl", folder / "saved"
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
step = int(saved.read_text()) if saved.exists() else 0
lines = log.read_text().splitlines(keepends=True) if log.exists() else []
held = {int(word) for word in flags["hold_at"].split(",")} if folder.name == "killed" else set()
held -= set(range(len(lines) + 1))
(folder / "new").write_text("".join(lines[:step]))
os.replace(folder / "new", log)
(folder / "starts").open("a").write(f"{step} ")
if step >= int(flags.get("fail_at", "1000000")):
    sys.exit("error: out of luck")
drift = float(flags.get("drift", "0")) * (step > 0)  # of a run that was resumed
while step < steps and not asked:
    time.sleep(0.001)
    step += 1
    names = ("loss", "perplexity", "gradient_norm", "padding", "learning_rate", "skipped")
    line = {"event": "training", "step": step, **dict.fromkeys(names, 1 / step + drift)}
    log.open("a").write(json.dumps(line) + "\\n")
    (folder / "new").write_text(str(step))
    os.replace(folder / "new", saved)
    begun = time.monotonic()
    while step in held and not asked and time.monotonic() < begun + 120:
        time.sleep(0.001)
print(json.dumps({"step": step, "stopped": "SIGTERM" if step < steps else "train_steps"}))
"""


@pytest.fixture
def soak(monkeypatch, request, tmp_path, prepared):
    """Runs the program: soak(words after --, steps, kills)."""
    monkeypatch.syspath_prepend(request.config.rootpath / "benchmarks")
    import soak

    trainer = tmp_path / "train.py"
    trainer.write_text(TRAINER)
    monkeypatch.setattr(soak, "TRAIN", trainer)
    monkeypatch.setattr(soak, "STEP_SECONDS", 0.02)
    monkeypatch.setattr(soak, "START_SECONDS", 0.2)
    monkeypatch.setattr(soak, "POLL_SECONDS", 0.005)
    monkeypatch.setattr(soak, "same_weights", lambda whole, parts: True)

    def run(*words, steps, kills=6):
        held = ",".join(str(step) for step, _ in run.kills(steps, kills))
        words = (f"--steps={steps}", f"--hold_at={held}", *words)
        flags = [f"--data_dir={prepared}", f"--work_dir={tmp_path / 'work'}", f"--kills={kills}"]
        monkeypatch.setattr(sys, "argv", ["soak.py", *flags, "--", *words])
        soak.main()

    def kills(steps, count):
        """(step, signal) of each kill."""
        return [(max(1, int(steps * kill.part)), kill.number) for kill in soak.moments(count, 1)]

    run.module, run.work, run.kills = soak, tmp_path / "work", kills
    return run


def test_a_killed_run_goes_on_to_the_same_end(soak, capsys):
    steps, numbers = zip(*soak.kills(300, 6), strict=True)
    assert len(set(steps)) == 6 and set(numbers) == {signal.SIGKILL, signal.SIGTERM}
    soak(steps=300)
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result.pop("SIGKILL") == numbers.count(signal.SIGKILL)
    assert result.pop("SIGTERM") == numbers.count(signal.SIGTERM)
    assert result == {"steps": 300, "finished": 0, "equal_weights": True, "equal_curves": True}
    first, *starts = [int(step) for step in (soak.work / "killed" / "starts").read_text().split()]
    assert first == 0
    # Logged steps need not have been saved.
    for start, step, number in zip(starts, steps, numbers, strict=True):
        assert step - (number == signal.SIGKILL) <= start <= step
    assert (soak.work / "whole" / "starts").read_text() == "0 "
    assert not (soak.work / "soak.json").exists()


def test_another_result_is_an_error(soak, capsys):
    with refused(None, "another result", soak.work / "killed"):
        soak("--drift=1e-9", steps=100, kills=2)
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["equal_curves"] is False


def test_broken_off_it_goes_on_with_the_kills_that_are_left(soak, monkeypatch, capsys):
    end_at, calls = soak.module.end_at, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return end_at(*arguments)

    monkeypatch.setattr(soak.module, "end_at", interrupted)
    with pytest.raises(KeyboardInterrupt):
        soak(steps=60, kills=4)
    soak(steps=60, kills=4)
    assert len(calls) == 5  # the third once more
    assert calls[2][2:4] == calls[3][2:4]
    assert (soak.work / "whole" / "starts").read_text() == "0 "
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["equal_curves"] is True


def test_a_run_that_fails_is_told_by_its_last_words(soak):
    with refused(None, "exit code 1, error: out of luck", "bin/train.py"):
        soak("--fail_at=1", steps=60, kills=2)


def test_a_process_quicker_than_its_parent_began_where_it_did(soak, monkeypatch):
    """So what is waited before the kill is part of a step, not of a start."""
    popen, sleep, slept = soak.module.subprocess.Popen, time.sleep, []

    def slow(*arguments, **options):
        process = popen(*arguments, **options)
        while len(soak.module.events(folder)) < 5 and process.poll() is None:
            sleep(0.001)
        return process

    folder = soak.work / "killed"
    soak.work.mkdir()
    clock = SimpleNamespace(sleep=lambda seconds: slept.append(seconds) or sleep(0.001))
    monkeypatch.setattr(soak.module, "subprocess", SimpleNamespace(Popen=slow, PIPE=-1))
    monkeypatch.setattr(soak.module, "time", clock)
    kill = soak.module.Kill(0.5, 1.0, signal.SIGKILL)
    words = ["--steps=9", "--hold_at=5"]
    assert soak.module.end_at(folder, words, kill, 5, BAR) == "SIGKILL"
    assert slept == [soak.module.STEP_SECONDS]


# Has said its result when the log comes to the last step, and then takes its time to exit.
FINISHED = """
import os, sys, time
from pathlib import Path

folder = Path(sys.argv[1].partition("=")[2])
print('{"step": 5, "stopped": "STOPPED"}', flush=True)
(folder / "new").write_text('{"event": "training", "step": 5}\\n')
os.replace(folder / "new", folder / "training_log.jsonl")
time.sleep(120)
"""


def test_a_signal_after_the_last_word_came_too_late(soak, tmp_path):
    kill = soak.module.Kill(1.0, 0.0, signal.SIGTERM)
    soak.work.mkdir()
    (tmp_path / "train.py").write_text(FINISHED.replace("STOPPED", "train_steps"))
    assert soak.module.end_at(soak.work / "one", [], kill, 5, BAR) == "finished"
    (tmp_path / "train.py").write_text(FINISHED.replace("STOPPED", "SIGTERM"))
    with refused(None, "exit code -15, nothing said", "bin/train.py"):
        soak.module.end_at(soak.work / "other", [], kill, 5, BAR)


def test_moments_are_the_same_for_a_seed_and_of_both_kinds(soak):
    kills = soak.module.moments(200, seed=3)
    assert kills == soak.module.moments(200, seed=3) != soak.module.moments(200, seed=4)
    assert [kill.part for kill in kills] == sorted(kill.part for kill in kills)
    assert 0 <= kills[0].part < 0.05 and 0.9 < kills[-1].part <= 0.95
    terminated = [kill.number for kill in kills].count(signal.SIGTERM)
    assert 25 <= terminated <= 75


@pytest.mark.parametrize(
    ("words", "kills", "argument", "received"),
    [
        ([], 0, "--kills", "0"),
        (["--model_dir=x"], 1, "train", "--model_dir=x"),
        (["-train_minutes", "3"], 1, "train", "-train_minutes"),
    ],
)
def test_impossible_flags(soak, words, kills, argument, received):
    with refused(argument, received):
        soak(*words, steps=5, kills=kills)
    assert not soak.work.exists()


def test_weights_are_compared_to_the_last_bit(monkeypatch, request, tmp_path):
    import numpy as np
    import tensorflow as tf

    from keras_transformer.config import TransformerConfig
    from keras_transformer.training.checkpoints import CheckpointStore

    monkeypatch.syspath_prepend(request.config.rootpath / "benchmarks")
    from soak import same_weights

    for name, value in (("one", 1.0), ("same", 1.0), ("other", np.nextafter(np.float32(1), 2))):
        store = CheckpointStore(tmp_path / name, TransformerConfig())
        store.save({"model": [tf.Variable([value, 2.0])]}, step=1)
    assert same_weights(tmp_path / "one", tmp_path / "same")
    assert not same_weights(tmp_path / "one", tmp_path / "other")
