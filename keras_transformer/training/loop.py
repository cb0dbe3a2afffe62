"""The training loop: optimizer steps, curves, validations and checkpoints until the run is over."""

import dataclasses
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from absl import logging
from tensorboard.plugins.hparams import api as hparams

from keras_transformer.config import TrainingConfig, TransformerConfig
from keras_transformer.errors import InputError
from keras_transformer.training.checkpoints import CheckpointStore, checkpoint_name
from keras_transformer.training.cluster import Cluster
from keras_transformer.training.curves import Curves, finite_or_none
from keras_transformer.training.interruption import Interruption, listening
from keras_transformer.training.loop_config import LoopConfig
from keras_transformer.training.metrics import held_out_perplexity
from keras_transformer.training.run_state import RunState
from keras_transformer.training.step import TrainingStep
from keras_transformer.training.strategy import compiles

LIMITS = ("patience", "train_minutes", "train_steps")  # what ends a run, apart from signals


@dataclasses.dataclass(frozen=True)
class TrainingData:
    """What the loop reads, in batches of (source int32 [B, S], target int32 [B, T])."""

    batches: tf.data.Dataset  # endless
    # What XLA pads batches to: rising numbers, up to the longest sentence. None leaves XLA out.
    lengths: Sequence[int] | None = None
    validation: tf.data.Dataset | None = None  # finite
    # Called at each validation; returns scalars, such as {"bleu": 31.2}, and a text to show.
    translate_sample: Callable[[keras.Model], tuple[dict[str, float], str]] | None = None
    # Called likewise; returns pictures, uint8 [height, width, 3], by name.
    draw_sample: Callable[[keras.Model], dict[str, np.ndarray]] | None = None


