"""The loop over small copying tasks: resuming, limits, signals, curves."""

import dataclasses
import itertools
import json
import os
import re
import shutil
import signal
import threading

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorboard.plugins.custom_scalar.layout_pb2 import Layout
from tensorboard.plugins.custom_scalar.metadata import CONFIG_SUMMARY_TAG

from keras_transformer.core.config import TrainingConfig, TransformerConfig
from keras_transformer.core.training import checkpoint_weights, checkpoints
from keras_transformer.core.training.data import TrainingData
from keras_transformer.core.training.loop import train
from keras_transformer.core.training.run_config import LoopConfig
from keras_transformer.core.training.run_state import RunState
from keras_transformer.core.training.step import TrainingStep, XlaTrainingStep
from keras_transformer.core.training.workers.addresses import Addresses
from keras_transformer.core.training.workers.cluster import Cluster
from keras_transformer.support.xla_cache import FLAGS, keep_programs
from tests.refusals import refused

pytestmark = pytest.mark.usefixtures("steps_traced_once")
MODEL = TransformerConfig(vocab_size=12, num_layers=1, d_model=8, d_ff=8, num_heads=2, dropout=0.2)
TRAINING = TrainingConfig(warmup_steps=20, learning_rate_scale=0.5)
DIVERGING = dataclasses.replace(TRAINING, learning_rate_scale=1e30)


def copying_batches(count=50, rows=6, width=5):
    """Endless shuffled batches whose targets are their sources, of several lengths."""
    rng = np.random.default_rng(0)
    ids = rng.integers(4, 12, size=(count, rows, width)).astype("int32")
    ids[:, :, -1] = 2
    ids[:, 1, 3:] = [2, 0]
    ids[:, 2, 2:] = [2, 0, 0]
    dataset = tf.data.Dataset.from_tensor_slices((ids, ids))
    return dataset.shuffle(count, seed=1, reshuffle_each_iteration=True).repeat()


def data_with(**fields):
    """Copying batches without a validation, with further fields of TrainingData."""
    return TrainingData(copying_batches(), **fields)


