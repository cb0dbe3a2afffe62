import numpy as np
import pytest

from keras_transformer.training.schedule import WarmupInverseSquareRoot


@pytest.mark.parametrize(("d_model", "warmup"), [(512, 4000), (128, 800), (64, 1)])
def test_whole_curve_is_equation_3(d_model, warmup):
    schedule = WarmupInverseSquareRoot(d_model, warmup)
    updates = np.arange(0, 3 * warmup + 10)
    step_num = updates + 1.0  # counts from 1: no division by zero, and no lost first step
    expected = d_model**-0.5 * np.minimum(step_num**-0.5, step_num * warmup**-1.5)
    np.testing.assert_allclose(schedule(updates), expected, rtol=1e-5)


def test_base_model_landmarks():
    schedule = WarmupInverseSquareRoot(512, 4000)
    np.testing.assert_allclose(schedule(0), 1.746928e-07, rtol=1e-5)
    np.testing.assert_allclose(schedule(3999), 6.987712e-04, rtol=1e-5)  # the peak
    np.testing.assert_allclose(schedule(15999), 3.493856e-04, rtol=1e-5)  # half of it
    assert schedule(3998) < schedule(3999) > schedule(4000)


def test_scale_and_config_round_trip():
    schedule = WarmupInverseSquareRoot(128, warmup_steps=10, scale=2.5)
    same = WarmupInverseSquareRoot.from_config(schedule.get_config())
    np.testing.assert_allclose(same(7), 2.5 * WarmupInverseSquareRoot(128, 10)(7))
