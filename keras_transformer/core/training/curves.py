"""Reports on a run: TensorBoard curves, the same as JSON lines, and a progress bar.

TensorBoard shows two runs, `train` and `validation`. Metrics in both have the same name and share a
chart: quality/perplexity, and quality/loss, which is without label smoothing. Custom Scalars groups
the most important charts.

training_log.jsonl has a line for every event: {"event": "training" | "validation" | "checkpoint" |
"resumed", "step": ..., and its values}. Values that are not finite are null.

There are few groups, because TensorBoard opens only the first two. It orders event files by the
time in their names, and would hide a resumed run if the clock had been set back, so files are
numbered.
"""

import contextlib
import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorboard.plugins.custom_scalar import layout_pb2 as layout
from tensorboard.plugins.custom_scalar import summary as layout_summary
from tensorboard.plugins.hparams import api as hparams

from keras_transformer.core.config import TrainingConfig, TransformerConfig
from keras_transformer.core.training.checkpoint_files import checkpoint_name
from keras_transformer.core.training.run_config import LoopConfig
from keras_transformer.core.training.run_state import RunState
from keras_transformer.support.errors import require
from keras_transformer.support.files.paths import to_path
from keras_transformer.support.files.replacing import write_file
from keras_transformer.support.progress import PICTURE, progress_bar

# The TensorBoard names of metrics that both runs show.
SHARED_NAMES = {"cross_entropy": "quality/loss", "perplexity": "quality/perplexity"}
LAYOUT = {  # TensorBoard's Custom Scalars: a heading, and the curve in each chart below it
    "quality": ["quality/loss", "quality/perplexity", "quality/bleu"],
    "speed": ["training/tokens_per_second", "training/padding"],
    "gradients": ["training/gradient_norm", "training/skipped", "training/learning_rate"],
}
BAR = "{desc}: {percentage:3.0f}%" + PICTURE + " {elapsed}, {remaining} left{postfix}"


class Curves:
    """Writes a model directory's curves and log, and shows a progress bar.

    Use it as a context manager: within it, tf.summary writes to the directory, too. Log lines for
    steps after the state's are removed, as these steps are taken again.

    Args:
        model_dir: the model directory.
        state: the state at the start.
        config: the run's end, for the progress bar, and the steps to profile.
    """

    def __init__(self, model_dir: str | Path, state: RunState, config: LoopConfig):
        self._config = config
        self._directory = to_path(model_dir) / "tensorboard"
        self._profiling = False
        with contextlib.ExitStack() as opened:
            self._summaries = _open_writer(opened, self._directory)
            self._training_writer = _open_writer(opened, self._directory / "train")
            self._validation_writer = _open_writer(opened, self._directory / "validation")
            opened.enter_context(self._summaries.as_default())
            tf.summary.experimental.write_raw_pb(_layout(), step=state.step)
            log = to_path(model_dir) / "training_log.jsonl"
            _cut(log, state.step)
            self._log = opened.enter_context(log.open("a", encoding="utf-8"))
            bar = progress_bar(total=1, initial=self._done(state), desc="compiling", bar_format=BAR)
            self._bar = opened.enter_context(bar)
            opened.callback(self._end_profile)
            self._opened = opened.pop_all()
        saved_step = state.decision.saved_step
        if saved_step:
            self.event("resumed", state.step, checkpoint=checkpoint_name(saved_step))

    def __enter__(self) -> "Curves":
        return self

    def __exit__(self, *error) -> None:
        self.close()

    def close(self) -> None:
        """Ends a running profile, and closes all files."""
        self._opened.close()

    def settings(self, model_config: TransformerConfig, training_config: TrainingConfig) -> None:
        """Writes the configurations for TensorBoard's HParams."""
        settings = {**dataclasses.asdict(model_config), **dataclasses.asdict(training_config)}
        hparams.hparams({name: "none" if v is None else v for name, v in settings.items()})

    def event(self, name: str, step: int, **values: Any) -> None:
        """Writes a log line."""
        line = {"event": name, "step": step, **finite_or_none(values)}
        print(json.dumps(line), file=self._log, flush=True)

    def training(self, step: int, values: dict[str, float]) -> None:
        """Writes a log line, and a point on each curve of the run `train`."""
        self._write_points(self._training_writer, "training", step, values)
        self.event("training", step, **values)

    def validation(self, step: int, values: dict[str, float]) -> None:
        """Writes a log line, and a point on each curve of the run `validation`."""
        self._write_points(self._validation_writer, "quality", step, values)
        self.event("validation", step, **values)

    def _write_points(self, writer, group: str, step: int, values: dict[str, float]) -> None:
        with writer.as_default():
            for name, value in values.items():
                tf.summary.scalar(SHARED_NAMES.get(name, f"{group}/{name}"), value, step=step)
            tf.summary.flush()

    def profile(self, step: int) -> None:
        """Starts or ends a profile as configured; called before each call that takes steps.

        TensorBoard shows it in its Profile tab.

        Args:
            step: the number of the next step, from 1.
        """
        if not self._config.is_profiled(step):
            self._end_profile()
        elif not self._profiling:
            tf.profiler.experimental.start(str(self._directory))
            self._profiling = True

    def _end_profile(self) -> None:
        if self._profiling:
            tf.profiler.experimental.stop()
            self._profiling = False

    def progress(self, state: RunState) -> None:
        """Updates the progress bar, with loss and speed."""
        loss, speed = state.metrics["loss"], state.metrics["tokens_per_second"]
        text = f"step {state.step} loss {loss:.3f} {speed:,.0f} tokens/s"
        self._bar.set_description_str("training", refresh=False)
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.update(self._done(state) - self._bar.n)

    def _done(self, state: RunState) -> float:
        """Returns the finished share of the run, by steps or by time, whichever ends it first."""
        share = state.step / self._config.train_steps
        if self._config.train_minutes is not None:
            minutes = state.decision.seconds / 60
            share = max(share, minutes / self._config.train_minutes)
        return min(1.0, share)


