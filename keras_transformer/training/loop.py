"""The training loop: steps, curves, validation and checkpoints until a limit is reached."""

import contextlib
import dataclasses
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from absl import logging
from tqdm import tqdm

from keras_transformer.config import TrainingConfig, TransformerConfig
from keras_transformer.errors import InputError, reason
from keras_transformer.training.checkpoints import CheckpointStore, named_variables
from keras_transformer.training.metrics import CrossEntropy, perplexity_of, summarize
from keras_transformer.training.step import SUMS, TrainingStep


@dataclasses.dataclass(frozen=True)
class Limits:
    """When to stop, save and report. Steps and minutes count from the first start of the run."""

    train_steps: int = 100_000
    train_minutes: float | None = None
    checkpoint_minutes: float = 10.0
    keep_checkpoints: int = 20
    log_steps: int = 50  # steps between points of the curves

    def __post_init__(self):
        for name in ("train_steps", "keep_checkpoints", "log_steps"):
            if getattr(self, name) < 1:
                raise InputError(f"--{name} must be at least 1. Received: {getattr(self, name)}")
        for name in ("train_minutes", "checkpoint_minutes"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"--{name} must be positive. Received: {value}")


@dataclasses.dataclass(frozen=True)
class TrainingData:
    """What the loop reads.

    Fields:
        batches: an endless tf.data.Dataset of (source int32 [B, S], target int32 [B, T]).
        validation: a finite one, or None.
        translate_sample: called with the model at each validation; returns scalars (such as
            {"bleu": 31.2}) and a text to show, or is None.
    """

    batches: tf.data.Dataset
    validation: tf.data.Dataset | None = None
    translate_sample: Callable[[keras.Model], tuple[dict[str, float], str]] | None = None


def train(
    model_config: TransformerConfig,
    training_config: TrainingConfig,
    data: TrainingData,
    model_dir: str | Path,
    limits: Limits,
    strategy: tf.distribute.Strategy,
) -> dict[str, Any]:
    """Trains until a limit, from the last checkpoint of `model_dir` where there is one.

    Returns:
        {"step", "minutes", "loss", "perplexity", "tokens_per_second", "parameters",
        "checkpoint", "best", ...}: where the run stands.

    Raises:
        InputError: where a checkpoint cannot be read or written, or the loss is no number.
        KeyboardInterrupt: on Ctrl-C, once the steps under way are done and saved.
    """
    run = _Run(model_config, training_config, data, model_dir, limits, strategy)
    with run.progress, run.curves.as_default(), _interruptible(run):
        run.until_limit()
    if run.interrupted:
        logging.info("interrupted at step %d: run the same command again to go on", run.step)
        raise KeyboardInterrupt
    return run.result()


