"""What a run reports while it runs: TensorBoard's curves, and the same as lines of JSON.

training_log.jsonl has a line an event: {"event": "training" | "validation" | "checkpoint" |
"resumed" | "compilation", "step": ..., and what there is to say}. What is no finite number is null.
"""

import contextlib
import dataclasses
import json
import math
import os
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from tensorboard.plugins.hparams import api as hparams

from keras_transformer.config import TrainingConfig, TransformerConfig
from keras_transformer.files import write_file


class Curves:
    """Writes curves and log of a model directory.

    Args:
        model_dir: has tensorboard/ and training_log.jsonl.
        step: the step the run goes on from. Lines of later steps are taken back: they will be
            written again.
    """

    def __init__(self, model_dir: str | Path, step: int):
        self.directory = str(Path(model_dir) / "tensorboard")
        _number(Path(self.directory))
        self._writer = tf.summary.create_file_writer(self.directory)
        path = Path(model_dir) / "training_log.jsonl"
        _cut(path, step)
        self._profiling = False
        self._log = open(path, "a", encoding="utf-8")  # noqa: SIM115  (closed in `close`)

    def close(self) -> None:
        self.profile(False)
        self._writer.close()
        self._log.close()

    def settings(self, *configs: TransformerConfig | TrainingConfig) -> None:
        """Writes configurations for TensorBoard's table of hyperparameters."""
        values = {key: v for config in configs for key, v in dataclasses.asdict(config).items()}
        with self._writer.as_default():
            hparams.hparams({key: "none" if v is None else v for key, v in values.items()})

    def event(self, name: str, step: int, **facts: Any) -> None:
        """Writes a line of the log."""
        line = {"event": name, "step": step, **without_infinities(facts)}
        self._log.write(json.dumps(line) + "\n")
        self._log.flush()

    def scalars(self, group: str, step: int, values: dict[str, float]) -> None:
        """Writes a line of the log, and a point of each value's curve."""
        with self._writer.as_default():
            for name, value in values.items():
                tf.summary.scalar(f"{group}/{name}", value, step=step)
        self.event(group, step, **values)

    def text(self, name: str, step: int, text: str) -> None:
        with self._writer.as_default():
            tf.summary.text(name, text, step=step)

    def picture(self, name: str, step: int, picture: np.ndarray) -> None:
        """picture: uint8 [Y, X, 3]."""
        with self._writer.as_default():
            tf.summary.image(name, picture[None], step=step)

    def histograms(self, step: int, model: keras.Model) -> None:
        """Writes the distribution of every trainable variable."""
        with self._writer.as_default():
            for variable in model.trainable_variables:
                value = tf.convert_to_tensor(variable.value)
                tf.summary.histogram(variable.path, value, step=step)

    def profile(self, wanted: bool) -> None:
        """Starts a profile for TensorBoard's Profile tab, or ends it."""
        if wanted and not self._profiling:
            tf.profiler.experimental.start(self.directory)
        if self._profiling and not wanted:
            tf.profiler.experimental.stop()
        self._profiling = wanted

    def flush(self) -> None:
        self._writer.flush()


class NoCurves(Curves):
    """The same that writes nothing: for workers that are not the chief."""

    def __init__(self):
        self._writer, self._profiling = tf.summary.create_noop_writer(), False
        self._log = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  (closed in `close`)

    def profile(self, wanted: bool) -> None:
        pass


def without_infinities(values: dict[str, Any]) -> dict[str, Any]:
    """The same with None for floats that JSON has no word for."""
    bad = {key for key, v in values.items() if isinstance(v, float) and not math.isfinite(v)}
    return {key: None if key in bad else value for key, value in values.items()}


def _number(directory: Path) -> None:
    """Names event files by numbers instead of times, so that the one to come sorts after them.

    TensorBoard reads them in the order of their names. Where the clock has been set back between
    two starts, it would show none of the steps of the later one.
    """
    for number, path in enumerate(sorted(directory.glob("events.out.tfevents.*"))):
        parts = path.name.split(".")
        path.rename(directory / ".".join([*parts[:3], f"{number:010d}", *parts[4:]]))


def _cut(path: Path, step: int) -> None:
    """Takes back the lines of steps after `step`, and what was not written to its end."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True):
        with contextlib.suppress(ValueError, KeyError, TypeError):
            if line.endswith("\n") and json.loads(line)["step"] <= step:
                kept.append(line)
    write_file(path, "".join(kept))
