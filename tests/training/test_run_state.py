import math

import numpy as np
import pytest

from keras_transformer.training.run_state import SUMS, RunState


def test_summary_by_hand():
    # smoothed, plain, target and source tokens, their positions, norms, skipped, in a row
    sums = np.array([300.0, 100 * math.log(5), 100, 80, 150, 90, 6.0, 2, 1])
    summary = RunState(sums=sums, summed=5, sum_seconds=4.0).summarize()
    assert summary["loss"] == 3.0
    assert summary["perplexity"] == pytest.approx(5.0)
    assert summary["tokens_per_second"] == 25.0
    assert summary["padding"] == pytest.approx(1 - 180 / 240)
    assert summary["gradient_norm"] == 2.0
    assert summary["skipped"] == 2


def test_nothing_is_no_division_by_zero():
    assert RunState().summarize()["loss"] == 0


def test_skipped_steps_have_no_loss():
    state = RunState(sums=np.array([0.0] * 7 + [4, 4]), summed=4, sum_seconds=1.0)
    summary = state.summarize()
    assert math.isnan(summary["loss"]) and math.isnan(summary["perplexity"])
    assert summary["gradient_norm"] == summary["tokens_per_second"] == 0
    assert state.skipped_in_row == 4


def test_entries_of_earlier_versions_are_read():
    sums = [float(number) for number in range(len(SUMS))]
    progress = {"sums": sums, "summed": 3, "sum_seconds": 0.5, "since_best": 2, "best_value": 1.5}
    state = RunState.restored({"step": 8, "seconds": 60.0, "progress": progress})
    assert (state.step, state.saved_step, state.saved_seconds) == (8, 8, 60.0)
    del progress["best_value"]
    assert state.to_entry() == {"step": 8, "seconds": 60.0, "progress": progress}
    assert RunState.restored({"step": 8, "seconds": 60.0}).since_best == 0
