"""The training loop: steps, curves, validation and checkpoints until a limit is reached."""

import contextlib
import math
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from keras_transformer.config import TrainingConfig, TransformerConfig
from keras_transformer.errors import InputError
from keras_transformer.training.checkpoints import (
    CheckpointStore,
    is_better,
    named_variables,
    newest_checkpoint,
)
from keras_transformer.training.cluster import Cluster
from keras_transformer.training.curves import Curves, NoCurves, without_infinities
from keras_transformer.training.data import TrainingData
from keras_transformer.training.interruption import listening
from keras_transformer.training.limits import Limits
from keras_transformer.training.progress import Progress
from keras_transformer.training.step import SUMS, TrainingStep
from keras_transformer.training.summaries import summarize
from keras_transformer.training.validation import Validation


def train(
    model_config: TransformerConfig,
    training_config: TrainingConfig,
    data: TrainingData,
    model_dir: str | Path,
    limits: Limits,
    strategy: tf.distribute.Strategy,
    cluster: Cluster | None = None,
) -> dict[str, Any]:
    """Trains until a limit, from the last checkpoint of `model_dir` where there is one.

    On SIGTERM or Ctrl-C the steps under way are finished and saved first. With a `cluster`, all its
    workers call this; the chief alone validates and writes, and on a signal to any they all stop.

    Returns:
        {"step", "minutes", "stopped" (by "train_steps", "train_minutes", "patience" or "SIGTERM"),
        "loss", "perplexity", "tokens_per_second", "parameters", "checkpoint", "best", ...}: where
        the run stands. Workers that are not the chief: {"worker", "step", "minutes", "stopped"}.

    Raises:
        InputError: where a checkpoint cannot be read or written, too many steps in a row had
            gradients that are not finite, or another worker died.
        KeyboardInterrupt: on Ctrl-C.
    """
    cluster = cluster or Cluster()
    configs = (model_config, training_config)
    with listening(cluster.pass_on) as interruption:
        run = _Run(configs, data, model_dir, limits, strategy, interruption, cluster)
        with run.progress, contextlib.closing(run.curves):
            run.until_limit()
    if run.signal:
        logging.info("%s at step %d: run the same command again to go on", run.signal, run.step)
    if interruption.signal == signal.SIGINT:
        raise KeyboardInterrupt
    return run.result()


# What depends on the chief's clock or disk, or on a signal: `_Run._agree` makes it one for all.
AGREED = ("seconds", "spell", "checkpoint_due", "checkpoint", "since_best", "signal")


