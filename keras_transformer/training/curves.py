"""What a run reports: TensorBoard's curves, the same as lines of JSON, and a progress bar.

training_log.jsonl has a line for every event: {"event": "training" | "validation" | "checkpoint" |
"resumed" | "compilation", "step": ..., and its values}. A value that is not finite is null.
"""

import contextlib
import json
import math
import os
from pathlib import Path
from typing import Any

import tensorflow as tf
from tqdm import tqdm

from keras_transformer.files import write_file
from keras_transformer.training.checkpoints import checkpoint_name
from keras_transformer.training.loop_config import LoopConfig
from keras_transformer.training.run_state import RunState


class Curves(contextlib.ExitStack):
    """Writes the curves and the log of a model directory; until it is closed, tf.summary does too.

    Log lines of steps after `state`, which are taken again, are removed. If `write` is false, as on
    workers that are not the chief, nothing is reported.
    """

    def __init__(self, model_dir: str | Path, state: RunState, config: LoopConfig, write: bool):
        self._directory = Path(model_dir) / "tensorboard"
        self._config, self._write, self._profiling = config, write, False
        super().__init__()
        path = Path(model_dir) / "training_log.jsonl" if write else Path(os.devnull)
        if write:
            _number(self._directory)
            writer = tf.summary.create_file_writer(str(self._directory))
            self.callback(writer.close)
            self.enter_context(writer.as_default())
            _cut(path, state.step)
        self._log = self.enter_context(path.open("a", encoding="utf-8"))
        self._bar = self.enter_context(_bar(config, state, write))
        self.callback(self.profile, 0)  # ends one that is under way
        if state.saved_step:
            self.event("resumed", state.step, checkpoint=checkpoint_name(state.saved_step))

    def event(self, name: str, step: int, **values: Any) -> None:
        """Writes a line of the log."""
        line = {"event": name, "step": step, **finite_or_none(values)}
        print(json.dumps(line), file=self._log, flush=True)

    def scalars(self, group: str, step: int, values: dict[str, float]) -> None:
        """Writes a line of the log, and a point of each value's curve."""
        for name, value in values.items():
            tf.summary.scalar(f"{group}/{name}", value, step=step)
        self.event(group, step, **values)

    def profile(self, step: int) -> None:
        """Starts or ends a profile for TensorBoard's Profile tab, if `step` is the one to."""
        first, last = self._config.profile_steps or (1, 0)
        wanted = self._write and first <= step <= last
        if wanted and not self._profiling:
            tf.profiler.experimental.start(str(self._directory))
        if self._profiling and not wanted:
            tf.profiler.experimental.stop()
        self._profiling = wanted

    def progress(self, state: RunState) -> None:
        """Moves the bar, with loss and speed beside it."""
        loss, speed = state.metrics["loss"], state.metrics["tokens_per_second"]
        text = f"step {state.step} loss {loss:.3f} {speed:,.0f} tokens/s"
        self._bar.set_postfix_str(text, refresh=False)
        done = state.step if self._config.train_minutes is None else state.seconds
        self._bar.update(min(done, self._bar.total) - self._bar.n)


def _bar(config: LoopConfig, state: RunState, shown: bool) -> tqdm:
    """A bar over minutes if `config` limits them, else over steps."""
    texts = {"desc": "training", "unit": "step", "disable": not shown}
    if config.train_minutes is None:
        return tqdm(total=config.train_steps, initial=state.step, **texts)
    total = config.train_minutes * 60
    layout = "{percentage:3.0f}%|{bar}| {elapsed} of {remaining} more {postfix}"
    return tqdm(total=total, initial=min(state.seconds, total), bar_format=layout, **texts)


def finite_or_none(values: dict[str, Any]) -> dict[str, Any]:
    """Returns the values with None for infinite floats and NaN, which JSON cannot hold."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }


def _number(directory: Path) -> None:
    """Renames event files so that they are numbered instead of dated.

    TensorBoard reads them in the order of their names, and would show none of the steps of a later
    start if the clock had been set back.
    """
    for number, path in enumerate(sorted(directory.glob("events.out.tfevents.*"))):
        parts = path.name.split(".")
        path.rename(directory / ".".join([*parts[:3], f"{number:010d}", *parts[4:]]))


def _cut(path: Path, step: int) -> None:
    """Removes the lines of steps after `step`, and a last line that was not completed."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True):
        with contextlib.suppress(ValueError, KeyError, TypeError):
            if line.endswith("\n") and json.loads(line)["step"] <= step:
                kept.append(line)
    write_file(path, "".join(kept))
