"""Quiet TensorFlow, and the same random numbers in every test."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import pytest

pytest_plugins = ["tests.program_fixtures"]


@pytest.fixture(autouse=True)
def _seeded():
    import keras

    keras.utils.set_random_seed(20170612)