class _Run:
    """The state of one call of `train`."""

    def __init__(self, configs, data, model_dir, limits, strategy, interruption, cluster):
        self.limits, self.data = limits, data
        self.interruption, self.cluster = interruption, cluster
        self.training_step = TrainingStep(*configs, strategy, data.buckets)
        self.model = self.training_step.model
        self.store = CheckpointStore(model_dir, limits.keep_checkpoints, limits.best_metric)
        cluster.newest_checkpoint = lambda: newest_checkpoint(model_dir)
        self.iterator = iter(data.batches)
        self.step, self.seconds = 0, 0.0
        self.spell, self.checkpoint_due, self.signal = 1, False, None
        # Since the last point of the curves; saved, for the next to be what it would have been.
        self.sums, self.summed, self.sum_seconds = np.zeros(len(SUMS)), 0, 0.0
        self.best_value, self.since_best = None, 0
        self.metrics: dict[str, float] = {}
        self.last_validation: dict[str, float] = {}
        entry = self._restore()
        self.saved_step = self.step
        self.curves = Curves(model_dir, self.step) if cluster.is_chief else NoCurves()
        self.curves.settings(*configs)
        if entry is not None:
            self.curves.event("resumed", self.step, checkpoint=entry["name"])
        self.validation = Validation(self.model, data, self.curves, limits.histograms)
        self.progress = Progress(limits, self.step, self.seconds, shown=cluster.is_chief)

    def trackables(self) -> dict[str, Any]:
        return {
            "model": named_variables(self.model.variables),
            "optimizer": named_variables(self.training_step.optimizer.variables),
            "iterator": self.iterator,
        }

    def _restore(self) -> dict[str, Any] | None:
        """Goes to the newest whole checkpoint, if there is one; all workers to the chief's."""
        if self.cluster.is_chief:
            self.store.remove_unfinished()
            entry = self.store.restore(self.trackables())
            self.checkpoint = self.cluster.agreed(entry and entry["name"])
        else:
            self.checkpoint = self.cluster.agreed(None)
            entry = self.store.restore_only(self.checkpoint, self.trackables())
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
        self._agree()
        while not self.stopped():
            first, last = self.limits.profile_steps or (0, 0)
            self.curves.profile(first <= self.step + 1 <= last)
            self._take_steps()
            self._agree()
            ended = bool(self.stopped())
            if self.step % self.limits.log_steps == 0 or (ended and not self.signal):
                self._log()
            if self.checkpoint_due and not ended:
                self._by_chief(self.validate_and_save)
        self._by_chief(self._save_what_is_left)

    def _agree(self) -> None:
        """Makes one for all workers what each of them would see differently."""
        if self.interruption:
            self.signal = self.interruption.signal.name
            self.cluster.pass_on(self.interruption.signal)
        self.checkpoint_due = self._is_checkpoint_due()
        mine = {name: getattr(self, name) for name in AGREED}
        for name, value in self.cluster.agreed(mine).items():
            setattr(self, name, value)

    def _by_chief(self, act: Callable[[], None]) -> None:
        """The chief does it; the others wait, and learn what it has come to."""
        if self.cluster.is_chief:
            act()
        self._agree()

    def stopped(self) -> str | None:
        """What has ended the run, if anything has."""
        limits = self.limits
        if self.signal:
            return self.signal
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
        self.progress.show(self.step, self.seconds, self.metrics)

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

    def _is_checkpoint_due(self) -> bool:
        if self._skipped_in_row():
            return False  # the last good checkpoint is to stay the last
        every = self.limits.checkpoint_steps
        waited = time.monotonic() - self.last_save
        due = waited >= self.limits.checkpoint_minutes * 60
        return due or (every is not None and self.step % every == 0)

    def _skipped_in_row(self) -> int:
        return int(self.sums[SUMS.index("skipped_in_row")])

    def _check_skipped(self) -> None:
        skipped = self._skipped_in_row()
        if skipped >= self.limits.max_skipped_steps:
            last = self.checkpoint and self.store.directory / self.checkpoint
            raise InputError(
                "gradients must be finite; try a lower --config learning_rate_scale, or "
                f"--precision=float32. Received: {skipped} steps in a row skipped up to step "
                f"{self.step} (--max_skipped_steps={self.limits.max_skipped_steps}); last good "
                f"checkpoint: {last or 'none'}"
            )

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
        if not self.interruption.unless_heard(lambda: self.validation.run(self.step, scalars)):
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

    def _save_what_is_left(self) -> None:
        if self.step != self.saved_step:
            self.validate_and_save()
        if self.step != self.saved_step:
            self.save()

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
        self.saved_step, self.checkpoint = self.step, entry["name"]

    def result(self) -> dict[str, Any]:
        stands = {
            "step": self.step,
            "minutes": round(self.seconds / 60, 2),
            "stopped": self.stopped(),
        }
        if not self.cluster.is_chief:
            return {"worker": self.cluster.index, **stands}
        best, latest = self.store.best, self.store.latest
        scalars = {
            **self.metrics,
            **{f"validation_{n}": v for n, v in self.last_validation.items()},
        }
        return {
            **stands,
            **without_infinities({name: round(value, 4) for name, value in scalars.items()}),
            "parameters": self.model.count_params(),
            "checkpoints": len(self.store.entries),
            "checkpoint": self.store.path(latest) if latest else None,
            "best": self.store.path(best) if best else None,
        }
