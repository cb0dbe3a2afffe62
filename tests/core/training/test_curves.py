import json
import math
import sys

import pytest

from keras_transformer.core.training.curves import Curves, finite_or_none
from keras_transformer.core.training.run_config import LoopConfig
from keras_transformer.core.training.run_state import Decision, RunState
from tests.refusals import refused


def curves_from(directory, step):
    return Curves(directory, RunState(step, decision=Decision(saved_step=step)), LoopConfig())


def lines(directory):
    return [
        json.loads(line) for line in (directory / "training_log.jsonl").read_text().splitlines()
    ]


def test_log_of_a_resumed_run_has_no_step_twice(any_folder):
    curves = curves_from(any_folder, 0)
    for step in (1, 2, 3):
        curves.event("training", step, loss=float(step))
    curves.close()
    with (any_folder / "training_log.jsonl").open("a") as file:
        file.write('{"event": "training", "st')  # killed in the middle of a line
    curves = curves_from(any_folder, 2)  # from the checkpoint of step 2
    curves.close()
    assert [(line["event"], line["step"]) for line in lines(any_folder)] == [
        ("training", 1),
        ("training", 2),
        ("resumed", 2),
    ]


def test_lines_are_json_even_without_a_number(any_folder):
    curves = curves_from(any_folder, 0)
    curves.training(5, {"loss": math.nan, "perplexity": math.inf, "skipped": 5.0})
    curves.close()
    assert lines(any_folder) == [
        {"event": "training", "step": 5, "loss": None, "perplexity": None, "skipped": 5.0}
    ]
    assert finite_or_none({"a": -math.inf, "b": 1, "c": "nan"}) == {
        "a": None,
        "b": 1,
        "c": "nan",
    }


def test_event_files_sort_as_they_were_written_though_the_clock_is_set_back(any_folder):
    folder = any_folder / "tensorboard" / "train"
    for start in range(4):
        curves = curves_from(any_folder, start)
        curves.training(start, {"loss": 1.0})
        curves.close()
        (newest,) = (path for path in folder.iterdir() if not path.name.endswith("written"))
        parts = newest.name.split(".")
        parts[3] = str(int(parts[3]) - 1000 * start)
        newest.replace(folder / ".".join([*parts, f"start-{start}.written"]))
    assert [path.name[-9] for path in sorted(folder.iterdir())] == ["0", "1", "2", "3"]


@pytest.mark.parametrize("limit", [{"train_steps": 4}, {"train_minutes": 0.1}])
def test_the_bar_says_that_it_compiles_and_is_full_in_the_end(tmp_path, capsys, limit, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    metrics = {"loss": 2.5, "tokens_per_second": 1000.0}
    with Curves(tmp_path, RunState(), LoopConfig(**limit)) as curves:
        (first,) = shown(capsys)
        assert first.startswith("compiling:   0%|")
        for step, seconds in ((1, 2.0), (4, 6.5)):
            curves.progress(RunState(step, decision=Decision(seconds), metrics=metrics))
    last = shown(capsys)[-1]
    assert last.startswith("training: 100%|")
    assert last.rstrip("]").endswith(", step 4 loss 2.500 1,000 tokens/s")


def shown(capsys):
    return [text.strip() for text in capsys.readouterr().err.split("\r") if text.strip()]


def test_a_file_in_the_place_of_the_curves_is_named(tmp_path):
    (tmp_path / "tensorboard").write_text("mine")
    with refused(None, "a file", tmp_path / "tensorboard"):
        curves_from(tmp_path, 0)
