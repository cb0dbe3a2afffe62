import math

import pytest

from keras_transformer.core.training.checkpoint_files import CheckpointRecord, Progress, StepSums
from keras_transformer.core.training.run_state import RunState

SUMS = StepSums(
    smoothed_loss=300.0,
    loss=100 * math.log(5),
    target_tokens=100.0,
    source_tokens=80.0,
    target_positions=150.0,
    source_positions=90.0,
    gradient_norm=6.0,
    skipped=2.0,
    skipped_in_row=1.0,
)


def test_summary_by_hand():
    summary = RunState(progress=Progress(SUMS, 5, 4.0)).summarize()
    assert summary["loss"] == 3.0
    assert summary["cross_entropy"] == pytest.approx(math.log(5))
    assert summary["perplexity"] == pytest.approx(5.0)
    assert summary["tokens_per_second"] == 25.0
    assert summary["padding"] == pytest.approx(1 - 180 / 240)
    assert summary["gradient_norm"] == 2.0
    assert summary["skipped"] == 2


def test_nothing_is_no_division_by_zero():
    assert RunState().summarize()["loss"] == 0


def test_skipped_steps_have_no_loss():
    sums = StepSums(skipped=4.0, skipped_in_row=4.0)
    state = RunState(progress=Progress(sums, 4, 1.0))
    summary = state.summarize()
    assert math.isnan(summary["loss"]) and math.isnan(summary["perplexity"])
    assert summary["gradient_norm"] == summary["tokens_per_second"] == 0
    assert state.skipped_in_row == 4


def test_an_imported_model_has_nothing_to_continue_with():
    restored = RunState.restored(CheckpointRecord("step-8", 8, "f"))
    assert (restored.progress, restored.clock()) == (Progress(StepSums(), 0, 0.0, 0), 0.0)


def test_the_first_call_does_not_decide_how_many_steps_the_next_ones_take():
    state = RunState()
    state.add_steps(1, 20.0, SUMS)  # it traces
    assert state.decision.steps_per_call == 1
    state.add_steps(1, 0.25, SUMS)
    found = (state.decision.steps_per_call, state.step, state.progress.summed_seconds)
    assert found == (4, 2, 20.25)
