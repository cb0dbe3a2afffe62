import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.core.config import TrainingConfig
from keras_transformer.core.training.schedule import (
    WarmupInverseSquareRoot,
    WarmupToZero,
    make_schedule,
)


@pytest.mark.parametrize(("d_model", "warmup"), [(512, 4000), (128, 800), (64, 1)])
def test_whole_curve_is_equation_3(d_model, warmup):
    schedule = WarmupInverseSquareRoot(d_model, warmup)
    updates = np.arange(0, 3 * warmup + 10)
    step_num = updates + 1.0  # counts from 1: no division by zero, and no lost first step
    expected = d_model**-0.5 * np.minimum(step_num**-0.5, step_num * warmup**-1.5)
    np.testing.assert_allclose(schedule(updates), expected, rtol=1e-5)


def test_scale_and_config_round_trip():
    schedule = WarmupInverseSquareRoot(128, warmup_steps=10, scale=2.5)
    same = WarmupInverseSquareRoot.from_config(schedule.get_config())
    np.testing.assert_allclose(same(7), 2.5 * WarmupInverseSquareRoot(128, 10)(7))


@pytest.mark.parametrize("shape", ["linear", "cosine"])
def test_fall_to_zero(shape):
    schedule = WarmupToZero(128, warmup_steps=10, total_steps=60, scale=1.5, shape=shape)
    paper = WarmupInverseSquareRoot(128, 10, 1.5)
    rises = np.arange(10)
    np.testing.assert_allclose(schedule(rises), paper(rises), rtol=1e-5)
    step_num = np.arange(10, 62)
    share = (61 - step_num) / 51
    if shape == "cosine":
        share = np.sin(np.pi / 2 * share) ** 2
    np.testing.assert_allclose(
        schedule(step_num - 1), float(paper(9)) * share, rtol=1e-4, atol=1e-9
    )
    assert schedule(59) > 0 == schedule(60) == schedule(100)


def test_total_steps_that_change():
    total = tf.Variable(20)
    schedule = WarmupToZero(128, warmup_steps=10, total_steps=total)
    before = float(schedule(15))
    total.assign(40)
    assert float(schedule(15)) > before
    assert WarmupToZero.from_config(schedule.get_config()).total_steps == 40


@pytest.mark.parametrize(("total", "warmup"), [(40, 8), (10, 2), (5, 1), (2, 1)])
def test_the_warm_up_takes_at_most_a_fifth_of_the_run(total, warmup):
    schedule = WarmupToZero(128, warmup_steps=10, total_steps=total)
    step_num = np.arange(1, total + 2)
    largest = float(WarmupInverseSquareRoot(128, 10)(9))
    shares = np.minimum(step_num / warmup, (total + 1 - step_num) / (total + 1 - warmup))
    np.testing.assert_allclose(schedule(step_num - 1), largest * shares, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("decay", ["linear", "cosine"])
def test_a_decay_over_an_unknown_number_of_steps_is_that_of_equation_3(decay):
    config = TrainingConfig(warmup_steps=10, learning_rate=0.003, decay=decay)
    known, unknown = make_schedule(16, config, total_steps=50), make_schedule(16, config)
    steps = np.arange(10)
    np.testing.assert_allclose(unknown(steps), 0.003 * (steps + 1) / 10, rtol=1e-5)
    np.testing.assert_allclose(known(steps), unknown(steps), rtol=1e-5)
    assert float(unknown(39)) == pytest.approx(0.003 / 2)
    assert known(39) < unknown(39)


def test_a_constant_rate_after_the_warm_up():
    config = TrainingConfig(warmup_steps=4, learning_rate=0.002, decay="constant")
    assert not config.decays_to_zero
    schedule = make_schedule(16, config, total_steps=8)
    expected = 0.002 * np.array([1 / 4, 2 / 4, 3 / 4, 1, 1, 1, 1])
    np.testing.assert_allclose(schedule(np.array([0, 1, 2, 3, 4, 8, 10**6])), expected, rtol=1e-5)
    same = type(schedule).from_config(schedule.get_config())
    np.testing.assert_allclose(same(9), schedule(9))
