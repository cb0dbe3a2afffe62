import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.config import EOS_ID, TransformerConfig
from keras_transformer.core.search.weights import read_weights, update_stacks, variables_of
from keras_transformer.core.training.checkpoint_files import StepSums
from keras_transformer.core.training.step import TrainingStep
from keras_transformer.core.vocabulary.pair import VocabularyPair
from keras_transformer.use.adapt.correction_learner import RECENT, CorrectionLearner, RunningMean
from keras_transformer.use.adapt.learning_config import LearningConfig
from tests.small_models import VOCAB_SIZE, Characters

VOCABULARIES = VocabularyPair(Characters(), Characters())
MODEL = TransformerConfig(
    vocab_size=VOCAB_SIZE, num_layers=1, d_model=16, d_ff=16, num_heads=2, dropout=0.0
)


def no_replay():
    empty = np.zeros([0, 0], np.int32)
    return itertools.repeat((empty, empty))


class RecordedBatches:
    """A training step that only records its batches."""

    def __init__(self):
        self.batches = []

    def run_batch(self, source, target):
        self.batches.append((source.numpy(), target.numpy()))
        return StepSums(loss=tf.constant(6.0), target_tokens=tf.constant(4.0))


def make_learner(step, replay=None, **config):
    replay = no_replay() if replay is None else replay
    return CorrectionLearner(step, VOCABULARIES, 8, LearningConfig(**config), replay)


def texts_of(ids):
    """The rows of a batch as texts, after checking that each ends in EOS before its padding."""
    for row in ids:
        length = np.count_nonzero(row)
        assert row[length - 1] == EOS_ID and not row[length:].any()
    return VOCABULARIES.target.decode(ids.tolist())


def test_a_batch_has_the_correction_earlier_ones_and_other_text():
    replayed = np.array([[ord("x") + 4, EOS_ID]]), np.array([[ord("y") + 4, EOS_ID, 0]])
    step = RecordedBatches()
    learner = make_learner(step, itertools.repeat(replayed), steps=3, earlier=2)
    learner.remember({"a": "A", "b": "B", "c": "C"})
    assert learner.learn({"new": "NEW"}) == 6 / 4
    assert (len(step.batches), learner.steps) == (3, 3)
    for source, target in step.batches:
        sources, targets = texts_of(source), texts_of(target)
        assert (sources[:2], sources[-1]) == (["new", "new"], "x")
        assert (targets[:2], targets[-1]) == (["NEW", "NEW"], "y")
        assert len(sources) == 5 and set(sources[2:-1]) <= {"a", "b", "c"}
        assert targets[2:-1] == [source.upper() for source in sources[2:-1]]
    assert list(learner.learned) == ["a", "b", "c", "new"]
    drawn = {source for sources, _ in step.batches for source in texts_of(sources)[2:-1]}
    assert len(drawn) == 3  # each step draws anew


def test_what_is_forgotten_is_not_repeated():
    step = RecordedBatches()
    learner = make_learner(step, steps=3, earlier=4)
    learner.remember({"a": "A", "b": "B"})
    learner.forget(["a", "never learned"])
    learner.learn({"new": "NEW"})
    for source, _ in step.batches:
        assert set(texts_of(source)) == {"new", "b"}
    assert learner.learned == {"b": "B", "new": "NEW"}


def test_half_of_the_earlier_ones_are_recent():
    step = RecordedBatches()
    learner = make_learner(step, steps=50, earlier=4)
    learner.remember({str(number): str(number) for number in range(RECENT, 5 * RECENT)})
    learner.learn({"new": "NEW"})
    for source, _ in step.batches:
        new, recent, any_of_all = np.split(np.array(texts_of(source)), [2, 4])
        assert list(new) == ["new", "new"]
        for numbers, first in ((recent, 4 * RECENT), (any_of_all, RECENT)):
            assert len(set(numbers)) == 2 and min(map(int, numbers)) >= first
    drawn = {number for source, _ in step.batches for number in texts_of(source)[4:]}
    assert len(drawn) > 2 * RECENT


def test_a_correction_replaces_the_earlier_one_of_its_source():
    step = RecordedBatches()
    learner = make_learner(step, steps=1, earlier=16)
    learner.learn({"a": "A"})
    learner.learn({"a": "B"})
    learner.learn({"c": "C"})
    assert [texts_of(target) for _, target in step.batches] == [
        ["A", "A"],
        ["B", "B"],
        ["C", "C", "B", "B"],
    ]
    assert learner.learned == {"a": "B", "c": "C"}


def test_only_what_fits_is_learned():
    learner = make_learner(RecordedBatches())
    assert learner.fits("1234567", "1234567")  # 8 ids with EOS
    assert not learner.fits("12345678", "1") and not learner.fits("1", "12345678")


@pytest.fixture(scope="module")
def learner():
    config = LearningConfig(steps=40, lora_rank=4, learning_rate=0.03)
    step = TrainingStep(MODEL, config.training, tf.distribute.get_strategy())
    return CorrectionLearner(step, VOCABULARIES, 8, config, no_replay())


def test_what_is_learned_becomes_probable_by_the_adapter_alone(learner):
    model = learner.step.model
    adapted = {id(variable) for variable in model.trainable_variables}
    frozen = [weight for weight in model.weights if id(weight) not in adapted]
    before = [np.array(weight) for weight in frozen]
    weights = read_weights(model)
    losses = [learner.learn({"abc": "xyz"}), learner.learn({"cba": "zyx"})]
    assert max(losses) < 3 < np.log(VOCAB_SIZE)
    assert losses[0] > learner.learn({"abc": "xyz"})
    for weight, value in zip(frozen, before, strict=True):
        np.testing.assert_array_equal(weight, value)

    update_stacks(weights, model)  # those of decoding
    expected = variables_of(read_weights(model))
    for weight, value in zip(variables_of(weights), expected, strict=True):
        np.testing.assert_array_equal(weight, value)


@pytest.fixture
def variables():
    return [keras.Variable([8.0, 0.0]), keras.Variable([[4.0]])]


def test_the_first_values_count_equally_and_later_ones_replace_a_share(variables):
    mean = RunningMean(variables, 2)
    expected = [[8.0, 0.0], [6.0, 1.0], [3.0, 0.5], [6.5, 4.25]]
    for values, (first, second) in zip([[8, 0], [4, 2], [0, 0], [10, 8]], expected, strict=True):
        variables[0].assign(values)
        variables[1].assign([[values[0]]])
        mean.update()
        np.testing.assert_array_equal(mean.means[0], [first, second])
        np.testing.assert_array_equal(mean.means[1], [[first]])
    assert mean.count.numpy() == 4


def test_it_is_used_in_place_of_the_values(variables):
    mean = RunningMean(variables, 10)
    mean.update()
    variables[0].assign([0.0, 2.0])
    mean.update()
    with pytest.raises(ZeroDivisionError), mean.in_place():
        np.testing.assert_array_equal(variables[0], [4.0, 1.0])
        1 / 0  # noqa: B018
    np.testing.assert_array_equal(variables[0], [0.0, 2.0])
    np.testing.assert_array_equal(mean.means[0], [4.0, 1.0])
