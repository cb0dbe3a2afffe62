import json
import resource

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.config import TrainingConfig, TransformerConfig
from keras_transformer.errors import InputError
from keras_transformer.model.transformer import build_transformer
from keras_transformer.training import checkpoints
from keras_transformer.training.model_directory import ModelDescription, create_or_check

CONFIG = TransformerConfig(vocab_size=9, num_layers=1, d_model=4, d_ff=4, num_heads=2)


def store_of(model_dir, keep=20):
    return checkpoints.CheckpointStore(model_dir, keep)


def save(store, step, value, validation_loss=None):
    variables = {"0": tf.Variable([value, 2 * value]), "1": tf.Variable(int(step))}
    return store.save({"model": variables}, step=step, validation_loss=validation_loss)


@pytest.fixture
def model_dir(tmp_path):
    """A model directory with three checkpoints whose weights are all 1, 2 and 6."""
    (tmp_path / "vocabulary").write_text("words")
    description = ModelDescription(
        preset="tiny",
        model=CONFIG,
        training=TrainingConfig(),
        vocabulary="vocabulary.txt",
        vocabulary_fingerprint="f",
        max_length=10,
    )
    create_or_check(tmp_path / "model", description, tmp_path / "vocabulary")
    store = store_of(tmp_path / "model")
    model = build_transformer(CONFIG)
    for step, (value, loss) in enumerate([(1.0, 3.0), (2.0, 1.0), (6.0, 2.0)], start=1):
        for variable in model.trainable_variables:
            variable.assign(np.full(variable.shape, value))
        trackables = {"model": checkpoints.named_variables(model.variables)}
        store.save(trackables, step=step, validation_loss=loss)
    return tmp_path / "model"


@pytest.mark.parametrize(
    ("checkpoint", "value"),
    [
        ("latest", 6.0),
        ("best", 2.0),
        ("average:2", 4.0),
        ("average:3", 3.0),
        ("step-00000001", 1.0),
    ],
)
def test_restores_what_was_asked_for(model_dir, checkpoint, value):
    model, facts = checkpoints.restore_model(model_dir, checkpoint)
    for variable in model.trainable_variables:
        np.testing.assert_array_equal(variable, value)
    assert facts["step"] in (1, 2, 3)


def test_restores_a_path(model_dir):
    path = str(model_dir / "checkpoints" / "step-00000002")
    model, facts = checkpoints.restore_model(model_dir, path)
    np.testing.assert_array_equal(model.trainable_variables[0], 2.0)
    assert facts == {"checkpoint": path, "step": 2, "validation_loss": 1.0}


def test_written_average_is_a_checkpoint_of_its_own(model_dir):
    result = checkpoints.average_checkpoints(model_dir, 2)
    assert result["averaged"] == 2
    model, _ = checkpoints.restore_model(model_dir, result["checkpoint"])
    np.testing.assert_array_equal(model.trainable_variables[0], 4.0)
    # It is none of the run's: training goes on from the last step.
    assert store_of(model_dir).latest["step"] == 3


@pytest.mark.parametrize(
    ("checkpoint", "message"),
    [
        ("average:4", "must be at most the 3 in .* Received: 4"),
        ("average:0", "must be 1 or more. Received: '0'"),
        ("average:x", "must be 1 or more. Received: 'x'"),
        ("step-9", "--checkpoint must be latest, best, average:K or the path"),
    ],
)
def test_checkpoints_that_there_are_not(model_dir, checkpoint, message):
    with pytest.raises(InputError, match=message):
        checkpoints.restore_model(model_dir, checkpoint)


def test_directory_without_checkpoints(model_dir):
    (model_dir / "checkpoints" / "index.json").unlink()
    with pytest.raises(InputError, match="--checkpoint=latest needs a checkpoint in"):
        checkpoints.restore_model(model_dir)


def test_checkpoint_of_another_model(model_dir):
    config = json.loads((model_dir / "config.json").read_text())
    config["model"]["d_ff"] = 5
    (model_dir / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"inner_kernel must have shape \(4, 5\)"):
        checkpoints.restore_model(model_dir)


def test_keeps_the_last_and_the_best(tmp_path):
    store = store_of(tmp_path, keep=2)
    for step, loss in enumerate([5.0, 1.0, 4.0, 3.0, 2.0], start=1):
        save(store, step, float(step), loss)
    assert [entry["step"] for entry in store.entries] == [2, 4, 5]
    assert store.best["step"] == 2
    files = {path.name.split(".")[0] for path in (tmp_path / "checkpoints").iterdir()}
    assert files == {"index", "step-00000002", "step-00000004", "step-00000005"}
    assert [entry["step"] for entry in store_of(tmp_path).entries] == [2, 4, 5]


def test_best_needs_a_validation_loss(tmp_path):
    store = store_of(tmp_path)
    save(store, 1, 1.0)
    assert store.best is None


def test_no_room_leaves_the_last_checkpoint_as_it_was(tmp_path):
    store = store_of(tmp_path)
    save(store, 1, 1.0)
    before = {path: path.read_bytes() for path in (tmp_path / "checkpoints").iterdir()}
    large = {"model": {"0": tf.Variable(tf.zeros([100_000]))}}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))  # a full disk, for this process
    try:
        with pytest.raises(InputError, match=r"must have room for a checkpoint.*step 1. is as it"):
            store.save(large, step=2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    after = {path: path.read_bytes() for path in (tmp_path / "checkpoints").iterdir()}
    assert after == before
    assert store.latest["step"] == 1
    assert store.save(large, step=2)["step"] == 2  # with room again, the run goes on


@pytest.mark.parametrize("content", ["", "{", "[]", '{"checkpoints": 1'])
def test_index_that_is_none(tmp_path, content):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "index.json").write_text(content)
    with pytest.raises(InputError, match=r"index.json must list checkpoints"):
        store_of(tmp_path)
