"""Flags of bin/train.py that are looked at before anything is done."""

import dataclasses

import pytest
from absl import flags

from keras_transformer.config import TrainingConfig
from keras_transformer.errors import InputError
from keras_transformer.training.loop_config import LoopConfig


def test_defaults_of_flags_are_those_of_the_library(load_program):
    load_program("train", "--data_dir=data", "--model_dir=model")
    for config in (TrainingConfig(), LoopConfig()):
        defaults = dataclasses.asdict(config)
        found = {name: flags.FLAGS[name].default for name in defaults if name in flags.FLAGS}
        assert found == {name: defaults[name] for name in found}
        assert len(found) >= 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--patience=2"], r"--best_metric must be measured .*: nothing\). Received: loss"),
        (["--best_metric=bleu"], r"--best_metric must be measured .*: nothing\). Received: bleu"),
        (["--profile_steps=a,b"], "--profile_steps must be FIRST,LAST .*. Received: a,b"),
        (["--profile_steps=5,3"], "--profile_steps must be FIRST,LAST with 1 <= FIRST <= LAST"),
        (["--max_skipped_steps=0"], "--max_skipped_steps must be at least 1. Received: 0"),
        (["--clip_norm=-1"], "clip_norm must be 0, for none, or more. Received: -1.0"),
        (["--config=clip_norm=-1"], "clip_norm must be 0, for none, or more. Received: -1.0"),
        (["--config=rematerialize=2"], "--config rematerialize must be true or false"),
    ],
)
def test_impossible_flags(load_program, prepared, tmp_path, arguments, message):
    model_dir = tmp_path / "model"
    program = load_program(
        "train", f"--data_dir={prepared}", f"--model_dir={model_dir}", *arguments
    )
    with pytest.raises(InputError, match=message):
        program.main()
    assert not model_dir.exists()
