"""Options of decoding: what is refused, and which limits they set."""

import math

import pytest

from keras_transformer.config import TransformerConfig
from keras_transformer.decoding.config import (
    TASKS,
    DecodingConfig,
    LengthLimits,
    SamplingConfig,
    SearchSettings,
)
from keras_transformer.errors import InputError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam_size": 0}, "beam_size must be at least 1. Received: 0"),
        ({"beam_size": -1}, "beam_size must be at least 1. Received: -1"),
        ({"alpha": -0.1}, "alpha must be at least 0 and finite. Received: -0.1"),
        ({"alpha": math.nan}, "alpha must be at least 0 and finite. Received: NaN"),
        ({"alpha": math.inf}, "alpha must be at least 0 and finite. Received: Infinity"),
        ({"max_source_length": 1}, "max_source_length must be from 2 to 1073741824. Received: 1"),
        ({"extra_length": -1}, "extra_length must be from 0 to 536870912. Received: -1"),
        ({"min_length": -1}, "min_length must be at least 0. Received: -1"),
        ({"batch_tokens": 0}, "batch_tokens must be from 1 to 1073741824. Received: 0"),
        (
            {"no_repeat_ngram_size": 101},
            "no_repeat_ngram_size must be from 0 to 100. Received: 101",
        ),
        ({"n_best": 0}, "n_best must be from 1 to the beam size, 4. Received: 0"),
        ({"n_best": 5}, "n_best must be from 1 to the beam size, 4. Received: 5"),
        ({"sampling": "x"}, 'sampling must be a SamplingConfig, or None. Received: "x"'),
        ({"mbr": "ter"}, 'mbr must be one of chrf, bleu. Received: "ter"'),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(InputError) as error:
        DecodingConfig(**options)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.0}, "temperature must be positive and finite. Received: 0.0"),
        ({"temperature": math.nan}, "temperature must be positive and finite. Received: NaN"),
        ({"top_k": -1}, "top_k must be at least 0. Received: -1"),
        ({"top_p": 0.0}, "top_p must be in (0, 1]. Received: 0.0"),
    ],
)
def test_options_of_sampling_are_checked(options, message):
    with pytest.raises(InputError) as error:
        SamplingConfig(**options)
    assert str(error.value) == message


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


def test_how_many_are_exact_and_how_many_are_considered():
    assert (DecodingConfig(4).exact, DecodingConfig(4).candidates) == (4, 8)
    assert DecodingConfig(4, n_best=2).exact == 2
    assert DecodingConfig(4, n_best=2, mbr="chrf").exact == 4
    assert DecodingConfig(1).candidates == 1
    assert DecodingConfig(4, sampling=SamplingConfig()).candidates == 4


def test_what_restricts_a_search():
    assert not SearchSettings(DecodingConfig()).is_restricted
    assert not SearchSettings(DecodingConfig(min_length=1)).is_restricted
    assert SearchSettings(DecodingConfig(min_length=2)).is_restricted
    assert SearchSettings(DecodingConfig(no_repeat_ngram_size=1)).is_restricted
    assert SearchSettings(DecodingConfig(), forbidden=((5,),)).is_restricted
