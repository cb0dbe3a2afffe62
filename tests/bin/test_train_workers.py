"""bin/train.py as two workers over loopback: one dies, one is told to end, and they resume."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from keras_transformer.core.training.checkpoint_weights import read_checkpoint
from keras_transformer.core.training.checkpoints import CheckpointStore
from tests.bin.training_log import PATIENCE, wait_for_step
from tests.free_ports import free_addresses
from tests.refusals import check_line

TRAIN = Path(__file__).resolve().parents[2] / "bin" / "train.py"
STEPS, EVERY = 1000, 7  # of the run, and between checkpoints


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    from pipelines.prepare.preparation import PreparationConfig, prepare
    from pipelines.sources.files import FileSource

    folder = tmp_path_factory.mktemp("letters")
    rng = np.random.default_rng(0)
    files = {}
    for split, count in (("train", 60), ("validation", 5)):
        words = ["".join(rng.choice(list("abcde"), size=3)) for _ in range(4 * count)]
        lines = [" ".join(words[n : n + 1 + n % 7]) + "\n" for n in range(0, len(words), 4)]
        paths = [folder / f"{split}.{side}" for side in ("source", "target")]
        for path in paths:
            path.write_text("".join(lines), encoding="utf-8")
        files[split] = ([str(paths[0])], [str(paths[1])])
    config = PreparationConfig(vocab_size=280, max_length=32, seed=1)
    prepare(FileSource(files), folder / "data", config)
    return folder / "data"


@pytest.fixture(scope="module")
def start(data, start_process):
    """Starts training in `folder`/model; what a process says is in `folder`/errors."""
    settings = ("num_layers=1", "d_model=8", "d_ff=8", "num_heads=2", "warmup_steps=50")

    def start(folder, *more, name="errors", **environment):
        arguments = [
            *(f"--data_dir={data}", f"--model_dir={folder / 'model'}", "--preset=tiny"),
            *(f"--config={setting}" for setting in settings),
            *(f"--train_steps={STEPS}", f"--checkpoint_steps={EVERY}", "--log_steps=5"),
            *("--tokens_per_batch=32", "--sample_sentences=0", "--deterministic"),
        ]
        environment = {**os.environ, **environment}
        folder.mkdir(exist_ok=True)
        (folder / name).unlink(missing_ok=True)
        return start_process([TRAIN, *arguments, *more], folder / name, environment)

    return start


@pytest.fixture
def start_workers(start, tmp_path):
    """Starts two workers; what they say is in errors0 and errors1."""

    def start_workers(*more):
        workers = free_addresses(2)
        flags = ("--strategy=multi_worker", f"--connect_seconds={PATIENCE}", *more)
        for index in range(2):
            task = {"type": "worker", "index": index}
            environment = {"TF_CONFIG": json.dumps({"cluster": {"worker": workers}, "task": task})}
            yield start(tmp_path, *flags, name=f"errors{index}", **environment)

    return lambda *more: list(start_workers(*more))


def end(process, errors):
    """The exit code of a process, its result, and what it said."""
    output, _ = process.communicate(timeout=PATIENCE)
    said = errors.read_text()
    assert "Traceback" not in said, said
    lines = output.splitlines()
    return process.returncode, json.loads(lines[-1]) if lines else None, said


@pytest.mark.slow
def test_two_workers_do_what_one_process_does_whatever_happens_to_them(
    start, start_workers, tmp_path
):
    model_dir, errors = tmp_path / "model", [tmp_path / f"errors{index}" for index in range(2)]

    # A worker dies: the other one ends, and says so.
    chief, worker = start_workers()
    wait_for_step(chief, model_dir, 2 * EVERY)
    worker.kill()
    code, result, said = end(chief, errors[0])
    assert (code, result) == (1, None)
    killed = CheckpointStore(model_dir).latest
    check_line(said, "strategy=multi_worker: worker 1 (127.0.0.1", about=killed.name)

    # They resume; one is told to end, as by a scheduler, and both end well.
    chief, worker = start_workers()
    wait_for_step(chief, model_dir, killed.step + EVERY)
    worker.send_signal(signal.SIGTERM)
    code, result, said = end(chief, errors[0])
    assert code == 0, said
    assert re.search(rf"resuming .*\b{killed.step}\b", said)
    code, short, said = end(worker, errors[1])
    assert code == 0, said
    step = CheckpointStore(model_dir).latest.step
    assert killed.step < step < STEPS
    assert f"SIGTERM at step {step}" in said
    assert short["worker"] == 1
    for name, value in (("step", step), ("stopped", "SIGTERM")):
        assert result[name] == short[name] == value

    # One process that nothing happens to comes to the same.
    replicas = ("--strategy=mirrored", "--replicas=2", f"--train_steps={step}")
    alone = start(tmp_path / "alone", *replicas)
    code, expected, said = end(alone, tmp_path / "alone" / "errors")
    assert code == 0, said
    assert re.search(r"\(1\) .*\(2, replicas x accumulate_steps\)", said)
    assert result["loss"] == expected["loss"]
    assert result["gradient_norm"] == expected["gradient_norm"]
    for weight, same in zip(
        read_checkpoint(tmp_path / "alone" / "model", "latest")[0],
        read_checkpoint(model_dir, "latest")[0],
        strict=True,
    ):
        np.testing.assert_array_equal(same, weight)


@pytest.mark.slow  # compiles with XLA
def test_a_signal_to_one_worker_ends_the_compilation_of_both(start_workers, tmp_path):
    errors = [tmp_path / f"errors{index}" for index in range(2)]
    workers = start_workers("--xla=on")
    for process, file in zip(workers, errors, strict=True):
        while "XLA compiles the step" not in file.read_text():
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.1)
    workers[1].send_signal(signal.SIGTERM)
    for process, file in zip(workers, errors, strict=True):
        code, result, said = end(process, file)
        assert code == 0, said
        assert (result["step"], result["stopped"]) == (0, "SIGTERM")
        assert "XLA compiled the step" not in said


def test_workers_that_are_told_nothing(call_program, prepared, tmp_path, monkeypatch):
    for name in ("TF_CONFIG", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    flags = (f"--data_dir={prepared}", f"--model_dir={tmp_path}", "--strategy=multi_worker")
    done = call_program("train", *flags)
    assert done.code == 1
    check_line(done.errors, "--strategy", about="TF_CONFIG")