def train(
    model_config: TransformerConfig,
    training_config: TrainingConfig,
    data: TrainingData,
    model_dir: str | Path,
    config: LoopConfig,
    strategy: tf.distribute.Strategy,
    cluster: Cluster | None = None,
    initialize: Callable[[keras.Model], None] | None = None,
) -> dict[str, Any]:
    """Trains until `config` ends the run, from the last checkpoint of `model_dir` if it has one.

    On SIGTERM or Ctrl-C the steps under way are finished and saved first. With a `cluster`, all its
    workers call this; the chief alone validates and writes, and a signal to any stops them all.
    `initialize` is called with the model if the run begins, and may give it other weights.

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
    with listening(cluster.pass_on) as interruption:
        step = _make_step(model_config, training_config, data, config, strategy)
        # tf.train.Checkpoint finds none of a functional Keras model's variables by itself.
        saved = {
            "model": [variable.value for variable in step.model.variables],
            "optimizer": [variable.value for variable in step.optimizer.variables],
            "iterator": iter(data.batches),
        }
        store = CheckpointStore(model_dir, config.keep_checkpoints, config.best_metric)
        state = _restore(store, saved, cluster)
        if initialize is not None and state.step == 0:
            initialize(step.model)
        # From the disk: the chief may have written one that it has not told of.
        cluster.newest_checkpoint = lambda: (CheckpointStore(model_dir).latest or {}).get("name")
        with Curves(model_dir, state, config, cluster.is_chief) as curves:
            settings = {**dataclasses.asdict(model_config), **dataclasses.asdict(training_config)}
            hparams.hparams({key: "none" if v is None else v for key, v in settings.items()})
            run = _Run(config, data, step, saved, store, state, curves, cluster, interruption)
            run.agree()
            while not state.stopped:
                curves.profile(state.step + 1)
                run.take_steps()
                run.agree()
                curves.progress(state)
                if state.step % config.log_steps == 0 or state.stopped in LIMITS:
                    run.log()
                if state.checkpoint_due and not state.stopped:
                    run.validate_and_save()
                    run.agree()
            if state.step != state.saved_step:
                run.validate_and_save()
                run.agree()
    if state.stopped not in LIMITS:
        logging.info("%s at step %d: run the command again to resume", state.stopped, state.step)
    if interruption.signal == signal.SIGINT:
        raise KeyboardInterrupt
    return run.result()


def _make_step(model_config, training_config, data, config, strategy) -> TrainingStep:
    """Builds the model and its optimizer; warns if the batches have too few rows."""
    if data.lengths is not None:
        rows = training_config.tokens_per_batch // max(1, data.lengths[-1])
        parts = strategy.num_replicas_in_sync * training_config.accumulate_steps
        if rows < parts:
            rule = "fewer rows (%d) than replicas x accumulate_steps (%d): some have nothing to do"
            logging.warning("batches of the longest sentences have " + rule, rows, parts)
    lengths = data.lengths if compiles(config.xla) else None
    step = TrainingStep(model_config, training_config, strategy, lengths)
    logging.info("training %.1f million parameters", step.model.count_params() / 1e6)
    if step.shapes:
        shapes = " ".join(f"{rows}x{length}" for rows, length in step.shapes)
        logging.info("XLA: %d shapes, rows x length of both sides: %s", len(step.shapes), shapes)
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


@dataclasses.dataclass
class _Run:
    """The parts of the loop, which move `state` on, and what they work with."""

    config: LoopConfig
    data: TrainingData
    step: TrainingStep
    saved: dict[str, Any]  # what a checkpoint has, by name
    store: CheckpointStore
    state: RunState
    curves: Curves
    cluster: Cluster
    interruption: Interruption

    def agree(self) -> None:
        """Takes from the chief what depends on a clock, a disk or a signal."""
        state = self.state
        state.seconds = time.monotonic() - state.began
        decision = {
            "seconds": state.seconds,
            "steps_a_call": state.steps_a_call,
            "saved_step": state.saved_step,
            "checkpoint_due": self._is_checkpoint_due(),
            "stopped": self._stopped(),
        }
        for name, value in self.cluster.agreed(decision).items():
            setattr(state, name, value)
        expected = self.config.expected_steps(state.step, state.seconds)
        self.step.total_steps.assign(expected)

    def _is_checkpoint_due(self) -> bool:
        state, every = self.state, self.config.checkpoint_steps
        if state.skipped_in_row:
            return False  # the last good checkpoint stays the last
        due = state.seconds - state.saved_seconds >= self.config.checkpoint_minutes * 60
        return due or (every is not None and state.step % every == 0)

    def _stopped(self) -> str | None:
        config, state = self.config, self.state
        if self.interruption:
            return self.interruption.signal.name
        if config.patience is not None and state.since_best >= config.patience:
            return "patience"
        if config.train_minutes is not None and state.seconds >= config.train_minutes * 60:
            return "train_minutes"
        return "train_steps" if state.step >= config.train_steps else None

    def take_steps(self) -> None:
        """Takes steps for about a second, and none beyond the next event."""
        state, shapes = self.state, self.step.compiled_shapes
        steps = min(state.steps_a_call, self.config.steps_to_next(state.step))
        compiled = len(shapes)
        start = time.monotonic()
        state.sums = np.array(self.step.run(self.saved["iterator"], steps, state.sums))
        seconds = time.monotonic() - start
        state.step += steps
        state.summed += steps
        state.sum_seconds += seconds
        if state.metrics:  # the first call traces, and its time tells nothing
            state.steps_a_call = max(1, int(steps / seconds))
        state.metrics = state.summarize()
        for count, ((rows, length), took) in enumerate(shapes.items(), start=1):
            if count > compiled:
                logging.info("XLA: %dx%d took %.1f s, compilation %d", rows, length, took, count)
                shape = {"rows": rows, "length": length, "seconds": round(took, 3)}
                self.curves.event("compilation", state.step, **shape, count=count)
        if state.skipped_in_row >= self.config.max_skipped_steps:
            last = self.store.directory / checkpoint_name(state.saved_step)
            raise InputError(
                "gradients must be finite; try a lower --config learning_rate_scale, or "
                f"--precision=float32. Received: {state.skipped_in_row} steps in a row skipped up "
                f"to step {state.step} (--max_skipped_steps={self.config.max_skipped_steps}); last "
                f"good checkpoint: {last if state.saved_step else 'none'}"
            )

    def log(self) -> None:
        """Writes a point of the curves: of `log_steps` steps, or of fewer at the run's end."""
        state = self.state
        speed = state.metrics["tokens_per_second"] / self.step.strategy.num_replicas_in_sync
        rates = {"tokens_per_second_per_replica": speed, **self.step.rates()}
        self.curves.scalars("training", state.step, {**state.metrics, **rates})
        if state.step % self.config.log_steps == 0:
            state.sums[:-1] = 0.0  # all but skipped_in_row
            state.summed, state.sum_seconds = 0, 0.0

    def validate_and_save(self) -> None:
        """Validates and writes a checkpoint, on the chief. A signal ends the validation only."""
        if not self.cluster.is_chief:
            return
        state, store = self.state, self.store
        scalars = self.interruption.unless_heard(self._validate) or {}
        measured = finite_or_none({f"validation_{name}": value for name, value in scalars.items()})
        if not self.interruption:
            self.config.check_measured(scalars)
        if self.config.best_metric in scalars:
            is_best = store.best_of([*store.entries, measured]) is measured
            state.since_best = 0 if is_best else state.since_best + 1
        if scalars:
            state.validation = measured
            self.curves.scalars("validation", state.step, scalars)
        tf.summary.flush()
        state.seconds = time.monotonic() - state.began
        entry = store.save(self.saved, **state.to_entry(), **measured)
        self.curves.event("checkpoint", state.step, checkpoint=entry["name"])
        shown = " ".join(f"{name} {value:.3f}" for name, value in scalars.items())
        logging.info("step %d: validation %s", state.step, shown or "none; checkpoint written")
        state.saved_step, state.saved_seconds = state.step, time.monotonic() - state.began

    def _validate(self) -> dict[str, float]:
        """Measures the model and shows what it does; changes nothing that is saved."""
        data, model, step, scalars = self.data, self.step.model, self.state.step, {}
        if data.validation is not None:
            losses = ((self.step.held_out_loss(*batch), batch[1]) for batch in data.validation)
            found = held_out_perplexity(losses)
            scalars = {"loss": found["cross_entropy"], "perplexity": found["perplexity"]}
        if data.translate_sample is not None:
            scores, text = data.translate_sample(model)
            scalars |= scores
            tf.summary.text("validation/translations", text, step=step)
        if data.draw_sample is not None:
            for name, picture in data.draw_sample(model).items():
                tf.summary.image(f"attention/{name}", picture[None], step=step)
        if self.config.histograms:
            for variable in model.trainable_variables:
                tf.summary.histogram(variable.path, tf.convert_to_tensor(variable.value), step=step)
        return scalars

    def result(self) -> dict[str, Any]:
        state, minutes = self.state, round(self.state.seconds / 60, 2)
        stands = {"step": state.step, "minutes": minutes, "stopped": state.stopped}
        if not self.cluster.is_chief:
            return {"worker": self.cluster.index, **stands}
        scalars = finite_or_none({**state.metrics, **state.validation})
        best, latest = self.store.best, self.store.latest
        return {
            **stands,
            **{name: value and round(value, 4) for name, value in scalars.items()},
            "parameters": self.step.model.count_params(),
            "checkpoints": len(self.store.entries),
            "checkpoint": latest and self.store.path(latest),
            "best": best and self.store.path(best),
        }
