"""The loop over small copying tasks: resume, replicas, accumulation, limits, curves."""

import dataclasses
import json
import signal

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.config import TrainingConfig, TransformerConfig
from keras_transformer.errors import InputError
from keras_transformer.training import checkpoints
from keras_transformer.training.loop import Limits, TrainingData, train

MODEL = TransformerConfig(vocab_size=12, num_layers=1, d_model=8, d_ff=8, num_heads=2, dropout=0.2)
TRAINING = TrainingConfig(warmup_steps=20, learning_rate_scale=0.5)


def copying_batches(count=50, rows=6, width=5):
    """Endless shuffled batches whose targets are their sources, of several lengths."""
    rng = np.random.default_rng(0)
    ids = rng.integers(4, 12, size=(count, rows, width)).astype("int32")
    ids[:, :, -1] = 2
    ids[:, 1, 3:] = [2, 0]
    ids[:, 2, 2:] = [2, 0, 0]
    dataset = tf.data.Dataset.from_tensor_slices((ids, ids))
    return dataset.shuffle(count, seed=1, reshuffle_each_iteration=True).repeat()


def run(directory, steps, model=MODEL, training=TRAINING, strategy=None, **limits):
    keras.utils.set_random_seed(7)
    data = TrainingData(copying_batches(), copying_batches().take(2))
    limits = Limits(train_steps=steps, log_steps=10, **limits)
    strategy = strategy or tf.distribute.get_strategy()
    return train(model, training, data, directory, limits, strategy)


def weights(directory):
    return checkpoints.read_weights(directory, "latest")[0]


def test_learns_to_copy(tmp_path):
    model = dataclasses.replace(MODEL, dropout=0.0)
    result = run(tmp_path, 700, model)
    assert result["step"] == 700
    assert result["validation_perplexity"] < 2.0  # 8 equally likely symbols at the start
    assert result["best"] == result["checkpoint"]


def test_interrupted_run_equals_uninterrupted(tmp_path):
    run(tmp_path / "whole", 24)
    for steps in (5, 12, 24):
        result = run(tmp_path / "parts", steps)
        assert result["step"] == steps
    for whole, parts in zip(weights(tmp_path / "whole"), weights(tmp_path / "parts"), strict=True):
        np.testing.assert_array_equal(parts, whole)


def test_ctrl_c_saves_where_it_stopped(tmp_path):
    run(tmp_path / "whole", 12)

    def press(model):
        signal.raise_signal(signal.SIGINT)
        return {}, ""

    keras.utils.set_random_seed(7)
    data = TrainingData(copying_batches(), None, press)
    limits = Limits(train_steps=12, checkpoint_minutes=1e-9)  # validates after every spell
    with pytest.raises(KeyboardInterrupt):
        train(MODEL, TRAINING, data, tmp_path / "parts", limits, tf.distribute.get_strategy())
    assert 0 < checkpoints.CheckpointStore(tmp_path / "parts").latest["step"] < 12
    run(tmp_path / "parts", 12)
    for whole, parts in zip(weights(tmp_path / "whole"), weights(tmp_path / "parts"), strict=True):
        np.testing.assert_array_equal(parts, whole)


def test_accumulated_parts_equal_one(tmp_path):
    model = dataclasses.replace(MODEL, dropout=0.0)
    run(tmp_path / "one", 20, model)
    run(tmp_path / "four", 20, model, dataclasses.replace(TRAINING, accumulate_steps=4))
    for one, four in zip(weights(tmp_path / "one"), weights(tmp_path / "four"), strict=True):
        np.testing.assert_allclose(four, one, atol=2e-5)


def test_nothing_left_to_do_writes_nothing(tmp_path):
    run(tmp_path, 5)
    before = sorted(tmp_path.glob("checkpoints/*"))
    result = run(tmp_path, 5)
    assert result["step"] == 5
    assert sorted(tmp_path.glob("checkpoints/*")) == before


def test_minutes_count_over_all_starts(tmp_path):
    result = run(tmp_path, 10**6, train_minutes=0.05)
    assert 3 <= result["minutes"] * 60 < 30
    again = run(tmp_path, 10**6, train_minutes=0.05)
    assert again["step"] == result["step"]


def test_curves_hold_what_is_reported(tmp_path):
    result = run(tmp_path, 20)
    found = {}
    for file in tmp_path.glob("tensorboard/*"):
        for event in tf.compat.v1.train.summary_iterator(str(file)):
            for value in event.summary.value:
                found[value.tag, event.step] = float(tf.make_ndarray(value.tensor))
    names = {name for name, _ in found}
    assert names == {
        "training/loss",
        "training/perplexity",
        "training/learning_rate",
        "training/tokens_per_second",
        "training/padding",
        "training/gradient_norm",
        "validation/loss",
        "validation/perplexity",
    }
    np.testing.assert_allclose(found["training/loss", 20], result["loss"], atol=1e-4)
    # Rows of 5 ids with 0, 1 and 2 of them padding, four without: 3 of 30.
    np.testing.assert_allclose(found["training/padding", 20], 0.1, atol=1e-6)
    np.testing.assert_allclose(
        found["training/learning_rate", 20], 0.5 * 8**-0.5 * 21**-0.5, rtol=1e-5
    )


def test_sample_translations_are_written(tmp_path):
    data = TrainingData(copying_batches(), None, lambda model: ({"bleu": 12.5}, "hello"))
    limits = Limits(train_steps=2)
    result = train(MODEL, TRAINING, data, tmp_path, limits, tf.distribute.get_strategy())
    assert result["validation_bleu"] == 12.5


def test_loss_that_is_no_number_stops_with_one_line(tmp_path):
    training = dataclasses.replace(TRAINING, learning_rate_scale=1e30)
    with pytest.raises(InputError, match=r"loss must be a number.*learning_rate_scale"):
        run(tmp_path, 50, training=training)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"train_steps": 0}, "--train_steps must be at least 1. Received: 0"),
        ({"train_minutes": -1.0}, "--train_minutes must be positive. Received: -1.0"),
        ({"checkpoint_minutes": 0.0}, "--checkpoint_minutes must be positive. Received: 0.0"),
        ({"keep_checkpoints": 0}, "--keep_checkpoints must be at least 1. Received: 0"),
    ],
)
def test_impossible_limits(limits, message):
    with pytest.raises(InputError, match=message):
        Limits(**limits)


def test_half_written_checkpoint_is_ignored(tmp_path):
    run(tmp_path, 5)
    (tmp_path / "checkpoints" / "step-00000009.index").write_bytes(b"half")
    assert run(tmp_path, 6)["step"] == 6


def test_damaged_checkpoint_is_named(tmp_path):
    run(tmp_path, 5)
    data = tmp_path / "checkpoints" / "step-00000005.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:100])
    with pytest.raises(InputError, match="step-00000005 must be whole"):
        run(tmp_path, 6)


def test_index_is_readable(tmp_path):
    run(tmp_path, 5)
    index = json.loads((tmp_path / "checkpoints" / "index.json").read_text())
    (entry,) = index["checkpoints"]
    assert entry["step"] == 5
    assert entry["validation_loss"] > 0
