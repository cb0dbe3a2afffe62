"""What a run reports: TensorBoard's curves, the same as lines of JSON, and a progress bar.

TensorBoard shows two runs, `train` and `validation`. What both measure has the same name in both
and shares a chart: quality/perplexity, and quality/loss, which is without label smoothing. Under
Custom Scalars, the charts that are watched most are together.

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
from tensorboard.plugins.custom_scalar import layout_pb2 as layout
from tensorboard.plugins.custom_scalar import summary as layout_summary
from tqdm import tqdm

from keras_transformer.files import to_path, write_file
from keras_transformer.training.checkpoints import checkpoint_name
from keras_transformer.training.loop_config import LoopConfig
from keras_transformer.training.run_state import RunState

RUNS = {"training": ("train", "training"), "validation": ("validation", "quality")}  # run, group
IN_BOTH = {"cross_entropy": "quality/loss", "perplexity": "quality/perplexity"}
LAYOUT = {  # of TensorBoard's Custom Scalars: a heading, and the curve of each chart below it
    "quality": ["quality/loss", "quality/perplexity", "quality/bleu"],
    "speed": ["training/tokens_per_second", "training/padding"],
    "gradients": ["training/gradient_norm", "training/skipped", "training/learning_rate"],
}
BAR = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}, {remaining} left{postfix}"


class Curves(contextlib.ExitStack):
    """Writes the curves and the log of a model directory; until it is closed, tf.summary does too.

    Log lines of steps after `state`, which are taken again, are removed. If `write` is false, as on
    workers that are not the chief, nothing is reported.
    """

    def __init__(self, model_dir: str | Path, state: RunState, config: LoopConfig, write: bool):
        self._directory = to_path(model_dir) / "tensorboard"
        self._config, self._write, self._profiling = config, write, False
        super().__init__()
        path = to_path(model_dir) / "training_log.jsonl" if write else Path(os.devnull)
        self._writers = {}
        for run in ("", "train", "validation") if write else ():
            self._writers[run] = _writer(self._directory / run)
            self.callback(self._writers[run].close)
        if write:
            self.enter_context(self._writers[""].as_default())
            tf.summary.experimental.write_raw_pb(_layout(), step=state.step)
            _cut(path, state.step)
        self._log = self.enter_context(path.open("a", encoding="utf-8"))
        texts = {"desc": "compiling", "bar_format": BAR, "disable": not write}
        self._bar = self.enter_context(tqdm(total=1, initial=self._done(state), **texts))
        self.callback(self.profile, 0)  # ends one that is under way
        if state.saved_step:
            self.event("resumed", state.step, checkpoint=checkpoint_name(state.saved_step))

    def event(self, name: str, step: int, **values: Any) -> None:
        """Writes a line of the log."""
        line = {"event": name, "step": step, **finite_or_none(values)}
        print(json.dumps(line), file=self._log, flush=True)

    def scalars(self, event: str, step: int, values: dict[str, float]) -> None:
        """Writes a line of the log, and a point of each value's curve."""
        if self._write:
            run, group = RUNS[event]
            with self._writers[run].as_default():
                for name, value in values.items():
                    tf.summary.scalar(IN_BOTH.get(name, f"{group}/{name}"), value, step=step)
                tf.summary.flush()
        self.event(event, step, **values)

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
        text = "loss {loss:.3f} {tokens_per_second:,.0f} tokens/s".format_map(state.metrics)
        self._bar.set_description_str("training", refresh=False)
        self._bar.set_postfix_str(f"step {state.step} {text}", refresh=False)
        self._bar.update(self._done(state) - self._bar.n)

    def _done(self, state: RunState) -> float:
        """The share of the run that is done, by steps or by time, whichever ends it first."""
        minutes = self._config.train_minutes or math.inf
        return min(1.0, max(state.step / self._config.train_steps, state.seconds / 60 / minutes))


def finite_or_none(values: dict[str, Any]) -> dict[str, Any]:
    """Returns the values with None for infinite floats and NaN, which JSON cannot hold."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }


def _layout() -> bytes:
    """The summary that arranges Custom Scalars; a chart shows its curve of all runs."""

    def chart(tag: str) -> layout.Chart:
        return layout.Chart(title=tag, multiline=layout.MultilineChartContent(tag=[f"^{tag}$"]))

    categories = [
        layout.Category(title=title, chart=map(chart, tags)) for title, tags in LAYOUT.items()
    ]
    return layout_summary.pb(layout.Layout(category=categories)).SerializeToString()


def _writer(folder: Path) -> tf.summary.SummaryWriter:
    """Starts an event file, after renaming earlier ones so that they are numbered and not dated.

    TensorBoard reads them in the order of their names, and would show none of the steps of a later
    start if the clock had been set back.
    """
    for number, path in enumerate(sorted(folder.glob("events.out.tfevents.*"))):
        parts = path.name.split(".")
        path.replace(folder / ".".join([*parts[:3], f"{number:010d}", *parts[4:]]))
    return tf.summary.create_file_writer(str(folder))


def _cut(path: Path, step: int) -> None:
    """Removes the lines of steps after `step`, and a last line that was not completed."""
    if not path.exists():
        return
    kept = []
    for line in path.read_bytes().decode("utf-8", errors="replace").splitlines(keepends=True):
        with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
            if line.endswith("\n") and json.loads(line)["step"] <= step:
                kept.append(line)
    write_file(path, "".join(kept))