class SilentCurves:
    """The curves of a worker that is not the chief: nothing is written or shown."""

    def __init__(self, model_dir: str | Path, state: RunState, config: LoopConfig):
        pass

    def __enter__(self) -> "SilentCurves":
        return self

    def __exit__(self, *error) -> None:
        pass

    def settings(self, model_config: TransformerConfig, training_config: TrainingConfig) -> None:
        """Shows nothing."""

    def event(self, name: str, step: int, **values: Any) -> None:
        """Writes nothing."""

    def training(self, step: int, values: dict[str, float]) -> None:
        """Writes nothing."""

    def validation(self, step: int, values: dict[str, float]) -> None:
        """Writes nothing."""

    def profile(self, step: int) -> None:
        """Profiles nothing."""

    def progress(self, state: RunState) -> None:
        """Shows nothing."""


def finite_or_none(values: dict[str, Any]) -> dict[str, Any]:
    """Replaces infinities and NaN, which JSON lacks, by None."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }


def _layout() -> bytes:
    """Returns the summary that lays out Custom Scalars; a chart shows its curve in all runs."""

    def chart(tag: str) -> layout.Chart:
        return layout.Chart(title=tag, multiline=layout.MultilineChartContent(tag=[f"^{tag}$"]))

    categories = [
        layout.Category(title=title, chart=map(chart, tags)) for title, tags in LAYOUT.items()
    ]
    return layout_summary.pb(layout.Layout(category=categories)).SerializeToString()


def _open_writer(opened: contextlib.ExitStack, folder: Path) -> tf.summary.SummaryWriter:
    """Opens an event file, after renaming earlier ones so that they are numbered, not dated.

    TensorBoard reads them in the order of their names, and would ignore steps from a later start if
    the clock had been set back.
    """
    require(folder.is_dir() or not folder.exists(), None, "must be a folder", "a file", folder)
    for number, path in enumerate(sorted(folder.glob("events.out.tfevents.*"))):
        parts = path.name.split(".")
        path.replace(folder / ".".join([*parts[:3], f"{number:010d}", *parts[4:]]))
    writer = tf.summary.create_file_writer(str(folder))
    opened.callback(writer.close)
    return writer


def _cut(path: Path, step: int) -> None:
    """Removes the lines for steps after `step`, and an incomplete last line."""
    if not path.exists():
        return
    kept = []
    for line in path.read_bytes().decode("utf-8", errors="replace").splitlines(keepends=True):
        with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
            if line.endswith("\n") and json.loads(line)["step"] <= step:
                kept.append(line)
    write_file(path, "".join(kept))
