"""The training loop: optimizer steps, curves, validations and checkpoints until the run is over."""

import contextlib
import dataclasses
import functools
import math
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from absl import logging

from keras_transformer.config import TrainingConfig, TransformerConfig
from keras_transformer.errors import InputError
from keras_transformer.training.buckets import Buckets
from keras_transformer.training.checkpoints import (
    CheckpointStore,
    checkpoint_name,
    is_better,
    named_variables,
    newest_checkpoint,
)
from keras_transformer.training.cluster import Cluster
from keras_transformer.training.curves import Curves, finite_or_none
from keras_transformer.training.interruption import Interruption, listening
from keras_transformer.training.loop_config import LoopConfig
from keras_transformer.training.run_state import RunState
from keras_transformer.training.step import TrainingStep
from keras_transformer.training.strategy import compiles
from keras_transformer.training.summaries import CrossEntropy, perplexity_of, summarize

LIMITS = ("patience", "train_minutes", "train_steps")  # what ends a run, apart from signals


@dataclasses.dataclass(frozen=True)
class TrainingData:
    """What the loop reads.

    Fields:
        batches: an endless tf.data.Dataset of (source int32 [B, S], target int32 [B, T]).
        lengths: what batches are padded to where XLA compiles the steps: rising numbers, up to the
            longest sentence. None leaves XLA out.
        validation: a finite dataset of such batches, or None.
        translate_sample: called with the model at each validation; returns scalars (such as
            {"bleu": 31.2}) and a text to show, or is None.
        draw_sample: called likewise; returns pictures uint8 [height, width, 3] by name, or is None.
    """

    batches: tf.data.Dataset
    lengths: Sequence[int] | None = None
    validation: tf.data.Dataset | None = None
    translate_sample: Callable[[keras.Model], tuple[dict[str, float], str]] | None = None
    draw_sample: Callable[[keras.Model], dict[str, np.ndarray]] | None = None


def train(
    model_config: TransformerConfig,
    training_config: TrainingConfig,
    data: TrainingData,
    model_dir: str | Path,
    config: LoopConfig,
    strategy: tf.distribute.Strategy,
    cluster: Cluster | None = None,
) -> dict[str, Any]:
    """Trains until `config` ends the run, from the last checkpoint of `model_dir` if it has one.

    On SIGTERM or Ctrl-C the steps under way are finished and saved first. With a `cluster`, all its
    workers call this; the chief alone validates and writes, and a signal to any stops them all.

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
    cluster.newest_checkpoint = lambda: newest_checkpoint(model_dir)
    cluster.require_same("replicas of all workers", strategy.num_replicas_in_sync)
    with listening(cluster.pass_on) as interruption:
        step = _make_step(model_config, training_config, data, config, strategy)
        saved = {
            "model": named_variables(step.model.variables),
            "optimizer": named_variables(step.optimizer.variables),
            "iterator": iter(data.batches),
        }
        store = CheckpointStore(model_dir, config.keep_checkpoints, config.best_metric)
        state = _restore(store, saved, cluster)
        with contextlib.closing(Curves(model_dir, state, config, cluster.is_chief)) as curves:
            curves.settings(model_config, training_config)
            run = _Run(config, data, step, saved, store, curves, cluster, interruption)
            state = run.agree(state)
            while not state.stopped:
                curves.profile(state.step + 1)
                state = run.agree(run.take_steps(state))
                curves.progress(state)
                if state.step % config.log_steps == 0 or state.stopped in LIMITS:
                    state = run.log(state)
                if state.checkpoint_due and not state.stopped:
                    state = run.agree(run.validate_and_save(state))
            if state.step != state.saved_step:
                state = run.agree(run.validate_and_save(state))
    if state.stopped not in LIMITS:
        logging.info("%s at step %d: run the command again to resume", state.stopped, state.step)
    if interruption.signal == signal.SIGINT:
        raise KeyboardInterrupt
    return run.result(state)


def _make_step(model_config, training_config, data, config, strategy) -> TrainingStep:
    """Builds the model and its optimizer; warns if the batches have too few rows."""
    buckets = None
    if data.lengths is not None:
        tokens = training_config.tokens_per_batch
        rows = tokens // max(1, data.lengths[-1])
        parts = strategy.num_replicas_in_sync * training_config.accumulate_steps
        if rows < parts:
            rule = "fewer rows (%d) than replicas x accumulate_steps (%d): some have nothing to do"
            logging.warning("batches of the longest sentences have " + rule, rows, parts)
        buckets = Buckets(data.lengths, tokens) if compiles(config.xla) else None
    step = TrainingStep(model_config, training_config, strategy, buckets)
    logging.info("training %.1f million parameters", step.model.count_params() / 1e6)
    if buckets is not None:
        logging.info("XLA: %s", buckets.described(step.parts))
    return step


def _restore(store: CheckpointStore, saved: dict[str, Any], cluster: Cluster) -> RunState:
    """Restores the newest whole checkpoint, if there is one; every worker restores the chief's."""
    if cluster.is_chief:
        store.remove_unlisted()
        entry = store.restore(saved)
        cluster.agreed(entry and entry["name"])
    else:
        name = cluster.agreed(None)
        entry = name and store.restore(saved, name)
    if not entry:
        return RunState()
    logging.info("resuming from step %d", entry["step"])
    return RunState.restored(entry)


