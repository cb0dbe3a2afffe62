import dataclasses
import errno
import functools
import json
import resource
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.config import TrainingConfig, TransformerConfig
from keras_transformer.core.model.transformer import Transformer
from keras_transformer.core.training import checkpoint_files, checkpoint_weights, checkpoints
from keras_transformer.core.training.model_directory import (
    ModelDescription,
    create_or_check,
)
from keras_transformer.support.files.paths import RemotePath, remove_folder
from tests.refusals import check, refused

CONFIG = TransformerConfig(vocab_size=9, num_layers=1, d_model=4, d_ff=4, num_heads=2)


def store_of(model_dir, keep=20):
    return checkpoints.CheckpointStore(model_dir, CONFIG, keep)


def save(store, step, value, validation_loss=None):
    variables = [tf.Variable([value, 2 * value]), tf.Variable(int(step))]
    validation = {} if validation_loss is None else {"loss": validation_loss}
    return store.save({"model": variables}, step, validation=validation)


@pytest.fixture(scope="module")
def kept_model_dir(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("made_once")
    (tmp_path / "vocabulary.txt").write_text("words")
    description = ModelDescription(
        preset="tiny",
        model=CONFIG,
        training=TrainingConfig(),
        vocabulary="vocabulary.txt",
        vocabulary_fingerprint="f",
        max_length=10,
    )
    create_or_check(tmp_path / "model", description, tmp_path)
    store = store_of(tmp_path / "model")
    model = Transformer(CONFIG)
    for step, (value, loss) in enumerate([(1.0, 3.0), (2.0, 1.0), (6.0, 2.0)], start=1):
        for variable in model.trainable_variables:
            variable.assign(np.full(variable.shape, value))
        trackables = {"model": [variable.value for variable in model.variables]}
        store.save(trackables, step, validation={"loss": loss})
    return tmp_path / "model"


@pytest.fixture
def model_dir(kept_model_dir, tmp_path):
    """A model directory with three checkpoints whose weights are all 1, 2 and 6."""
    return shutil.copytree(kept_model_dir, tmp_path / "model")


@pytest.fixture
def any_model_dir(kept_model_dir, any_folder):
    """The same, local or remote."""
    for path in filter(Path.is_file, kept_model_dir.rglob("*")):
        copy = any_folder / "model" / path.relative_to(kept_model_dir)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    return any_folder / "model"


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
def test_reads_what_was_asked_for(model_dir, checkpoint, value):
    weights, info = checkpoint_weights.read_checkpoint(model_dir, checkpoint)
    for weight in weights:
        if np.issubdtype(weight.dtype, np.floating):  # others are random states
            np.testing.assert_array_equal(weight, value)
    assert info.step in (1, 2, 3)


def test_restores_a_path(model_dir):
    path = str(model_dir / "checkpoints" / "step-00000002")
    model, info = checkpoint_weights.restore_model(model_dir, path)
    for variable in model.trainable_variables:
        np.testing.assert_array_equal(variable, 2.0)
    assert info.to_json() == {"checkpoint": path, "step": 2, "validation_loss": 1.0}


def test_the_mean_of_checkpoints_of_several_runs(model_dir, tmp_path):
    store = store_of(tmp_path / "other")
    latest, _ = checkpoint_weights.read_checkpoint(model_dir, "latest")
    store.save({"model": [tf.Variable(weight + 7) for weight in latest]}, step=2)
    other = store.path(store.latest)
    model, info = checkpoint_weights.restore_model(model_dir, f"latest,{other}.index")
    for variable in model.trainable_variables:
        np.testing.assert_array_equal(variable, 9.5)
    assert info.to_json() == {"checkpoint": f"latest,{other}.index", "averaged": 2}


def test_a_mean_of_different_models(model_dir, tmp_path):
    """The record says what the model is, but the weights are others."""
    store = store_of(tmp_path)
    save(store, 1, 1.0)
    other = store.path(store.latest)
    with refused("checkpoint", f"best,{other}, of 2 sizes"):
        checkpoint_weights.restore_model(model_dir, f"best,{other}")


def test_written_average_is_a_checkpoint_of_its_own(any_model_dir):
    result = checkpoint_weights.average_checkpoints(any_model_dir, 2)
    assert (result.averaged, result.step, result.validation_loss) == (2, 3, 2.0)
    model, _ = checkpoint_weights.restore_model(any_model_dir, result.checkpoint)
    np.testing.assert_array_equal(model.trainable_variables[0], 4.0)
    # It is none of the run's: training resumes from the last step.
    assert store_of(any_model_dir).latest.step == 3


def test_a_directory_remembers_which_weights_to_use(model_dir):
    assert checkpoint_files.chosen_checkpoint(model_dir) == "latest"
    checkpoint_weights.average_checkpoints(model_dir, 2)
    assert checkpoint_files.chosen_checkpoint(model_dir) == "average:2"
    checkpoint_files.choose_checkpoint(model_dir, "best")
    assert checkpoint_files.chosen_checkpoint(model_dir) == "best"
    file = model_dir / "checkpoint.json"
    file.write_bytes(b'{"checkpoint": "step-00000001"}')  # which a run may remove
    with refused("checkpoint", "'step-00000001'", file):
        checkpoint_files.chosen_checkpoint(model_dir)


@pytest.mark.parametrize(
    ("checkpoint", "received", "about"),
    [
        ("average:0", "average:0", "at least 1"),
        ("average:x", "average:x", "at least 1"),
        ("average:" + "9" * 5000, "average:999", "at least 1"),
        ("step-9", "step-9", "latest, best"),
        ("latest,", "", "latest, best"),
    ],
)
def test_checkpoints_that_there_are_not(model_dir, checkpoint, received, about):
    with refused("checkpoint", received, about=about):
        checkpoint_weights.restore_model(model_dir, checkpoint)


def test_directory_without_checkpoints(model_dir):
    remove_folder(model_dir / "checkpoints")
    for name in ("latest", "average:2"):
        with refused(None, "none", model_dir / "checkpoints", f"checkpoint={name}"):
            checkpoint_weights.restore_model(model_dir, name)


def test_an_average_of_more_than_there_are_is_of_all_and_says_so(model_dir, caplog):
    result = checkpoint_weights.average_checkpoints(model_dir, 5)
    path = str(model_dir / "checkpoints" / "average-3-step-00000003")
    assert (result.averaged, result.checkpoint) == (3, path)
    weights, info = checkpoint_weights.read_checkpoint(model_dir, "average:9")
    np.testing.assert_array_equal(weights[0], 3.0)
    assert (info.checkpoint, info.averaged) == ("average:3", 3)
    messages = [record.args for record in caplog.records if record.msg.startswith("averaging")]
    assert messages == [(3, 5), (3, 9)]


def test_a_configuration_of_another_model(model_dir):
    """Also one whose weights have the same shapes."""
    config = json.loads((model_dir / "config.json").read_text())
    config["model"]["activation"] = "gelu"
    (model_dir / "config.json").write_text(json.dumps(config))
    record = model_dir / "checkpoints" / "step-00000001.json"
    what = (None, "another", model_dir / "config.json", str(record))
    for name in ("latest", "average:2", "step-00000001"):
        with refused(*what):
            checkpoint_weights.restore_model(model_dir, name)
    with refused(*what):
        checkpoint_weights.average_checkpoints(model_dir, 2)
    store_of(model_dir)
    with refused(*what):
        checkpoints.CheckpointStore(model_dir, dataclasses.replace(CONFIG, activation="gelu"))


def test_a_checkpoint_of_another_model_by_its_path(model_dir, tmp_path):
    store = checkpoints.CheckpointStore(tmp_path, dataclasses.replace(CONFIG, norm="pre"))
    path = store.path(save(store, 1, 1.0))
    with refused(None, "another", model_dir / "config.json", f"{path}.json"):
        checkpoint_weights.restore_model(model_dir, f"latest,{path}")


def test_keeps_the_last_and_the_best(any_folder):
    store = store_of(any_folder, keep=2)
    for step, loss in enumerate([5.0, 1.0, 4.0, 3.0, 2.0], start=1):
        save(store, step, float(step), loss)
    assert [record.step for record in store.records] == [2, 4, 5]
    assert store.best.step == 2
    files = {path.name.split(".")[0] for path in (any_folder / "checkpoints").iterdir()}
    assert files == {"step-00000002", "step-00000004", "step-00000005"}
    assert [record.step for record in store_of(any_folder).records] == [2, 4, 5]


def test_best_by_a_score_is_the_highest_and_the_first(any_folder):
    store = checkpoints.CheckpointStore(any_folder, CONFIG, keep=1, best_metric="bleu")
    for step, bleu in enumerate([5.0, 9.0, None, 9.0, 7.0], start=1):
        variables = [tf.Variable(1.0)]
        validation = {"loss": 6.0 - step, "bleu": bleu}
        is_best = store.would_be_best(validation)
        store.save({"model": variables}, step, validation=validation)
        assert (store.best == store.latest) is is_best
    assert store.best.step == 2
    assert [record.step for record in store.records] == [2, 5]
    assert store_of(any_folder).best.step == 2  # a reader need not be told
    assert checkpoints.CheckpointStore(any_folder, best_metric="loss").best.step == 5


def test_no_room_leaves_the_last_checkpoint_as_it_was(tmp_path):
    store = store_of(tmp_path)
    save(store, 1, 1.0)
    before = {path: path.read_bytes() for path in (tmp_path / "checkpoints").iterdir()}
    large = {"model": [tf.Variable(tf.zeros([100_000]))]}
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))  # a full disk, for this process
    try:
        with pytest.raises(OSError, match=str(tmp_path / "checkpoints")) as caught:
            store.save(large, step=2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.errno == errno.EFBIG
    (note,) = caught.value.__notes__
    assert "step 1" in note
    after = {path: path.read_bytes() for path in (tmp_path / "checkpoints").iterdir()}
    assert after == before
    assert store.latest.step == 1
    assert store.save(large, step=2).step == 2  # with room again, the run can be resumed


def in_the_middle(checkpoint, path):
    """Writes the numbers, but not what says where they are."""
    with tf.io.gfile.GFile(f"{path}.data-00000-of-00001", "wb") as file:
        file.write(b"half")
    raise tf.errors.UnavailableError(None, None, "the network is gone\nfor a while")


def without_record(path, content):
    raise OSError(13, "Permission denied", str(path))


@pytest.mark.parametrize(
    ("target", "name", "fail", "why", "file"),
    [
        (tf.train.Checkpoint, "write", in_the_middle, "the network is gone", "step-00000002"),
        (checkpoint_files, "write_json", without_record, "Permission denied", "step-00000002.json"),
    ],
)
def test_a_checkpoint_that_fails_leaves_the_one_before(
    any_folder, monkeypatch, target, name, fail, why, file
):
    store = store_of(any_folder)
    save(store, 1, 1.0)
    before = {path: path.read_bytes() for path in (any_folder / "checkpoints").glob("*")}
    with monkeypatch.context() as patch:
        patch.setattr(target, name, fail)
        with pytest.raises(OSError, match=why) as caught:
            save(store, 2, 2.0)
    assert caught.value.filename.endswith(file)
    (note,) = caught.value.__notes__
    assert "step 1" in note
    after = {path: path.read_bytes() for path in (any_folder / "checkpoints").glob("*")}
    assert after == before and store.latest.step == 1
    variables = [tf.Variable([0.0, 0.0]), tf.Variable(0)]
    assert store_of(any_folder).restore({"model": variables}).step == 1
    assert save(store, 2, 2.0).step == 2


@pytest.mark.parametrize(
    ("content", "argument", "received", "about"),
    [
        ("", None, "", "JSON"),
        ('{"format_version": 3}', "format_version", "3", "4"),
        ('{"format_version": 4, "step": 1}', "model", "none", "given"),
    ],
)
def test_records_that_are_none(tmp_path, content, argument, received, about):
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "step-00000001.json").write_text(content)
    with refused(argument, received, "step-00000001.json", about):
        store_of(tmp_path)


