"""bin/train.py killed again and again, in a process of its own: it ends as if nothing had been."""

import json
import random
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from keras_transformer.core.training.checkpoint_weights import read_checkpoint
from keras_transformer.core.training.checkpoints import CheckpointStore
from tests.bin.training_log import PATIENCE, events_of, wait_for_step
from tests.program_fixtures import SEED
from tests.refusals import check_line
from tests.small_text import write_small_text

TRAIN = Path(__file__).resolve().parents[2] / "bin" / "train.py"
STEPS, EVERY = 150, 7  # of the run, and between checkpoints

# Runs a program, and kills it in the midst of its n-th checkpoint: what the files then hold is
# half of the data, and no index.
KILLED_WRITING = """
import os, runpy, signal, sys
import tensorflow as tf
last, write, calls = int(sys.argv.pop(1)), tf.train.Checkpoint.write, []

def dying_write(checkpoint, path):
    calls.append(path)
    written = write(checkpoint, path)
    if len(calls) == last:
        data = path + ".data-00000-of-00001"
        os.truncate(data, os.path.getsize(data) // 2)
        os.remove(path + ".index")
        os.kill(os.getpid(), signal.SIGKILL)
    return written

tf.train.Checkpoint.write = dying_write
del sys.argv[0]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    from pipelines.prepare.preparation import PreparationConfig, prepare
    from pipelines.sources.files import FileSource

    folder = tmp_path_factory.mktemp("killed")
    source = FileSource(write_small_text(folder / "text", 600))
    config = PreparationConfig(vocab_size=400, max_length=64, seed=1)
    prepare(source, folder / "data", config)
    return folder / "data"


@pytest.fixture(scope="module")
def start(data, start_process):
    """Starts a training process; the words before its own say what runs it."""
    settings = ("num_layers=1", "d_model=16", "d_ff=16", "num_heads=2", "warmup_steps=50")

    def start(model_dir, *runner):
        arguments = [
            *(f"--data_dir={data}", f"--model_dir={model_dir}", "--preset=tiny"),
            *(f"--config={setting}" for setting in settings),
            *(f"--train_steps={STEPS}", f"--checkpoint_steps={EVERY}", "--log_steps=10"),
            *("--tokens_per_batch=256", "--sample_sentences=0", "--keep_checkpoints=3"),
            "--deterministic",
        ]
        return start_process([*runner, TRAIN, *arguments], errors=errors_of(model_dir))

    return start


def errors_of(model_dir):
    """The file that the processes of a run write what is on stderr to."""
    return model_dir.with_name(f"{model_dir.name}.stderr")


def signal_at(process, model_dir, step, number, milliseconds):
    """Sends a signal some milliseconds after a step; returns the exit code and what was printed."""
    wait_for_step(process, model_dir, step)
    try:
        process.wait(milliseconds / 1000)
    except subprocess.TimeoutExpired:
        process.send_signal(number)
    output, _ = process.communicate(timeout=PATIENCE)
    return process.returncode, output


def finish(process, model_dir):
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors_of(model_dir).read_text()
    return json.loads(output.splitlines()[-1])


def curves(model_dir):
    """{step: what does not depend on the clock} of every logged interval and validation."""
    names = ("loss", "perplexity", "gradient_norm", "padding", "learning_rate", "skipped")
    return {
        (line["event"], line["step"]): tuple(line.get(name) for name in names)
        for line in events_of(model_dir)
        if line["event"] in ("training", "validation")
    }


@pytest.mark.slow
def test_killed_run_ends_like_one_left_alone(start, tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    left_alone = start(whole)
    rng = random.Random(SEED)

    # Killed from outside, at some moment of some step.
    code, _ = signal_at(
        start(parts), parts, rng.randrange(10, 40), signal.SIGKILL, rng.random() * 9
    )
    assert code == -signal.SIGKILL
    # Killed in the midst of a checkpoint.
    process = start(parts, "-c", KILLED_WRITING, str(rng.randrange(2, 5)))
    assert process.wait(PATIENCE) == -signal.SIGKILL, errors_of(parts).read_text()
    complete = CheckpointStore(parts).latest.step
    name = f"writing-step-{complete + EVERY:08d}.data-00000-of-00001"
    half = parts / "checkpoints" / name
    assert half.exists() and not half.with_name(half.stem + ".index").exists()
    # Told to end, as by a scheduler; meanwhile nobody else may train there.
    process = start(parts)
    wait_for_step(process, parts, complete + 10)
    code, output = signal_at(process, parts, 0, signal.SIGTERM, rng.random() * 9)
    assert code == 0, errors_of(parts).read_text()
    stopped = json.loads(output.splitlines()[-1])
    assert stopped["stopped"] == "SIGTERM"
    assert CheckpointStore(parts).latest.step == stopped["step"] < STEPS
    assert f"SIGTERM at step {stopped['step']}" in errors_of(parts).read_text()

    result = finish(start(parts), parts)
    expected = finish(left_alone, whole)
    assert result["step"] == expected["step"] == STEPS
    assert result["loss"] == expected["loss"]
    for weight, same in zip(
        read_checkpoint(whole, "latest")[0], read_checkpoint(parts, "latest")[0], strict=True
    ):
        np.testing.assert_array_equal(same, weight)
    of_whole, of_parts = curves(whole), curves(parts)
    assert of_parts.items() <= of_whole.items()
    # A validation that SIGTERM has broken off is not made up for.
    assert all(event == "validation" for event, _ in of_whole.keys() - of_parts.keys())
    steps = [line["step"] for line in events_of(parts) if line["event"] == "resumed"]
    assert steps and steps == sorted(steps)


def test_model_dir_in_use_is_refused(tmp_path, call_program, prepared):
    import fcntl

    with open(tmp_path / "lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = call_program("train", f"--data_dir={prepared}", f"--model_dir={tmp_path}")
    assert done.code == 1
    check_line(done.errors, "--model_dir", tmp_path / "lock", "in use")
    assert not (tmp_path / "config.json").exists()