def run(directory, steps, training=TRAINING, data=None, calls=None, **settings):
    """Trains with fields of LoopConfig.

    Args:
        data: what to train on; by default, copying batches with a validation.
        calls: the functions that `train` calls, by their arguments.
    """
    keras.utils.set_random_seed(7)
    if data is None:
        data = data_with(validation=copying_batches().take(2))
    config = LoopConfig(train_steps=steps, **{"log_steps": 10, **settings})
    strategy = tf.distribute.get_strategy()
    return train(MODEL, training, data, directory, config, strategy, **(calls or {}))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A directory of 24 steps without a break."""
    directory = tmp_path_factory.mktemp("whole")
    run(directory, 24)
    return directory


@pytest.fixture(scope="module")
def steps_5_and_10(tmp_path_factory):
    directory = tmp_path_factory.mktemp("steps_5_and_10")
    run(directory, 10, checkpoint_steps=5)
    return directory


@pytest.fixture
def two_checkpoints(steps_5_and_10, tmp_path):
    """A directory of 10 steps, with checkpoints after 5 and 10, that a test may change."""
    return shutil.copytree(steps_5_and_10, tmp_path / "two_checkpoints")


def weights(directory):
    return checkpoint_weights.read_checkpoint(directory, "latest")[0]


def test_a_run_is_initialized_at_its_beginning_alone(tmp_path):
    given = []

    def initialize(model):
        given.append(model)

    for steps in (2, 3):
        run(tmp_path, steps, data=data_with(), calls={"initialize": initialize})
        assert len(given) == 1
    assert isinstance(given[0], keras.Model)
    for checkpoint in ("best", "average:0"):  # without a validation, none is the best
        with refused(None if checkpoint == "best" else "checkpoint"):
            checkpoint_weights.read_checkpoint(tmp_path, checkpoint)


def assert_same(directory, other):
    """The same weights, to the last bit, and the same curves in both directories."""
    for one, same in zip(weights(directory), weights(other), strict=True):
        np.testing.assert_array_equal(same, one)
    curves = [
        {line["step"]: line for line in log(folder, "training") if line["step"] % 10 == 0}
        for folder in (directory, other)
    ]
    assert curves[0].keys() == curves[1].keys()
    for step, line in curves[0].items():
        for name in ("loss", "perplexity", "gradient_norm", "padding", "learning_rate", "skipped"):
            assert curves[1][step][name] == line[name], (step, name)


def log(directory, event):
    lines = (directory / "training_log.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, lines) if line["event"] == event]


def test_interrupted_run_equals_uninterrupted(tmp_path, whole):
    for steps in (5, 12, 24):
        result = run(tmp_path, steps)
        assert (result["step"], result["stopped"]) == (steps, "train_steps")
    assert_same(whole, tmp_path)


@pytest.mark.slow  # a step of its own; what Muon keeps is saved as what Adam keeps
def test_interrupted_run_with_muon_equals_uninterrupted(tmp_path):
    training = dataclasses.replace(TRAINING, optimizer="muon")
    run(tmp_path / "whole", 10, training=training)
    for steps in (4, 10):
        run(tmp_path / "resumed", steps, training=training)
    assert_same(tmp_path / "whole", tmp_path / "resumed")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_save_where_the_run_stopped(tmp_path, whole, number, caplog):
    finished = []

    def hear(model):
        signal.raise_signal(number)
        finished.append(True)

    def begin():
        # In a validation, which ends at once: a scheduler does not wait for long.
        return run(tmp_path, 24, data=data_with(translate_sample=hear), checkpoint_steps=7)

    with caplog.at_level("INFO", logger="absl"):
        if number == signal.SIGINT:
            with pytest.raises(KeyboardInterrupt):
                begin()
        else:
            assert begin()["stopped"] == "SIGTERM"
    assert f"{number.name} at step 7" in caplog.text
    assert checkpoints.CheckpointStore(tmp_path).latest.step == 7
    assert not finished
    run(tmp_path, 24)
    assert_same(whole, tmp_path)


def test_measurements_are_written_and_change_nothing(tmp_path, whole):
    """Samples, pictures, histograms and a profile."""

    def sample(model):
        model({"source": tf.ones([2, 3], tf.int32), "target": tf.ones([2, 3], tf.int32)})
        return {"bleu": 12.5}, ""

    picture = np.arange(2 * 3 * 3, dtype="uint8").reshape(2, 3, 3)
    data = data_with(
        validation=copying_batches().take(2),
        translate_sample=sample,
        draw_sample=lambda model: {"heads": picture},
    )
    settings = {"checkpoint_steps": 8, "histograms": True, "profile_steps": (3, 4)}
    result = run(tmp_path, 24, data=data, **settings)
    assert [line["step"] for line in log(tmp_path, "validation")] == [8, 16, 24]
    assert_same(whole, tmp_path)

    assert result["validation_bleu"] == 12.5
    (profile,) = tmp_path.glob("tensorboard/plugins/profile/*/*.xplane.pb")
    assert profile.stat().st_size > 0
    written = summaries(tmp_path / "tensorboard")
    tags = {value.tag for _, value in written}
    assert {"embedding/embeddings", "_hparams_/session_start_info"} <= tags
    pictures = {step: value for step, value in written if value.tag == "attention/heads"}
    assert set(pictures) == {8, 16, 24}
    _, _, encoded = tf.make_ndarray(pictures[24].tensor)  # width, height, PNG
    np.testing.assert_array_equal(tf.io.decode_png(encoded), picture)


def test_patience_ends_the_run_and_the_best_is_kept(tmp_path):
    scores = itertools.chain([1.0, 3.0, 2.0, 3.0, 9.0], itertools.repeat(0.0))
    data = data_with(translate_sample=lambda model: ({"bleu": next(scores)}, ""))
    settings = {"checkpoint_steps": 5, "best_metric": "bleu", "keep_checkpoints": 1}
    for _ in range(2):  # a run that has ended does not go on
        result = run(tmp_path, 50, data=data, patience=2, **settings)
        assert (result["step"], result["stopped"]) == (20, "patience")
        assert result["best"].endswith("step-00000010")
    more_patient = run(tmp_path, 50, data=data, patience=3, **settings)
    assert more_patient["best"].endswith("step-00000025")


def test_a_run_resumed_by_another_metric_compares_values_of_that_metric_alone(two_checkpoints):
    scores = iter([0.5, 0.4, 0.3])  # all less than the losses of the validations before
    data = data_with(translate_sample=lambda model: ({"bleu": next(scores)}, ""))
    settings = {"checkpoint_steps": 5, "patience": 2, "best_metric": "bleu"}
    result = run(two_checkpoints, 50, data=data, **settings)
    assert (result["step"], result["stopped"]) == (25, "patience")
    assert result["best"].endswith("step-00000015")


def test_best_metric_that_is_not_measured(tmp_path):
    with refused("best_metric", "f1", about="loss, perplexity"):
        run(tmp_path, 2, best_metric="f1")


def test_nothing_left_to_do_writes_nothing(two_checkpoints):
    def written():
        return {path: path.stat().st_mtime_ns for path in two_checkpoints.glob("checkpoints/*")}

    before = written()
    assert run(two_checkpoints, 10)["step"] == 10
    assert written() == before


def summaries(folder):
    """(step, value) of all that the event files of a folder hold."""
    return [
        (event.step, value)
        for file in folder.glob("events*")
        for event in tf.compat.v1.train.summary_iterator(str(file))
        for value in event.summary.value
    ]


def shown_charts(folder):
    """The layouts of Custom Scalars in a folder's event files: {heading: [a chart's patterns]}."""
    layouts = [
        Layout.FromString(value.tensor.string_val[0])
        for _, value in summaries(folder)
        if value.tag == CONFIG_SUMMARY_TAG
    ]
    return [
        {
            shown.title: [list(chart.multiline.tag) for chart in shown.chart]
            for shown in each.category
        }
        for each in layouts
    ]


def test_curves_hold_what_is_reported(tmp_path):
    result = run(tmp_path, 20)
    found = {
        (folder, value.tag, step): float(tf.make_ndarray(value.tensor))
        for folder in ("train", "validation")
        for step, value in summaries(tmp_path / "tensorboard" / folder)
    }
    both = {"quality/loss", "quality/perplexity"}  # in one chart, thus the same measure
    assert {tag for folder, tag, _ in found if folder == "validation"} == both
    assert {tag for folder, tag, _ in found if folder == "train"} == both | {
        "training/loss",
        "training/learning_rate",
        "training/tokens_per_second",
        "training/tokens_per_second_per_replica",
        "training/skipped",
        "training/padding",
        "training/gradient_norm",
    }
    for folder in ("train", "validation"):
        loss, perplexity = (found[folder, tag, 20] for tag in sorted(both))
        np.testing.assert_allclose(np.exp(loss), perplexity, rtol=1e-5)
    np.testing.assert_allclose(found["train", "training/loss", 20], result["loss"], atol=1e-4)
    # Rows of 5 ids with 0, 1 and 2 of them padding, four without: 3 of 30.
    np.testing.assert_allclose(found["train", "training/padding", 20], 0.1, atol=1e-6)
    np.testing.assert_allclose(
        found["train", "training/learning_rate", 20], 0.5 * 8**-0.5 * 20**-0.5, rtol=1e-5
    )

    (charts,) = shown_charts(tmp_path / "tensorboard")
    assert charts["speed"] == [["^training/tokens_per_second$"], ["^training/padding$"]]
    written = {tag for _, tag, _ in found} | {"quality/bleu"}  # of a sample of translations
    for (pattern,) in itertools.chain(*charts.values()):
        assert len([tag for tag in written if re.match(pattern, tag)]) == 1, pattern

    first, last = log(tmp_path, "training")
    assert (first["step"], last["step"]) == (10, 20)
    (validation,) = log(tmp_path, "validation")
    for line, folder, group in ((last, "train", "training"), (validation, "validation", "quality")):
        shared = {"cross_entropy": "quality/loss", "perplexity": "quality/perplexity"}
        for name in line.keys() - {"event", "step"}:
            shown = found[folder, shared.get(name, f"{group}/{name}"), 20]
            np.testing.assert_allclose(shown, line[name], rtol=1e-6)
    assert log(tmp_path, "checkpoint") == [
        {"event": "checkpoint", "step": 20, "checkpoint": "step-00000020"}
    ]


def test_expected_steps():
    assert LoopConfig(train_steps=70).expected_steps(50, 60.0) == 70
    config = LoopConfig(train_steps=1000, train_minutes=10)
    assert config.expected_steps(0, 0.0) == 1000
    assert config.expected_steps(50, 60.0) == 500
    assert config.expected_steps(200, 60.0) == 1000  # --train_steps end it first
    assert config.expected_steps(50, 601.0) == 50
    assert LoopConfig(train_steps=70, train_minutes=1e308).expected_steps(50, 60.0) == 70


def test_a_signal_during_a_compilation_ends_the_run(tmp_path, monkeypatch):
    begun, ended = threading.Event(), threading.Event()

    def compile_for_long(*_):
        begun.set()
        assert ended.wait(60)
        raise AssertionError("the process has ended")

    def send_signal():
        begun.wait()
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(XlaTrainingStep, "run", compile_for_long)
    monkeypatch.setattr(XlaTrainingStep, "forget", lambda step: None)
    threading.Thread(target=send_signal).start()
    result = run(tmp_path, 3, data=data_with(packed=True))
    ended.set()
    assert (result["step"], result["stopped"], result["checkpoint"]) == (0, "SIGTERM", None)


def test_a_damaged_program_is_compiled_anew(tmp_path, monkeypatch, caplog):
    program = tmp_path / "kept" / "xla_compile_cache__1"
    monkeypatch.setenv(FLAGS, "")
    monkeypatch.delenv(FLAGS)
    keep_programs(program.parent)
    program.write_bytes(b"")
    run_step = XlaTrainingStep.run

    def run_unless_damaged(*arguments):
        if program.exists():
            raise tf.errors.DataLossError(None, None, "damaged")
        return run_step(*arguments)

    monkeypatch.setattr(XlaTrainingStep, "run", run_unless_damaged)
    monkeypatch.setattr(XlaTrainingStep, "forget", lambda step: None)  # TensorFlow runs it
    with caplog.at_level("INFO", logger="absl"):
        result = run(tmp_path / "m", 2, data=data_with(packed=True))
    assert result["step"] == 2 and caplog.text.count("compiles anew") == 1


def test_other_batches_begin_anew(two_checkpoints, caplog, monkeypatch):
    """As if the run had begun without a GPU, and gone on with one."""
    monkeypatch.setattr(XlaTrainingStep, "forget", lambda step: None)  # TensorFlow runs it
    with caplog.at_level("INFO", logger="absl"):
        for steps in (12, 14):
            run(two_checkpoints, steps, data=data_with(packed=True))
    anew = "step-00000010 was written with other batches: the data begins anew"
    assert anew in caplog.text and caplog.text.count("begins anew") == 1
    assert checkpoints.CheckpointStore(two_checkpoints).latest.step == 14


def test_a_validation_loss_that_is_not_finite_ends_a_run_and_is_not_saved(tmp_path, monkeypatch):
    def diverge(state, steps, *arguments):
        add_steps(state, steps, *arguments)
        if state.step == 4:
            monkeypatch.setattr(TrainingStep, "held_out_loss", lambda *_: np.float32(np.nan))

    add_steps = RunState.add_steps
    monkeypatch.setattr(RunState, "add_steps", diverge)
    with refused("loss", "nan in the validation at step 4; ", about="precision=float32") as caught:
        run(tmp_path, 9, checkpoint_steps=2)
    assert caught.value.received.endswith("step-00000002")
    assert [path.stem for path in tmp_path.glob("checkpoints/*.json")] == ["step-00000002"]


def test_a_sample_is_not_translated_where_the_loss_is_not_finite(tmp_path):
    data = data_with(
        validation=copying_batches().take(2),
        translate_sample=lambda model: pytest.fail("it has no finite logits"),
    )
    with refused("loss", "last good checkpoint: none", about="finite"):
        run(tmp_path, 1, DIVERGING, data)


def run_diverging(directory, steps, **settings):
    """A checkpoint after each step, whatever the model has become: nothing measures it."""
    return run(directory, steps, DIVERGING, data_with(), checkpoint_steps=1, **settings)


def test_gradients_that_stay_infinite_stop_with_the_last_good_checkpoint(tmp_path):
    with refused("gradients", "steps in a row", about="learning_rate_scale") as caught:
        run_diverging(tmp_path, 50, max_skipped_steps=5)
    assert caught.value.received.endswith("step-00000001")
    assert all(np.isfinite(weight).all() for weight in weights(tmp_path))


def test_a_run_that_ends_with_skipped_steps_keeps_the_good_checkpoint(tmp_path, caplog):
    for _ in range(2):  # the second run resumes from the first step, the only good one
        result = run_diverging(tmp_path, 4, keep_checkpoints=1)
        assert (result["step"], result["stopped"]) == (4, "train_steps")
        assert result["checkpoint"] == str(tmp_path / "checkpoints" / "step-00000001")
        (warning,) = (record for record in caplog.records if "not finite" in record.msg)
        skipped, good = warning.args
        assert skipped.startswith("3 steps") and skipped.endswith("step 4")
        assert good.endswith(result["checkpoint"])
        caplog.clear()
    assert [line["step"] for line in log(tmp_path, "resumed")] == [1]


@pytest.mark.parametrize(
    ("argument", "value", "received"),
    [
        ("train_steps", 0, "0"),
        ("train_minutes", -1.0, "-1.0"),
        ("checkpoint_minutes", 0.0, "0.0"),
        ("keep_checkpoints", 0, "0"),
        ("checkpoint_steps", 0, "0"),
        ("max_skipped_steps", 0, "0"),
        ("patience", 0, "0"),
        ("best_metric", "ter", '"ter"'),
        ("profile_steps", (3, 2), "3,2"),
        ("profile_steps", 3, "3"),
        ("profile_steps", (3,), "3"),
        ("profile_steps", ("a", "b"), "a,b"),
        ("xla", "yes", '"yes"'),
    ],
)
def test_impossible_settings(argument, value, received):
    with refused(argument, received):
        LoopConfig(**{argument: value})


def test_a_directory_is_described_before_its_first_checkpoint_and_not_earlier(tmp_path):
    files = []

    def describe():
        files.append({path.name for path in tmp_path.iterdir()})

    run(tmp_path, 2, data=data_with(), calls={"describe": describe}, checkpoint_steps=1)
    assert files == [{"tensorboard", "training_log.jsonl"}]


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_checkpoints_without_records_end_a_run_before_it_begins_again(two_checkpoints):
    for path in (two_checkpoints / "checkpoints").glob("*.json"):
        path.unlink()
    before = contents(two_checkpoints)
    with refused(None, "none", two_checkpoints / "checkpoints" / "step-", ".json"):
        run(two_checkpoints, 11)
    assert contents(two_checkpoints) == before


def damage(directory, step):
    data = directory / "checkpoints" / f"step-{step:08d}.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:100])


def test_damaged_checkpoint_gives_way_to_the_one_before_it(two_checkpoints, whole):
    damage(two_checkpoints, 10)
    run(two_checkpoints, 24)
    (resumed,) = log(two_checkpoints, "resumed")
    assert resumed == {"event": "resumed", "step": 5, "checkpoint": "step-00000005"}
    assert_same(whole, two_checkpoints)


class Told(Cluster):
    """The second of two workers, to which the chief has said what it will say."""

    def __init__(self, model_dir, *words):
        super().__init__(Addresses(("one:1", "two:1"), 1, "TF_CONFIG"), model_dir)
        self.words = iter(words)

    def agreed(self, decision):
        return next(self.words)


def told(**decision):
    usual = {"seconds": 60.0, "steps_per_call": 3, "saved_step": 0, "checkpoint_due": False}
    return {**usual, "stopped": None, **decision}


def follow(directory, cluster):
    keras.utils.set_random_seed(7)
    data = TrainingData(
        copying_batches(), translate_sample=lambda model: pytest.fail("not the chief")
    )
    strategy = tf.distribute.get_strategy()
    return train(MODEL, TRAINING, data, directory, LoopConfig(), strategy, cluster)


def test_a_worker_does_what_it_is_told_and_writes_nothing(tmp_path):
    due, end = told(checkpoint_due=True), told(stopped="SIGTERM", seconds=90.0)
    result = follow(tmp_path, Told(tmp_path, None, told(), due, told(), end, end))
    wanted = {"worker": 1, "step": 6, "minutes": 1.5, "epochs": None, "stopped": "SIGTERM"}
    assert result == wanted
    assert not list(tmp_path.iterdir())


def test_a_worker_resumes_from_the_chiefs_checkpoint(two_checkpoints):
    end = told(saved_step=8, stopped="train_steps")
    cluster = Told(two_checkpoints, "step-00000005", told(saved_step=5), end)
    assert follow(two_checkpoints, cluster)["step"] == 8
    assert cluster.newest_checkpoint() == "step-00000010"  # on the disk, whatever the chief said
    with refused("model_dir", "step-00000007"):
        follow(two_checkpoints, Told(two_checkpoints, "step-00000007"))


def test_what_a_run_says_in_the_end(tmp_path, caplog):
    """Of 20 steps of warm-up, 6 were taken; then 20; then none, as the run is over.

    A run that will end in its warm-up says so at its start, too.
    """

    def told(*arguments, **settings):
        caplog.clear()
        with caplog.at_level("INFO", logger="absl"):
            run(tmp_path, *arguments, **settings)
        return [record.args for record in caplog.records if re.search("raise|^%s$", record.msg)]

    message = "this model is hardly trained (it ended at step 6, inside its warm-up of 20 steps): "
    message += "to continue, run train again with more train_minutes or train_steps"
    of_warm_up, over = (message,), (6, "train_steps")
    at_the_start = (6, 20, 1, "train_steps")
    assert told(6) == [at_the_start, of_warm_up]
    assert told(6) == [at_the_start, over, of_warm_up]
    assert told(20, train_minutes=1e-9)[1] == (6, "train_minutes")
    assert told(20) == []
    assert told(20) == [(20, "train_steps")]


def test_a_run_counts_its_passes_over_the_data(tmp_path, caplog, monkeypatch):
    """It says what few minutes give, and in the end that the model is hardly trained."""
    batch = np.zeros([6, 5], "int32")  # of the shape for which a step is traced
    batch[:2, :3] = [[4, 5, 2], [6, 2, 0]]  # 5 target tokens
    batches = tf.data.Dataset.from_tensors((batch, batch)).repeat()
    held_out = batches.take(1)

    def told(steps, target_tokens, **settings):
        caplog.clear()
        data = TrainingData(batches, validation=held_out, target_tokens=target_tokens)
        with caplog.at_level("INFO", logger="absl"):
            result = run(tmp_path, steps, data=data, log_steps=2, **settings)
        words = ("passes", "hardly")
        lines = [record.getMessage() for record in caplog.records]
        return result["epochs"], [line for line in lines if any(word in line for word in words)]

    epochs, (line,) = told(3, 20)
    assert epochs == 0.75
    assert line.startswith("this model is hardly trained (validation perplexity ")
    assert "after 0.8 passes over its data): to continue, run train again with more" in line
    info = checkpoint_weights.read_checkpoint(tmp_path, "latest")[1]
    average = checkpoint_weights.read_checkpoint(tmp_path, "average:1")[1]
    assert (info.epochs, average.epochs) == (0.75, 0.75)
    assert average.validation_loss == info.validation_loss
    monkeypatch.setattr(LoopConfig, "is_estimate", lambda config, seconds: seconds > 0)
    epochs, (at_start, _) = told(4, 20, train_minutes=60)  # a resumed run goes on counting
    assert epochs == 1.0
    message = "on this machine, train_minutes=60 are about 4 steps, 1.0 passes over the data"
    assert at_start == f"{message}: too few to train a new model; raise train_minutes"
    assert told(5, 1, train_minutes=60) == (25.0, [])


def test_a_short_run_shortens_its_warm_up_and_its_rate_ends_with_it(tmp_path, caplog):
    training = dataclasses.replace(TRAINING, warmup_steps=10**7, learning_rate=0.01, decay="linear")
    with caplog.at_level("INFO", logger="absl"):
        run(tmp_path, 10, training=training, log_steps=1)
    rates = [line["learning_rate"] for line in log(tmp_path, "training")]
    # Of each step's own update: that of the second is largest, and an eleventh would have none.
    expected = [0.01 * min(step / 2, (11 - step) / 9) for step in range(1, 11)]
    np.testing.assert_allclose(rates, expected, rtol=1e-5, atol=1e-9)
    messages = [record.args for record in caplog.records if "warm" in record.msg]
    assert messages == [(2, 10**7)]


def test_when_the_length_of_a_run_is_known():
    assert LoopConfig(train_steps=70).is_estimate(0.0)
    config = LoopConfig(train_minutes=10)
    assert [config.is_estimate(seconds) for seconds in (0.0, 11.9, 12.0)] == [False, False, True]
