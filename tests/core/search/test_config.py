"""Options of decoding: what is refused, and which limits they set."""

import math

import pytest

from keras_transformer.core.config import TransformerConfig
from keras_transformer.core.search.config import (
    TASKS,
    DecodingConfig,
    LengthLimits,
    SamplingConfig,
    SearchSettings,
)
from tests.refusals import refused


@pytest.mark.parametrize(
    ("make_config", "argument", "value", "received"),
    [
        (DecodingConfig, "beam_size", 0, "0"),
        (DecodingConfig, "alpha", -0.1, "-0.1"),
        (DecodingConfig, "alpha", math.inf, "Infinity"),
        (DecodingConfig, "max_source_length", 1, "1"),
        (DecodingConfig, "extra_length", -1, "-1"),
        (DecodingConfig, "min_length", -1, "-1"),
        (DecodingConfig, "batch_tokens", 0, "0"),
        (DecodingConfig, "no_repeat_ngram_size", 101, "101"),
        (DecodingConfig, "n_best", 0, "0"),
        (DecodingConfig, "n_best", 5, "5"),
        (DecodingConfig, "sampling", "x", '"x"'),
        (DecodingConfig, "mbr", "ter", '"ter"'),
        (SamplingConfig, "temperature", math.nan, "NaN"),
        (SamplingConfig, "top_k", -1, "-1"),
        (SamplingConfig, "top_p", 0.0, "0.0"),
    ],
)
def test_options_are_checked(make_config, argument, value, received):
    with refused(argument, received):
        make_config(**{argument: value})


def test_tasks_are_the_papers():
    translation, parsing = TASKS["translation"], TASKS["parsing"]
    assert (translation.beam_size, translation.alpha, translation.extra_length) == (4, 0.6, 50)
    assert (parsing.beam_size, parsing.alpha, parsing.extra_length) == (21, 0.3, 300)


def test_learned_positions_limit_both_sides():
    options = DecodingConfig(max_source_length=100, extra_length=50)
    assert options.limits(TransformerConfig(9)) == LengthLimits(source=100, target=150)
    learned = TransformerConfig(9, positions="learned", max_positions=120)
    assert options.limits(learned) == LengthLimits(source=100, target=120)
    fewer = TransformerConfig(9, positions="learned", max_positions=6)
    assert options.limits(fewer) == LengthLimits(source=6, target=6)


def test_how_many_are_guaranteed():
    assert DecodingConfig(4).guaranteed == 4
    assert DecodingConfig(4, n_best=2).guaranteed == 2
    assert DecodingConfig(4, n_best=2, mbr="chrf").guaranteed == 4


def test_what_restricts_a_search():
    assert not SearchSettings(DecodingConfig()).is_restricted
    assert not SearchSettings(DecodingConfig(min_length=1)).is_restricted
    assert SearchSettings(DecodingConfig(min_length=2)).is_restricted
    assert SearchSettings(DecodingConfig(no_repeat_ngram_size=1)).is_restricted
    assert SearchSettings(DecodingConfig(), forbidden=((5,),)).is_restricted
