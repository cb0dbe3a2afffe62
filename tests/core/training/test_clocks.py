"""The wall clock may be set while a run is under way: nothing but dates may depend on it."""

import itertools
import json
import time

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.config import TrainingConfig, TransformerConfig
from keras_transformer.core.training import checkpoint_weights, checkpoints
from keras_transformer.core.training.data import TrainingData
from keras_transformer.core.training.loop import train
from keras_transformer.core.training.run_config import LoopConfig
from keras_transformer.core.training.step import TrainingStep

pytestmark = pytest.mark.usefixtures("steps_traced_once")
MODEL = TransformerConfig(vocab_size=12, num_layers=1, d_model=8, d_ff=8, num_heads=2, dropout=0.2)
HOUR = 3600.0
CLOCK = ("tokens_per_second", "tokens_per_second_per_replica", "seconds")  # what is measured by it


@pytest.fixture
def jumping_clock(monkeypatch):
    """Sets the wall clock hours ahead and back, in turns, each time somebody looks at it."""
    now, jumps = time.time(), itertools.cycle([0, 5 * HOUR, -7 * HOUR, 48 * HOUR, -1e6 * HOUR])
    monkeypatch.setattr(time, "time", lambda: now + next(jumps))


def run(directory, steps, **settings):
    keras.utils.set_random_seed(7)
    ids = np.random.default_rng(0).integers(4, 12, size=(20, 6, 5)).astype("int32")
    dataset = tf.data.Dataset.from_tensor_slices((ids, ids))
    data = TrainingData(dataset.shuffle(20, seed=1).repeat(), validation=dataset.take(2))
    config = LoopConfig(train_steps=steps, log_steps=5, **settings)
    training = TrainingConfig(warmup_steps=20, learning_rate_scale=0.5)  # as in test_loop.py
    return train(MODEL, training, data, directory, config, tf.distribute.get_strategy())


def log(directory):
    """All lines of the log but what they say of speed."""
    lines = map(json.loads, (directory / "training_log.jsonl").read_text().splitlines())
    return [{name: line[name] for name in line if name not in CLOCK} for line in lines]


@pytest.mark.slow  # four trainings
def test_a_jump_changes_nothing(tmp_path, request):
    for name in ("steady", "jumping"):
        if name == "jumping":
            request.getfixturevalue("jumping_clock")
        begun = time.monotonic()
        run(tmp_path / name, 7)
        run(tmp_path / name, 20)  # the clock has been set while nothing ran, too
        latest = checkpoints.CheckpointStore(tmp_path / name).latest
        assert 0 < latest.seconds <= time.monotonic() - begun
    assert log(tmp_path / "jumping") == log(tmp_path / "steady")
    kept = [
        checkpoint_weights.read_checkpoint(tmp_path / name, "latest")[0]
        for name in ("steady", "jumping")
    ]
    for one, same in zip(*kept, strict=True):
        np.testing.assert_array_equal(same, one)


@pytest.mark.slow  # time has to pass
def test_minutes_are_those_that_have_passed(tmp_path, jumping_clock):
    begun = time.monotonic()
    limits = {"train_minutes": 0.02, "checkpoint_minutes": 0.008}
    result = run(tmp_path, 10**6, **limits)
    passed = time.monotonic() - begun
    assert result["stopped"] == "train_minutes"
    assert 1.2 <= result["minutes"] * 60 <= passed + 0.3  # of a minute, two digits are given
    saved = [line for line in log(tmp_path) if line["event"] == "checkpoint"]
    assert 1 <= len(saved) <= passed / 0.48 + 1
    # They count over all starts.
    again = run(tmp_path, 10**6, train_minutes=0.01)
    assert again["step"] == result["step"]


@pytest.fixture
def slow_calls(monkeypatch):
    """Lets chosen calls that take steps last ten minutes: their numbers are put into the set."""
    chosen, calls, passed = set(), itertools.count(1), [0.0]
    now, take_steps = time.monotonic, TrainingStep.run

    def slowly(*arguments):
        if next(calls) in chosen:
            passed[0] += 600
        return take_steps(*arguments)

    monkeypatch.setattr(time, "monotonic", lambda: now() + passed[0])
    monkeypatch.setattr(TrainingStep, "run", slowly)
    return chosen


def test_minutes_are_counted_from_the_end_of_the_first_step(tmp_path, slow_calls):
    """The first step of a start compiles, which takes minutes where XLA does it."""
    slow_calls.add(1)
    result = run(tmp_path, 5, train_minutes=5)
    assert (result["step"], result["stopped"]) == (5, "train_steps")
    assert result["minutes"] < 5
    slow_calls |= set(range(2, 100))  # the first one of the next start is not counted, either
    result = run(tmp_path, 10**6, train_minutes=5)
    assert (result["step"], result["stopped"]) == (7, "train_minutes")
    assert 10 <= result["minutes"] < 15