def truncate(path):
    data = path.with_suffix(".data-00000-of-00001")
    data.write_bytes(data.read_bytes()[:-3])


def flip_a_bit(path):
    data = path.with_suffix(".data-00000-of-00001")
    content = bytearray(data.read_bytes())
    content[1] ^= 4
    data.write_bytes(bytes(content))


def remove_data(path):
    path.with_suffix(".data-00000-of-00001").unlink()


def halve_index(path):
    index = path.with_suffix(".index")
    index.write_bytes(index.read_bytes()[: index.stat().st_size // 2])


@pytest.mark.parametrize("damage", [truncate, flip_a_bit, remove_data, halve_index])
def test_damaged_checkpoint_gives_way_to_the_one_before_it(tmp_path, damage, caplog):
    store = store_of(tmp_path)
    for step in (1, 2, 3):
        save(store, step, float(step))
    damage(tmp_path / "checkpoints" / "step-00000003")
    variables = [tf.Variable([0.0, 0.0]), tf.Variable(0)]
    store = store_of(tmp_path)
    with caplog.at_level("WARNING", logger="absl"):
        assert store.restore({"model": variables}).step == 2
    np.testing.assert_array_equal(variables[0], [2.0, 4.0])
    assert int(variables[1]) == 2
    (record,) = (record for record in caplog.records if record.name == "absl")
    check(record.args[0], None, "damaged or missing files", "step-00000003", "complete")
    assert record.args[1] == "step-00000002"
    # Its files stay under another name.
    assert [record.step for record in store_of(tmp_path).records] == [1, 2]
    assert not list((tmp_path / "checkpoints").glob("step-00000003*"))
    aside = {path.name for path in (tmp_path / "checkpoints").glob("damaged-*")}
    assert "damaged-step-00000003.json" in aside
    assert save(store_of(tmp_path), 3, 3.0).step == 3
    assert {path.name for path in (tmp_path / "checkpoints").glob("damaged-*")} == aside


def test_no_whole_checkpoint_is_an_error_and_changes_nothing(any_folder):
    store = store_of(any_folder)
    assert store.restore({"model": [tf.Variable(0.0)]}) is None
    for step in (1, 2):
        save(store, step, 1.0)
        truncate(any_folder / "checkpoints" / f"step-0000000{step}")
    assert store.best is None  # without a validation
    variables = [tf.Variable([0.0, 0.0]), tf.Variable(0)]
    with refused(None, "model_dir", "step-00000002", "complete"):
        store.restore({"model": variables})
    assert [record.step for record in store_of(any_folder).records] == [1, 2]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class Killed(BaseException):
    """The end of the process, which no code of it hears of."""


def killed_at(monkeypatch, count, save):
    """Runs `save` in a process that ends before its n-th change of a file; whether it has ended."""
    left = iter(range(count))

    def dying(change):
        def change_or_die(*arguments, **options):
            if next(left, None) is None:
                raise Killed
            return change(*arguments, **options)

        return change_or_die

    with monkeypatch.context() as patch:
        patch.setattr(tf.train.Checkpoint, "write", dying(tf.train.Checkpoint.write))
        for kind in (type(Path()), RemotePath):
            for name in ("replace", "unlink"):
                patch.setattr(kind, name, dying(getattr(kind, name)))
        try:
            save()
        except Killed:
            return True
    return False


def test_killed_at_any_moment_of_a_save(any_folder, monkeypatch):
    """The run then has the checkpoints of before, or those of after, and nothing else."""
    for count in range(20):
        folder = any_folder / str(count)
        save(store_of(folder, keep=2), 1, 1.0)
        save(store_of(folder, keep=2), 2, 2.0)
        last = store_of(folder, keep=2)
        was_killed = killed_at(monkeypatch, count, functools.partial(save, last, 3, 3.0))
        store = store_of(folder, keep=2)
        store.recover()
        kept = [record.step for record in store.records]
        assert kept in ([1, 2], [1, 2, 3], [2, 3])
        names = {path.name.partition(".")[0] for path in (folder / "checkpoints").iterdir()}
        assert names == {f"step-{step:08d}" for step in kept}
        for record in store.records:
            variables = [tf.Variable([0.0, 0.0]), tf.Variable(0)]
            assert store.restore_named({"model": variables}, record.name) == record
            np.testing.assert_array_equal(variables[0], [record.step, 2 * record.step])
            store = store_of(folder, keep=2)
        if not was_killed:
            assert kept == [2, 3]
            break
    assert 5 < count < 19


def test_a_worker_finds_what_the_chief_wrote_after_the_worker_had_begun(any_folder):
    worker = store_of(any_folder)
    record = save(store_of(any_folder), 1, 1.0)
    variables = [tf.Variable([0.0, 0.0]), tf.Variable(0)]
    assert worker.restore_named({"model": variables}, record.name) == record
    np.testing.assert_array_equal(variables[0], [1, 2])


def test_a_folder_of_an_unfinished_checkpoint_is_removed_and_nothing_else(any_folder):
    store = store_of(any_folder)
    save(store, 1, 1.0)
    directory = any_folder / "checkpoints"
    for name in ("average-5-step-00000001.index", "damaged-step-00000001.index", "mine_temp"):
        (directory / name).write_bytes(b"mine")
    before = contents(directory)
    folder = directory / "writing-step-00000002_temp"
    folder.mkdir()
    (folder / "part-00000-of-00001.index").write_bytes(b"half")
    (directory / ".writing-step-00000002.json.0123abcd.tmp").write_bytes(b"{")
    store_of(any_folder).recover()
    assert contents(directory) == before


@pytest.mark.parametrize("lost", ["step-00000002.json", "step-0000000?.json"])
def test_checkpoints_without_records_are_neither_removed_nor_ignored(any_folder, lost):
    store = store_of(any_folder)
    for step in (1, 2):
        save(store, step, float(step))
    for path in list((any_folder / "checkpoints").glob(lost)):
        path.unlink()
    before = contents(any_folder / "checkpoints")
    with refused(None, "none", "step-0000000", ".json"):
        store_of(any_folder).recover()
    assert contents(any_folder / "checkpoints") == before


def test_what_a_killed_average_left_is_removed_by_the_next(model_dir, monkeypatch):
    directory = model_dir / "checkpoints"
    before = contents(directory)
    kill = killed_at(monkeypatch, 0, lambda: checkpoint_weights.average_checkpoints(model_dir, 2))
    assert kill
    for name in ("writing-average-3-step-00000003_temp", "writing-average-9-step-00000002_temp"):
        (directory / name).mkdir()
        (directory / name / "part-00000-of-00001.index").write_bytes(b"half")
    checkpoint_weights.average_checkpoints(model_dir, 2)
    names = set(contents(directory)) - set(before)
    name = "average-2-step-00000003"
    assert names == {
        *(f"{name}.json", f"{name}.index", f"{name}.data-00000-of-00001", "averages.lock")
    }
