"""A server's corrections are learned in the background, into the model that translates."""

import math
import time

import numpy as np
import pytest

from keras_transformer.core.search.weights import read_weights, variables_of
from keras_transformer.core.vocabulary.language_codes import Direction
from keras_transformer.kit.documents.memory.corrections import Corrections
from keras_transformer.loading import translator_of
from keras_transformer.support.errors import InputError
from keras_transformer.use.adapt.correction_learner import CorrectionLearner
from keras_transformer.use.adapt.learning_config import LearningConfig
from keras_transformer.use.store.languages import ModelLanguages
from keras_transformer.use.store.model_path import ModelPath
from keras_transformer.use.store.opening import open_model
from pipelines import background_learning
from pipelines.adaptation import opened_adaptation
from pipelines.background_learning import IDLE_SECONDS, BackgroundLearner, learning_in_background
from tests.program_fixtures import PAIRS

pytestmark = pytest.mark.usefixtures("steps_traced_once")
CONFIG = LearningConfig(steps=2, earlier=2, replay_tokens=40, lora_rank=2)
DIRECTION = Direction("en", "de")
SECONDS = 120  # at most, on a machine under load


@pytest.fixture
def parts(untrained, prepared, tmp_path):
    """An adaptation, a translator of the same model, and a file of corrections."""
    stored = open_model(ModelPath([untrained], argument="model_dir"))
    translator = translator_of(stored, {"beam_size": 1}, needs_tensorflow=True)
    corrections = Corrections(tmp_path / "corrections.tmx", ModelLanguages((DIRECTION,), ("de",)))
    with opened_adaptation(stored, tmp_path / "adapter", prepared, CONFIG) as adaptation:
        yield adaptation, translator, corrections


def always_idle():
    return math.inf


def wait_until(is_true):
    for _ in range(SECONDS * 20):
        if is_true():
            return
        time.sleep(0.05)
    raise AssertionError("not in time")


def decoding_weights(translator):
    (compiled,) = translator.engine.graphs.model.members
    return [variable.numpy() for variable in variables_of(compiled.weights)]


def test_what_is_new_is_learned_the_oldest_first(parts, caplog):
    adaptation, translator, corrections = parts
    before = decoding_weights(translator)
    learner = BackgroundLearner(*parts, always_idle)
    assert not learner.learn_next()
    for source, target in [*PAIRS[:2], ("cat " * 40, "katze")]:
        corrections.add(source, target, DIRECTION)
    assert learner.learn_next() and list(adaptation.learner.learned) == [PAIRS[0][0]]
    assert learner.learn_next() and not learner.learn_next()  # one is too long
    corrections.add(PAIRS[0][0], "die katze", DIRECTION)
    assert learner.learn_next() and not learner.learn_next()
    assert adaptation.learner.learned == {PAIRS[0][0]: "die katze", PAIRS[1][0]: PAIRS[1][1]}

    assert corrections.remove("cat " * 40, DIRECTION) == 1 and not learner.learn_next()
    assert caplog.text == ""
    assert corrections.remove(PAIRS[0][0], DIRECTION) == 1 and not learner.learn_next()
    assert adaptation.learner.learned == {PAIRS[1][0]: PAIRS[1][1]}
    assert f"remove {adaptation.adapter_dir}, and start it again" in caplog.text
    adaptation.save()
    lines = (adaptation.adapter_dir / "learned.tsv").read_text("utf-8")
    assert lines == "\t".join(PAIRS[1]) + "\n"

    after = decoding_weights(translator)
    assert any(not np.array_equal(one, other) for one, other in zip(before, after, strict=True))
    with adaptation.mean.in_place():
        expected = variables_of(read_weights(adaptation.learner.step.model))
    for weight, value in zip(after, expected, strict=True):
        np.testing.assert_array_equal(weight, value)


def test_it_learns_while_there_are_no_requests(parts, caplog):
    caplog.set_level("INFO", logger="absl")
    adaptation, _, corrections = parts
    for pair in PAIRS:
        corrections.add(*pair, DIRECTION)
    times = iter([0.0, IDLE_SECONDS - 0.01])
    learner = BackgroundLearner(*parts, lambda: next(times))
    learner.learn_while_idle()
    learner.learn_while_idle()
    assert not adaptation.learner.learned and next(times, None) is None
    times = iter([IDLE_SECONDS, 0.0])  # a request during the first correction
    learner.learn_while_idle()
    assert list(adaptation.learner.learned) == [PAIRS[0][0]] and adaptation.checkpoint is None
    times = iter([IDLE_SECONDS] * (len(PAIRS) + 1))
    learner.learn_while_idle()
    assert dict(adaptation.learner.learned) == dict(PAIRS) and adaptation.checkpoint is not None
    assert f"learned {len(PAIRS)} corrections, saved in {adaptation.adapter_dir}" in caplog.text
    caplog.clear()
    times = iter([IDLE_SECONDS])
    learner.learn_while_idle()
    assert "learned" not in caplog.text, "nothing new"


def test_a_server_that_stops_while_it_is_busy_saves_what_it_has_learned(parts, monkeypatch):
    monkeypatch.setattr(background_learning, "PAUSE_SECONDS", 0.0)
    adaptation, _, corrections = parts
    for pair in PAIRS:
        corrections.add(*pair, DIRECTION)

    def busy_after_the_first():
        if adaptation.learner.learned:
            learner.stop()
            return 0.0
        return IDLE_SECONDS

    learner = BackgroundLearner(*parts, busy_after_the_first)
    learner.run()
    lines = (adaptation.adapter_dir / "learned.tsv").read_text("utf-8")
    assert lines == "\t".join(PAIRS[0]) + "\n"


def test_a_thread_learns_and_saves(parts, monkeypatch):
    monkeypatch.setattr(background_learning, "PAUSE_SECONDS", 0.01)
    adaptation, translator, corrections = parts
    with learning_in_background(adaptation, translator, corrections, always_idle):
        corrections.add(*PAIRS[0], DIRECTION)
        wait_until(lambda: adaptation.checkpoint is not None)
    lines = (adaptation.adapter_dir / "learned.tsv").read_text("utf-8")
    assert lines == "\t".join(PAIRS[0]) + "\n"


def test_an_error_ends_the_learning_and_nothing_else(parts, monkeypatch, caplog):
    def fail(self, corrections):
        raise InputError("loss", "must be finite", "nan")

    monkeypatch.setattr(background_learning, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(CorrectionLearner, "learn", fail)
    adaptation, translator, corrections = parts
    corrections.add(*PAIRS[0], DIRECTION)
    with learning_in_background(adaptation, translator, corrections, always_idle):
        wait_until(lambda: "no longer learned" in caplog.text)
        assert translator.translate(["the cat"])
    assert "loss must be finite" in caplog.text
