"""The training loop: steps, curves, validation and checkpoints until a limit is reached."""

import contextlib
import dataclasses
import math
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from absl import logging
from tqdm import tqdm

from keras_transformer.config import TrainingConfig, TransformerConfig
from keras_transformer.errors import InputError
from keras_transformer.training.buckets import Buckets
from keras_transformer.training.checkpoints import CheckpointStore, is_better, named_variables
from keras_transformer.training.curves import Curves, without_infinities
from keras_transformer.training.interruption import listening
from keras_transformer.training.limits import Limits
from keras_transformer.training.metrics import CrossEntropy, perplexity_of, summarize
from keras_transformer.training.step import SUMS, TrainingStep


@dataclasses.dataclass(frozen=True)
class TrainingData:
    """What the loop reads.

    Fields:
        batches: an endless tf.data.Dataset of (source int32 [B, S], target int32 [B, T]).
        validation: a finite one, or None.
        translate_sample: called with the model at each validation; returns scalars (such as
            {"bleu": 31.2}) and a text to show, or is None.
        draw_sample: called likewise; returns pictures uint8 [Y, X, 3] by name, or is None.
        buckets: the shapes that XLA compiles training steps for; None leaves XLA out.
    """

    batches: tf.data.Dataset
    validation: tf.data.Dataset | None = None
    translate_sample: Callable[[keras.Model], tuple[dict[str, float], str]] | None = None
    draw_sample: Callable[[keras.Model], dict[str, np.ndarray]] | None = None
    buckets: Buckets | None = None


def train(
    model_config: TransformerConfig,
    training_config: TrainingConfig,
    data: TrainingData,
    model_dir: str | Path,
    limits: Limits,
    strategy: tf.distribute.Strategy,
) -> dict[str, Any]:
    """Trains until a limit, from the last checkpoint of `model_dir` where there is one.

    On SIGTERM or Ctrl-C the steps under way are finished and saved first.

    Returns:
        {"step", "minutes", "stopped" (by "train_steps", "train_minutes", "patience" or "SIGTERM"),
        "loss", "perplexity", "tokens_per_second", "parameters", "checkpoint", "best", ...}: where
        the run stands.

    Raises:
        InputError: where a checkpoint cannot be read or written, or too many steps in a row had
            gradients that are not finite.
        KeyboardInterrupt: on Ctrl-C.
    """
    with listening() as interruption:
        run = _Run(model_config, training_config, data, model_dir, limits, strategy, interruption)
        with run.progress, contextlib.closing(run.curves):
            run.until_limit()
    if interruption:
        name = interruption.signal.name
        logging.info("%s at step %d: run the same command again to go on", name, run.step)
    if interruption.signal == signal.SIGINT:
        raise KeyboardInterrupt
    return run.result()


