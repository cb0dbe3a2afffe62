"""Flags of bin/train.py that are looked at before anything is done."""

import pytest

from keras_transformer.errors import InputError


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--patience=2"], "--best_metric must be measured .*: none. Received: loss"),
        (["--best_metric=bleu"], "--best_metric must be measured .*: none. Received: bleu"),
        (["--profile_steps=a,b"], "--profile_steps must be FIRST,LAST. Received: a,b"),
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