class _Run:
    """The state of one call of `train`."""

    def __init__(self, model_config, training_config, data, model_dir, limits, strategy):
        self.limits, self.data = limits, data
        self.training_step = TrainingStep(model_config, training_config, strategy)
        self.model = self.training_step.model
        self.store = CheckpointStore(model_dir, limits.keep_checkpoints)
        self.iterator = iter(data.batches)
        self.step, self.seconds, self.interrupted = 0, 0.0, False
        self.cross_entropy = CrossEntropy(self.model)
        self.metrics: dict[str, float] = {}
        self.last_validation: dict[str, float] = {}
        self._restore()
        self.saved_step = self.step if self.store.latest else -1
        self.curves = tf.summary.create_file_writer(str(Path(model_dir) / "tensorboard"))
        self.progress = _progress_bar(limits, self.step, self.seconds)

    def trackables(self) -> dict[str, Any]:
        return {
            "model": named_variables(self.model.variables),
            "optimizer": named_variables(self.training_step.optimizer.variables),
            "iterator": self.iterator,
        }

    def _restore(self) -> None:
        entry = self.store.latest
        if entry is None:
            return
        try:
            status = tf.train.Checkpoint(**self.trackables()).read(self.store.path(entry))
            status.assert_existing_objects_matched()
        except (ValueError, AssertionError, IndexError, tf.errors.OpError) as error:
            raise InputError(
                f"--model_dir: checkpoint {self.store.path(entry)} must be whole. Received: "
                f"{reason(error)}"
            ) from None
        self.step, self.seconds = entry["step"], entry["seconds"]
        logging.info("going on from step %d", self.step)

    def until_limit(self) -> None:
        """Runs steps in short spells, so that limits are met closely and the bar moves."""
        parameters = self.model.count_params()
        logging.info("training %.1f million parameters", parameters / 1e6)
        started = last_save = last_log = time.monotonic()
        before, spell = self.seconds, 1
        sums, summed = np.zeros(len(SUMS)), 0
        while not self._finished():
            to_log = self.limits.log_steps - self.step % self.limits.log_steps
            steps = min(spell, to_log, self.limits.train_steps - self.step)
            begun = time.monotonic()
            sums += self.training_step.run(self.iterator, tf.constant(steps)).numpy()
            now = time.monotonic()
            if self.metrics:  # the first call traces
                spell = max(1, int(steps / (now - begun)))
            self.step, summed, self.seconds = (
                self.step + steps,
                summed + steps,
                before + now - started,
            )
            self.metrics = summarize(sums, summed, now - last_log)
            self._show()
            if self.step % self.limits.log_steps == 0 or self._finished():
                self._log()
                sums, summed, last_log = np.zeros(len(SUMS)), 0, now
            if now - last_save >= self.limits.checkpoint_minutes * 60:
                self.validate_and_save()
                last_save = time.monotonic()
        if self.step != self.saved_step:
            self.save() if self.interrupted else self.validate_and_save()

    def _finished(self) -> bool:
        minutes = self.limits.train_minutes
        spent = minutes is not None and self.seconds >= minutes * 60
        return self.interrupted or spent or self.step >= self.limits.train_steps

    def _show(self) -> None:
        loss, rate = self.metrics["loss"], self.metrics["tokens_per_second"]
        if not math.isfinite(loss):
            last = self.store.latest
            raise InputError(
                f"the training loss must be a number; try a lower --config learning_rate_scale. "
                f"Received: {loss} at step {self.step}; last checkpoint: "
                f"{self.store.path(last) if last else 'none'}"
            )
        self.progress.set_postfix_str(
            f"step {self.step} loss {loss:.3f} {rate:,.0f} tokens/s", refresh=False
        )
        done = self.seconds if self.limits.train_minutes is not None else self.step
        self.progress.update(max(0, min(done, self.progress.total) - self.progress.n))

    def _log(self) -> None:
        scalars = {**self.metrics, "learning_rate": self.training_step.learning_rate()}
        for name, value in scalars.items():
            tf.summary.scalar(f"training/{name}", value, step=self.step)

    def validate_and_save(self) -> None:
        """Measures the validation loss, translates the sample, and writes a checkpoint."""
        scalars: dict[str, float] = {}
        if self.data.validation is not None:
            loss, _ = self.cross_entropy(self.data.validation)
            scalars = {"loss": loss, "perplexity": perplexity_of(loss)}
        if self.data.translate_sample is not None:
            scores, text = self.data.translate_sample(self.model)
            scalars |= scores
            tf.summary.text("validation/translations", text, step=self.step)
        for name, value in scalars.items():
            tf.summary.scalar(f"validation/{name}", value, step=self.step)
        self.last_validation = scalars
        self.curves.flush()
        self.save(scalars.get("loss"))
        shown = " ".join(f"{name} {value:.3f}" for name, value in scalars.items())
        logging.info("step %d: validation %s", self.step, shown or "none; checkpoint written")

    def save(self, validation_loss: float | None = None) -> None:
        self.store.save(
            self.trackables(),
            step=self.step,
            seconds=self.seconds,
            validation_loss=validation_loss,
        )
        self.saved_step = self.step

    def result(self) -> dict[str, Any]:
        best, latest = self.store.best, self.store.latest
        return {
            "step": self.step,
            "minutes": round(self.seconds / 60, 2),
            **{name: round(value, 4) for name, value in self.metrics.items()},
            **{f"validation_{name}": round(v, 4) for name, v in self.last_validation.items()},
            "parameters": self.model.count_params(),
            "checkpoints": len(self.store.entries),
            "checkpoint": self.store.path(latest) if latest else None,
            "best": self.store.path(best) if best else None,
        }


@contextlib.contextmanager
def _interruptible(run: _Run) -> Iterator[None]:
    """Lets Ctrl-C end the run between steps, where a checkpoint is exact; a second one ends it."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread hears of signals
        return

    def interrupt(*_):
        run.interrupted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _progress_bar(limits: Limits, step: int, seconds: float) -> tqdm:
    """A bar over minutes where they are the limit, else over steps."""
    if limits.train_minutes is not None:
        form = "{percentage:3.0f}%|{bar}| {elapsed} of {remaining} more {postfix}"
        total = limits.train_minutes * 60
        return tqdm(total=total, initial=min(seconds, total), bar_format=form, desc="training")
    return tqdm(total=limits.train_steps, initial=step, unit="step", desc="training")
