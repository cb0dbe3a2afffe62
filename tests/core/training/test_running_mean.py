import keras
import numpy as np
import pytest

from keras_transformer.use.adapt.running_mean import RunningMean


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