@dataclasses.dataclass(frozen=True)
class _Run:
    """The parts of the loop, each from a RunState to the next one, and what they work with."""

    config: LoopConfig
    data: TrainingData
    step: TrainingStep
    saved: dict[str, Any]  # what a checkpoint has, by name
    store: CheckpointStore
    curves: Curves
    cluster: Cluster
    interruption: Interruption

    @functools.cached_property
    def cross_entropy(self) -> CrossEntropy:
        return CrossEntropy(self.step.model)

    def agree(self, state: RunState) -> RunState:
        """Takes from the chief what depends on a clock, a disk or a signal."""
        if self.interruption:
            self.cluster.pass_on(self.interruption.signal)
        state = dataclasses.replace(state, seconds=time.monotonic() - state.began)
        decision = {
            "seconds": state.seconds,
            "steps_a_call": state.steps_a_call,
            "saved_step": state.saved_step,
            "checkpoint_due": self._is_checkpoint_due(state),
            "stopped": self._stopped(state),
        }
        return dataclasses.replace(state, **self.cluster.agreed(decision))

    def _is_checkpoint_due(self, state: RunState) -> bool:
        if state.skipped_in_row:
            return False  # the last good checkpoint stays the last
        every = self.config.checkpoint_steps
        due = state.seconds - state.saved_seconds >= self.config.checkpoint_minutes * 60
        return due or (every is not None and state.step % every == 0)

    def _stopped(self, state: RunState) -> str | None:
        config = self.config
        if self.interruption:
            return self.interruption.signal.name
        if config.patience is not None and state.since_best >= config.patience:
            return "patience"
        if config.train_minutes is not None and state.seconds >= config.train_minutes * 60:
            return "train_minutes"
        return "train_steps" if state.step >= config.train_steps else None

    def take_steps(self, state: RunState) -> RunState:
        """Takes steps for about a second, and none beyond the next event."""
        steps = min(state.steps_a_call, self.config.steps_to_next(state.step))
        compiled = len(self.step.compiled_shapes)
        start = time.monotonic()
        sums = np.array(self.step.run(self.saved["iterator"], steps, state.sums))
        seconds = time.monotonic() - start
        summed, sum_seconds = state.summed + steps, state.sum_seconds + seconds
        first = not state.metrics  # the first call traces, and its time tells nothing
        state = dataclasses.replace(
            state,
            step=state.step + steps,
            sums=sums,
            summed=summed,
            sum_seconds=sum_seconds,
            steps_a_call=state.steps_a_call if first else max(1, int(steps / seconds)),
            metrics=summarize(sums, summed, sum_seconds),
        )
        self._report_compilations(state.step, compiled)
        if state.skipped_in_row >= self.config.max_skipped_steps:
            raise self._too_many_skipped(state)
        return state

    def _report_compilations(self, step: int, known: int) -> None:
        compiled = list(self.step.compiled_shapes.items())
        for count, ((rows, length), seconds) in enumerate(compiled[known:], start=known + 1):
            logging.info("XLA: %dx%d took %.1f s, compilation %d", rows, length, seconds, count)
            shape = {"rows": rows, "length": length, "seconds": round(seconds, 3)}
            self.curves.event("compilation", step, **shape, count=count)

    def _too_many_skipped(self, state: RunState) -> InputError:
        last = self.store.directory / checkpoint_name(state.saved_step)
        return InputError(
            "gradients must be finite; try a lower --config learning_rate_scale, or "
            f"--precision=float32. Received: {state.skipped_in_row} steps in a row skipped up to "
            f"step {state.step} (--max_skipped_steps={self.config.max_skipped_steps}); last good "
            f"checkpoint: {last if state.saved_step else 'none'}"
        )

    def log(self, state: RunState) -> RunState:
        """Writes a point of the curves: of `log_steps` steps, or of fewer at the run's end."""
        speed = state.metrics["tokens_per_second"] / self.step.replicas
        rates = {"tokens_per_second_per_replica": speed, **self.step.rates()}
        self.curves.scalars("training", state.step, {**state.metrics, **rates})
        if state.step % self.config.log_steps:
            return state
        sums = np.zeros_like(state.sums)
        sums[-1] = state.skipped_in_row
        return dataclasses.replace(state, sums=sums, summed=0, sum_seconds=0.0)

    def validate_and_save(self, state: RunState) -> RunState:
        """Validates and writes a checkpoint, on the chief. A signal ends the validation only."""
        if not self.cluster.is_chief:
            return state
        scalars = self.interruption.unless_heard(lambda: self._validate(state.step))
        if scalars is not None:
            state = dataclasses.replace(self._with_best(state, scalars), validation=scalars)
        scalars = scalars or {}
        if scalars:
            self.curves.scalars("validation", state.step, scalars)
        self.curves.flush()
        state = dataclasses.replace(state, seconds=time.monotonic() - state.began)
        measured = {f"validation_{name}": value for name, value in scalars.items()}
        entry = self.store.save(self.saved, **state.to_entry(), **finite_or_none(measured))
        self.curves.event("checkpoint", state.step, checkpoint=entry["name"])
        shown = " ".join(f"{name} {value:.3f}" for name, value in scalars.items())
        logging.info("step %d: validation %s", state.step, shown or "none; checkpoint written")
        seconds = time.monotonic() - state.began
        return dataclasses.replace(state, saved_step=state.step, saved_seconds=seconds)

    def _validate(self, step: int) -> dict[str, float]:
        """Measures the model and shows what it does; changes nothing that is saved."""
        data, model, scalars = self.data, self.step.model, {}
        if data.validation is not None:
            loss, _ = self.cross_entropy(data.validation)
            scalars |= {"loss": loss, "perplexity": perplexity_of(loss)}
        if data.translate_sample is not None:
            scores, text = data.translate_sample(model)
            scalars |= scores
            self.curves.text("validation/translations", step, text)
        if data.draw_sample is not None:
            for name, picture in data.draw_sample(model).items():
                self.curves.picture(f"attention/{name}", step, picture)
        if self.config.histograms:
            self.curves.histograms(step, model)
        return scalars

    def _with_best(self, state: RunState, scalars: dict[str, float]) -> RunState:
        """Compares a validation with the best one before it."""
        metric, best = self.config.best_metric, state.best_value
        self.config.check_measured(scalars)
        if metric not in scalars:
            return state
        value = scalars[metric]
        if math.isfinite(value) and (best is None or is_better(metric, value, best)):
            return dataclasses.replace(state, best_value=value, since_best=0)
        return dataclasses.replace(state, since_best=state.since_best + 1)

    def result(self, state: RunState) -> dict[str, Any]:
        stands = {
            "step": state.step,
            "minutes": round(state.seconds / 60, 2),
            "stopped": state.stopped,
        }
        if not self.cluster.is_chief:
            return {"worker": self.cluster.index, **stands}
        validation = {f"validation_{name}": value for name, value in state.validation.items()}
        scalars = {name: round(v, 4) for name, v in {**state.metrics, **validation}.items()}
        best, latest = self.store.best, self.store.latest
        return {
            **stands,
            **finite_or_none(scalars),
            "parameters": self.step.model.count_params(),
            "checkpoints": len(self.store.entries),
            "checkpoint": self.store.path(latest) if latest else None,
            "best": self.store.path(best) if best else None,
        }