class _Run:
    """The state of one call of `train`."""

    def __init__(
        self, model_config, training_config, data, model_dir, limits, strategy, interruption
    ):
        self.limits, self.data, self.interruption = limits, data, interruption
        self.training_step = TrainingStep(model_config, training_config, strategy, data.buckets)
        self.model = self.training_step.model
        self.store = CheckpointStore(model_dir, limits.keep_checkpoints, limits.best_metric)
        self.iterator = iter(data.batches)
        self.step, self.seconds = 0, 0.0
        # Since the last point of the curves; saved, for the next to be what it would have been.
        self.sums, self.summed, self.sum_seconds = np.zeros(len(SUMS)), 0, 0.0
        self.best_value, self.since_best = None, 0
        self.cross_entropy = CrossEntropy(self.model)
        self.metrics: dict[str, float] = {}
        self.last_validation: dict[str, float] = {}
        entry = self._restore()
        self.saved_step = self.step
        self.curves = Curves(model_dir, self.step)
        self.curves.settings(model_config, training_config)
        if entry is not None:
            self.curves.event("resumed", self.step, checkpoint=entry["name"])
        self.progress = _progress_bar(limits, self.step, self.seconds)

    def trackables(self) -> dict[str, Any]:
        return {
            "model": named_variables(self.model.variables),
            "optimizer": named_variables(self.training_step.optimizer.variables),
            "iterator": self.iterator,
        }

    def _restore(self) -> dict[str, Any] | None:
        self.store.remove_unfinished()
        entry = self.store.restore(self.trackables())
        if entry is None:
            return None
        self.step, self.seconds = entry["step"], entry["seconds"]
        for name, value in entry.get("progress", {}).items():
            setattr(self, name, np.array(value) if name == "sums" else value)
        logging.info("going on from step %d", self.step)
        return entry

    def until_limit(self) -> None:
        """Runs steps in short spells, so that limits are met closely and the bar moves."""
        logging.info("training %.1f million parameters", self.model.count_params() / 1e6)
        if self.data.buckets is not None:
            logging.info("XLA: %s", self.data.buckets.described(self.training_step.parts))
        self.clock = self.last_save = time.monotonic()
        self.spell = 1
        while not self.stopped():
            first, last = self.limits.profile_steps or (0, 0)
            self.curves.profile(first <= self.step + 1 <= last)
            self._take_steps()
            ended = bool(self.stopped())
            if self.step % self.limits.log_steps == 0 or (ended and not self.interruption):
                self._log()
            if not ended and self._checkpoint_due():
                self.validate_and_save()
        if self.step != self.saved_step:
            self.validate_and_save()
        if self.step != self.saved_step:
            self.save()

    def stopped(self) -> str | None:
        """What has ended the run, if anything has."""
        limits = self.limits
        if self.interruption:
            return self.interruption.signal.name
        if limits.patience is not None and self.since_best >= limits.patience:
            return "patience"
        if limits.train_minutes is not None and self.seconds >= limits.train_minutes * 60:
            return "train_minutes"
        return "train_steps" if self.step >= limits.train_steps else None

    def _take_steps(self) -> None:
        steps = min(self.spell, self.limits.steps_to_next(self.step))
        compiled = len(self.training_step.compiled_shapes)
        begun = time.monotonic()
        self.sums = np.array(self.training_step.run(self.iterator, steps, self.sums))
        now = time.monotonic()
        if self.metrics:  # the first call traces
            self.spell = max(1, int(steps / (now - begun)))
        self.step, self.summed = self.step + steps, self.summed + steps
        self.sum_seconds += now - begun
        self._count_time()
        self.metrics = summarize(self.sums, self.summed, self.sum_seconds)
        self._report_compilations(compiled)
        self._check_skipped()
        self._show()

    def _report_compilations(self, before: int) -> None:
        compiled = list(self.training_step.compiled_shapes.items())
        for count, ((rows, length), seconds) in enumerate(compiled[before:], start=before + 1):
            logging.info("XLA: %dx%d took %.1f s, compilation %d", rows, length, seconds, count)
            facts = {"rows": rows, "length": length, "seconds": round(seconds, 3)}
            self.curves.event("compilation", self.step, **facts, count=count)

    def _count_time(self) -> None:
        now = time.monotonic()
        self.seconds += now - self.clock
        self.clock = now

    def _checkpoint_due(self) -> bool:
        if self._skipped_in_row():
            return False  # the last good checkpoint is to stay the last
        every = self.limits.checkpoint_steps
        waited = time.monotonic() - self.last_save
        due = waited >= self.limits.checkpoint_minutes * 60
        return due or (every is not None and self.step % every == 0)

    def _skipped_in_row(self) -> int:
        return int(self.sums[SUMS.index("skipped_in_row")])

    def _check_skipped(self) -> None:
        skipped, last = self._skipped_in_row(), self.store.latest
        if skipped >= self.limits.max_skipped_steps:
            raise InputError(
                "gradients must be finite; try a lower --config learning_rate_scale, or "
                f"--precision=float32. Received: {skipped} steps in a row skipped up to step "
                f"{self.step} (--max_skipped_steps={self.limits.max_skipped_steps}); last good "
                f"checkpoint: {self.store.path(last) if last else 'none'}"
            )

    def _show(self) -> None:
        loss, rate = self.metrics["loss"], self.metrics["tokens_per_second"]
        self.progress.set_postfix_str(
            f"step {self.step} loss {loss:.3f} {rate:,.0f} tokens/s", refresh=False
        )
        done = self.seconds if self.limits.train_minutes is not None else self.step
        self.progress.update(max(0, min(done, self.progress.total) - self.progress.n))

    def _log(self) -> None:
        """Writes a point of the curves: of `log_steps` steps, or of fewer at the run's end."""
        per_replica = self.metrics["tokens_per_second"] / self.training_step.replicas
        scalars = {
            **self.metrics,
            "tokens_per_second_per_replica": per_replica,
            **self.training_step.rates(),
        }
        self.curves.scalars("training", self.step, scalars)
        if self.step % self.limits.log_steps == 0:
            self.sums[:-1] = 0  # all but skipped_in_row
            self.summed, self.sum_seconds = 0, 0.0

    def validate_and_save(self) -> None:
        """Evaluates, and writes a checkpoint; unless a signal comes while it evaluates."""
        scalars: dict[str, float] = {}
        if not self.interruption.unless_heard(lambda: self._evaluate(scalars)):
            return
        self.last_validation = scalars
        self._compare_with_best(scalars)
        if scalars:
            self.curves.scalars("validation", self.step, scalars)
        self.curves.flush()
        self.save(scalars)
        shown = " ".join(f"{name} {value:.3f}" for name, value in scalars.items())
        logging.info("step %d: validation %s", self.step, shown or "none; checkpoint written")
        self.last_save = time.monotonic()

    def _evaluate(self, scalars: dict[str, float]) -> None:
        """Measures the validation loss, translates the sample, and draws pictures."""
        data = self.data
        if data.validation is not None:
            loss, _ = self.cross_entropy(data.validation)
            scalars |= {"loss": loss, "perplexity": perplexity_of(loss)}
        if data.translate_sample is not None:
            scores, text = data.translate_sample(self.model)
            scalars |= scores
            self.curves.text("validation/translations", self.step, text)
        if data.draw_sample is not None:
            for name, picture in data.draw_sample(self.model).items():
                self.curves.picture(f"attention/{name}", self.step, picture)
        if self.limits.histograms:
            self.curves.histograms(self.step, self.model)

    def _compare_with_best(self, scalars: dict[str, float]) -> None:
        metric = self.limits.best_metric
        if metric not in scalars:
            if self.limits.patience is not None or metric != "loss":
                rule = f"--best_metric must be one of what is measured, {', '.join(scalars)}"
                raise InputError(f"{rule}. Received: {metric}")
            return
        value = scalars[metric]
        first = self.best_value is None
        if math.isfinite(value) and (first or is_better(metric, value, self.best_value)):
            self.best_value, self.since_best = value, 0
        else:
            self.since_best += 1

    def save(self, validation: dict[str, float] | None = None) -> None:
        """Writes a checkpoint with all that a run goes on from."""
        self._count_time()
        entry = self.store.save(
            self.trackables(),
            step=self.step,
            seconds=self.seconds,
            progress={
                "sums": self.sums.tolist(),
                "summed": self.summed,
                "sum_seconds": self.sum_seconds,
                "best_value": self.best_value,
                "since_best": self.since_best,
            },
            **without_infinities({f"validation_{n}": v for n, v in (validation or {}).items()}),
        )
        self.curves.event("checkpoint", self.step, checkpoint=entry["name"])
        self.saved_step = self.step

    def result(self) -> dict[str, Any]:
        best, latest = self.store.best, self.store.latest
        scalars = {
            **self.metrics,
            **{f"validation_{n}": v for n, v in self.last_validation.items()},
        }
        return {
            "step": self.step,
            "minutes": round(self.seconds / 60, 2),
            "stopped": self.stopped(),
            **without_infinities({name: round(value, 4) for name, value in scalars.items()}),
            "parameters": self.model.count_params(),
            "checkpoints": len(self.store.entries),
            "checkpoint": self.store.path(latest) if latest else None,
            "best": self.store.path(best) if best else None,
        }


def _progress_bar(limits: Limits, step: int, seconds: float) -> tqdm:
    """A bar over minutes where they are the limit, else over steps."""
    if limits.train_minutes is not None:
        form = "{percentage:3.0f}%|{bar}| {elapsed} of {remaining} more {postfix}"
        total = limits.train_minutes * 60
        return tqdm(total=total, initial=min(seconds, total), bar_format=form, desc="training")
    return tqdm(total=limits.train_steps, initial=step, unit="step", desc="training")
